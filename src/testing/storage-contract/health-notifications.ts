/** Health notifications: the steps from the first failure to a disabled webhook. */

import assert from "node:assert/strict";
import type { WebhookRecord } from "../../webhooks/store.js";
import { listIds, only, overwriteDeep, repeat } from "./assertions.js";
import { DAY_MS, HOUR_MS, LEASE_MS, NOTICE_MS } from "./builders.js";
import type { DeclareTest, Scenario } from "./fixture.js";

/** Registers a webhook that has failed for so long that its first health step is due. */
async function registerDueForHealthStep(s: Scenario) {
  const { id } = await s.register();
  await s.emit();
  const claim = only(await s.claim());
  await s.retry(claim, 30 * DAY_MS);
  const { failingSince } = await s.readWebhook(id);
  assert.ok(failingSince !== null);
  await s.advance(NOTICE_MS);
  return { id, failingSince, claim };
}

/** One process gets a due health step, for as long as its lease. */
export function testHealthClaims(it: DeclareTest): void {
  it("a health step is claimed by one process when it is due", async (s) => {
    assert.deepEqual(await s.claimHealthSteps(), { webhooks: [], nextAt: null });
    const { id } = await s.register();
    await s.emit();
    await s.retry(only(await s.claim()), HOUR_MS);
    await s.advance(NOTICE_MS - 1);
    const early = await s.claimHealthSteps();
    assert.deepEqual(early.webhooks, []);
    assert.ok(early.nextAt !== null && early.nextAt > s.now() - 1 && early.nextAt <= s.now() + 1);
    await s.advance(1);
    const responses = await Promise.all([s.claimHealthSteps(), s.claimHealthSteps({ by: s.peer })]);
    const taken = only(responses.flatMap(({ webhooks }) => webhooks));
    assert.deepEqual(taken, await s.readWebhook(id));
    assert.equal(taken.noticeAt, s.now() + LEASE_MS);
    const expected = structuredClone(taken);
    overwriteDeep(responses);
    assert.deepEqual(await s.readWebhook(id), expected);
    const next = await s.claimHealthSteps();
    assert.deepEqual(next.webhooks, []);
    assert.ok(next.nextAt !== null && next.nextAt <= s.now() + LEASE_MS);
  });

  it("a claim returns at most limit health steps, and later claims return the rest", async (s) => {
    const all = await repeat(5, () => s.register());
    await s.emit();
    for (const claim of await s.claim()) await s.retry(claim, HOUR_MS);
    await s.advance(NOTICE_MS);
    const first = await s.claimHealthSteps({ limit: 2 });
    assert.equal(first.webhooks.length, 2);
    assert.ok(first.nextAt !== null && first.nextAt <= s.now());
    const second = await s.claimHealthSteps({ limit: 10 });
    assert.deepEqual(listIds([...first.webhooks, ...second.webhooks]), listIds(all));
  });

  it("a health step whose process crashed is claimed by another, even if the webhook changed", async (s) => {
    const { id } = await registerDueForHealthStep(s);
    only((await s.claimHealthSteps()).webhooks);
    await s.update(id, { eventTypes: ["patient.*"] });
    assert.deepEqual((await s.claimHealthSteps({ by: s.peer })).webhooks, []);
    await s.advance(LEASE_MS - 1);
    assert.deepEqual((await s.claimHealthSteps({ by: s.peer })).webhooks, []);
    await s.advance(1);
    assert.equal(only((await s.claimHealthSteps({ by: s.peer })).webhooks).id, id);
  });
}

/** A health step applies only while its webhook still fails as it did. */
export function testHealthSettlements(it: DeclareTest): void {
  it("settling a health step stores its fields, and the next step is claimed in time", async (s) => {
    const failing = await registerDueForHealthStep(s);
    await s.claimHealthSteps();
    const before = await s.readWebhook(failing.id);
    assert.equal(await s.settleHealthStep(failing), true);
    const warned = await s.readWebhook(failing.id);
    const { updatedAt } = warned;
    assert.deepEqual(warned, { ...before, warnedAt: s.now(), noticeAt: s.now() + DAY_MS, updatedAt });
    await s.advance(DAY_MS - 1);
    assert.deepEqual((await s.claimHealthSteps()).webhooks, []);
    await s.advance(1);
    const again = only((await s.claimHealthSteps()).webhooks);
    assert.deepEqual([again.warnedAt, again.failingSince], [warned.warnedAt, failing.failingSince]);
  });

  it("one of two processes disables the webhook, which keeps failingSince and frees its place", async (s) => {
    const failing = await registerDueForHealthStep(s);
    const before = await s.readWebhook(failing.id);
    const change = { status: "DISABLED", warnedAt: 1, noticeAt: s.now() } as const;
    const responses = await Promise.all([
      s.settleHealthStep(failing, change),
      s.settleHealthStep(failing, change, s.peer),
    ]);
    assert.deepEqual(responses.sort(), [false, true]);
    const disabled = await s.readWebhook(failing.id);
    assert.deepEqual([disabled.status, disabled.failingSince], ["DISABLED", failing.failingSince]);
    assert.ok(disabled.updatedAt > before.updatedAt);
    await repeat(15, () => s.register());
    assert.equal((await s.update(failing.id, { status: "ENABLED" })).result, "enabled_limit");

    const announced = only((await s.claimHealthSteps()).webhooks);
    assert.deepEqual([announced.id, announced.status], [failing.id, "DISABLED"]);
    const done = { from: "DISABLED", status: "DISABLED", noticeAt: null } as const;
    assert.equal(await s.settleHealthStep(failing, done), true);
    assert.deepEqual(await s.claimHealthSteps(), { webhooks: [], nextAt: null });
  });

  it("a webhook that the service disabled keeps its health until its owner enables it", async (s) => {
    const { claim, ...failing } = await registerDueForHealthStep(s);
    await s.settleHealthStep(failing, { status: "DISABLED", noticeAt: null });
    const disabled = await s.readWebhook(failing.id);
    await s.deliver(claim);
    assert.deepEqual(await s.readWebhook(failing.id), disabled);
    await s.update(failing.id, { status: "ENABLED" });
    const enabled = await s.readWebhook(failing.id);
    assert.deepEqual([enabled.failingSince, enabled.warnedAt, enabled.noticeAt], [null, null, null]);
    assert.equal(enabled.generation, disabled.generation + 1);
  });

  for (const [what, change] of [
    ["recovered", ({ deliver }, { claim }) => deliver(claim)],
    ["moved", ({ update }, { id }) => update(id, { url: "https://subscriber.example/moved" })],
    ["was disabled by a user", ({ update }, { id }) => update(id, { status: "DISABLED" })],
  ] satisfies [
    string,
    (s: Scenario, failing: Awaited<ReturnType<typeof registerDueForHealthStep>>) => Promise<unknown>,
  ][]) {
    it(`no health step applies after the webhook ${what}`, async (s) => {
      const failing = await registerDueForHealthStep(s);
      only((await s.claimHealthSteps()).webhooks);
      await change(s, failing);
      const before: WebhookRecord = await s.readWebhook(failing.id);
      assert.equal(await s.settleHealthStep(failing), false);
      assert.equal(await s.settleHealthStep(failing, { status: "DISABLED" }), false);
      assert.deepEqual(await s.readWebhook(failing.id), before);
      await s.advance(LEASE_MS);
      assert.deepEqual(await s.claimHealthSteps(), { webhooks: [], nextAt: null });
    });
  }

  it("no health step applies for a later failure, another status, another account or a removed webhook", async (s) => {
    const failing = await registerDueForHealthStep(s);
    const before = await s.readWebhook(failing.id);
    assert.equal(await s.settleHealthStep({ ...failing, failingSince: failing.failingSince + 1 }), false);
    assert.equal(await s.settleHealthStep(failing, { from: "DISABLED" }), false);
    assert.equal(await s.settleHealthStep(failing, { account: "hospital" }), false);
    assert.deepEqual(await s.readWebhook(failing.id), before);
    await s.remove(failing.id);
    assert.equal(await s.settleHealthStep(failing), false);
    assert.deepEqual(await s.claimHealthSteps(), { webhooks: [], nextAt: null });
    assert.equal(await s.store.getWebhook(failing.id), undefined);
  });
}
