/**
 * The counters and queues of the memory storage agree with its records, and nothing is left behind.
 */

import { expect, test } from "vitest";
import { only, repeat } from "../../../src/testing/storage-contract/assertions.js";
import {
  HOUR_MS,
  LEASE_MS,
  NO_ROOM,
  REMEMBER_EVENTS_MS,
  RETENTION,
} from "../../../src/testing/storage-contract/builders.js";
import {
  createScenario,
  type Scenario,
  type ScenarioOptions,
} from "../../../src/testing/storage-contract/fixture.js";
import { MODEL_RETENTION } from "../../../src/testing/storage-contract/model.js";
import { runModel } from "../../../src/testing/storage-contract/model-run.js";
import type { MemoryEvent } from "../../../storage/memory/records.js";
import { createState, deliveryBytes, eventBytes, type State } from "../../../storage/memory/state.js";
import { createMemoryWebhookStore } from "../../../storage/memory/webhook-store.js";

/** A scenario that gives the test access to the records. */
function openScenario(options?: ScenarioOptions): { readonly s: Scenario; readonly state: State } {
  const state = createState({
    webhooks: 1_000,
    pending: 10_000,
    pendingPerAccount: 10_000,
    bytes: 100_000_000,
    rememberedIds: 1_000,
  });
  const storage = {
    webhooks: (context: Parameters<typeof createMemoryWebhookStore>[1]) =>
      createMemoryWebhookStore(state, context),
    close: async () => {},
  };
  return { s: createScenario({ storage }, options), state };
}

const claimOne = async (s: Scenario) => only(await s.claim({ room: { fast: 0, slow: 1 } }));

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

/** Computes the same by counting. */
function recounted(state: State) {
  const events = [...state.accounts.values()].flatMap((account) => [...account.events.after(0)]);
  const size = ({ record, deliveries }: MemoryEvent): number =>
    eventBytes(record) + sum(deliveries.map(deliveryBytes));
  const deliveries = [...state.endpoints.values()].flatMap((endpoint) => [...endpoint.deliveries.after(0)]);
  return {
    bytes: sum(events.map(size)),
    endedBytes: sum(events.filter(({ open }) => open === 0).map(size)),
    pending: deliveries.filter((delivery) => delivery.state === "pending").length,
  };
}

test.each([1, 2, 3])(
  "counters agree with the records after random work of two processes (seed %i)",
  async (seed) => {
    const { s, state } = openScenario({ seed, retention: MODEL_RETENTION });
    let checked = 0;
    const stats = async () => {
      expect(state).toMatchObject(recounted(state));
      checked += 1;
      return s.store.stats();
    };
    await runModel({ ...s, store: { ...s.store, stats }, peer: { ...s.peer, stats } }, 200);
    expect(checked).toBeGreaterThan(200);
    expect(state.bytes).toBeGreaterThan(0);
  },
);

test("nothing is left of completed and expired events, not even an account", async () => {
  const { s, state } = openScenario();
  for (let round = 0; round < 20; round++) {
    const account = `account ${round}`;
    const isLeaving = round % 2 === 1;
    const webhooks = [await s.register({ account }), await s.register({ account, status: "DISABLED" })];
    const idempotency = { key: "key", digest: "digest", expiresAt: s.now() + 1 };
    const third = s.buildWebhook({ account });
    await s.store.createWebhook(s.buildCreation(third, idempotency));
    const { ids } = await s.emit({ account });
    const [first, second] = await s.claim();
    if (!first || !second) throw new Error("two are due");
    await s.fail(first);
    await s.deliver(second);
    await s.resend(ids[0] ?? "");
    for (const claim of await s.claim()) await s.deliver(claim);
    if (isLeaving) for (const { id } of [...webhooks, third]) await s.remove(id);
  }
  expect(state.accounts.size).toBe(20);
  expect(state).toMatchObject(recounted(state));
  await s.advance(Math.max(RETENTION.keepMs, REMEMBER_EVENTS_MS));
  await s.tidy();
  expect(state.accounts.size).toBe(10);
  const unwatch = s.store.watch(() => {});
  unwatch();
  for (const id of [...state.endpoints.keys()]) await s.remove(id);
  const { accounts, endpoints, ready, leases, leased, notices, endedEvents, remembered, replays, watchers } =
    state;
  const structures = { accounts, endpoints, ...ready, leases, leased, notices, endedEvents, watchers };
  for (const [name, { size }] of Object.entries({ ...structures, remembered, replays })) {
    expect(size, name).toBe(0);
  }
  expect(state).toMatchObject({ pending: 0, bytes: 0, endedBytes: 0 });
});

test("without retention, removing webhooks and their events leaves nothing", async () => {
  const { s, state } = openScenario({ retention: { keepMs: 0, events: 10 } });
  const webhooks = await repeat(3, () => s.register());
  await repeat(100, () => s.emit());
  const [done, ...others] = await s.claim();
  if (!done) throw new Error("something is due");
  await s.deliver(done);
  await s.fail(only(others.slice(0, 1)));
  for (const { id } of webhooks) {
    expect(state).toMatchObject(recounted(state));
    await s.remove(id);
  }
  expect(state).toMatchObject({ pending: 0, bytes: 0, endedBytes: 0 });
  expect([state.accounts.size, state.leases.size, state.leased.size]).toEqual([0, 0, 0]);
  expect(state.ready.slow.size).toBe(0);
});

test("a settlement is not applied once its webhook is removed, even while its deliveries are still being freed", async () => {
  const { s, state } = openScenario({ perEndpoint: 10_000 });
  const { id } = await s.register();
  await repeat(1_000, () => s.emit());
  const claims = await s.claim({ room: { fast: 0, slow: 1_000 } });
  await s.remove(id);
  const last = only(claims.slice(-1));
  expect(state.leased.get(last.id)).toBeDefined();
  expect(await s.deliver(last)).toBe("gone");
  expect(await s.readDelivery(last.id).catch(() => undefined)).toBeUndefined();
  await s.tidy();
  expect(state).toMatchObject({ ...recounted(state), pending: 0 });
  expect([state.leased.size, state.leases.size]).toEqual([0, 0]);
});

test("if the due delivery was settled meanwhile, the next delivery determines when to claim again", async () => {
  const s = openScenario().s;
  await s.register();
  await s.emit();
  const late = await claimOne(s);
  await s.emit();
  await s.postpone(await claimOne(s), HOUR_MS);
  const dueAt = s.now() + HOUR_MS;
  await s.advance(LEASE_MS);
  expect((await s.claimWithNextAt({ room: NO_ROOM })).nextAt).toBeLessThanOrEqual(s.now());
  await s.deliver(late, { endpoint: null });
  // The endpoint keeps its turn until a claim with room finds nothing due.
  expect(await s.claimWithNextAt()).toEqual({ claims: [], nextAt: dueAt });
});

test("rare deliveries are found page by page, and no page examines all deliveries", async () => {
  const s = openScenario({ perEndpoint: 10_000 }).s;
  const { id: webhookId } = await s.register();
  const oldest = only((await s.emit()).ids);
  await s.deliver(await claimOne(s));
  await repeat(2_500, () => s.emit());
  const lengths: number[] = [];
  const found: string[] = [];
  let cursor: string | undefined;
  do {
    const request = { webhookId, state: "delivered", limit: 10, cursor } as const;
    const { deliveries, next } = await s.store.listDeliveries(request);
    lengths.push(deliveries.length);
    found.push(...deliveries.map(({ id }) => id));
    cursor = next ?? undefined;
  } while (cursor !== undefined);
  expect(lengths).toEqual([0, 0, 1]);
  expect(found).toEqual([oldest]);
});
