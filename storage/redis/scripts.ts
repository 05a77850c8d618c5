/** The Lua scripts: what each is put together from, and the digest Redis knows it by. Each runs on the keys of one partition. */

import { createHash } from "node:crypto";
import additions from "./scripts/additions.lua";
import append from "./scripts/append.lua";
import claim from "./scripts/claim.lua";
import claiming from "./scripts/claiming.lua";
import create from "./scripts/create.lua";
import notices from "./scripts/notices.lua";
import prelude from "./scripts/prelude.lua";
import read from "./scripts/read.lua";
import recover from "./scripts/recover.lua";
import remove from "./scripts/remove.lua";
import repair from "./scripts/repair.lua";
import resend from "./scripts/resend.lua";
import retention from "./scripts/retention.lua";
import rosters from "./scripts/rosters.lua";
import settle from "./scripts/settle.lua";
import settleNotice from "./scripts/settle-notice.lua";
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
  append: script("append", prelude, rosters, retention, additions, claiming, append),
  claim: script("claim", prelude, rosters, retention, claiming, claim),
  create: script("create", prelude, rosters, retention, create),
  notices: script("notices", prelude, retention, notices),
  read: script("read", prelude, rosters, read),
  recover: script("recover", prelude, rosters, retention, additions, recover),
  remove: script("remove", prelude, rosters, retention, remove),
  repair: script("repair", prelude, rosters, repair),
  resend: script("resend", prelude, retention, additions, resend),
  settle: script("settle", prelude, retention, settle),
  settleNotice: script("settle-notice", prelude, rosters, retention, settleNotice),
  time: script("time", time),
  update: script("update", prelude, rosters, update),
} as const;
