/** What the memory storage counts as its size, and what it says where a limit is reached. */

import { PostbellError } from "../../src/core/errors.js";
import type { Attempt } from "../../src/webhooks/store.js";
import type { Account, MemoryDelivery, MemoryEvent, MemoryLimits, State } from "./state.js";

/** What an event, a delivery and an attempt hold on the heap besides text: measured on Node 20 and rounded up, with their places in maps and queues. */
const EVENT_BYTES = 2_000;
export const DELIVERY_BYTES = 700;
const ATTEMPT_BYTES = 200;

/** The most that V8 keeps for a text: a byte per character where all are ASCII, else two. */
export const textBytes = (text: string): number =>
  Buffer.byteLength(text) === text.length ? text.length : 2 * text.length;

export const eventBytes = (payload: string): number => EVENT_BYTES + textBytes(payload);

export const attemptBytes = ({ excerpt }: Attempt): number =>
  excerpt === null ? ATTEMPT_BYTES : ATTEMPT_BYTES + textBytes(excerpt);

export const deliveryBytes = ({ attempts }: MemoryDelivery): number =>
  attempts.reduce((sum, attempt) => sum + attemptBytes(attempt), DELIVERY_BYTES);

/** Enters in the books that `event`, with its deliveries and their attempts, has grown by `bytes`. */
export function resize(state: State, event: MemoryEvent, bytes: number): void {
  event.bytes += bytes;
  state.bytes += bytes;
  if (event.ended !== null) state.endedBytes += bytes;
}

export const memoryFull = ({ limits }: State, bound: keyof MemoryLimits): PostbellError =>
  new PostbellError(
    "storage_full",
    `The memory storage has reached limits.${bound} (${limits[bound]}); nothing was stored. Raise it, or try again later.`,
    { field: `limits.${bound}` },
  );

/** Errors: `storage_full` where `more` pending deliveries of an account would pass a bound. */
export function checkPending(state: State, account: Account, more: number): void {
  if (state.pending + more > state.limits.pending) throw memoryFull(state, "pending");
  if (account.pending + more > state.limits.pendingPerAccount) throw memoryFull(state, "pendingPerAccount");
}
