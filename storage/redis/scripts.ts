/** The Lua scripts: what each is put together from, and the digest Redis knows it by. Each runs on the keys of one partition, or on those of the site. */

import { createHash } from "node:crypto";
import additions from "./scripts/additions.lua";
import append from "./scripts/append.lua";
import appendGeneral from "./scripts/append-general.lua";
import calls from "./scripts/calls.lua";
import commonPath from "./scripts/common-path.lua";
import content from "./scripts/content.lua";
import contentAllocate from "./scripts/content-allocate.lua";
import contentChanges from "./scripts/content-changes.lua";
import contentCheck from "./scripts/content-check.lua";
import contentCommit from "./scripts/content-commit.lua";
import contentRead from "./scripts/content-read.lua";
import contentScan from "./scripts/content-scan.lua";
import create from "./scripts/create.lua";
import exchange from "./scripts/exchange.lua";
import exchangeClaim from "./scripts/exchange-claim.lua";
import exchangeSettle from "./scripts/exchange-settle.lua";
import expiredLeases from "./scripts/expired-leases.lua";
import notices from "./scripts/notices.lua";
import prelude from "./scripts/prelude.lua";
import read from "./scripts/read.lua";
import recover from "./scripts/recover.lua";
import remove from "./scripts/remove.lua";
import repair from "./scripts/repair.lua";
import repairTallies from "./scripts/repair-tallies.lua";
import resend from "./scripts/resend.lua";
import retention from "./scripts/retention.lua";
import rosters from "./scripts/rosters.lua";
import settle from "./scripts/settle.lua";
import settleNotice from "./scripts/settle-notice.lua";
import tidy from "./scripts/tidy.lua";
import time from "./scripts/time.lua";
import update from "./scripts/update.lua";

export interface Script {
  readonly name: string;
  readonly text: string;
  /** SHA-1 of the text, in hex: what EVALSHA takes. */
  readonly digest: string;
}

function script(name: string, ...parts: readonly string[]): Script {
  const text = parts.join("\n");
  return { name, text, digest: createHash("sha1").update(text).digest("hex") };
}

export const SCRIPTS = {
  append: script("append", calls, commonPath, rosters, append, exchangeClaim),
  appendGeneral: script("append-general", calls, prelude, rosters, retention, additions, appendGeneral),
  contentAllocate: script("content-allocate", calls, content, contentAllocate),
  contentChanges: script("content-changes", calls, content, contentChanges),
  contentCheck: script("content-check", calls, content, contentCheck),
  contentCommit: script("content-commit", calls, content, contentCommit),
  contentRead: script("content-read", calls, content, contentRead),
  contentScan: script("content-scan", calls, content, contentScan),
  create: script("create", calls, prelude, rosters, retention, create),
  exchange: script("exchange", calls, commonPath, exchange, exchangeSettle, exchangeClaim),
  notices: script("notices", calls, prelude, retention, notices),
  read: script("read", calls, prelude, rosters, read),
  recover: script("recover", calls, prelude, rosters, retention, additions, recover),
  remove: script("remove", calls, prelude, rosters, retention, remove),
  repair: script("repair", calls, prelude, rosters, repair),
  repairTallies: script("repair-tallies", calls, prelude, rosters, repairTallies),
  resend: script("resend", calls, prelude, retention, additions, resend),
  settle: script("settle", calls, prelude, retention, settle),
  settleNotice: script("settle-notice", calls, prelude, rosters, retention, settleNotice),
  tidy: script("tidy", calls, prelude, rosters, retention, expiredLeases, tidy),
  time: script("time", time),
  update: script("update", calls, prelude, rosters, update),
} as const;
