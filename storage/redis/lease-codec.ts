/**
 * Encodes what a script may lease, and decodes what it leased: claim-due.lua is the other
 * side.
 */

import type { ClaimRequest } from "../../src/webhooks/store.js";
import type { RedisArgument } from "./clients.js";
import { encodeText } from "./text-codec.js";

/**
 * The most of one lane in a script, so that none holds Redis up for more than a few milliseconds.
 */
const CLAIMED_PER_CALL = 250;

/** Arguments that tell a script to lease nothing. */
export const NO_LEASE: readonly RedisArgument[] = ["", "", 0, 0];

/** Encodes token, end of the lease, room in the fast lane, room in the slow lane. */
export const encodeLease = ({
  token,
  leaseUntil,
  room,
}: Pick<ClaimRequest, "token" | "leaseUntil" | "room">): readonly RedisArgument[] => [
  encodeText(token),
  leaseUntil,
  Math.min(room.fast, CLAIMED_PER_CALL),
  Math.min(room.slow, CLAIMED_PER_CALL),
];

/** The reply of claim-due.lua. */
export type LeaseReply = [
  /** The places of unmatched settlements. From `append`: what was stored. */
  result: string,
  nextAt: string,
  notifyAt: string,
  overdue: string,
  mark: string,
  parked: string[],
  webhooks: string[],
  claims: string,
];

/** A leased delivery. `line` is empty if it is leased for the first time. */
export interface LeasedRow {
  readonly ref: string;
  readonly line: string;
}

/** The decoded reply: the deliveries that were leased, and the work for `tidy`. */
export interface Leased {
  readonly nextAt: string;
  /** When this script made something due; empty if it did not. */
  readonly notifyAt: string;
  /** Identifies the data set. */
  readonly mark: string;
  /** Records that cannot be read. */
  readonly parked: readonly string[];
  /** The stored webhooks by their numbers. */
  readonly webhooks: ReadonlyMap<string, string>;
  readonly rows: readonly LeasedRow[];
  /** Leases have expired. */
  readonly hasExpired: boolean;
  /** The retention of some data is over. */
  readonly isOverdue: boolean;
  /** Accounts that have too many completed events, as `tidy` takes them. */
  readonly crowded: readonly string[];
}

/** The rows of one lease, with all that is needed to turn them into claims. */
export interface LeasedRows extends Pick<Leased, "rows" | "webhooks" | "mark"> {
  /** The token as it is stored. */
  readonly token: string;
  readonly requestToken: string;
}

function decodeWebhooks(flat: readonly string[]): Leased["webhooks"] {
  const webhooks = new Map<string, string>();
  for (let place = 0; place + 1 < flat.length; place += 2)
    webhooks.set(flat[place] ?? "", flat[place + 1] ?? "");
  return webhooks;
}

function decodeRow(claim: string): LeasedRow {
  const blank = claim.indexOf(" ");
  return blank === -1
    ? { ref: claim, line: "" }
    : { ref: claim.slice(0, blank), line: claim.slice(blank + 1) };
}

export function decodeLeaseReply(reply: LeaseReply): Leased {
  const [, nextAt, notifyAt, allOverdue, mark, parked, webhooks, claims] = reply;
  const overdue = allOverdue.split("\n");
  return {
    nextAt,
    notifyAt,
    mark,
    parked,
    webhooks: decodeWebhooks(webhooks),
    rows: claims === "" ? [] : claims.split("\n").map(decodeRow),
    hasExpired: overdue.includes("l"),
    isOverdue: overdue.includes("t"),
    crowded: overdue.filter((word) => word.includes("/")),
  };
}

export const toLeasedRows = ({ rows, webhooks, mark }: Leased, token: string): LeasedRows => ({
  rows,
  webhooks,
  mark,
  token: encodeText(token),
  requestToken: token,
});

/** Returns the partition's number of the webhook that a reference begins with. */
export const parseWebhookNumber = (ref: string): string => ref.slice(0, ref.indexOf("/"));
