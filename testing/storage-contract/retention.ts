/** The storage contract on what has ended: kept for `recover` and the log, and freed in its time. */

import assert from "node:assert/strict";
import { allPages, listed, listIds, only, times } from "./lists.js";
import { type DeclareTest, HOUR_MS, RETENTION, type Scenario, SECOND_MS } from "./scenario.js";

/** Recovers page by page; resolves with how many were made. */
async function recovered({ recover }: Scenario, webhookId: string, since = 0, limit = 2): Promise<number> {
  const counts = await allPages(async (cursor) => {
    const answer = await recover(webhookId, { since, cursor, limit });
    assert.ok(answer);
    assert.ok(answer.count <= limit);
    return { rows: [answer.count], next: answer.next };
  });
  return counts.reduce((sum, count) => sum + count, 0);
}

export function retention(declare: DeclareTest): void {
  declare("an event that a resend opened again is kept for the retention after the new end", async (s) => {
    await s.register();
    const { ids } = await s.emit();
    await s.deliver(only(await s.claim()));
    await s.advance(RETENTION.ms - 1);
    const second = await s.resend(only(ids));
    await s.advance(HOUR_MS);
    await s.tidy();
    const claim = only(await s.claim());
    assert.equal(claim.id, second);
    await s.deliver(claim);
    await s.advance(RETENTION.ms - 1);
    await s.tidy();
    assert.equal((await s.delivery(claim.id)).state, "delivered");
  });

  declare("recover makes deliveries of what was emitted while the webhook was disabled", async (s) => {
    const { id } = await s.register({ eventTypes: ["patient.*"] });
    await s.emit();
    await s.deliver(only(await s.claim()));
    await s.update(id, { status: "DISABLED" });
    const missed = await times(5, () => s.emit());
    await s.emit({ type: "consent.created" });
    await s.update(id, { status: "ENABLED" });
    assert.deepEqual(await s.claim(), []);
    assert.equal(await recovered(s, id), 5);
    assert.equal(await recovered(s, id), 0);
    const claims = await s.claim();
    assert.deepEqual(claims.map(({ event }) => event.id).sort(), listIds(missed.map(({ event }) => event)));
    for (const claim of claims)
      assert.deepEqual([claim.step, claim.startedAt, claim.isExtra], [0, null, false]);
  });

  declare("what was recovered falls due one after another, oldest first, behind what is new", async (s) => {
    const { id } = await s.register({ status: "DISABLED" });
    const missed = await times(4, () => s.emit());
    await s.update(id, { status: "ENABLED" });
    const dueAt = s.now() + SECOND_MS;
    const answer = await s.recover(id, { dueAt, everyMs: 100 });
    assert.equal(answer?.count, 4);
    const due = (await listed(s, { webhookId: id }))
      .map((record) => [record.eventId, record.dueAt])
      .reverse();
    assert.deepEqual(
      due,
      missed.map(({ event }, index) => [event.id, dueAt + index * 100]),
    );
    assert.deepEqual(await s.claim(), []);
    await s.advance(SECOND_MS + 99);
    await s.putOff(only(await s.claim()), HOUR_MS);
    await s.advance(HOUR_MS / 2);
    const { event } = await s.emit();
    const [first, ...others] = await s.claim({ room: { slow: 4 } });
    assert.equal(first?.event.id, event.id);
    assert.deepEqual(
      others.map((claim) => claim.event.id),
      missed.slice(1).map((one) => one.event.id),
    );
  });

  declare(
    "recovers by two processes at once make each delivery once, and none of a removed webhook",
    async (s) => {
      const { id } = await s.register({ status: "DISABLED" });
      const { id: other } = await s.register({ status: "DISABLED" });
      await times(4, () => s.emit());
      const answers = await Promise.all(
        Array.from({ length: 6 }, (_, index) => s.recover(id, { by: index % 2 ? s.other : s.store })),
      );
      assert.equal(
        answers.reduce((sum, answer) => sum + (answer?.count ?? 0), 0),
        4,
      );
      assert.equal((await listed(s, { webhookId: id })).length, 4);
      const [, late] = await Promise.all([s.remove(other), s.recover(other, { by: s.other })]);
      assert.ok(late === undefined || late.count === 4);
      await s.tidy();
      assert.equal((await s.store.stats()).pending, 4);
    },
  );

  declare("recover makes new deliveries of failed ones, and of nothing else", async (s) => {
    const { id } = await s.register();
    const emitted = await times(5, () => s.emit());
    const [delivered, failed, withheld, waiting] = emitted.map(({ ids }) => only(ids));
    for (const claim of await s.claim()) {
      if (claim.id === delivered) await s.deliver(claim);
      if (claim.id === failed) await s.fail(claim, { endpoint: null });
      if (claim.id === withheld) await s.settle(claim, { state: "withheld", reason: "access_denied" });
      if (claim.id === waiting) await s.putOff(claim, HOUR_MS);
    }
    assert.equal(await recovered(s, id), 1);
    assert.equal(only(await s.claim()).id, `${failed}.1`);
  });

  declare("recover leaves out what any earlier delivery got through", async (s) => {
    const { id } = await s.register();
    const { ids } = await s.emit();
    await s.deliver(only(await s.claim()));
    await s.resend(only(ids));
    await s.fail(only(await s.claim()));
    assert.equal(await recovered(s, id), 0);
  });

  declare("recover looks at events stored at or after the given time", async (s) => {
    const { id } = await s.register({ status: "DISABLED" });
    await s.emit();
    await s.advance(1);
    const since = s.now();
    const later = [await s.emit(), await s.emit()];
    await s.advance(1);
    later.push(await s.emit());
    for (const late of [s.now() + 1, Date.UTC(2600), Date.UTC(9999)])
      assert.equal(await recovered(s, id, late), 0);
    assert.equal(await recovered(s, id, since), 3);
    const claims = await s.claim();
    assert.deepEqual(claims.map(({ event }) => event.id).sort(), listIds(later.map(({ event }) => event)));
  });

  declare("recover of one webhook leaves the others and their accounts alone", async (s) => {
    const { id } = await s.register({ status: "DISABLED" });
    await s.register({ status: "DISABLED" });
    await s.register({ account: "hospital", status: "DISABLED" });
    await s.emit();
    await s.emit({ account: "hospital" });
    assert.equal(await recovered(s, id), 1);
    assert.equal(only(await s.claim()).webhook.id, id);
    assert.equal(await s.recover(s.store.newWebhookId("clinic")), undefined);
  });

  declare("what has ended is kept for the retention, with its attempts, and freed after it", async (s) => {
    const { id: webhookId } = await s.register();
    const empty = await s.store.stats();
    const { event, ids } = await s.emit({ payload: "é" });
    await s.advance(HOUR_MS);
    await s.deliver(only(await s.claim()));
    await s.advance(RETENTION.ms - 1);
    await s.tidy();
    assert.equal((await s.delivery(only(ids))).attempts.length, 1);
    const { events, ended, bytes } = await s.store.stats();
    assert.deepEqual({ events, ended }, { events: 1, ended: 1 });
    assert.ok(bytes >= empty.bytes + 2);
    await s.advance(1);
    await s.tidy();
    assert.equal(await s.store.getDelivery(only(ids)), undefined);
    assert.equal(await s.resend(only(ids)), undefined);
    assert.deepEqual(await listed(s, { webhookId }), []);
    assert.equal(await recovered(s, webhookId), 0);
    assert.deepEqual(await s.store.stats(), empty);
    assert.equal((await s.append(event)).result, "stored");
  });

  declare("an event that nobody was there for is kept for the retention, and freed after it", async (s) => {
    const { id } = await s.register({ status: "DISABLED" });
    await s.emit();
    await s.advance(RETENTION.ms - 1);
    await s.tidy();
    assert.equal((await s.store.stats()).events, 1);
    await s.advance(1);
    await s.tidy();
    assert.equal((await s.store.stats()).events, 0);
    assert.equal(await recovered(s, id), 0);
  });

  declare(
    "a retention of 0 frees an event with its deliveries once the last has ended",
    async (s) => {
      await s.register();
      await s.register();
      const empty = await s.store.stats();
      const { event, ids } = await s.emit();
      const [first, second] = await s.claim();
      assert.ok(first && second);
      await s.deliver(first);
      assert.equal((await s.delivery(first.id)).state, "delivered");
      assert.equal(await recovered(s, first.webhook.id), 0);
      await s.putOff(second, 0);
      const again = only(await s.claim());
      assert.deepEqual([again.event, ids.includes(again.id)], [event, true]);
      await s.fail(again);
      assert.equal(await s.store.getDelivery(first.id), undefined);
      await s.tidy();
      const endpoints = { ok: 1, failing: 1, warned: 0, disabled: 0 };
      assert.deepEqual(await s.store.stats(), { ...empty, endpoints });
      assert.equal((await s.append(event)).result, "duplicate");
    },
    { retention: { ms: 0, events: 10 } },
  );

  declare("recover gives a failed delivery a successor with an id of its own, each time", async (s) => {
    await s.register();
    await s.emit();
    const first = only(await s.claim());
    await s.fail(first);
    for (const serial of [1, 2]) {
      assert.equal(await recovered(s, first.webhook.id), 1);
      const successor = only(await s.claim());
      assert.equal(successor.id, `${first.id}.${serial}`);
      await s.fail(successor);
    }
  });

  declare(
    "a retention of 0 keeps nothing of removed webhooks and of events nobody was there for",
    async (s) => {
      await s.register({ status: "DISABLED" });
      const empty = await s.store.stats();
      const { id } = await s.register();
      await s.emit();
      await s.remove(id);
      await s.tidy();
      assert.deepEqual(await s.store.stats(), empty);
      await s.emit();
      await s.tidy();
      assert.deepEqual(await s.store.stats(), empty);
    },
    { retention: { ms: 0, events: 10 } },
  );

  declare(
    "beyond the number of kept events the one that ended first goes, open ones stay",
    async (s) => {
      await s.register();
      const { ids: open } = await s.emit();
      await s.putOff(only(await s.claim()), HOUR_MS);
      const ended = await times(4, async () => {
        const { ids } = await s.emit();
        await s.advance(1);
        await s.deliver(only(await s.claim()));
        return only(ids);
      });
      await s.tidy();
      const states = await Promise.all(
        [...open, ...ended].map(async (id) => (await s.store.getDelivery(id))?.state),
      );
      assert.deepEqual(states, ["pending", undefined, undefined, "delivered", "delivered"]);
      assert.equal((await s.store.stats()).events, 3);
    },
    { retention: { ms: RETENTION.ms, events: 2 } },
  );
}
