/**
 * The Lua scripts: the files that each is assembled from, and the digest that Redis knows it by. A
 * script runs on the keys of one partition, or on those of the site.
 */

import { createHash } from "node:crypto";
import * as constants from "../queue/constants.js";
import additions from "./scripts/additions.lua";
import append from "./scripts/append.lua";
import audit from "./scripts/audit.lua";
import buffers from "./scripts/buffers.lua";
import calls from "./scripts/calls.lua";
import claimDue from "./scripts/claim-due.lua";
import cleanUp from "./scripts/clean-up.lua";
import commonPath from "./scripts/common-path.lua";
import content from "./scripts/content.lua";
import contentAllocate from "./scripts/content-allocate.lua";
import contentChanges from "./scripts/content-changes.lua";
import contentCheck from "./scripts/content-check.lua";
import contentCommit from "./scripts/content-commit.lua";
import contentRead from "./scripts/content-read.lua";
import contentScan from "./scripts/content-scan.lua";
import counters from "./scripts/counters.lua";
import create from "./scripts/create.lua";
import deliveries from "./scripts/deliveries.lua";
import endpoints from "./scripts/endpoints.lua";
import events from "./scripts/events.lua";
import expiredLeases from "./scripts/expired-leases.lua";
import keys from "./scripts/keys.lua";
import appendRules from "./scripts/lib/append.lua";
import endpointRules from "./scripts/lib/endpoint.lua";
import turnRules from "./scripts/lib/turns.lua";
import notices from "./scripts/notices.lua";
import read from "./scripts/read.lua";
import recent from "./scripts/recent.lua";
import recover from "./scripts/recover.lua";
import remembered from "./scripts/remembered.lua";
import remove from "./scripts/remove.lua";
import repair from "./scripts/repair.lua";
import repairTallies from "./scripts/repair-tallies.lua";
import resend from "./scripts/resend.lua";
import retention from "./scripts/retention.lua";
import rosters from "./scripts/rosters.lua";
import settle from "./scripts/settle.lua";
import settleAndClaim from "./scripts/settle-and-claim.lua";
import settleFirstAttempts from "./scripts/settle-first-attempts.lua";
import settleNotice from "./scripts/settle-notice.lua";
import tidy from "./scripts/tidy.lua";
import time from "./scripts/time.lua";
import turns from "./scripts/turns.lua";
import update from "./scripts/update.lua";

export interface Script {
  readonly name: string;
  readonly text: string;
  /** SHA-1 of the text, in hex: what EVALSHA takes. */
  readonly digest: string;
}

/** Lua has no modules inside Redis: each part declares locals for the parts that follow it. */
function assemble(name: string, ...parts: readonly string[]): Script {
  const text = parts.join("\n");
  return { name, text, digest: createHash("sha1").update(text).digest("hex") };
}

/** The numbers of `storage/queue/constants.ts` as Lua's locals. */
const CONSTANTS = Object.entries(constants)
  .map(([name, value]) => `local ${name} = ${value}`)
  .join("\n");

/** The rules of `storage/queue` that scripts of the common path call. */
const QUEUE_RULES = [CONSTANTS, endpointRules, turnRules];

/** All rules of `storage/queue`, in Lua. */
export const RULES = [...QUEUE_RULES, appendRules];

/** The beginning of every general script of a partition. */
const GENERAL = [calls, ...RULES, keys, buffers, endpoints, turns, deliveries, events, counters];
/** The parts that complete deliveries and events. */
const COMPLETION = [remembered, retention];

export const SCRIPTS = {
  append: assemble(
    "append",
    calls,
    ...QUEUE_RULES,
    appendRules,
    commonPath,
    rosters,
    remembered,
    append,
    claimDue,
  ),
  audit: assemble("audit", calls, audit),
  contentAllocate: assemble("content-allocate", calls, content, contentAllocate),
  contentChanges: assemble("content-changes", calls, content, contentChanges),
  contentCheck: assemble("content-check", calls, content, contentCheck),
  contentCommit: assemble("content-commit", calls, content, contentCommit),
  contentRead: assemble("content-read", calls, content, contentRead),
  contentScan: assemble("content-scan", calls, content, contentScan),
  create: assemble("create", ...GENERAL, rosters, remembered, create),
  settleAndClaim: assemble(
    "settle-and-claim",
    calls,
    ...QUEUE_RULES,
    commonPath,
    recent,
    settleAndClaim,
    settleFirstAttempts,
    claimDue,
  ),
  notices: assemble("notices", ...GENERAL, remembered, notices),
  read: assemble("read", ...GENERAL, rosters, read),
  recover: assemble("recover", ...GENERAL, rosters, remembered, retention, additions, recover),
  remove: assemble("remove", ...GENERAL, rosters, ...COMPLETION, cleanUp, remove),
  repair: assemble("repair", ...GENERAL, rosters, repair),
  repairTallies: assemble("repair-tallies", ...GENERAL, rosters, repairTallies),
  resend: assemble("resend", ...GENERAL, remembered, retention, additions, resend),
  settle: assemble("settle", ...GENERAL, ...COMPLETION, recent, settle),
  settleNotice: assemble("settle-notice", ...GENERAL, rosters, remembered, settleNotice),
  tidy: assemble("tidy", ...GENERAL, rosters, ...COMPLETION, cleanUp, expiredLeases, tidy),
  time: assemble("time", time),
  update: assemble("update", ...GENERAL, rosters, update),
} as const;
