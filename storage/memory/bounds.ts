/** The size that the memory storage counts for its data, and the errors at its limits. */

import { PostbellError } from "../../src/core/errors.js";
import type { Attempt } from "../../src/webhooks/store.js";
import type { Account, MemoryDelivery, MemoryEvent } from "./records.js";
import type { MemoryLimits, State } from "./state.js";

/**
 * The heap that an event, a delivery and an attempt take besides text, with their entries in maps
 * and queues: measured on Node 20 and rounded up.
 */
const EVENT_BYTES = 2_000;
export const DELIVERY_BYTES = 700;
const ATTEMPT_BYTES = 200;

/** The most bytes that V8 uses for a text: one per character if all are ASCII, else two. */
export const textBytes = (text: string): number =>
  Buffer.byteLength(text) === text.length ? text.length : 2 * text.length;

export const eventBytes = (payload: string): number => EVENT_BYTES + textBytes(payload);

export const attemptBytes = ({ excerpt }: Attempt): number =>
  excerpt === null ? ATTEMPT_BYTES : ATTEMPT_BYTES + textBytes(excerpt);

export const deliveryBytes = ({ attempts }: MemoryDelivery): number =>
  attempts.reduce((sum, attempt) => sum + attemptBytes(attempt), DELIVERY_BYTES);

/** Counts that `event`, with its deliveries and their attempts, has grown by `bytes`. */
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

/** Errors: `storage_full` if `more` pending deliveries of an account would exceed a bound. */
export function checkPending(state: State, account: Account, more: number): void {
  if (state.pending + more > state.limits.pending) throw memoryFull(state, "pending");
  if (account.pending + more > state.limits.pendingPerAccount) throw memoryFull(state, "pendingPerAccount");
}
