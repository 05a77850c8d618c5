/** Recovering events that a webhook missed. */

import assert from "node:assert/strict";
import { MAX_RESENT } from "../../webhooks/store.js";
import { listIds, only, repeat } from "./assertions.js";
import { HOUR_MS, SECOND_MS } from "./builders.js";
import { type DeclareTest, readDeliveryLog, type Scenario } from "./fixture.js";

/** Recovery creates a delivery of every event that the webhook subscribes to and did not get. */
export function testRecovery(it: DeclareTest): void {
  it("recover creates deliveries of events that were emitted while the webhook was disabled", async (s) => {
    const { id } = await s.register({ eventTypes: ["patient.*"] });
    await s.emit();
    await s.deliver(only(await s.claim()));
    await s.update(id, { status: "DISABLED" });
    const missed = await repeat(5, () => s.emit());
    await s.emit({ type: "consent.created" });
    await s.update(id, { status: "ENABLED" });
    assert.deepEqual(await s.claim(), []);
    assert.equal(await s.recoverAll(id), 5);
    assert.equal(await s.recoverAll(id), 0);
    const claims = await s.claim();
    assert.deepEqual(claims.map(({ event }) => event.id).sort(), listIds(missed.map(({ event }) => event)));
    for (const claim of claims)
      assert.deepEqual([claim.step, claim.startedAt, claim.isExtra], [0, null, false]);
  });

  it("recover creates new deliveries of failed events and of no others", async (s) => {
    const { id } = await s.register();
    const emitted = await repeat(5, () => s.emit());
    const [delivered, failed, withheld, waiting] = emitted.map(({ ids }) => only(ids));
    for (const claim of await s.claim()) {
      if (claim.id === delivered) await s.deliver(claim);
      if (claim.id === failed) await s.fail(claim, { endpoint: null });
      if (claim.id === withheld) await s.settle(claim, { state: "withheld", reason: "access_denied" });
      if (claim.id === waiting) await s.postpone(claim, HOUR_MS);
    }
    assert.equal(await s.recoverAll(id), 1);
    assert.equal(only(await s.claim()).id, `${failed}.1`);
  });

  it("recover skips an event if any of its deliveries succeeded", async (s) => {
    const { id } = await s.register();
    const { ids } = await s.emit();
    await s.deliver(only(await s.claim()));
    await s.resend(only(ids));
    await s.fail(only(await s.claim()));
    assert.equal(await s.recoverAll(id), 0);
  });

  it("recover covers events that were stored at or after since", async (s) => {
    const { id } = await s.register({ status: "DISABLED" });
    await s.emit();
    await s.advance(1);
    const since = s.now();
    const later = [await s.emit(), await s.emit()];
    await s.advance(1);
    later.push(await s.emit());
    for (const late of [s.now() + 1, Date.UTC(2600), Date.UTC(9999)])
      assert.equal(await s.recoverAll(id, late), 0);
    assert.equal(await s.recoverAll(id, since), 3);
    const claims = await s.claim();
    assert.deepEqual(claims.map(({ event }) => event.id).sort(), listIds(later.map(({ event }) => event)));
  });

  it("recover of one webhook leaves other webhooks and accounts alone", async (s) => {
    const { id } = await s.register({ status: "DISABLED" });
    await s.register({ status: "DISABLED" });
    await s.register({ account: "hospital", status: "DISABLED" });
    await s.emit();
    await s.emit({ account: "hospital" });
    assert.equal(await s.recoverAll(id), 1);
    assert.equal(only(await s.claim()).webhook.id, id);
    assert.equal(await s.recover(s.store.newWebhookId("clinic")), undefined);
  });

  it("every recovery of a failed delivery creates a successor with an id of its own", async (s) => {
    await s.register();
    await s.emit();
    const first = only(await s.claim());
    await s.fail(first);
    for (const serial of [1, 2]) {
      assert.equal(await s.recoverAll(first.webhook.id), 1);
      const successor = only(await s.claim());
      assert.equal(successor.id, `${first.id}.${serial}`);
      await s.fail(successor);
    }
  });

  for (const state of ["failed", "withheld"] as const) {
    it(`recover leaves out a ${state} event that was sent again as often as it may be`, async (s) => {
      const { id } = await s.register();
      const end = async (): Promise<string> => {
        const claim = only(await s.claim());
        await s.settle(claim, { state, reason: "x" }, { endpoint: null, attempt: null });
        return claim.id;
      };
      const recoverAll = () => s.recoverAll(id, 0, 2, { states: [state] });
      await s.emit();
      const first = await end();
      for (let serial = 1; serial <= MAX_RESENT; serial++) {
        if (serial % 2 === 0) await s.resend(first);
        else assert.equal(await recoverAll(), 1);
        assert.equal(await end(), `${first}.${serial}`);
      }
      assert.equal(await recoverAll(), 0);
      assert.deepEqual(await s.claim(), []);
      const { ids } = await s.emit();
      await end();
      assert.equal(await recoverAll(), 1);
      assert.equal(await end(), `${only(ids)}.1`);
    });
  }
}

/** Recovery creates deliveries of the events of one type or state only. */
export function testRecoverySelection(it: DeclareTest): void {
  /** Events of one type in each state for a webhook, in this order. */
  const stageStates = async (s: Scenario, type: string) => {
    const { id } = await s.register({ eventTypes: [type] });
    await s.update(id, { status: "DISABLED" });
    const missed = await s.emit({ type });
    await s.update(id, { status: "ENABLED" });
    const outcomes = ["failed", "withheld", "delivered", "pending"] as const;
    const emitted = await repeat(outcomes.length, () => s.emit({ type }));
    const [failed, withheld, delivered] = emitted.map(({ ids }) => only(ids));
    for (const claim of await s.claim()) {
      if (claim.id === failed) await s.fail(claim, { endpoint: null });
      else if (claim.id === withheld) await s.settle(claim, { state: "withheld", reason: "access_denied" });
      else if (claim.id === delivered) await s.deliver(claim);
      else if (claim.webhook.id === id) await s.postpone(claim, HOUR_MS);
    }
    return { id, missed: `${id}.${missed.event.id}`, failed: `${failed}.1`, withheld: `${withheld}.1` };
  };
  const claimIds = async (s: Scenario): Promise<string[]> => listIds(await s.claim());

  for (const state of ["missed", "failed", "withheld"] as const) {
    it(`recover creates deliveries of events that are ${state} and of no others, once`, async (s) => {
      const { id, ...expected } = await stageStates(s, "patient.updated");
      assert.equal(await s.recoverAll(id, 0, 2, { states: [state] }), 1);
      assert.equal(await s.recoverAll(id, 0, 2, { states: [state] }), 0);
      assert.deepEqual(await claimIds(s), [expected[state]]);
    });
  }

  it("recover of several states creates the deliveries of each", async (s) => {
    const { id, missed, failed, withheld } = await stageStates(s, "patient.updated");
    assert.equal(await s.recoverAll(id, 0, 2, { states: ["missed", "failed", "withheld"] }), 3);
    assert.deepEqual(await claimIds(s), [missed, failed, withheld].sort());
  });

  for (const states of [
    ["withheld", "failed"],
    ["failed", "withheld"],
  ] as const) {
    it(`an event with deliveries that were ${states.join(", then ")} is withheld`, async (s) => {
      const { id } = await s.register();
      const { ids } = await s.emit();
      for (const state of states) {
        const claim = only(await s.claim());
        await s.settle(claim, { state, reason: "x" }, { endpoint: null, attempt: null });
        if (state === states[0]) await s.resend(only(ids));
      }
      assert.equal(await s.recoverAll(id), 0);
      assert.equal(await s.recoverAll(id, 0, 2, { states: ["failed", "missed"] }), 0);
      assert.equal(await s.recoverAll(id, 0, 2, { states: ["withheld"] }), 1);
      assert.equal(only(await s.claim()).id, `${only(ids)}.2`);
    });
  }

  it("recover of a type leaves events of other types alone, also those with a similar name", async (s) => {
    const { id } = await s.register({ status: "DISABLED" });
    const types = ["patient.updated", "patient.update", "patient.updated,x", "consent.created"];
    await repeat(types.length, (index) => s.emit({ type: types[index] ?? "" }));
    for (const type of ["patient", "patient.*", "consent.updated"])
      assert.equal(await s.recoverAll(id, 0, 2, { types: [type] }), 0);
    for (const type of types) assert.equal(await s.recoverAll(id, 0, 2, { types: [type] }), 1);
    assert.equal(await s.recoverAll(id), 0);
    const { id: narrow } = await s.register({ status: "DISABLED", eventTypes: ["consent.*"] });
    assert.equal(await s.recoverAll(narrow, 0, 2, { types: ["patient.updated"] }), 0);
  });
}

/** Recovered deliveries are spread over time and created once. */
export function testRecoverySchedule(it: DeclareTest): void {
  it("recovered deliveries fall due one after another, oldest first, behind new events", async (s) => {
    const { id } = await s.register({ status: "DISABLED" });
    const missed = await repeat(4, () => s.emit());
    await s.update(id, { status: "ENABLED" });
    const dueAt = s.now() + SECOND_MS;
    const response = await s.recover(id, { dueAt, everyMs: 100 });
    assert.equal(response?.count, 4);
    const due = (await readDeliveryLog(s, { webhookId: id }))
      .map((record) => [record.eventId, record.dueAt])
      .reverse();
    assert.deepEqual(
      due,
      missed.map(({ event }, index) => [event.id, dueAt + index * 100]),
    );
    assert.deepEqual(await s.claim(), []);
    await s.advance(SECOND_MS + 99);
    await s.postpone(only(await s.claim()), HOUR_MS);
    await s.advance(HOUR_MS / 2);
    const { event } = await s.emit();
    const [first, ...others] = await s.claim({ room: { slow: 4 } });
    assert.equal(first?.event.id, event.id);
    assert.deepEqual(
      others.map((claim) => claim.event.id),
      missed.slice(1).map((one) => one.event.id),
    );
  });

  it("concurrent recoveries create each delivery once, and none for a removed webhook", async (s) => {
    const { id } = await s.register({ status: "DISABLED" });
    const { id: other } = await s.register({ status: "DISABLED" });
    await repeat(4, () => s.emit());
    const responses = await s.callConcurrently(6, (by) => s.recover(id, { by }));
    assert.equal(
      responses.reduce((sum, response) => sum + (response?.count ?? 0), 0),
      4,
    );
    assert.equal((await readDeliveryLog(s, { webhookId: id })).length, 4);
    const [, late] = await Promise.all([s.remove(other), s.recover(other, { by: s.peer })]);
    assert.ok(late === undefined || late.count === 4);
    await s.tidy();
    assert.equal((await s.store.stats()).pending, 4);
  });
}
