/** The tests that every source of an outbox has to pass. They run in any test runner and know nothing of how a source works. */

import assert from "node:assert/strict";
import type { OutboxClaim, OutboxSource } from "../outbox/outbox-source.js";
import { randomUUID } from "../src/core/uuid.js";
import type { EventInput } from "../src/webhooks/service.js";

/** A transaction of the host. */
export interface OutboxTransaction {
  /** Writes an event in it; resolves with the event's id. */
  add(event: EventInput): Promise<string>;
  /** Ends it: what was added is there. */
  commit(): Promise<void>;
  /** Ends it: what was added never was. */
  rollback(): Promise<void>;
}

/** A source with what a test needs around it. */
export interface OutboxSourceUnderTest {
  readonly source: OutboxSource;
  /** Adds events and commits them, in this order; resolves with their ids. */
  readonly add: (events: readonly EventInput[]) => Promise<readonly string[]>;
  /** Lets `ms` milliseconds pass by the clock of the source. */
  readonly wait: (ms: number) => Promise<void>;
  /** Begins a transaction on a connection of its own. Without it, what concerns transactions is not tested. */
  readonly begin?: (() => Promise<OutboxTransaction>) | undefined;
  /** Called at the end of the test. */
  readonly destroy?: (() => void | Promise<void>) | undefined;
}

/** What `outboxSourceContract` takes. */
export interface OutboxSourceContractOptions {
  /** The runner's function that declares a test: `test` of vitest, `node:test` or Jest. */
  readonly test: (name: string, run: () => Promise<void>) => unknown;
  /** Makes a source with nothing in it. Called once in each test. */
  readonly create: () => OutboxSourceUnderTest | Promise<OutboxSourceUnderTest>;
}

/** Long enough for whatever a test does meanwhile, on a busy machine too. */
const LEASE_MS = 60_000;
/** Short enough to wait for. */
const SHORT_MS = 200;
const ACCOUNT = "clinic";

const eventFor = (patient: string): EventInput => ({
  type: "patient.updated",
  account: ACCOUNT,
  resource: { resourceType: "Patient", id: patient },
});

const events = (count: number): EventInput[] => Array.from({ length: count }, (_, at) => eventFor(`p${at}`));

const idsOf = (claims: readonly OutboxClaim[]): string[] => claims.map(({ id }) => id);

/** The only row that is due. */
async function claimOne(source: OutboxSource, leaseMs = LEASE_MS): Promise<OutboxClaim> {
  const claims = await source.claim({ limit: 10, leaseMs });
  assert.equal(claims.length, 1);
  return claims[0] as OutboxClaim;
}

async function assertNothingDue(source: OutboxSource): Promise<void> {
  assert.deepEqual(await source.claim({ limit: 10, leaseMs: LEASE_MS }), []);
}

/** Texts that a character set, an escape or a limit of the way to the database could spoil. */
const AWKWARD_TEXTS = [
  "'; DROP TABLE patients; --",
  "\\ \\\\ \\' \\\" \\n `\"'",
  "$1 ? :name @var %s",
  "\u0000\u0001\u001f\u007f\u0085\u2028",
  "ÅÖ æøå 漢字 🫀",
  "\ud800 alone",
  "x".repeat(300_000),
] as const;

/**
 * Declares the tests that hold a source to the page of its port, `OutboxSource`.
 *
 * @example
 * import { test } from "node:test";
 * import { memorySource } from "postbell/outbox";
 * import { manualClock, outboxSourceContract } from "postbell/testing";
 *
 * outboxSourceContract({
 *   test,
 *   create() {
 *     const clock = manualClock(0);
 *     const source = memorySource({ clock });
 *     return { source, add: (events) => source.add(events), wait: (ms) => clock.advance(ms) };
 *   },
 * });
 */
export function outboxSourceContract({ test, create }: OutboxSourceContractOptions): void {
  const declare = (name: string, run: (underTest: OutboxSourceUnderTest) => Promise<void>): void => {
    test(name, async () => {
      const underTest = await create();
      try {
        await run(underTest);
      } finally {
        await underTest.destroy?.();
      }
    });
  };
  for (const theme of [claiming, ending, parking, counting]) theme(declare);
  declare(
    "what a transaction adds is there when it commits, however late, and nobody waits for it",
    transactions,
  );
}

type Declare = (name: string, run: (underTest: OutboxSourceUnderTest) => Promise<void>) => void;

function claiming(declare: Declare): void {
  declare("a source with nothing in it has nothing due and counts nothing", async ({ source }) => {
    await assertNothingDue(source);
    assert.deepEqual(await source.parked({ limit: 10 }), []);
    assert.deepEqual(await source.stats(), { waiting: 0, parked: 0, oldestMs: null });
  });

  declare(
    "an event is claimed as it was added, and by nobody else while its lease runs",
    async ({ source, add }) => {
      const given = randomUUID();
      const occurredAt = "2026-11-20T09:30:00.000Z";
      const [id] = await add([{ ...eventFor("p1"), id: given.toUpperCase(), occurredAt }]);
      assert.equal(id, given);
      const { event, addedAt, key, ...claim } = await claimOne(source);
      assert.deepEqual(claim, { id, claims: 1, retries: 0, unsureMs: null });
      assert.deepEqual(JSON.parse(event), { ...eventFor("p1"), occurredAt });
      assert.ok(Number.isFinite(addedAt) && key !== "");
      await assertNothingDue(source);
    },
  );

  for (const [at, text] of AWKWARD_TEXTS.entries()) {
    declare(
      `awkward text ${at + 1} of ${AWKWARD_TEXTS.length} comes back as it went in`,
      async ({ source, add }) => {
        const resource = { resourceType: "Patient", id: "p1", name: [{ family: text }] };
        await add([{ type: text.slice(0, 100), account: ACCOUNT, resource }]);
        const { event } = await claimOne(source);
        assert.deepEqual(JSON.parse(event), { type: text.slice(0, 100), account: ACCOUNT, resource });
      },
    );
  }

  declare(
    "no more rows are claimed than were asked for, and those first that were added first",
    async (underTest) => {
      const { source, add, wait } = underTest;
      const early = await add(events(3));
      await wait(10);
      const late = await add(events(3));
      const claimed = idsOf(await source.claim({ limit: 3, leaseMs: LEASE_MS }));
      assert.deepEqual(claimed.sort(), [...early].sort());
      const others = idsOf(await source.claim({ limit: 100, leaseMs: LEASE_MS }));
      assert.deepEqual(others.sort(), [...late].sort());
    },
  );

  declare("of many who claim at once, each row goes to one", async ({ source, add }) => {
    const ids = await add(events(120));
    const claimed: string[] = [];
    while (claimed.length < ids.length) {
      const batches = await Promise.all(
        Array.from({ length: 8 }, () => source.claim({ limit: 7, leaseMs: LEASE_MS })),
      );
      const fresh = batches.flatMap(idsOf);
      assert.notEqual(fresh.length, 0);
      claimed.push(...fresh);
    }
    assert.deepEqual(claimed.sort(), [...ids].sort());
    await assertNothingDue(source);
  });

  declare("a row whose lease ran out without a word is due again, the same and unsure", async (underTest) => {
    const { source, add, wait } = underTest;
    await add(events(1));
    const first = await claimOne(source, SHORT_MS);
    await wait(SHORT_MS + 50);
    const second = await claimOne(source, SHORT_MS);
    const { unsureMs, ...rest } = second;
    assert.deepEqual({ ...rest, unsureMs: null }, { ...first, claims: 2 });
    assert.ok(unsureMs !== null && unsureMs >= SHORT_MS);
    await wait(SHORT_MS + 50);
    const third = await claimOne(source);
    assert.ok(
      third.unsureMs !== null && third.unsureMs >= unsureMs + SHORT_MS,
      "counted from the first claim",
    );
  });
}

function ending(declare: Declare): void {
  declare("what is removed is gone, also after its lease; keys of nothing are ignored", async (underTest) => {
    const { source, add, wait } = underTest;
    await add(events(2));
    const claims = await source.claim({ limit: 2, leaseMs: SHORT_MS });
    const [first, second] = claims.map(({ key }) => key);
    await source.remove([first ?? ""]);
    await source.remove([]);
    await source.remove([first ?? "", `${second}x`, "", "-1", "999999999"]);
    await wait(SHORT_MS + 50);
    assert.equal((await claimOne(source, SHORT_MS)).key, second);
    await wait(SHORT_MS + 50);
    await source.remove([second ?? ""]);
    await assertNothingDue(source);
    assert.equal((await source.stats()).waiting, 0);
  });

  declare("many rows are removed at once, and only those", async ({ source, add }) => {
    await add(events(37));
    const claims = await source.claim({ limit: 37, leaseMs: LEASE_MS });
    const kept = claims.slice(0, 4).map(({ key }) => key);
    await source.remove(claims.slice(4).map(({ key }) => key));
    assert.equal((await source.stats()).waiting, kept.length);
  });

  declare("a row that is put off is due after its delay, not before", async (underTest) => {
    const { source, add, wait } = underTest;
    await add(events(1));
    const { key, claims } = await claimOne(source);
    await source.retry({ key, claims, delayMs: SHORT_MS, isUnsure: true });
    await assertNothingDue(source);
    await wait(SHORT_MS + 50);
    const again = await claimOne(source);
    assert.deepEqual([again.claims, again.retries], [2, 1]);
    assert.ok(again.unsureMs !== null && again.unsureMs >= SHORT_MS);
  });

  declare("a row that was not emitted for sure is not unsure the next time", async ({ source, add }) => {
    await add(events(1));
    const { key, claims } = await claimOne(source);
    await source.retry({ key, claims, delayMs: 0, isUnsure: false });
    const again = await claimOne(source);
    assert.deepEqual([again.retries, again.unsureMs], [1, null]);
  });

  declare("a report that comes after another claim changes nothing", async (underTest) => {
    const { source, add, wait } = underTest;
    await add(events(1));
    const { key, claims } = await claimOne(source, SHORT_MS);
    await wait(SHORT_MS + 50);
    await claimOne(source);
    await source.retry({ key, claims, delayMs: 0, isUnsure: false });
    await source.park({ key, claims, reason: "late" });
    await assertNothingDue(source);
    assert.deepEqual(await source.parked({ limit: 10 }), []);
  });
}

function parking(declare: Declare): void {
  declare(
    "a parked row is listed with its reason and not claimed; released, it is as good as new",
    async (underTest) => {
      const { source, add, wait } = underTest;
      await add(events(1));
      const { key, id, claims, addedAt } = await claimOne(source, SHORT_MS);
      await source.park({ key, claims, reason: 'unknown_event_type: it\'s \\ a "typing" error' });
      await source.retry({ key, claims, delayMs: 0, isUnsure: false });
      await wait(SHORT_MS + 50);
      await assertNothingDue(source);
      const [parked, ...others] = await source.parked({ limit: 10 });
      assert.deepEqual(others, []);
      const { parkedAt = 0, ...rest } = parked ?? {};
      assert.deepEqual(rest, { key, id, addedAt, reason: 'unknown_event_type: it\'s \\ a "typing" error' });
      assert.ok(parkedAt >= addedAt);
      await source.release([key, `${key}x`]);
      const released = await claimOne(source);
      assert.equal(released.unsureMs, null);
      assert.equal(released.claims - 1, released.retries, "no claim before the release counts as a crash");
      assert.deepEqual(await source.parked({ limit: 10 }), []);
    },
  );

  declare("a row that is not parked is not released", async ({ source, add }) => {
    await add(events(1));
    const { key } = await claimOne(source);
    await source.release([key]);
    await assertNothingDue(source);
  });

  declare(
    "parked rows are listed in the order they were parked, and can be removed",
    async ({ source, add, wait }) => {
      await add(events(3));
      const rows = await source.claim({ limit: 3, leaseMs: LEASE_MS });
      const order = [rows[2], rows[0], rows[1]].filter((row) => row !== undefined);
      for (const { key, claims } of order) {
        await source.park({ key, claims, reason: "crashed" });
        await wait(5);
      }
      const keys = order.map(({ key }) => key);
      const listed = await source.parked({ limit: 2 });
      assert.deepEqual(
        listed.map(({ key }) => key),
        keys.slice(0, 2),
      );
      await source.remove(keys);
      assert.deepEqual(await source.stats(), { waiting: 0, parked: 0, oldestMs: null });
    },
  );
}

function counting(declare: Declare): void {
  declare("the counts tell what waits, what is parked and how old the oldest is", async (underTest) => {
    const { source, add, wait } = underTest;
    await add(events(1));
    const { key, claims } = await claimOne(source);
    await wait(SHORT_MS);
    await add(events(2));
    const before = await source.stats();
    assert.deepEqual([before.waiting, before.parked], [3, 0]);
    assert.ok(before.oldestMs !== null && before.oldestMs >= SHORT_MS);
    await source.park({ key, claims, reason: "refused" });
    const after = await source.stats();
    assert.deepEqual([after.waiting, after.parked], [2, 1]);
    assert.ok(
      after.oldestMs !== null && after.oldestMs < before.oldestMs + SHORT_MS,
      "parked rows do not age",
    );
  });
}

async function transactions({ source, add, begin }: OutboxSourceUnderTest): Promise<void> {
  if (!begin) return;
  const [early, undone] = [await begin(), await begin()];
  const earlyId = await early.add(eventFor("early"));
  await undone.add(eventFor("undone"));
  const [lateId] = await add([eventFor("late")]);
  const late = await claimOne(source);
  assert.equal(late.id, lateId);
  await source.remove([late.key]);
  await undone.rollback();
  await assertNothingDue(source);
  await early.commit();
  assert.equal((await claimOne(source)).id, earlyId);
}
