/** The storage contract on health notices, hints, counts and the connection itself. */

import assert from "node:assert/strict";
import type { WebhookRecord, WebhookStatus } from "../../src/webhooks/store.js";
import { listIds, only, times, vandalise } from "./lists.js";
import {
  type DeclareTest,
  HOUR_MS,
  LEASE_MS,
  MINUTE_MS,
  NOTICE_MS,
  PER_ENDPOINT,
  type Scenario,
} from "./scenario.js";

const DAY_MS = 24 * HOUR_MS;

const takeNotices = ({ store, now }: Scenario, { by = store, limit = 10 } = {}) =>
  by.claimHealthNotifications({ now: now(), leaseUntil: now() + LEASE_MS, limit });

/** A webhook whose first health step is due now, and the failure it is about. */
async function due(s: Scenario) {
  const { id } = await s.register();
  await s.emit();
  const claim = only(await s.claim());
  await s.retry(claim, 30 * DAY_MS);
  const { failingSince } = await s.webhook(id);
  assert.ok(failingSince !== null);
  await s.advance(NOTICE_MS);
  return { id, failingSince, claim };
}

const step = (
  { store, now }: Scenario,
  { id, failingSince }: { readonly id: string; readonly failingSince: number },
  change: {
    readonly from?: WebhookStatus;
    readonly status?: WebhookStatus;
    readonly warnedAt?: number | null;
    readonly noticeAt?: number | null;
    readonly account?: string;
  } = {},
  by = store,
): Promise<boolean> =>
  by.settleHealthNotification({
    id,
    account: "clinic",
    failingSince,
    from: "ENABLED",
    status: "ENABLED",
    warnedAt: now(),
    noticeAt: now() + DAY_MS,
    now: now(),
    ...change,
  });

/** Resolves once `act` has led to a hint for `by` or earlier. */
async function hinted({ other }: Scenario, by: number, act: () => Promise<unknown>): Promise<void> {
  let unwatch = (): void => {};
  const hint = new Promise<void>((resolve) => {
    unwatch = other.watch((at) => {
      if (at <= by) resolve();
    });
  });
  await act();
  await hint;
  unwatch();
}

export function notices(declare: DeclareTest): void {
  declare("a health step is handed out when it is due, to one process", async (s) => {
    assert.deepEqual(await takeNotices(s), { webhooks: [], nextAt: null });
    const { id } = await s.register();
    await s.emit();
    await s.retry(only(await s.claim()), HOUR_MS);
    await s.advance(NOTICE_MS - 1);
    const early = await takeNotices(s);
    assert.deepEqual(early.webhooks, []);
    assert.ok(early.nextAt !== null && early.nextAt > s.now() - 1 && early.nextAt <= s.now() + 1);
    await s.advance(1);
    const answers = await Promise.all([takeNotices(s), takeNotices(s, { by: s.other })]);
    const taken = only(answers.flatMap(({ webhooks }) => webhooks));
    assert.deepEqual(taken, await s.webhook(id));
    assert.equal(taken.noticeAt, s.now() + LEASE_MS);
    const expected = structuredClone(taken);
    vandalise(answers);
    assert.deepEqual(await s.webhook(id), expected);
    const next = await takeNotices(s);
    assert.deepEqual(next.webhooks, []);
    assert.ok(next.nextAt !== null && next.nextAt <= s.now() + LEASE_MS);
  });

  declare("health steps come at most as many as asked for, and all in the end", async (s) => {
    const all = await times(5, () => s.register());
    await s.emit();
    for (const claim of await s.claim()) await s.retry(claim, HOUR_MS);
    await s.advance(NOTICE_MS);
    const first = await takeNotices(s, { limit: 2 });
    assert.equal(first.webhooks.length, 2);
    assert.ok(first.nextAt !== null && first.nextAt <= s.now());
    const second = await takeNotices(s, { limit: 10 });
    assert.deepEqual(listIds([...first.webhooks, ...second.webhooks]), listIds(all));
  });

  declare(
    "a health step whose process died is taken up by another one, whatever a user changed meanwhile",
    async (s) => {
      const { id } = await due(s);
      only((await takeNotices(s)).webhooks);
      await s.update(id, { eventTypes: ["patient.*"] });
      assert.deepEqual((await takeNotices(s, { by: s.other })).webhooks, []);
      await s.advance(LEASE_MS - 1);
      assert.deepEqual((await takeNotices(s, { by: s.other })).webhooks, []);
      await s.advance(1);
      assert.equal(only((await takeNotices(s, { by: s.other })).webhooks).id, id);
    },
  );

  declare("a taken step sets its fields, and the next one comes in its time", async (s) => {
    const failing = await due(s);
    await takeNotices(s);
    const before = await s.webhook(failing.id);
    assert.equal(await step(s, failing), true);
    const warned = await s.webhook(failing.id);
    const { updatedAt } = warned;
    assert.deepEqual(warned, { ...before, warnedAt: s.now(), noticeAt: s.now() + DAY_MS, updatedAt });
    await s.advance(DAY_MS - 1);
    assert.deepEqual((await takeNotices(s)).webhooks, []);
    await s.advance(1);
    const again = only((await takeNotices(s)).webhooks);
    assert.deepEqual([again.warnedAt, again.failingSince], [warned.warnedAt, failing.failingSince]);
  });

  declare("of two processes one disables; the failure stays on record and the place is free", async (s) => {
    const failing = await due(s);
    const before = await s.webhook(failing.id);
    const change = { status: "DISABLED", warnedAt: 1, noticeAt: s.now() } as const;
    const answers = await Promise.all([step(s, failing, change), step(s, failing, change, s.other)]);
    assert.deepEqual(answers.sort(), [false, true]);
    const disabled = await s.webhook(failing.id);
    assert.deepEqual([disabled.status, disabled.failingSince], ["DISABLED", failing.failingSince]);
    assert.ok(disabled.updatedAt > before.updatedAt);
    await times(15, () => s.register());
    assert.equal((await s.update(failing.id, { status: "ENABLED" })).result, "enabled_limit");

    const announced = only((await takeNotices(s)).webhooks);
    assert.deepEqual([announced.id, announced.status], [failing.id, "DISABLED"]);
    const done = { from: "DISABLED", status: "DISABLED", noticeAt: null } as const;
    assert.equal(await step(s, failing, done), true);
    assert.deepEqual(await takeNotices(s), { webhooks: [], nextAt: null });
  });

  declare("a webhook that the service disabled keeps its health until a user enables it", async (s) => {
    const { claim, ...failing } = await due(s);
    await step(s, failing, { status: "DISABLED", noticeAt: null });
    const disabled = await s.webhook(failing.id);
    await s.deliver(claim);
    assert.deepEqual(await s.webhook(failing.id), disabled);
    await s.update(failing.id, { status: "ENABLED" });
    const enabled = await s.webhook(failing.id);
    assert.deepEqual([enabled.failingSince, enabled.warnedAt, enabled.noticeAt], [null, null, null]);
    assert.equal(enabled.generation, disabled.generation + 1);
  });

  for (const [what, change] of [
    ["recovered", ({ deliver }, { claim }) => deliver(claim)],
    ["moved", ({ update }, { id }) => update(id, { url: "https://subscriber.example/moved" })],
    ["was disabled by a user", ({ update }, { id }) => update(id, { status: "DISABLED" })],
  ] satisfies readonly [
    string,
    (s: Scenario, failing: Awaited<ReturnType<typeof due>>) => Promise<unknown>,
  ][]) {
    declare(`no health step is taken once the webhook ${what}`, async (s) => {
      const failing = await due(s);
      only((await takeNotices(s)).webhooks);
      await change(s, failing);
      const before: WebhookRecord = await s.webhook(failing.id);
      assert.equal(await step(s, failing), false);
      assert.equal(await step(s, failing, { status: "DISABLED" }), false);
      assert.deepEqual(await s.webhook(failing.id), before);
      await s.advance(LEASE_MS);
      assert.deepEqual(await takeNotices(s), { webhooks: [], nextAt: null });
    });
  }

  declare(
    "no health step is taken for a later failure, another status, another account or a removed webhook",
    async (s) => {
      const failing = await due(s);
      const before = await s.webhook(failing.id);
      assert.equal(await step(s, { ...failing, failingSince: failing.failingSince + 1 }), false);
      assert.equal(await step(s, failing, { from: "DISABLED" }), false);
      assert.equal(await step(s, failing, { account: "hospital" }), false);
      assert.deepEqual(await s.webhook(failing.id), before);
      await s.remove(failing.id);
      assert.equal(await step(s, failing), false);
      assert.deepEqual(await takeNotices(s), { webhooks: [], nextAt: null });
      assert.equal(await s.store.getWebhook(failing.id), undefined);
    },
  );

  declare("the counts add up at every stage", async (s) => {
    const counted = async (store = s.store) => {
      const { bytes, ...counts } = await store.stats();
      assert.ok(bytes >= 4 * counts.events, "a storage counts at least its payloads");
      return counts;
    };
    const none = { ok: 0, failing: 0, warned: 0, disabled: 0 };
    const empty = { webhooks: 0, events: 0, pending: 0, leased: 0, ended: 0, due: 0, endpoints: none };
    assert.deepEqual(await counted(), empty);
    const { id } = await s.register();
    await s.register({ status: "DISABLED" });
    await times(3, () => s.emit({ payload: "four" }));
    assert.deepEqual(await counted(s.other), {
      ...empty,
      webhooks: 2,
      events: 3,
      pending: 3,
      due: 3,
      endpoints: { ...none, ok: 1, disabled: 1 },
    });
    const [first, second] = await s.claim({ room: { slow: 2 } });
    assert.ok(first && second);
    const { leased, due: left } = await counted();
    assert.deepEqual({ leased, left }, { leased: 2, left: 1 });
    await s.deliver(first);
    await s.retry(second, HOUR_MS);
    const endpoints = { ...none, failing: 1, disabled: 1 };
    const counts = { webhooks: 2, events: 3, pending: 2, leased: 0, ended: 1, due: 1, endpoints };
    assert.deepEqual(await counted(), counts);
    await s.advance(HOUR_MS);
    assert.equal((await counted()).due, 2);
    const { failingSince } = await s.webhook(id);
    assert.ok(failingSince !== null);
    await step(s, { id, failingSince });
    assert.deepEqual((await counted()).endpoints, { ...none, warned: 1, disabled: 1 });
    await s.remove(id);
    await s.tidy();
    const remaining = { webhooks: 1, pending: 0, ended: 0, due: 0, endpoints: { ...none, disabled: 1 } };
    assert.deepEqual(await counted(), { ...counts, ...remaining });
  });

  declare("the storage's time does not run backwards, and a sleep has an end", async ({ store, advance }) => {
    const before = store.now();
    await advance(MINUTE_MS);
    assert.ok(Number.isFinite(before) && store.now() >= before);
    assert.ok(store.maxSleepMs > 0 && Number.isFinite(store.maxSleepMs));
  });

  declare("setting the wall clock of a process does not move the storage's time", async (s) => {
    const before = s.store.now();
    for (const ms of [HOUR_MS, -HOUR_MS, 3_650 * DAY_MS]) {
      s.clock.setWallClock(before + ms);
      for (const binding of [s.store, s.other]) {
        assert.ok(Math.abs(binding.now() - before) < MINUTE_MS);
      }
    }
  });
}

/** Only for a storage that gives hints at all. A hint that does not come fails its test by the runner's time-out. */
export function hints(declare: DeclareTest): void {
  declare("an emit gives a hint to the other process", async (s) => {
    await s.register();
    await hinted(s, s.now(), () => s.emit());
  });

  declare("a resend and a recover give a hint", async (s) => {
    const { id } = await s.register();
    const { ids } = await s.emit();
    await s.putOff(only(await s.claim()), HOUR_MS);
    await hinted(s, s.now(), () => s.resend(only(ids)));
    await s.fail(only(await s.claim()));
    await hinted(s, s.now(), () => s.resend(only(ids)));
    await s.fail(only(await s.claim()));
    await hinted(s, s.now(), () => s.recover(id));
  });

  declare("a retry and the health step of a first failure give a hint for their times", async (s) => {
    await s.register();
    await s.emit();
    const [claim] = await s.claim();
    assert.ok(claim);
    await hinted(s, s.now() + HOUR_MS, () => s.retry(claim, HOUR_MS));
    await s.advance(HOUR_MS);
    await s.deliver(only(await s.claim()));
    await s.emit();
    const next = only(await s.claim());
    await hinted(s, s.now() + NOTICE_MS, () => s.fail(next));
  });

  declare("a report that frees a place at a busy endpoint gives a hint to the other process", async (s) => {
    await s.register();
    await times(PER_ENDPOINT, () => s.emit());
    const [first, second, third] = await s.claim();
    assert.ok(first && second && third);
    await s.emit();
    await hinted(s, s.now(), () => s.deliver(first));
    only(await s.claim({ by: s.other }));
    await s.emit();
    await hinted(s, s.now(), () => s.putOff(second, HOUR_MS));
    only(await s.claim({ by: s.other }));
    // What is due later has to be known as well: the process that reports may be about to stop.
    await hinted(s, s.now() + HOUR_MS, () => s.deliver(third));
  });

  declare("a watch that has ended hears nothing more, and leaves others alone", async (s) => {
    const heard: number[] = [];
    const listener = (at: number): void => void heard.push(at);
    const unwatch = s.other.watch(listener);
    unwatch();
    unwatch();
    await s.register();
    await hinted(s, s.now(), () => s.emit());
    assert.deepEqual(heard, []);
  });
}
