/** The fixture of the outbox source contract: an empty source, events, and shared assertions. */

import assert from "node:assert/strict";
import type { OutboxClaim, OutboxSource } from "../../outbox/outbox-source.js";
import type { EventInput } from "../../webhooks/service.js";

/** A transaction of the host. */
export interface OutboxTransaction {
  /** Adds an event within the transaction. Resolves with the event's id. */
  add(event: EventInput): Promise<string>;
  /** Ends the transaction and keeps its events. */
  commit(): Promise<void>;
  /** Ends the transaction and drops its events. */
  rollback(): Promise<void>;
}

/** An empty source, and what a test needs to drive it. */
export interface OutboxSourceUnderTest {
  source: OutboxSource;
  /** Adds events and commits them, in this order. Resolves with their ids. */
  add: (events: readonly EventInput[]) => Promise<readonly string[]>;
  /** Lets `ms` milliseconds pass by the clock of the source. */
  wait: (ms: number) => Promise<void>;
  /** Begins a transaction on a separate connection. Without it, transactions are not tested. */
  begin?: (() => Promise<OutboxTransaction>) | undefined;
  /** Called at the end of the test. */
  destroy?: (() => void | Promise<void>) | undefined;
}

/** Declares one test, which gets a separate source. */
export type DeclareSourceTest = (
  name: string,
  run: (underTest: OutboxSourceUnderTest) => Promise<void>,
) => void;

/** Longer than any test takes, also on a busy machine. */
export const ROW_LEASE_MS = 60_000;
/** Short enough to wait for. */
export const SHORT_MS = 200;
export const ACCOUNT = "clinic";

export const buildEvent = (patient: string): EventInput => ({
  type: "patient.updated",
  account: ACCOUNT,
  resource: { resourceType: "Patient", id: patient },
});

export const buildEvents = (count: number): EventInput[] =>
  Array.from({ length: count }, (_, at) => buildEvent(`p${at}`));

/** Claims the only row that is due. */
export async function claimOne(source: OutboxSource, leaseMs = ROW_LEASE_MS): Promise<OutboxClaim> {
  const claims = await source.claim({ limit: 10, leaseMs });
  assert.equal(claims.length, 1);
  return claims[0] as OutboxClaim;
}

export async function assertNothingDue(source: OutboxSource): Promise<void> {
  assert.deepEqual(await source.claim({ limit: 10, leaseMs: ROW_LEASE_MS }), []);
}
