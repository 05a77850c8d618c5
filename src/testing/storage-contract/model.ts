/**
 * A model of the webhook store that is too simple to be wrong. Random commands run against both,
 * and after each command they must agree: no delivery is lost or created twice, no two processes
 * hold one, the counts add up, and no completed delivery becomes pending.
 */

import assert from "node:assert/strict";
import type {
  Claim,
  DeliveryState,
  EventRecord,
  Settlement,
  WebhookStatus,
  WebhookStore,
} from "../../webhooks/store.js";
import { buildPendingOutcome, HOUR_MS, LEASE_MS, MINUTE_MS, PER_ENDPOINT } from "./builders.js";
import type { Scenario } from "./fixture.js";

export interface ModelWebhook {
  id: string;
  account: string;
  eventTypes: readonly string[] | null;
  status: WebhookStatus;
}

export interface ModelDelivery {
  id: string;
  webhookId: string;
  eventId: string;
  state: DeliveryState;
  /** When it may be claimed next, while no process holds it. */
  dueAt: number;
  /** The token of the latest claim that has not been settled. */
  token: string | null;
  leaseUntil: number;
  attempts: number;
}

/** A retention so long that nothing expires within a run. */
export const MODEL_RETENTION = { keepMs: 10_000 * HOUR_MS, events: 1_000_000 };

/** The state that the storage must have, and the random choices of the run. */
export interface Model {
  s: Scenario;
  webhooks: Map<string, ModelWebhook>;
  deliveries: Map<string, ModelDelivery>;
  events: Map<string, EventRecord>;
  /** Ids of the events that were appended for a single webhook. */
  testEvents: Set<string>;
  /** Every claim that was ever returned: a process may settle any of them late. */
  claims: Claim[];
  /** Returns a random whole number from 0 to `count - 1`. */
  below: (count: number) => number;
  pick: <T>(items: readonly T[]) => T | undefined;
  pickWebhook: () => ModelWebhook | undefined;
  /** Picks the process that makes the next call. */
  pickProcess: () => WebhookStore;
  listDeliveries: () => ModelDelivery[];
  isLeased: (delivery: ModelDelivery) => boolean;
}

/** Creates the model of an empty storage. */
export function createModel(s: Scenario): Model {
  const { store, peer, clock } = s;
  const webhooks = new Map<string, ModelWebhook>();
  const deliveries = new Map<string, ModelDelivery>();
  const below = (count: number): number => Math.floor(clock.random() * count);
  const pick = <T>(items: readonly T[]): T | undefined => items[below(items.length)];

  return {
    s,
    webhooks,
    deliveries,
    events: new Map(),
    testEvents: new Set(),
    claims: [],
    below,
    pick,
    pickWebhook: () => pick([...webhooks.values()]),
    pickProcess: () => (clock.random() < 0.5 ? store : peer),
    listDeliveries: () => [...deliveries.values()],
    isLeased: ({ token, leaseUntil }) => token !== null && leaseUntil > s.now(),
  };
}

/** Adds a delivery that the storage has created. */
export function addModelDelivery(
  { s, deliveries }: Model,
  { id, webhookId, eventId }: { id: string; webhookId: string; eventId: string },
): void {
  assert.ok(!deliveries.has(id), "an id is never used twice");
  deliveries.set(id, {
    id,
    webhookId,
    eventId,
    state: "pending",
    dueAt: s.now(),
    token: null,
    leaseUntil: 0,
    attempts: 0,
  });
}

/** Adds claims, which must be of due deliveries that no process holds, within every limit. */
export function addClaims(model: Model, claims: readonly Claim[]): void {
  const { s, webhooks, deliveries, events, isLeased } = model;
  for (const claim of claims) {
    const found = deliveries.get(claim.id);
    assert.ok(found, "only stored deliveries are claimed");
    assert.equal(found.state, "pending");
    assert.ok(!isLeased(found), "one process holds a delivery");
    assert.ok(found.token !== null || found.dueAt <= s.now(), "no delivery is claimed early");
    assert.equal(claim.isRecovered, found.token !== null || claim.crashes > 0);
    assert.deepEqual(claim.event, events.get(found.eventId));
    assert.equal(claim.webhook.status, webhooks.get(found.webhookId)?.status);
    found.token = claim.token;
    found.leaseUntil = s.now() + LEASE_MS;
    model.claims.push(claim);
  }
  for (const { id } of webhooks.values()) {
    const leased = model
      .listDeliveries()
      .filter((delivery) => delivery.webhookId === id && isLeased(delivery));
    assert.ok(leased.length <= PER_ENDPOINT, "the limit per endpoint holds over all processes");
  }
}

function chooseOutcome(kind: number, step: number, dueAt: number): Settlement["outcome"] {
  if (kind < 6) return { state: "delivered" };
  if (kind < 9) return buildPendingOutcome(step + 1, dueAt);
  return { state: "failed", reason: "exhausted" };
}

/** Settles a claim, possibly late. `kind` (0 to 9) chooses the outcome; 0 is delivered. */
export async function settleClaim(model: Model, claim: Claim, kind: number): Promise<void> {
  const { s, deliveries, below, isLeased, pickProcess } = model;
  const found = deliveries.get(claim.id);
  const dueAt = s.now() + below(10) * MINUTE_MS;
  const outcome = chooseOutcome(kind, claim.step, dueAt);
  const isLate = found?.token === claim.token && !isLeased(found);
  const result = await s.settle(claim, outcome, { by: pickProcess() });
  if (!found || found.state === "delivered" || found.state === "withheld")
    return assert.equal(result, "gone");
  if (outcome.state !== "delivered") {
    if (found.state === "failed") return assert.equal(result, "gone");
    if (found.token !== claim.token) return assert.equal(result, "stale");
    if (isLate && result === "stale") return;
  }
  assert.equal(result, "settled");
  found.state = outcome.state;
  found.token = null;
  found.dueAt = dueAt;
  found.attempts += 1;
}
