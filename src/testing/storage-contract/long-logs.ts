/**
 * Long logs: a call may examine part of a log, and repeated calls reach all of it. And the audit
 * log, which stays as long as it may be.
 */

import assert from "node:assert/strict";
import { listAccountDeliveries } from "../../webhooks/delivery/delivery-lists.js";
import type { AuditRecord, EventRecord, WebhookStore } from "../../webhooks/store.js";
import { listIds, only, readAllPages, repeat } from "./assertions.js";
import { SECOND_MS } from "./builders.js";
import type { DeclareTest, Scenario } from "./fixture.js";

/** The length of a long log: more events than any storage may examine for one page. */
export const LOG_LENGTH = 1_200;
const EMITTED_TOGETHER = 200;

/** Emits `count` events of patients. */
export async function emitMany(
  s: Scenario,
  account: string,
  count: number,
  fields: Partial<EventRecord> = {},
): Promise<void> {
  for (let left = count; left > 0; left -= EMITTED_TOGETHER) {
    await Promise.all(
      Array.from({ length: Math.min(left, EMITTED_TOGETHER) }, () => s.emit({ account, ...fields })),
    );
  }
}

/** An account with a long log, and its webhooks. */
export interface BusyAccount {
  name: string;
  /** Has a single delivery, which is the oldest of the account. */
  rareId: string;
  /** Has no delivery. */
  idleId: string;
  /** Has all other deliveries. */
  busyId: string;
  /** The oldest delivery of the account. */
  oldestId: string;
}

/** Registers the webhooks of an account and emits `events` events to the busy one. */
export async function createBusyAccount(s: Scenario, name: string, events: number): Promise<BusyAccount> {
  const { id: rareId } = await s.register({ account: name, eventTypes: ["consent.*"] });
  const { id: idleId } = await s.register({ account: name, eventTypes: ["practitioner.*"] });
  const { id: busyId } = await s.register({ account: name, eventTypes: ["patient.*"] });
  const { ids } = await s.emit({ account: name, type: "consent.created" });
  await s.advance(SECOND_MS);
  await emitMany(s, name, events);
  await s.advance(SECOND_MS);
  return { name, rareId, idleId, busyId, oldestId: only(ids) };
}

/** A page may be short or empty; following `next` misses nothing. */
export function testLongLogs(it: DeclareTest): void {
  it("pages of a long log may be short or empty, and together they miss nothing", async (s) => {
    const { rareId, idleId, busyId, oldestId } = await createBusyAccount(s, "clinic", LOG_LENGTH);
    const readLog = (webhookId: string, query: object) =>
      readAllPages(async (cursor) => {
        const page = await s.store.listDeliveries({ webhookId, ...query, limit: 100, cursor });
        assert.ok(page.deliveries.length <= 100);
        return { rows: page.deliveries, next: page.next };
      });
    assert.deepEqual(listIds(await readLog(rareId, {})), [oldestId]);
    assert.deepEqual(listIds(await readLog(rareId, { state: "pending" })), [oldestId]);
    assert.deepEqual(await readLog(rareId, { state: "failed" }), []);
    assert.deepEqual(await readLog(idleId, {}), []);
    assert.equal(new Set(listIds(await readLog(busyId, {}))).size, LOG_LENGTH);
  });

  it("the list of an account reaches all of its long logs", async (s) => {
    const { name, oldestId } = await createBusyAccount(s, "clinic", LOG_LENGTH);
    const { webhooks } = await s.store.listWebhooks({ account: name, limit: 100 });
    const readLog = (query: object) =>
      readAllPages(async (cursor) => {
        const { rows, next } = await listAccountDeliveries(s.store, webhooks, {
          ...query,
          limit: 100,
          cursor,
        });
        return { rows: rows.map(({ delivery }) => delivery), next };
      });
    assert.equal(new Set(listIds(await readLog({}))).size, LOG_LENGTH + 1);
    assert.deepEqual(listIds(await readLog({ type: "consent.created" })), [oldestId]);
    assert.deepEqual(await readLog({ state: "failed" }), []);
  });

  it("a recovery of a long log resumes at its cursor, counts what it examined and misses nothing", async (s) => {
    const { id } = await s.register({ status: "DISABLED", eventTypes: ["consent.*"] });
    const missed = await repeat(2, async () => {
      const { event } = await s.emit({ type: "consent.created" });
      await emitMany(s, "clinic", LOG_LENGTH / 2);
      return event;
    });
    await s.update(id, { status: "ENABLED" });
    let examined = 0;
    const recoverAll = () =>
      readAllPages(async (cursor) => {
        const step = await s.recover(id, { cursor, limit: 1_000_000 });
        assert.ok(step);
        examined += step.examined;
        return { rows: [step.count], next: step.next };
      });
    const sum = (counts: number[]): number => counts.reduce((total, count) => total + count, 0);
    assert.equal(sum(await recoverAll()), 2);
    // A storage may also examine the deliveries that it has just created.
    assert.ok(examined >= LOG_LENGTH + 2 && examined <= LOG_LENGTH + 4, `${examined} events were examined`);
    assert.equal(sum(await recoverAll()), 0);
    const claims = await s.claim();
    assert.deepEqual(listIds(claims.map(({ event }) => event)), listIds(missed));
  });
}

/** As many entries as the service passes at most in one call. */
const ENTRIES_PER_CALL = 250;

interface NewEntries {
  accounts: string[];
  count: number;
  keep: number;
  /** Default false. */
  isDelivery?: boolean;
}

/** Adds `count` entries in one call, a second after the ones before. */
export async function addEntries(s: Scenario, by: WebhookStore, entries: NewEntries): Promise<AuditRecord[]> {
  await s.advance(SECOND_MS);
  return addEntriesNow(s, by, entries);
}

/** @param call tells the entries apart from those of other calls in the same millisecond. */
async function addEntriesNow(
  s: Scenario,
  by: WebhookStore,
  { accounts, count, keep, isDelivery = false }: NewEntries,
  call = 0,
): Promise<AuditRecord[]> {
  const entries = Array.from({ length: count }, (_, index) => ({
    account: accounts[index % accounts.length] ?? "",
    at: s.now(),
    isDelivery,
    entry: JSON.stringify({ action: "webhook.changed", at: s.now(), call, index, text: "a/b\n\u00e9\ud800" }),
  }));
  await by.addAuditEntries?.({ entries, keep, now: s.now() });
  return entries;
}

/** Reads the audit log of an account, page by page. */
export const readAuditLog = (by: WebhookStore, account: string, limit = 100): Promise<AuditRecord[]> =>
  readAllPages(async (cursor) => {
    const page = await by.listAuditEntries?.({ account, cursor, limit });
    assert.ok(page && page.entries.length <= limit);
    return { rows: page.entries, next: page.next };
  });

/** Declares the tests of the audit log, for storages that keep one. */
export function testAuditLog(it: DeclareTest): void {
  const declare: DeclareTest = (name, run) =>
    it(name, async (s) => {
      if (s.store.addAuditEntries !== undefined) await run(s);
    });

  declare(
    "entries of the audit log are returned unchanged, newest first, to their account only",
    async (s) => {
      const accounts = ["clinic", "hospital"];
      const first = await addEntries(s, s.store, { accounts, count: 7, keep: 100 });
      const second = await addEntries(s, s.peer, { accounts, count: 2, keep: 100 });
      for (const account of accounts) {
        const wanted = [...first, ...second].filter((entry) => entry.account === account).reverse();
        for (const limit of [1, 3, 100]) assert.deepEqual(await readAuditLog(s.peer, account, limit), wanted);
      }
      assert.deepEqual(await readAuditLog(s.store, "nobody"), []);
    },
  );

  declare("entries of one millisecond keep their order, in several calls of several processes", async (s) => {
    const accounts = ["clinic", "hospital"];
    const keep = 25;
    const added = await repeat(24, (call) =>
      addEntriesNow(s, s.alternate(call), { accounts, count: 2 + (call % 3), keep }, call),
    );
    for (const account of accounts) {
      const wanted = added.flat().filter((entry) => entry.account === account);
      for (const limit of [1, 7, 100])
        assert.deepEqual(await readAuditLog(s.peer, account, limit), wanted.slice(-keep).reverse());
    }
  });

  declare("an entry that is added between two pages neither repeats nor hides another one", async (s) => {
    const added = await addEntries(s, s.store, { accounts: ["clinic"], count: 4, keep: 100 });
    const head = await s.store.listAuditEntries?.({ account: "clinic", limit: 2 });
    await addEntries(s, s.peer, { accounts: ["clinic"], count: 2, keep: 100 });
    const cursor = head?.next ?? undefined;
    const tail = await s.peer.listAuditEntries?.({ account: "clinic", cursor, limit: 2 });
    assert.deepEqual([...(head?.entries ?? []), ...(tail?.entries ?? [])], added.reverse());
    assert.equal(tail?.next, null);
  });

  declare("the audit log of an account stays at its limit under ten thousand entries", async (s) => {
    const keep = 300;
    await addEntries(s, s.store, { accounts: ["hospital"], count: 3, keep });
    const added = await repeat(40, (index) =>
      addEntries(s, s.alternate(index), { accounts: ["clinic"], count: ENTRIES_PER_CALL, keep }),
    );
    assert.deepEqual(await readAuditLog(s.store, "clinic"), added.flat().reverse().slice(0, keep));
    assert.equal((await readAuditLog(s.store, "hospital")).length, 3);
  });

  declare("entries about deliveries never push out the others, and are listed among them", async (s) => {
    const accounts = ["clinic"];
    const keep = 20;
    const registered = await addEntries(s, s.store, { accounts, count: 3, keep });
    const failed = await repeat(6, (index) =>
      addEntries(s, s.alternate(index), { accounts, count: ENTRIES_PER_CALL, keep, isDelivery: true }),
    );
    const disabled = await addEntries(s, s.peer, { accounts, count: 2, keep });
    const last = await addEntries(s, s.store, { accounts, count: 1, keep, isDelivery: true });
    const deliveries = [...failed.flat(), ...last].slice(-keep);
    const wanted = [...registered, ...deliveries.slice(0, -1), ...disabled, ...last].reverse();
    for (const limit of [1, 7, 100]) assert.deepEqual(await readAuditLog(s.peer, "clinic", limit), wanted);
  });

  declare("pages of the audit log lose no entry of a millisecond that both logs have", async (s) => {
    const accounts = ["clinic"];
    await s.advance(SECOND_MS);
    const added = await repeat(12, (call) =>
      addEntriesNow(
        s,
        s.alternate(call),
        { accounts, count: 2, keep: 100, isDelivery: call % 2 === 1 },
        call,
      ),
    );
    const wanted = added.flat().map(({ entry }) => entry);
    for (const limit of [1, 3, 100]) {
      const found = await readAuditLog(s.peer, "clinic", limit);
      assert.deepEqual(found.map(({ entry }) => entry).toSorted(), wanted.toSorted());
    }
  });

  declare("processes that add at once leave the audit log at its limit with the next entry", async (s) => {
    const accounts = ["clinic", "hospital"];
    await s.callConcurrently(6, (by) => addEntries(s, by, { accounts, count: 40, keep: 10 }));
    const last = await addEntries(s, s.store, { accounts, count: 2, keep: 10 });
    for (const account of accounts) {
      const log = await readAuditLog(s.peer, account);
      assert.equal(log.length, 10);
      assert.deepEqual(
        log[0],
        last.find((entry) => entry.account === account),
      );
    }
  });

  declare(
    "a lower limit takes effect with the next entries, and removing a webhook removes none",
    async (s) => {
      const { id } = await s.register();
      await addEntries(s, s.store, { accounts: ["clinic"], count: 150, keep: 200 });
      assert.equal(await s.remove(id), true);
      const [last] = await addEntries(s, s.peer, { accounts: ["clinic"], count: 1, keep: 1 });
      assert.deepEqual(await readAuditLog(s.store, "clinic"), [last]);
    },
  );

  declare("a cursor of no page is refused, and one of another account opens nothing", async (s) => {
    await addEntries(s, s.store, { accounts: ["clinic"], count: 3, keep: 100 });
    await addEntries(s, s.store, { accounts: ["hospital"], count: 3, keep: 100 });
    for (const cursor of ["", "x", "-1", "1.5", "0x10", "' OR 1=1", "9".repeat(300), "../clinic", "\u0000"])
      await assert.rejects(async () => s.store.listAuditEntries?.({ account: "clinic", cursor, limit: 5 }), {
        code: "invalid_argument",
        field: "cursor",
      });
    const foreign = await s.store.listAuditEntries?.({ account: "hospital", limit: 1 });
    const cursor = foreign?.next ?? undefined;
    const page = await s.store.listAuditEntries?.({ account: "clinic", cursor, limit: 5 });
    assert.ok(page?.entries.every(({ account }) => account === "clinic"));
  });
}
