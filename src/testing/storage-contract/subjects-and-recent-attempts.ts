/** The log beside its states: subjects, stored events, failed tests, recent attempts. */

import assert from "node:assert/strict";
import { TEST_FAILED } from "../../webhooks/store.js";
import { only, repeat } from "./assertions.js";
import { HOUR_MS, RETENTION } from "./builders.js";
import { type DeclareTest, readDeliveryLog } from "./fixture.js";

/** Declares the tests of subjects, stored events, failed tests and recent attempts. */
export function testSubjectsAndRecentAttempts(it: DeclareTest): void {
  it("a delivery has the subject of its event, also one that was sent again or recovered", async (s) => {
    const { id: webhookId } = await s.register();
    const subjects = ["Patient/p1", undefined, "Patient/a.b-c", 'odd "/, text\n'] as const;
    const ids = await repeat(subjects.length, async (index) => {
      const subject = subjects[index];
      return only((await s.emit(subject === undefined ? {} : { subject })).ids);
    });
    const expected = subjects.map((subject) => subject ?? null);
    const listed = async () =>
      (await readDeliveryLog(s, { webhookId, type: "patient.updated" })).map(({ subject }) => subject);
    assert.deepEqual(await listed(), expected.toReversed());
    for (const [index, id] of ids.entries()) {
      const delivery = await s.readDelivery(id);
      assert.deepEqual([delivery.subject, delivery.type], [expected[index], "patient.updated"]);
    }
    for (const claim of await s.claim()) {
      assert.equal(claim.event.subject, subjects[ids.indexOf(claim.id)]);
      await s.fail(claim);
    }
    assert.equal(await s.resend(ids[0] ?? ""), `${ids[0]}.1`);
    assert.equal((await s.readDelivery(`${ids[0]}.1`)).subject, "Patient/p1");
    assert.equal((await s.recover(webhookId))?.count, 3);
    assert.equal((await s.readDelivery(`${ids[2]}.1`)).subject, "Patient/a.b-c");
    assert.deepEqual((await listed()).slice(4), expected.toReversed());
  });

  it("an event is read as it was stored, by its account, as long as it is kept", async (s) => {
    await s.register();
    const { event } = await s.emit({ subject: "Patient/p1", payload: "first\nsecond – \u{1F514}" });
    const stored = { ...event, storedAt: s.now() };
    const read = (account: string, id: string) => s.peer.getEvent({ account, id });
    assert.deepEqual(await read("clinic", event.id), stored);
    assert.equal(await read("hospital", event.id), undefined);
    assert.equal(await read("clinic", s.buildEvent().id), undefined);
    await s.deliver(only(await s.claim()));
    assert.deepEqual(await read("clinic", event.id), stored);
    await s.advance(RETENTION.keepMs);
    await s.tidy();
    assert.equal(await read("clinic", event.id), undefined);
  });

  it("failed tests are counted among the failed, until they are freed or delivered after all", async (s) => {
    const { id: webhookId } = await s.register();
    const counted = async () => {
      const stats = await s.store.deliveryStats(webhookId, s.now());
      return [stats?.delivered, stats?.failed, stats?.failedTests];
    };
    await repeat(2, () => s.append(s.buildEvent({ type: "webhook.test" }), { webhookId }));
    await s.emit();
    const claims = await s.claim();
    const isTest = ({ event }: { event: { type: string } }) => event.type === "webhook.test";
    for (const claim of claims) {
      const reason = isTest(claim) ? TEST_FAILED : "exhausted";
      await s.settle(claim, { state: "failed", reason }, { endpoint: null });
    }
    assert.deepEqual(await counted(), [0, 3, 2]);
    const failed = await readDeliveryLog(s, { webhookId, state: "failed" });
    const reasons = failed.map(({ reason }) => String(reason)).sort();
    assert.deepEqual(reasons, ["exhausted", TEST_FAILED, TEST_FAILED]);
    const late = claims.find(isTest);
    assert.ok(late);
    await s.deliver(late);
    assert.deepEqual(await counted(), [1, 2, 1]);
    await s.advance(RETENTION.keepMs);
    await s.tidy();
    assert.deepEqual(await counted(), [0, 0, 0]);
  });

  it("attempts of the last 24 hours are summed up, without those that say nothing of the endpoint", async (s) => {
    const { id } = await s.register();
    const { id: other } = await s.register({ eventTypes: ["consent.*"] });
    const lastDay = async () => (await s.peer.deliveryStats(id, s.now()))?.lastDay;
    const attempt = async (isOk: boolean) => {
      await s.emit();
      const claim = only(await s.claim());
      await (isOk ? s.deliver(claim) : s.fail(claim));
    };
    await attempt(true);
    await attempt(false);
    await s.advance(HOUR_MS);
    await attempt(true);
    await attempt(true);
    await s.append(s.buildEvent({ type: "webhook.test" }), { webhookId: id });
    await s.fail(only(await s.claim()), { endpoint: null });
    assert.deepEqual(await lastDay(), { succeeded: 3, failed: 1, durationMs: 36 });
    await s.advance(23 * HOUR_MS);
    assert.deepEqual(await lastDay(), { succeeded: 3, failed: 1, durationMs: 36 });
    await s.advance(HOUR_MS);
    assert.deepEqual(await lastDay(), { succeeded: 2, failed: 0, durationMs: 24 });
    await attempt(false);
    assert.deepEqual(await lastDay(), { succeeded: 2, failed: 1, durationMs: 24 });
    await s.advance(25 * HOUR_MS);
    await attempt(true);
    assert.deepEqual(await lastDay(), { succeeded: 1, failed: 0, durationMs: 12 });
    assert.deepEqual((await s.store.deliveryStats(other, s.now()))?.lastDay, {
      succeeded: 0,
      failed: 0,
      durationMs: 0,
    });
  });
}
