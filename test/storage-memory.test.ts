/** The memory storage: the storage contract, and the bounds that are its own. */

import { describe, expect, test } from "vitest";
import { storageContract } from "../src/testing/index.js";
import { createScenario, REMEMBER_MS, RETENTION } from "../src/testing/storage-contract/scenario.js";
import { type MemoryStorageOptions, memoryStorage } from "../storage/memory/index.js";
import { createState } from "../storage/memory/state.js";
import { createWebhookStore } from "../storage/memory/webhook-store.js";

describe("the memory storage keeps the storage contract:", () => {
  storageContract({ test, create: () => ({ storage: memoryStorage() }) });
});

const scenarioWith = (limits: MemoryStorageOptions["limits"]) =>
  createScenario({ storage: memoryStorage({ limits }) });

const full = (bound: string) =>
  expect.objectContaining({
    code: "storage_full",
    field: `limits.${bound}`,
    message: expect.stringContaining(bound),
  });

async function claimOne(s: ReturnType<typeof createScenario>) {
  const [claim] = await s.claim({ room: { fast: 0, slow: 1 } });
  if (!claim) throw new Error("nothing is due");
  return claim;
}

describe("the bounds of the memory storage", () => {
  test("a webhook beyond limits.webhooks is refused, and its account is not kept", async () => {
    const s = scenarioWith({ webhooks: 2 });
    const { id } = await s.register();
    await s.register();
    await expect(s.create(s.webhookOf({ account: "hospital" }))).rejects.toEqual(full("webhooks"));
    expect(await s.store.stats()).toMatchObject({ webhooks: 2 });
    await s.remove(id);
    await s.register({ account: "hospital" });
  });

  test.each(["pending", "pendingPerAccount"] as const)(
    "an event whose fan-out would pass limits.%s is refused as a whole",
    async (bound) => {
      const s = scenarioWith({ [bound]: 5 });
      await s.register();
      await s.register();
      await s.emit();
      await s.emit();
      const before = await s.store.stats();
      const event = s.eventOf();
      await expect(s.append(event)).rejects.toEqual(full(bound));
      expect(await s.store.stats()).toEqual(before);
      await s.deliver(await claimOne(s));
      expect(await s.append(event)).toMatchObject({ result: "stored" });
    },
  );

  test("one account at its bound does not keep another one from emitting", async () => {
    const s = scenarioWith({ pendingPerAccount: 1 });
    await s.register();
    await s.register({ account: "hospital" });
    await s.emit();
    await expect(s.append(s.eventOf())).rejects.toEqual(full("pendingPerAccount"));
    await s.emit({ account: "hospital" });
  });

  test("resend and recover keep to the bound of pending deliveries, and make nothing beyond it", async () => {
    const s = scenarioWith({ pending: 2 });
    const { id: webhookId } = await s.register();
    const { ids } = await s.emit();
    await s.fail(await claimOne(s), { endpoint: null });
    await s.emit();
    await s.fail(await claimOne(s), { endpoint: null });
    await s.emit();
    const recover = (limit: number) => s.store.recover({ webhookId, since: 0, now: s.now(), limit });
    await expect(recover(5)).rejects.toEqual(full("pending"));
    expect(await s.store.stats()).toMatchObject({ pending: 1, ended: 2 });
    expect(await recover(1)).toMatchObject({ count: 1 });
    await s.deliver(await claimOne(s), { endpoint: null });
    await s.emit();
    await expect(s.store.resend({ id: ids[0] ?? "", now: s.now() })).resolves.toBe(`${ids[0]}.1`);
  });

  test("ended events give way to new ones under limits.bytes, the one that ended first in front", async () => {
    const s = scenarioWith({ bytes: 1024 });
    await s.register();
    const payload = "x".repeat(300);
    const ids: string[] = [];
    for (let count = 0; count < 4; count++) {
      ids.push(...(await s.emit({ payload })).ids);
      await s.advance(1);
      await s.deliver(await claimOne(s));
    }
    const states = await Promise.all(ids.map(async (id) => (await s.store.getDelivery(id))?.state));
    expect(states).toEqual([undefined, "delivered", "delivered", "delivered"]);
    expect(await s.store.stats()).toMatchObject({ events: 3, ended: 3, bytes: 900 });
  });

  test("an event that does not fit even so is refused, and nothing that was kept is lost for it", async () => {
    const s = scenarioWith({ bytes: 1024 });
    await s.register();
    await s.emit({ payload: "x".repeat(300) });
    await s.deliver(await claimOne(s));
    await s.emit({ payload: "é".repeat(300) });
    const before = await s.store.stats();
    expect(before.bytes).toBe(900);
    const event = s.eventOf({ payload: "x".repeat(425) });
    await expect(s.append(event)).rejects.toEqual(full("bytes"));
    expect(await s.store.stats()).toEqual(before);
    expect(await s.append({ ...event, payload: "x".repeat(424) })).toMatchObject({ result: "stored" });
    expect(await s.store.stats()).toMatchObject({ events: 2, bytes: 1024 });
  });

  test("beyond limits.rememberedIds the oldest id is forgotten", async () => {
    const s = scenarioWith({ rememberedIds: 2 });
    const [first, second, third] = [s.eventOf(), s.eventOf(), s.eventOf()];
    for (const event of [first, second, third]) await s.append(event);
    expect(await s.append(third)).toMatchObject({ result: "duplicate" });
    expect(await s.append(second)).toMatchObject({ result: "duplicate" });
    expect(await s.append(first)).toMatchObject({ result: "stored" });
  });

  test("nothing is left of what has ended and expired", async () => {
    const state = createState({
      webhooks: 100,
      pending: 1_000,
      pendingPerAccount: 1_000,
      bytes: 1_000_000,
      rememberedIds: 1_000,
    });
    const s = createScenario({
      storage: { webhooks: ({ clock }) => createWebhookStore(state, clock), close: async () => {} },
    });
    for (let round = 0; round < 20; round++) {
      const account = `account ${round}`;
      const webhooks = [await s.register({ account }), await s.register({ account, status: "DISABLED" })];
      await s.store.createWebhook({
        webhook: s.webhookOf({ account }),
        enabledLimit: 15,
        idempotency: { key: "key", digest: "digest", expiresAt: s.now() + 1 },
        now: s.now(),
      });
      const { ids } = await s.emit({ account });
      const claims = await s.claim();
      const [first, second] = claims;
      if (!first || !second) throw new Error("two are due");
      await s.fail(first);
      await s.deliver(second);
      await s.store.resend({ id: ids[0] ?? "", now: s.now() });
      for (const claim of await s.claim()) await s.deliver(claim);
      for (const { id } of webhooks) if (round % 2) await s.remove(id);
    }
    await s.advance(Math.max(RETENTION.ms, REMEMBER_MS));
    await s.tidy();
    const { webhooks } = await s.store.stats();
    for (const id of [...state.endpoints.keys()]) await s.remove(id);
    expect(webhooks).toBeGreaterThan(0);
    const { accounts, endpoints, ready, leases, notices, endedEvents, remembered, replays } = state;
    const structures = { accounts, endpoints, ...ready, leases, notices, endedEvents };
    for (const [name, { size }] of Object.entries({ ...structures, remembered, replays })) {
      expect(size, name).toBe(0);
    }
    expect(state).toMatchObject({ pending: 0, bytes: 0, endedBytes: 0 });
  });
});

describe("the options of the memory storage", () => {
  test("unknown and unusable options are refused, with their path", () => {
    const refused = (field: string) => expect.objectContaining({ code: "invalid_option", field });
    const make = (options: unknown) => () => memoryStorage(options as MemoryStorageOptions);
    expect(make({ limit: {} })).toThrow(refused("limit"));
    expect(make({ limits: { webhook: 1 } })).toThrow(refused("limits.webhook"));
    for (const value of [0, -1, 1.5, Number.NaN, "5", null]) {
      expect(make({ limits: { pending: value } })).toThrow(refused("limits.pending"));
    }
    expect(make({ limits: { bytes: 1023 } })).toThrow(refused("limits.bytes"));
  });

  test("an option that is undefined has its default", async () => {
    const s = scenarioWith({ pending: undefined });
    await s.register();
    await s.emit();
    expect(await s.store.stats()).toMatchObject({ pending: 1 });
  });
});
