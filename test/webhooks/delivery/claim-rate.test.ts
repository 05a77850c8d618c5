/** `delivery.perSecond` as a subscriber sees it. The contract of storages has its rules. */

import { describe, expect, it } from "vitest";
import { createWebhooks } from "../../../src/webhooks/service.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { access } from "../../support/registration-api.js";
import {
  type Harness,
  type HarnessOptions,
  MINUTE,
  SECOND,
  START,
  startHarness,
} from "../../support/webhook-harness.js";

const RATE = { delivery: { perSecond: 10, perEndpoint: 100 } } as const;

/** Counts requests by the second in which they were sent. */
function countBySecond(...services: readonly Pick<Harness, "sent">[]): readonly number[] {
  const counts: number[] = [];
  for (const { at } of services.flatMap(({ sent }) => sent)) {
    const second = Math.floor((at - START) / SECOND);
    counts[second] = (counts[second] ?? 0) + 1;
  }
  return Array.from(counts, (count) => count ?? 0);
}

/** A service that also counts its calls of `claim`. */
async function startCounting(options: HarnessOptions = {}): Promise<Harness & { claims: () => number }> {
  let claims = 0;
  const harness = await startHarness({
    options: RATE,
    ...options,
    change: (store) => ({
      claim(request) {
        claims += 1;
        return store.claim(request);
      },
    }),
  });
  return { ...harness, claims: () => claims };
}

describe("delivery.perSecond", () => {
  it("sends 25 events in three seconds, each once, and sleeps in between", async () => {
    const harness = await startCounting();
    const { id } = await harness.register();
    for (let count = 0; count < 25; count++) await harness.emit();
    await harness.quiet();
    expect(countBySecond(harness)).toEqual([10]);
    const before = harness.claims();
    await harness.run(SECOND - 1);
    expect(harness.claims()).toBe(before);
    await harness.run(1);
    expect(countBySecond(harness)).toEqual([10, 10]);
    await harness.run(MINUTE);
    expect(countBySecond(harness)).toEqual([10, 10, 5]);
    expect(harness.times().at(-1)).toBe("0:00:02");
    expect(new Set(harness.sent.map(({ eventId }) => eventId)).size).toBe(25);
    const { items: deliveries } = await harness.webhooks.deliveries.list({ webhookId: id, limit: 100 });
    expect(deliveries.filter(({ state }) => state === "delivered")).toHaveLength(25);
  });

  it("holds if the emitting call carries the claims, and idle() does not wait for later seconds", async () => {
    const harness = await startHarness({ options: RATE });
    await harness.register();
    for (let count = 0; count < 25; count++) await harness.emit();
    await harness.webhooks.idle();
    expect(countBySecond(harness)).toEqual([10]);
    expect(await harness.store.stats()).toMatchObject({ pending: 15, leased: 0 });
    await harness.run(5 * SECOND);
    expect(countBySecond(harness)).toEqual([10, 10, 5]);
  });

  it("holds over two services on one storage, for each webhook", async () => {
    const one = await startHarness({ options: RATE });
    const two = await startHarness({ options: RATE, storage: one.storage, clock: one.clock });
    const ids = [await one.register("https://a.example.com/"), await one.register("https://b.example.com/")];
    for (let count = 0; count < 15; count++) {
      await one.emit();
      await two.emit();
    }
    await one.run(10 * SECOND);
    expect(countBySecond(one, two)).toEqual([20, 20, 20]);
    const all = [...one.sent, ...two.sent];
    for (const { id } of ids) {
      const own = all.filter(({ webhookId }) => webhookId === id);
      expect(countBySecond({ sent: own })).toEqual([10, 10, 10]);
      expect(new Set(own.map(({ eventId }) => eventId)).size).toBe(30);
    }
  });

  it("does not let a subscriber who resends in a loop get more", async () => {
    const harness = await startHarness({ options: { delivery: { perSecond: 3 } } });
    const { id } = await harness.register();
    const eventId = await harness.emit();
    await harness.quiet();
    const path = `/v1/webhooks/${id}/deliveries/${id}.${eventId}/resend`;
    const headers = { authorization: "Bearer key-1" };
    for (let call = 0; call < 40; call++) {
      const answer = await harness.webhooks.handle({
        ...{ method: "POST", path, query: "", headers, body: null, baseUrl: "https://api.example.com" },
      });
      expect(answer?.status).toBe(202);
      await harness.run(50);
    }
    await harness.run(MINUTE);
    const counts = countBySecond(harness);
    expect(Math.max(...counts)).toBe(3);
    expect(counts.slice(0, 2)).toEqual([3, 3]);
  });

  it("delays retries and never fails a delivery", async () => {
    const harness = await startHarness({
      answer: () => 503,
      options: { delivery: { perSecond: 1 }, retry: { jitter: 0, intervalsMs: [MINUTE] } },
    });
    const { id } = await harness.register();
    for (let count = 0; count < 4; count++) await harness.emit();
    await harness.run(5 * SECOND);
    expect(harness.times()).toEqual(["0:00", "0:00:01", "0:00:02", "0:00:03"]);
    harness.respond(() => 204);
    await harness.run(2 * MINUTE);
    expect(Math.max(...countBySecond(harness))).toBe(1);
    const { items: deliveries } = await harness.webhooks.deliveries.list({ webhookId: id });
    expect(deliveries.map(({ state }) => state)).toEqual(Array(4).fill("delivered"));
  });

  it("limits nothing by default", async () => {
    const harness = await startHarness({ options: { delivery: { perEndpoint: 100 } } });
    await harness.register();
    for (let count = 0; count < 50; count++) await harness.emit();
    await harness.quiet();
    expect(countBySecond(harness)).toEqual([50]);
  });

  it.each([0, 1.5, "5", 10_001, -1, null])("is refused if it is %j", (perSecond) => {
    const options = { storage: memoryStorage(), access, delivery: { perSecond } as never };
    expect(() => createWebhooks(options)).toThrow(
      expect.objectContaining({
        code: "invalid_option",
        field: "delivery.perSecond",
        message: expect.stringContaining("delivery.perSecond must be a whole number from 1 to 10000"),
      }),
    );
  });
});
