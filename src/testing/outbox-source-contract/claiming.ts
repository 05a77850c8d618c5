/** Claiming rows. */

import assert from "node:assert/strict";
import { randomUUID } from "../../core/uuid.js";
import type { OutboxClaim } from "../../outbox/outbox-source.js";
import {
  ACCOUNT,
  assertNothingDue,
  buildEvent,
  buildEvents,
  claimOne,
  type DeclareSourceTest,
  ROW_LEASE_MS,
  SHORT_MS,
} from "./fixture.js";

/** Texts that a character set, an escape or a size limit on the way to a database can corrupt. */
const AWKWARD_TEXTS = [
  "'; DROP TABLE patients; --",
  "\\ \\\\ \\' \\\" \\n `\"'",
  "$1 ? :name @var %s",
  "\u0000\u0001\u001f\u007f\u0085\u2028",
  "ÅÖ æøå 漢字 🫀",
  "\ud800 alone",
  "x".repeat(300_000),
] as const;

const toIds = (claims: OutboxClaim[]): string[] => claims.map(({ id }) => id);

/** A row that is due is claimed by one process for the time of its lease. */
export function testClaiming(it: DeclareSourceTest): void {
  it("an empty source has nothing due and counts nothing", async ({ source }) => {
    await assertNothingDue(source);
    assert.deepEqual(await source.parked({ limit: 10 }), []);
    assert.deepEqual(await source.stats(), { waiting: 0, parked: 0, oldestMs: null });
  });

  it("an event is claimed as it was added, and by one process while the lease lasts", async ({
    source,
    add,
  }) => {
    const uuid = randomUUID();
    const occurredAt = "2026-11-20T09:30:00.000Z";
    const [id] = await add([{ ...buildEvent("p1"), id: uuid.toUpperCase(), occurredAt }]);
    assert.equal(id, uuid);
    const { event, addedAt, key, ...claim } = await claimOne(source);
    assert.deepEqual(claim, { id, claims: 1, retries: 0, unsureMs: null });
    assert.deepEqual(JSON.parse(event), { ...buildEvent("p1"), occurredAt });
    assert.ok(Number.isFinite(addedAt) && key !== "");
    await assertNothingDue(source);
  });

  for (const [at, text] of AWKWARD_TEXTS.entries()) {
    it(`awkward text ${at + 1} of ${AWKWARD_TEXTS.length} is returned as it was added`, async ({
      source,
      add,
    }) => {
      const resource = { resourceType: "Patient", id: "p1", name: [{ family: text }] };
      await add([{ type: text.slice(0, 100), account: ACCOUNT, resource }]);
      const { event } = await claimOne(source);
      assert.deepEqual(JSON.parse(event), { type: text.slice(0, 100), account: ACCOUNT, resource });
    });
  }

  it("a claim returns at most limit rows, those first that were added first", async (underTest) => {
    const { source, add, wait } = underTest;
    const early = await add(buildEvents(3));
    await wait(10);
    const late = await add(buildEvents(3));
    const claimed = toIds(await source.claim({ limit: 3, leaseMs: ROW_LEASE_MS }));
    assert.deepEqual(claimed.sort(), [...early].sort());
    const others = toIds(await source.claim({ limit: 100, leaseMs: ROW_LEASE_MS }));
    assert.deepEqual(others.sort(), [...late].sort());
  });

  it("each row goes to one of many concurrent claims", async ({ source, add }) => {
    const ids = await add(buildEvents(120));
    const claimed: string[] = [];
    while (claimed.length < ids.length) {
      const batches = await Promise.all(
        Array.from({ length: 8 }, () => source.claim({ limit: 7, leaseMs: ROW_LEASE_MS })),
      );
      const fresh = batches.flatMap(toIds);
      assert.notEqual(fresh.length, 0);
      claimed.push(...fresh);
    }
    assert.deepEqual(claimed.sort(), [...ids].sort());
    await assertNothingDue(source);
  });

  it("a row whose lease expired is claimed again with the time since its first claim", async (underTest) => {
    const { source, add, wait } = underTest;
    await add(buildEvents(1));
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
