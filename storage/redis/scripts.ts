/**
 * The Lua scripts: the files that each is assembled from, and the digest that Redis knows it by. A
 * script runs on the keys of one partition, or on those of the site.
 */

import { createHash } from "node:crypto";
import * as constants from "../queue/constants.js";
import append from "./scripts/append.lua";
import audit from "./scripts/audit.lua";
import claim from "./scripts/claim.lua";
import claimHealthNotifications from "./scripts/claim-health-notifications.lua";
import contentAllocate from "./scripts/content-allocate.lua";
import contentChanges from "./scripts/content-changes.lua";
import contentCheck from "./scripts/content-check.lua";
import contentCommit from "./scripts/content-commit.lua";
import contentRead from "./scripts/content-read.lua";
import contentScan from "./scripts/content-scan.lua";
import create from "./scripts/create.lua";
import dataKey from "./scripts/data-key.lua";
import eraseAccount from "./scripts/erase-account.lua";
import eraseAudit from "./scripts/erase-audit.lua";
import eraseEvents from "./scripts/erase-events.lua";
import accounts from "./scripts/lib/accounts.lua";
import appendRules from "./scripts/lib/append.lua";
import calls from "./scripts/lib/calls.lua";
import claimDue from "./scripts/lib/claim.lua";
import completion from "./scripts/lib/completion.lua";
import content from "./scripts/lib/content.lua";
import deliveries from "./scripts/lib/deliveries.lua";
import endpointRules from "./scripts/lib/endpoint.lua";
import erasure from "./scripts/lib/erasure.lua";
import keys from "./scripts/lib/keys.lua";
import later from "./scripts/lib/later.lua";
import recent from "./scripts/lib/recent.lua";
import records from "./scripts/lib/records.lua";
import retention from "./scripts/lib/retention.lua";
import settlementRules from "./scripts/lib/settlement.lua";
import turnRules from "./scripts/lib/turns.lua";
import webhooks from "./scripts/lib/webhooks.lua";
import read from "./scripts/read.lua";
import recover from "./scripts/recover.lua";
import remove from "./scripts/remove.lua";
import repair from "./scripts/repair.lua";
import repairCounts from "./scripts/repair-counts.lua";
import resend from "./scripts/resend.lua";
import settle from "./scripts/settle.lua";
import settleHealthNotification from "./scripts/settle-health-notification.lua";
import tidy from "./scripts/tidy.lua";
import update from "./scripts/update.lua";

export interface Script {
  readonly name: string;
  readonly text: string;
  /** SHA-1 of the text, in hex: what EVALSHA takes. */
  readonly digest: string;
}

/**
 * Lua has no modules inside Redis: each part declares locals for the parts that follow it. A script
 * can have 200 of them, so it gets only the constants that it uses.
 */
function assemble(name: string, ...parts: string[]): Script {
  const uses = (constant: string): boolean =>
    parts.some((part) => part !== CONSTANTS && part.includes(constant));
  const text = parts.map((part) => (part === CONSTANTS ? writeConstants(uses) : part)).join("\n");
  return { name, text, digest: createHash("sha1").update(text).digest("hex") };
}

/** The numbers of `storage/queue/constants.ts` as Lua's locals. */
const writeConstants = (uses: (constant: string) => boolean): string =>
  Object.entries(constants)
    .filter(([name]) => uses(name))
    .map(([name, value]) => `local ${name} = ${value}`)
    .join("\n");

/** All of them; a script gets those that it uses. */
const CONSTANTS = writeConstants(() => true);

/** The rules of `storage/queue` in Lua, as the test of the vectors loads them. */
export const RULES = [CONSTANTS, endpointRules, settlementRules, turnRules, appendRules];

/**
 * The beginnings of the scripts on a partition. Each script has only the parts it needs, because
 * creating their closures takes a third of the time of a short script.
 */
const ENDPOINTS = [calls, CONSTANTS, endpointRules, turnRules, keys, records, webhooks];
const DELIVERIES = [...ENDPOINTS, deliveries];
const COMPLETION = [...DELIVERIES, completion];
const ALL = [...COMPLETION, appendRules, accounts];

export const SCRIPTS = {
  append: assemble("append", ...ALL, claimDue, append),
  audit: assemble("audit", calls, audit),
  claim: assemble("claim", ...DELIVERIES, claimDue, claim),
  claimHealthNotifications: assemble(
    "claim-health-notifications",
    ...ENDPOINTS,
    accounts,
    claimHealthNotifications,
  ),
  contentAllocate: assemble("content-allocate", calls, content, contentAllocate),
  contentChanges: assemble("content-changes", calls, content, contentChanges),
  contentCheck: assemble("content-check", calls, content, contentCheck),
  contentCommit: assemble("content-commit", calls, content, contentCommit),
  contentRead: assemble("content-read", calls, content, contentRead),
  contentScan: assemble("content-scan", calls, content, contentScan),
  create: assemble("create", ...ENDPOINTS, accounts, create),
  dataKey: assemble("data-key", calls, dataKey),
  eraseAccount: assemble("erase-account", ...ALL, retention, erasure, eraseAccount),
  eraseAudit: assemble("erase-audit", calls, eraseAudit),
  eraseEvents: assemble("erase-events", ...ALL, retention, erasure, eraseEvents),
  read: assemble("read", ...ALL, read),
  recover: assemble("recover", ...ALL, later, recover),
  remove: assemble("remove", ...ALL, retention, remove),
  repair: assemble("repair", ...ALL, repair),
  repairCounts: assemble("repair-counts", ...ALL, repairCounts),
  resend: assemble("resend", ...ALL, later, resend),
  settle: assemble("settle", ...COMPLETION, settlementRules, recent, settle),
  settleHealthNotification: assemble(
    "settle-health-notification",
    ...ENDPOINTS,
    accounts,
    settleHealthNotification,
  ),
  tidy: assemble("tidy", ...ALL, retention, tidy),
  /** The time of the server that holds the partition. */
  time: assemble("time", "return redis.call('TIME')"),
  update: assemble("update", ...ENDPOINTS, accounts, update),
} as const;
