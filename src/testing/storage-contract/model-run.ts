/** The run of the model: random commands, a check after each, and the delivery of what is left. */

import assert from "node:assert/strict";
import { listIds } from "./assertions.js";
import { readDeliveryLog, type Scenario } from "./fixture.js";
import { addClaims, createModel, type Model, settleClaim } from "./model.js";
import { COMMANDS } from "./model-commands.js";

const TOTAL_WEIGHT = COMMANDS.reduce((sum, [weight]) => sum + weight, 0);

async function runRandomCommand(model: Model): Promise<void> {
  let drawn = model.below(TOTAL_WEIGHT);
  for (const [weight, run] of COMMANDS) {
    drawn -= weight;
    if (drawn >= 0) continue;
    await run(model);
    return;
  }
}

/** Compares two random deliveries with the model, or all of them. */
async function checkDeliveries({ s, pick, listDeliveries }: Model, isComplete: boolean): Promise<void> {
  const deliveries = listDeliveries();
  for (const expected of isComplete ? deliveries : [pick(deliveries), pick(deliveries)]) {
    if (!expected) continue;
    const found = await s.store.getDelivery(expected.id);
    assert.ok(found, "no delivery is lost");
    assert.deepEqual([found.state, found.attempts.length], [expected.state, expected.attempts]);
  }
}

async function checkLogs({ s, webhooks, listDeliveries }: Model): Promise<void> {
  for (const { id: webhookId } of webhooks.values()) {
    const deliveries = listDeliveries().filter((delivery) => delivery.webhookId === webhookId);
    const log = await readDeliveryLog(s, { webhookId }, 1_000);
    assert.deepEqual(listIds(log), listIds(deliveries), "the log of a webhook has exactly its deliveries");
  }
}

async function checkStats(model: Model): Promise<void> {
  const { webhooks, pickProcess, isLeased } = model;
  const deliveries = model.listDeliveries();
  const stats = await pickProcess().stats();
  const pending = deliveries.filter(({ state }) => state === "pending");
  assert.deepEqual(
    [stats.webhooks, stats.pending, stats.ended],
    [webhooks.size, pending.length, deliveries.length - pending.length],
  );
  const webhook = model.pickWebhook();
  const counts = webhook && (await pickProcess().deliveryStats(webhook.id, model.s.now()));
  for (const state of counts ? (["pending", "delivered", "failed", "withheld"] as const) : []) {
    const matching = deliveries.filter(
      (delivery) => delivery.webhookId === webhook?.id && delivery.state === state,
    );
    assert.equal(counts?.[state], matching.length);
  }
  // A lease that has expired may or may not have been freed yet.
  const claimed = pending.filter(({ token }) => token !== null);
  assert.ok(stats.leased >= claimed.filter(isLeased).length && stats.leased <= claimed.length);
}

/** Claims and delivers until nothing is pending. */
async function deliverRest(model: Model): Promise<void> {
  const { s, pickProcess, listDeliveries } = model;
  for (let round = 0; listDeliveries().some(({ state }) => state === "pending"); round++) {
    assert.ok(round < 10_000, "every pending delivery is delivered in the end");
    const { claims, nextAt } = await s.claimWithNextAt({ by: pickProcess() });
    addClaims(model, claims);
    for (const claim of claims) await settleClaim(model, claim, 0);
    if (claims.length > 0) continue;
    assert.ok(nextAt !== null, "nextAt is set while anything is pending");
    await s.advance(Math.max(1, nextAt - s.now()));
  }
}

/** Runs `steps` random commands by two processes, then delivers everything that is left. */
export async function runModel(s: Scenario, steps: number): Promise<void> {
  const model = createModel(s);
  for (let count = 0; count < steps; count++) {
    await runRandomCommand(model);
    await checkDeliveries(model, false);
    await checkStats(model);
  }
  await deliverRest(model);
  await checkDeliveries(model, true);
  await checkLogs(model);
  await checkStats(model);
}
