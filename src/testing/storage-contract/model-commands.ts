/** The random commands of the model run: each calls the storage and updates the model. */

import assert from "node:assert/strict";
import { subscribes } from "../../webhooks/event-types/catalogue.js";
import type { Claim, Lane } from "../../webhooks/store.js";
import { listIds, readAllPages } from "./assertions.js";
import { ACCOUNT_LIMIT, ENABLED_LIMIT, HOUR_MS, MINUTE_MS, SECOND_MS } from "./builders.js";
import { addClaims, addModelDelivery, type Model, settleClaim } from "./model.js";

const ACCOUNTS = ["clinic", "hospital"];
const TYPES = ["patient.created", "patient.updated", "consent.created"];
const EVENT_TYPES = [null, ["*"], ["patient.*"], ["consent.created"]] as const;
/** So long that no event id is forgotten within a run. */
const REMEMBER_MS = 10_000 * HOUR_MS;

type Command = (model: Model) => Promise<unknown>;

async function createWebhook({ s, webhooks, pick, pickProcess }: Model): Promise<void> {
  const account = pick(ACCOUNTS) ?? "";
  const eventTypes = pick(EVENT_TYPES) ?? null;
  const webhook = s.buildWebhook({ account, eventTypes });
  const others = [...webhooks.values()].filter((webhook) => webhook.account === account);
  const enabled = others.filter(({ status }) => status === "ENABLED");
  const { result } = await s.createWebhook(webhook, { by: pickProcess() });
  if (others.length < ACCOUNT_LIMIT) {
    assert.equal(result, enabled.length < ENABLED_LIMIT ? "created" : "enabled_limit");
  } else assert.notEqual(result, "created");
  if (result === "created")
    webhooks.set(webhook.id, { id: webhook.id, account, eventTypes, status: "ENABLED" });
}

async function updateWebhook({ s, below, pick, pickProcess, pickWebhook }: Model): Promise<void> {
  const webhook = pickWebhook();
  if (!webhook) return;
  const status = s.clock.random() < 0.4 ? "DISABLED" : "ENABLED";
  const eventTypes = pick(EVENT_TYPES) ?? null;
  const url = s.clock.random() < 0.5 ? `https://subscriber.example/${below(1_000)}` : undefined;
  const { result } = await s.update(webhook.id, { status, eventTypes, url }, { by: pickProcess() });
  if (result === "updated") Object.assign(webhook, { status, eventTypes });
}

async function removeWebhook(model: Model): Promise<void> {
  const { s, webhooks, deliveries, pickProcess } = model;
  const webhook = model.pickWebhook();
  if (!webhook || s.clock.random() < 0.5) return;
  assert.equal(await s.remove(webhook.id, { by: pickProcess() }), true);
  await s.tidy();
  webhooks.delete(webhook.id);
  for (const { id, webhookId } of model.listDeliveries()) if (webhookId === webhook.id) deliveries.delete(id);
}

function assertWithinRoom(claims: readonly Claim[], room: Record<Lane, number>): void {
  for (const lane of ["fast", "slow"] as const) {
    assert.ok(claims.filter((claim) => claim.lane === lane).length <= room[lane]);
  }
}

/** Appends an event, half of the time together with a claim. */
async function appendEvent(model: Model): Promise<void> {
  const { s, webhooks, events, below, pick, pickProcess } = model;
  const account = pick(ACCOUNTS) ?? "";
  const event = s.buildEvent({ account, type: pick(TYPES) ?? "" });
  const room = { fast: below(4), slow: below(4) };
  const claim = s.clock.random() < 0.5 ? s.buildClaimRequest({ room }) : undefined;
  const response = await s.append(event, { by: pickProcess(), rememberMs: REMEMBER_MS, claim });
  assert.ok(response.result === "stored");
  const receivers = [...webhooks.values()].filter(
    (webhook) =>
      webhook.account === account &&
      webhook.status === "ENABLED" &&
      subscribes(webhook.eventTypes, event.type),
  );
  assert.deepEqual(response.deliveries.map(({ webhookId }) => webhookId).sort(), listIds(receivers));
  events.set(event.id, event);
  for (const { id, webhookId } of response.deliveries)
    addModelDelivery(model, { id, webhookId, eventId: event.id });
  const claims = response.claimed?.claims ?? [];
  assertWithinRoom(claims, claim ? room : { fast: 0, slow: 0 });
  addClaims(model, claims);
}

async function appendTestEvent(model: Model): Promise<void> {
  const { s, events, testEvents, pick, pickProcess } = model;
  const webhook = model.pickWebhook();
  if (!webhook) return;
  const { id: webhookId, account, status } = webhook;
  const event = s.buildEvent({ account, type: pick(TYPES) ?? "" });
  const response = await s.append(event, { by: pickProcess(), rememberMs: REMEMBER_MS, webhookId });
  assert.ok(response.result === "stored");
  assert.equal(response.deliveries.length, status === "ENABLED" ? 1 : 0);
  events.set(event.id, event);
  testEvents.add(event.id);
  for (const { id } of response.deliveries) addModelDelivery(model, { id, webhookId, eventId: event.id });
}

/** Appends an event again, half of the time with another digest. */
async function appendAgain({ s, events, pick, pickProcess }: Model): Promise<void> {
  const event = pick([...events.values()]);
  if (!event) return;
  const isSame = s.clock.random() < 0.5;
  const options = { by: pickProcess(), rememberMs: REMEMBER_MS };
  const { result } = await s.append(isSame ? event : { ...event, digest: "other" }, options);
  assert.equal(result, isSame ? "duplicate" : "conflict");
}

async function claimDeliveries(model: Model): Promise<void> {
  const { s, below, pickProcess } = model;
  const room = { fast: below(6), slow: below(6) };
  const { claims } = await s.claimWithNextAt({ by: pickProcess(), room });
  assertWithinRoom(claims, room);
  addClaims(model, claims);
}

/** Settles a recent claim, or now and then any claim of the run. */
async function settleSomeClaim(model: Model): Promise<void> {
  const { s, claims, below, pick } = model;
  const recent = claims.slice(-20);
  const claim = s.clock.random() < 0.9 ? pick(recent) : pick(claims);
  if (claim) await settleClaim(model, claim, below(10));
}

async function resendDelivery(model: Model): Promise<void> {
  const { s, pick, pickProcess, isLeased } = model;
  const delivery = pick(model.listDeliveries());
  if (!delivery) return;
  const { webhookId, eventId } = delivery;
  const id = await s.resend(delivery.id, { by: pickProcess() });
  const pending = model
    .listDeliveries()
    .find(
      (delivery) =>
        delivery.webhookId === webhookId && delivery.eventId === eventId && delivery.state === "pending",
    );
  assert.ok(id !== undefined);
  if (!pending) addModelDelivery(model, { id, webhookId, eventId });
  else {
    assert.equal(id, pending.id);
    if (!isLeased(pending)) pending.dueAt = Math.min(pending.dueAt, s.now());
  }
}

async function recoverWebhook(model: Model): Promise<void> {
  const { s, deliveries, events, testEvents, pickProcess } = model;
  const webhook = model.pickWebhook();
  if (!webhook) return;
  const { id: webhookId, account, eventTypes } = webhook;
  const response = await s.recover(webhookId, { by: pickProcess(), limit: 1_000_000 });
  const missed = [...events.values()].filter(
    (event) =>
      event.account === account &&
      !testEvents.has(event.id) &&
      subscribes(eventTypes, event.type) &&
      model
        .listDeliveries()
        .every(
          (delivery) =>
            delivery.webhookId !== webhookId || delivery.eventId !== event.id || delivery.state === "failed",
        ),
  );
  // Fewer than `missed`: a storage does not keep events of an account without webhooks, and the
  // model does not know which ones those are.
  assert.ok(response && response.count <= missed.length);
  const pending = await readAllPages(async (cursor) => {
    const page = await s.store.listDeliveries({ webhookId, state: "pending", cursor, limit: 1_000 });
    return { rows: page.deliveries, next: page.next };
  });
  const created = pending.filter(({ id }) => !deliveries.has(id));
  assert.equal(created.length, response.count);
  for (const { id, eventId } of created) {
    assert.ok(missed.some((event) => event.id === eventId));
    addModelDelivery(model, { id, webhookId, eventId });
  }
}

/** Makes the deliveries due that wait for a retry. */
async function sendWaiting(model: Model): Promise<void> {
  const { s, pickProcess } = model;
  const webhook = model.pickWebhook();
  if (!webhook) return;
  const options = { by: pickProcess(), states: ["pending"], limit: 1_000_000 } as const;
  const response = await s.recover(webhook.id, options);
  const waiting = model
    .listDeliveries()
    .filter(
      ({ webhookId, eventId, state, token, attempts, dueAt }) =>
        webhookId === webhook.id &&
        state === "pending" &&
        token === null &&
        attempts > 0 &&
        dueAt > s.now() &&
        !model.testEvents.has(eventId) &&
        subscribes(webhook.eventTypes, model.events.get(eventId)?.type ?? ""),
    );
  assert.equal(response?.count, waiting.length);
  for (const delivery of waiting) delivery.dueAt = s.now();
}

/** Each command with its weight in the random choice. */
export const COMMANDS: [weight: number, run: Command][] = [
  [3, createWebhook],
  [3, updateWebhook],
  [1, removeWebhook],
  [25, appendEvent],
  [2, appendTestEvent],
  [3, appendAgain],
  [20, claimDeliveries],
  [30, settleSomeClaim],
  [3, resendDelivery],
  [1, recoverWebhook],
  [2, sendWaiting],
  [8, ({ s, below }) => s.advance(below(3) * SECOND_MS)],
  [2, ({ s, below }) => s.advance(below(3) * MINUTE_MS)],
];
