import { describe, expect, it } from "vitest";
import type { OutboundResult } from "../../../src/ports.js";
import {
  DAY,
  forever,
  HOUR,
  holdingEndpoint,
  MINUTE,
  response,
  SECOND,
  START,
  startHarness,
  unreachable,
} from "../../support/webhook-harness.js";

const later =
  (wait: (ms: number) => Promise<void>, ms: number, result: OutboundResult) =>
  async (): Promise<OutboundResult> => {
    await wait(ms);
    return result;
  };

const urlOf = (index: number): string => `https://hooks.example.com/${index}`;

describe("slots", () => {
  it("are never passed over all endpoints, and every delivery still goes out", async () => {
    const endpoint = holdingEndpoint();
    const { register, emit, quiet, sent } = await startHarness({
      answer: endpoint.answer,
      options: { delivery: { concurrency: 2, slowConcurrency: 3, perEndpoint: 4 } },
    });
    for (let index = 0; index < 10; index++) await register(urlOf(index));
    for (let count = 0; count < 8; count++) await emit();
    while (sent.length < 80 || endpoint.open.length > 0) {
      await quiet();
      endpoint.release();
    }
    expect(sent).toHaveLength(80);
    expect(endpoint.most()).toBe(5);
  });

  it("are shared by one endpoint up to its cap", async () => {
    const endpoint = holdingEndpoint();
    const { register, emit, quiet } = await startHarness({
      answer: endpoint.answer,
      options: { delivery: { perEndpoint: 3 } },
    });
    await register();
    for (let count = 0; count < 20; count++) await emit();
    await quiet();
    expect(endpoint.open).toHaveLength(3);
    endpoint.release();
    await quiet();
    expect(endpoint.open).toHaveLength(3);
  });

  it("hold one endpoint's cap over two services on one storage", async () => {
    const endpoint = holdingEndpoint();
    const one = await startHarness({ answer: endpoint.answer });
    const two = await startHarness({ answer: endpoint.answer, storage: one.storage, clock: one.clock });
    await one.register();
    for (let count = 0; count < 30; count++) await one.emit();
    for (let round = 0; round < 12; round++) {
      await one.quiet();
      await two.quiet();
      endpoint.release();
    }
    expect(endpoint.most()).toBe(5);
    expect(new Set([...one.sent, ...two.sent].map(({ eventId }) => eventId)).size).toBe(30);
    expect(one.sent.length + two.sent.length).toBe(30);
  });

  it("are filled one by one as they become free: nobody waits for the slowest of a batch", async () => {
    const endpoint = holdingEndpoint();
    const { register, emit, quiet, sent } = await startHarness({
      answer: (one) => (one.url === urlOf(0) ? forever() : endpoint.answer(one)),
      options: { delivery: { concurrency: 1, slowConcurrency: 3, perEndpoint: 2 } },
    });
    await register(urlOf(0));
    await register(urlOf(1));
    for (let count = 0; count < 10; count++) await emit();
    for (let round = 0; round < 30; round++) {
      await quiet();
      endpoint.release();
    }
    expect(sent.filter(({ url }) => url === urlOf(0))).toHaveLength(2);
    expect(sent.filter(({ url }) => url === urlOf(1))).toHaveLength(10);
  });
});

describe("an endpoint that hangs", () => {
  /**
   * The deliveries that nine healthy endpoints, each responding after 50 ms, receive in 20 s under
   * a steady load, next to a tenth one.
   */
  async function received(tenth: "healthy" | "hanging"): Promise<number> {
    const harness = await startHarness({
      options: { delivery: { concurrency: 20, slowConcurrency: 20 } },
    });
    const wait = (ms: number): Promise<void> =>
      new Promise((resolve) => void harness.clock.setTimeout(resolve, ms));
    harness.respond((one) =>
      one.url === urlOf(9) && tenth === "hanging" ? forever() : later(wait, 50, response(200))(),
    );
    for (let index = 0; index < 10; index++) await harness.register(urlOf(index));
    // Warmed up: the nine are known to be quick.
    await harness.emit();
    await harness.run(20 * SECOND);
    const before = harness.sent.length;
    for (let tick = 0; tick < 20; tick++) {
      for (let count = 0; count < 6; count++) await harness.emit();
      await harness.run(SECOND);
    }
    return harness.sent.slice(before).filter(({ url }) => url !== urlOf(9)).length;
  }

  it("takes nothing from the other nine", async () => {
    const [without, beside] = [await received("healthy"), await received("hanging")];
    expect(without).toBe(9 * 6 * 20);
    expect(beside).toBe(without);
  });

  it("costs one of the fast slots for no longer than half a second", async () => {
    const { register, emit, quiet, run, respond, sent } = await startHarness({
      options: { delivery: { concurrency: 1, slowConcurrency: 1 } },
    });
    await register(urlOf(0));
    await register(urlOf(1));
    await emit();
    await quiet();
    respond((one) => (one.url === urlOf(0) ? forever() : 200));
    await emit();
    await run(499);
    expect(sent).toHaveLength(3);
    await run(1);
    expect(sent).toHaveLength(4);
  });

  it("stays in its fast slot where the slow ones are taken, and a slot is not counted twice", async () => {
    const endpoint = holdingEndpoint();
    const { register, emit, run, quiet, respond } = await startHarness({
      options: { delivery: { concurrency: 2, slowConcurrency: 1, perEndpoint: 1 } },
    });
    for (let index = 0; index < 6; index++) await register(urlOf(index));
    await emit();
    await quiet();
    respond(endpoint.answer);
    await emit();
    await run(10 * SECOND);
    expect(endpoint.open).toHaveLength(3);
    for (let round = 0; round < 5; round++) {
      endpoint.release();
      await run(SECOND);
    }
    expect(endpoint.most()).toBe(3);
  });

  it("cannot, three hundred times over, keep a healthy one from its events", async () => {
    const { register, emit, run, quiet, respond, sent } = await startHarness({
      options: { delivery: { slowConcurrency: 100 } },
    });
    const healthy = await register(urlOf(0));
    await emit();
    await quiet();
    for (let index = 1; index <= 300; index++) await register(urlOf(index), `account-${index}`);
    respond((one) => (one.webhookId === healthy.id ? 200 : forever()));
    for (let count = 0; count < 3; count++) {
      for (let index = 1; index <= 300; index++) await emit({ account: `account-${index}` });
    }
    await quiet();
    expect(sent.length).toBe(1 + 100);
    for (let tick = 0; tick < 60; tick++) {
      const id = await emit();
      await quiet();
      expect(sent.at(-1)).toMatchObject({ eventId: id, at: START + tick * SECOND });
      await run(SECOND);
    }
  });
});

describe("an endpoint with thousands of deliveries due", () => {
  it("has its share of the slots, and the others get theirs at once", async () => {
    const endpoint = holdingEndpoint();
    const { register, emit, quiet, sent } = await startHarness({
      answer: (one) => (one.url === urlOf(0) ? endpoint.answer(one) : 200),
      options: { delivery: { concurrency: 6, slowConcurrency: 6 } },
    });
    await register(urlOf(0));
    for (let count = 0; count < 2_000; count++) await emit();
    await register(urlOf(1));
    await quiet();
    for (let count = 0; count < 10; count++) {
      const id = await emit();
      await quiet();
      expect(sent.at(-1)).toMatchObject({ url: urlOf(1), eventId: id });
    }
    expect(endpoint.open).toHaveLength(5);
    while (endpoint.open.length > 0) {
      endpoint.release();
      await quiet();
    }
    expect(sent).toHaveLength(2_000 + 2 * 10);
    expect(endpoint.most()).toBe(5);
  });
});

describe("an endpoint that recovers", () => {
  it("gets its overdue deliveries one at a time, then two, three …, up to the cap", async () => {
    const endpoint = holdingEndpoint();
    const { register, emit, webhooks, clock, quiet, respond } = await startHarness({
      answer: () => unreachable,
    });
    await register();
    for (let count = 0; count < 1_000; count++) await emit();
    await quiet();
    await webhooks.stop();
    await clock.advance(20 * MINUTE);
    respond(endpoint.answer);
    await webhooks.start();
    await quiet();
    const open: number[] = [];
    let total = 0;
    while (endpoint.open.length > 0) {
      open.push(endpoint.open.length);
      total += endpoint.open.length;
      endpoint.release();
      await quiet();
    }
    expect(open.slice(0, 4)).toEqual([1, 2, 4, 5]);
    expect(Math.max(...open)).toBe(5);
    expect(total).toBe(1_000);
  });

  it("starts slowly again after each failure", async () => {
    const endpoint = holdingEndpoint();
    const { register, emit, webhooks, clock, quiet, respond } = await startHarness({ answer: () => 503 });
    await register();
    for (let count = 0; count < 100; count++) await emit();
    await quiet();
    await webhooks.stop();
    await clock.advance(20 * MINUTE);
    respond(endpoint.answer);
    await webhooks.start();
    await quiet();
    for (let round = 0; round < 5; round++) {
      endpoint.release();
      await quiet();
    }
    expect(endpoint.open).toHaveLength(5);
    endpoint.release(unreachable);
    await quiet();
    expect(endpoint.open).toHaveLength(1);
    endpoint.release();
    await quiet();
    expect(endpoint.open).toHaveLength(2);
  });

  it.each([
    ["before retries due for less than an hour", 40 * MINUTE, ["new", "old", "old"]],
    ["after retries due for longer, which so get their turn", 2 * HOUR, ["old", "old", "new"]],
  ])("gets new events %s", async (_, outage, order) => {
    const { register, emit, respond, quiet, webhooks, clock, sent } = await startHarness({
      answer: () => 500,
    });
    await register();
    await emit();
    await emit();
    await quiet();
    await webhooks.stop();
    const before = sent.length;
    await clock.advance(outage);
    const id = await emit();
    respond(() => 500);
    await webhooks.start();
    await quiet();
    expect(sent.slice(before).map(({ eventId }) => (eventId === id ? "new" : "old"))).toEqual(order);
  });

  it("after days without any process, gets one attempt of each delivery past its window, which then fails", async () => {
    const { register, emit, run, webhooks, clock, sent } = await startHarness({
      answer: () => 500,
      // The endpoint is not to be disabled meanwhile.
      options: { endpoints: { warnAfterMs: 30 * DAY, disableAfterMs: 31 * DAY } },
    });
    const { id } = await register();
    for (let count = 0; count < 3; count++) await emit();
    await run(5 * MINUTE);
    await webhooks.stop();
    await clock.advance(80 * HOUR);
    const early = await emit();
    await webhooks.start();
    await run(10 * MINUTE);
    const { items: deliveries } = await webhooks.deliveries.list({ webhookId: id });
    expect(deliveries.map(({ state, reason }) => `${state} ${reason}`)).toEqual([
      "pending null",
      "failed exhausted",
      "failed exhausted",
      "failed exhausted",
    ]);
    expect(sent).toHaveLength(3 + 3 + 1);
    await run(4 * DAY);
    expect(
      (await webhooks.deliveries.list({ webhookId: id, type: "patient.updated" })).items[0],
    ).toMatchObject({
      eventId: early,
      state: "failed",
    });
    expect(sent.filter(({ eventId }) => eventId === early)).toHaveLength(14);
  });
});
