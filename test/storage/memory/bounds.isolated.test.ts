/** The bounds of the memory storage: what it refuses, what it frees, and the heap it takes. */

import { describe, expect, test } from "vitest";
import { only, repeat } from "../../../src/testing/storage-contract/assertions.js";
import { RETENTION } from "../../../src/testing/storage-contract/builders.js";
import {
  createScenario,
  type Scenario,
  type ScenarioOptions,
} from "../../../src/testing/storage-contract/fixture.js";
import { type MemoryStorageOptions, memoryStorage } from "../../../storage/memory/index.js";
import { heapUsed } from "../../support/heap.js";

const scenarioWith = (limits: MemoryStorageOptions["limits"], options?: ScenarioOptions): Scenario =>
  createScenario({ storage: memoryStorage({ limits }) }, options);

const full = (bound: string) =>
  expect.objectContaining({
    code: "storage_full",
    field: `limits.${bound}`,
    message: expect.stringContaining(bound),
  });

const claimOne = async (s: Scenario) => only(await s.claim({ room: { fast: 0, slow: 1 } }));

/** The size of one event with one delivery, without attempts. */
async function measured(payload: string): Promise<number> {
  const s = scenarioWith({});
  await s.register();
  await s.emit({ payload });
  return (await s.store.stats()).bytes;
}

/** The size of one failed attempt without an excerpt. */
async function measuredAttempt(): Promise<number> {
  const s = scenarioWith({});
  await s.register();
  await s.emit();
  const before = (await s.store.stats()).bytes;
  await s.deliver(await claimOne(s));
  return (await s.store.stats()).bytes - before;
}

describe("the bounds of the memory storage", () => {
  test("a webhook beyond limits.webhooks is refused, and no account is created for it", async () => {
    const s = scenarioWith({ webhooks: 2 });
    const { id } = await s.register();
    await s.register();
    await expect(s.createWebhook(s.buildWebhook({ account: "hospital" }))).rejects.toEqual(full("webhooks"));
    expect(await s.store.stats()).toMatchObject({ webhooks: 2 });
    await s.remove(id);
    await s.register({ account: "hospital" });
  });

  test.each(["pending", "pendingPerAccount"] as const)(
    "an event whose fan-out would exceed limits.%s is refused as a whole",
    async (bound) => {
      const s = scenarioWith({ [bound]: 5 });
      await s.register();
      await s.register();
      await s.emit();
      await s.emit();
      const before = await s.store.stats();
      const event = s.buildEvent();
      await expect(s.append(event)).rejects.toEqual(full(bound));
      expect(await s.store.stats()).toEqual(before);
      await s.deliver(await claimOne(s));
      expect(await s.append(event)).toMatchObject({ result: "stored" });
    },
  );

  test("an account at its bound does not keep other accounts from emitting", async () => {
    const s = scenarioWith({ pendingPerAccount: 1 });
    await s.register();
    await s.register({ account: "hospital" });
    await s.emit();
    await expect(s.append(s.buildEvent())).rejects.toEqual(full("pendingPerAccount"));
    await s.emit({ account: "hospital" });
  });

  test("resend and recover obey the bound of pending deliveries, and create nothing beyond it", async () => {
    const s = scenarioWith({ pending: 2 });
    const { id: webhookId } = await s.register();
    const { ids } = await s.emit();
    await s.fail(await claimOne(s), { endpoint: null });
    await s.emit();
    await s.fail(await claimOne(s), { endpoint: null });
    await s.emit();
    await expect(s.recover(webhookId)).rejects.toEqual(full("pending"));
    expect(await s.store.stats()).toMatchObject({ pending: 1, ended: 2 });
    expect(await s.recover(webhookId, { limit: 1 })).toMatchObject({ count: 1 });
    const before = await s.store.stats();
    const another = await s.store.listDeliveries({ webhookId, state: "failed", limit: 1 });
    await expect(s.resend(only(another.deliveries).id)).rejects.toEqual(full("pending"));
    expect(await s.store.stats()).toEqual(before);
    await s.deliver(await claimOne(s), { endpoint: null });
    await s.deliver(await claimOne(s), { endpoint: null });
    await expect(s.resend(ids[0] ?? "")).resolves.toMatch(new RegExp(`^${ids[0]}\\.[12]$`));
  });

  test("at limits.bytes, completed events are freed for new ones, the oldest first", async () => {
    const payload = "x".repeat(300);
    const each = (await measured(payload)) + (await measuredAttempt());
    const s = scenarioWith({ bytes: 3 * each + 299 });
    await s.register();
    const ids: string[] = [];
    for (let count = 0; count < 4; count++) {
      ids.push(...(await s.emit({ payload })).ids);
      await s.advance(1);
      await s.deliver(await claimOne(s));
    }
    const states = await Promise.all(ids.map(async (id) => (await s.store.getDelivery(id))?.state));
    expect(states).toEqual([undefined, "delivered", "delivered", "delivered"]);
    expect(await s.store.stats()).toMatchObject({ events: 3, ended: 3, bytes: 3 * each });
  });

  test("an event that would not fit anyway is refused, and no completed event is freed for it", async () => {
    const [kept, open] = [await measured("x".repeat(300)), await measured("é".repeat(300))];
    const limit = kept + open + (await measuredAttempt());
    const s = scenarioWith({ bytes: limit });
    await s.register();
    await s.emit({ payload: "x".repeat(300) });
    await s.deliver(await claimOne(s));
    await s.emit({ payload: "é".repeat(300) });
    const before = await s.store.stats();
    expect(before.bytes).toBe(limit);
    const most = limit - open - (await measured(""));
    const event = s.buildEvent({ payload: "x".repeat(most + 1) });
    await expect(s.append(event)).rejects.toEqual(full("bytes"));
    expect(await s.store.stats()).toEqual(before);
    expect(await s.append({ ...event, payload: "x".repeat(most) })).toMatchObject({ result: "stored" });
    expect(await s.store.stats()).toMatchObject({ events: 2, bytes: limit });
  });

  test("limits.bytes counts each receiver of an event, besides its payload", async () => {
    const one = await measured("x");
    const s = scenarioWith({ bytes: one });
    await s.register();
    await s.register();
    await expect(s.append(s.buildEvent({ payload: "x" }))).rejects.toEqual(full("bytes"));
    expect(await s.store.stats()).toMatchObject({ events: 0, pending: 0, bytes: 0 });
  });

  test("a resend frees other completed events, not the event that it sends again", async () => {
    const each = (await measured("x")) + (await measuredAttempt());
    const s = scenarioWith({ bytes: 2 * each });
    await s.register();
    const first = only((await s.emit({ payload: "x" })).ids);
    await s.deliver(await claimOne(s));
    const second = only((await s.emit({ payload: "y" })).ids);
    await s.advance(1);
    await s.deliver(await claimOne(s));
    await expect(s.resend(first)).resolves.toBe(`${first}.1`);
    expect(await s.store.getDelivery(second)).toBeUndefined();
    expect((await s.readDelivery(first)).state).toBe("delivered");
    expect((await claimOne(s)).event.payload).toBe("x");
  });

  test("a resend without room is refused, and the retention of its event does not change", async () => {
    const each = (await measured("x")) + (await measuredAttempt());
    const s = scenarioWith({ bytes: each });
    const { id: webhookId } = await s.register();
    const { ids } = await s.emit({ payload: "x" });
    await s.fail(await claimOne(s), { attempt: null });
    const before = await s.store.stats();
    await s.advance(1);
    await expect(s.resend(only(ids))).rejects.toEqual(full("bytes"));
    await expect(s.recover(webhookId)).rejects.toEqual(full("bytes"));
    expect(await s.store.stats()).toEqual(before);
    await s.advance(RETENTION.keepMs - 2);
    await s.tidy();
    expect(await s.store.stats()).toEqual(before);
    await s.advance(1);
    await s.tidy();
    expect(await s.store.stats()).toMatchObject({ events: 0, bytes: 0 });
  });

  test("the heap grows to about limits.bytes, with many receivers, their attempts and endless resends", async () => {
    const bytes = 4 * 1_048_576;
    const storage = memoryStorage({ limits: { bytes, rememberedIds: 10 } });
    const s = createScenario({ storage }, { perEndpoint: 100_000 });
    const settleAll = async (): Promise<void> => {
      for (const claim of await s.claim()) await s.deliver(claim);
    };
    await repeat(15, () => s.register());
    await s.emit();
    await settleAll();
    const before = heapUsed();
    await repeat(1_500, async () => {
      await s.emit();
      await settleAll();
    });
    expect(heapUsed() - before).toBeLessThan(2 * bytes);
    const { ended } = await s.store.stats();
    const first = (await s.emit()).ids[0] ?? "";
    await settleAll();
    let resent = 0;
    const refusal = await (async () => {
      for (; resent < 20_000; resent++) {
        await s.resend(first);
        await settleAll();
      }
    })().catch((error: unknown) => error);
    expect(refusal).toEqual(full("bytes"));
    expect(resent).toBeGreaterThan(ended / 2);
    const grown = heapUsed() - before;
    expect((await s.store.stats()).bytes).toBeLessThanOrEqual(bytes);
    expect(grown).toBeLessThan(2 * bytes);
  });

  test("the result of an attempt is never refused: without room, a delivery keeps its latest attempt", async () => {
    const limit = (await measured("x")) + 2 * (await measuredAttempt());
    const s = scenarioWith({ bytes: limit });
    await s.register();
    const { ids } = await s.emit({ payload: "x" });
    const attempted = async (excerpt: string | null, step: number) => {
      const attempt = {
        at: s.now(),
        durationMs: 1,
        step,
        isExtra: false,
        kind: "http",
        status: 500,
        code: "HTTP_500",
        excerpt,
      } as const;
      expect(await s.postpone(await claimOne(s), 0, { attempt })).toBe("settled");
      return (await s.readDelivery(only(ids))).attempts.map(({ step: made }) => made);
    };
    expect(await attempted(null, 0)).toEqual([0]);
    expect(await attempted(null, 1)).toEqual([0, 1]);
    expect(await attempted(null, 2)).toEqual([1, 2]);
    expect(await attempted("x".repeat(100), 3)).toEqual([3]);
    expect(await attempted("x".repeat(10_000), 4)).toEqual([4]);
    expect((await s.readDelivery(only(ids))).attempts[0]?.excerpt).toHaveLength(10_000);
    await s.deliver(await claimOne(s));
    expect((await s.store.stats()).bytes).toBeLessThanOrEqual(limit);
  });

  test("a 2xx after a recorded failure is stored even without room, and so is its event", async () => {
    const limit = (await measured("x")) + (await measuredAttempt());
    const s = scenarioWith({ bytes: limit });
    await s.register();
    await s.emit({ payload: "x" });
    const claim = await claimOne(s);
    await s.fail(claim);
    await s.deliver(claim);
    const { state, attempts } = await s.readDelivery(claim.id);
    expect([state, attempts.map(({ code }) => code)]).toEqual(["delivered", ["HTTP_200"]]);
    expect(await s.store.stats()).toMatchObject({ events: 1, ended: 1, bytes: limit });
    await s.advance(RETENTION.keepMs);
    await s.tidy();
    expect(await s.store.stats()).toMatchObject({ events: 0, ended: 0, bytes: 0 });
  });

  test("beyond limits.rememberedIds the oldest id is forgotten", async () => {
    const s = scenarioWith({ rememberedIds: 2 });
    const [first, second, third] = [s.buildEvent(), s.buildEvent(), s.buildEvent()];
    for (const event of [first, second, third]) await s.append(event);
    expect(await s.append(third)).toMatchObject({ result: "duplicate" });
    expect(await s.append(second)).toMatchObject({ result: "duplicate" });
    expect(await s.append(first)).toMatchObject({ result: "stored" });
  });
});
