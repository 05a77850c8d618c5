/** Long logs: a call may examine part of a log, and repeated calls reach all of it. */

import assert from "node:assert/strict";
import { listAccountDeliveries } from "../../webhooks/delivery/delivery-lists.js";
import { listIds, only, readAllPages, repeat } from "./assertions.js";
import { SECOND_MS } from "./builders.js";
import type { DeclareTest, Scenario } from "./fixture.js";

/** The length of a long log: more events than any storage may examine for one page. */
export const LOG_LENGTH = 1_200;
const EMITTED_TOGETHER = 200;

/** Emits `count` events of patients. */
export async function emitMany(s: Scenario, account: string, count: number): Promise<void> {
  for (let left = count; left > 0; left -= EMITTED_TOGETHER) {
    await Promise.all(Array.from({ length: Math.min(left, EMITTED_TOGETHER) }, () => s.emit({ account })));
  }
}

/** An account with a long log, and its webhooks. */
export interface BusyAccount {
  readonly name: string;
  /** Has a single delivery, which is the oldest of the account. */
  readonly rareId: string;
  /** Has no delivery. */
  readonly idleId: string;
  /** Has all other deliveries. */
  readonly busyId: string;
  /** The oldest delivery of the account. */
  readonly oldestId: string;
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
    const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);
    assert.equal(sum(await recoverAll()), 2);
    // A storage may also examine the deliveries that it has just created.
    assert.ok(examined >= LOG_LENGTH + 2 && examined <= LOG_LENGTH + 4, `${examined} events were examined`);
    assert.equal(sum(await recoverAll()), 0);
    const claims = await s.claim();
    assert.deepEqual(listIds(claims.map(({ event }) => event)), listIds(missed));
  });
}
