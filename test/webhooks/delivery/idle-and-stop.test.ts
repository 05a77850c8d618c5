import { describe, expect, it } from "vitest";
import type { Storage } from "../../../src/index.js";
import type { OutboundResult } from "../../../src/ports.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import {
  DAY,
  eventLoopTurn,
  forever,
  held,
  holdingEndpoint,
  MINUTE,
  openHarness,
  response,
  SECOND,
  START,
  startHarness,
} from "../../support/webhook-harness.js";

describe("idle()", () => {
  it("waits for everything that is due, not for retries that are due later", async () => {
    const { register, emit, webhooks, sent, clock } = await startHarness({ answer: () => 500 });
    await register();
    for (let count = 0; count < 50; count++) await emit();
    await webhooks.idle();
    expect(sent).toHaveLength(50);
    expect(clock.now()).toBe(START);
    await webhooks.idle();
    expect(sent).toHaveLength(50);
  });

  it("waits for deliveries in flight", async () => {
    const endpoint = holdingEndpoint();
    const { register, emit, webhooks, quiet } = await startHarness({ answer: endpoint.answer });
    const { id } = await register();
    await emit();
    let isIdle = false;
    const idle = webhooks.idle().then(() => {
      isIdle = true;
    });
    await quiet();
    expect(isIdle).toBe(false);
    endpoint.release();
    await idle;
    expect((await webhooks.deliveries.list({ webhookId: id })).items[0]?.state).toBe("delivered");
  });

  it("may be called by several at once, also while the storage takes its time", async () => {
    const gate = held<undefined>();
    const { register, emit, webhooks, sent, quiet } = await startHarness({
      change: (store) => ({
        async claim(request) {
          await gate.promise;
          return store.claim(request);
        },
      }),
    });
    await register();
    await emit();
    const idle = Promise.all([webhooks.idle(), webhooks.idle(), webhooks.idle()]);
    await quiet();
    expect(sent).toEqual([]);
    gate.resolve(undefined);
    await idle;
    expect(sent).toHaveLength(1);
  });

  it("is refused before start and after stop, as nobody would make it true", async () => {
    const { webhooks } = openHarness();
    await expect(webhooks.idle()).rejects.toMatchObject({ code: "not_started" });
    await webhooks.start();
    await webhooks.idle();
    await webhooks.stop();
    await expect(webhooks.idle()).rejects.toMatchObject({ code: "not_started" });
  });
});

describe("stop()", () => {
  it("waits for deliveries in flight, claims nothing more, and leaves no timer", async () => {
    const endpoint = holdingEndpoint();
    const watchers = new Set<unknown>();
    const { register, emit, webhooks, quiet, clock, sent, store, respond } = await startHarness({
      change: (real) => ({
        watch(listener) {
          const unwatch = real.watch(listener);
          watchers.add(listener);
          return () => {
            watchers.delete(listener);
            unwatch();
          };
        },
      }),
    });
    const { id } = await register();
    await emit();
    await quiet();
    respond(endpoint.answer);
    for (let count = 0; count < 8; count++) await emit();
    await quiet();
    let isStopped = false;
    const stopped = webhooks.stop({ graceMs: 60_000 }).then(() => {
      isStopped = true;
    });
    await quiet();
    expect(isStopped).toBe(false);
    endpoint.release();
    await stopped;
    expect(sent).toHaveLength(1 + 5);
    expect(await store.stats()).toMatchObject({ pending: 3, leased: 0, ended: 6 });
    expect(clock.nextTimerAt()).toBeUndefined();
    expect(watchers.size).toBe(0);
    await emit();
    await clock.advance(DAY);
    expect(sent).toHaveLength(1 + 5);
    expect((await webhooks.deliveries.list({ webhookId: id, state: "delivered" })).items).toHaveLength(6);
  });

  it("takes no longer than the grace, and gives back what it has sent, with its slots, at once", async () => {
    const harness = await startHarness({ answer: () => forever() });
    const { id } = await harness.register();
    for (let count = 0; count < 6; count++) await harness.emit();
    await harness.quiet();
    expect(harness.sent).toHaveLength(5);
    await harness.stop(3_000);
    expect(harness.clock.now()).toBe(START + 3_000);
    expect(await harness.store.stats()).toMatchObject({ pending: 6, leased: 0 });
    const next = await startHarness({ storage: harness.storage, clock: harness.clock });
    expect(next.clock.now()).toBe(START + 3_000);
    expect(await next.store.stats()).toMatchObject({ pending: 0, leased: 0, ended: 6 });
    // A stop is no crash of the process, and no failure of the endpoint.
    const { items: deliveries } = await next.webhooks.deliveries.list({ webhookId: id });
    expect(deliveries.map(({ attempts }) => attempts.map(({ status, step }) => [status, step]))).toEqual(
      Array(6).fill([[200, 0]]),
    );
  });

  it("ends the grace period at once when its signal is aborted, also by a later call", async () => {
    for (const isLater of [false, true]) {
      const endpoint = holdingEndpoint();
      const harness = await startHarness({ answer: endpoint.answer });
      await harness.register();
      await harness.emit();
      await harness.quiet();
      const urgent = new AbortController();
      let isStopped = false;
      const stopped = harness.webhooks.stop(isLater ? {} : { signal: urgent.signal }).then(() => {
        isStopped = true;
      });
      if (isLater) void harness.webhooks.stop({ signal: urgent.signal });
      await harness.quiet();
      expect(isStopped).toBe(false);
      urgent.abort();
      await stopped;
      expect(harness.clock.now()).toBe(START);
      expect(await harness.store.stats()).toMatchObject({ pending: 1, leased: 0 });
    }
  });

  it("is called at the end of a block with `await using`", async () => {
    const harness = await startHarness();
    expect((await harness.webhooks.status()).isStarted).toBe(true);
    await harness.webhooks[Symbol.asyncDispose]();
    expect((await harness.webhooks.status()).isStarted).toBe(false);
    const storage = memoryStorage();
    await storage[Symbol.asyncDispose]();
    await storage.close();
  });

  it("gives back at once what it has not sent yet, so that another process need not wait", async () => {
    const mayRead = held<boolean>();
    const harness = await startHarness({
      options: { access: { authenticate: () => null, canRead: () => mayRead.promise } },
    });
    const { id } = await harness.register();
    await harness.emit();
    await harness.quiet();
    expect(await harness.store.stats()).toMatchObject({ leased: 1 });
    await harness.stop(1_000);
    expect(await harness.store.stats()).toMatchObject({ pending: 1, leased: 0 });
    const other = await startHarness({ storage: harness.storage, clock: harness.clock });
    expect(other.sent).toHaveLength(1);
    const { items: deliveries } = await other.webhooks.deliveries.list({ webhookId: id });
    expect(deliveries[0]).toMatchObject({ state: "delivered", attempts: [{ step: 0 }] });
    mayRead.resolve(true);
    await harness.quiet();
    expect(harness.sent).toEqual([]);
  });

  it.each([
    ["takes a 2xx that comes after it: it is true all the same", 200, { pending: 0, ended: 1 }],
    ["drops a failure that comes after it: the delivery is given back", 500, { pending: 1, leased: 0 }],
  ])("%s", async (_, status, books) => {
    const gate = held<undefined>();
    const { register, emit, quiet, stop, store } = await startHarness({
      answer: async () => {
        await gate.promise;
        return response(status);
      },
    });
    await register();
    await emit();
    await quiet();
    await stop(0);
    gate.resolve(undefined);
    await quiet();
    expect(await store.stats()).toMatchObject(books);
  });

  it("gives back what a claim brings after it", async () => {
    const gate = held<undefined>();
    const { register, emit, quiet, webhooks, sent, store, clock } = await startHarness({
      change: (real) => ({
        async claim(request) {
          const claimed = await real.claim(request);
          if (claimed.claims.length > 0) await gate.promise;
          return claimed;
        },
      }),
    });
    await register();
    await emit();
    await quiet();
    expect(await store.stats()).toMatchObject({ leased: 1 });
    const stopped = webhooks.stop();
    gate.resolve(undefined);
    await stopped;
    expect(await store.stats()).toMatchObject({ pending: 1, leased: 0 });
    expect(sent).toEqual([]);
    expect(clock.nextTimerAt()).toBeUndefined();
  });

  it("waits for an emit that is being stored, and gives back what it has claimed with it", async () => {
    const gate = held<undefined>();
    const released: string[] = [];
    const { register, webhooks, sent, quiet, emit } = await startHarness({
      change: (store) => ({
        async append(request) {
          const response = await store.append(request);
          if (request.claim !== undefined) await gate.promise;
          return response;
        },
        async settle(settlements, ...others) {
          for (const { id } of settlements) released.push(id);
          return store.settle(settlements, ...others);
        },
      }),
    });
    await register();
    const emitted = emit();
    await quiet();
    let isStopped = false;
    const stopped = webhooks.stop().then(() => {
      isStopped = true;
    });
    await quiet();
    expect(isStopped).toBe(false);
    gate.resolve(undefined);
    await Promise.all([emitted, stopped]);
    expect(sent).toEqual([]);
    expect(released).toHaveLength(1);
    await webhooks.start();
    await webhooks.idle();
    expect(sent).toHaveLength(1);
  });

  it("resolves also where nothing can be given back", async () => {
    const { register, emit, quiet, stop, log } = await startHarness({
      options: { access: { authenticate: () => null, canRead: () => forever<boolean>() } },
      change: () => ({ settle: () => Promise.reject(new Error("storage away")) }),
    });
    await register();
    await emit();
    await quiet();
    await stop(0);
    expect(log).toContain("warn a claim could not be released; its lease will expire");
  });

  it.each([
    { answer: 200, ended: 1, pending: 0 },
    { answer: 500, ended: 0, pending: 1 },
  ])(
    "records a result ($answer) that waits for the storage, so that nothing is sent twice",
    async ({ answer, ended, pending }) => {
      let isAway = true;
      const { register, emit, quiet, stop, sent, store, clock } = await startHarness({
        answer: () => answer,
        change: (real) => ({
          settle: (settlements) =>
            isAway ? Promise.reject(new Error("storage away")) : real.settle(settlements),
        }),
      });
      await register();
      await emit();
      await quiet();
      expect(await store.stats()).toMatchObject({ pending: 1, leased: 1 });
      isAway = false;
      await stop(0);
      expect(await store.stats()).toMatchObject({ pending, ended, leased: 0 });
      expect(sent).toHaveLength(1);
      expect(clock.nextTimerAt()).toBeUndefined();
    },
  );

  it("may be called twice, and the second call waits for the same", async () => {
    const endpoint = holdingEndpoint();
    const { register, emit, quiet, webhooks, store } = await startHarness({ answer: endpoint.answer });
    await register();
    await emit();
    await quiet();
    let stopped = 0;
    const stops = [webhooks.stop(), webhooks.stop({ graceMs: 0 })].map((stop) =>
      stop.then(() => {
        stopped += 1;
      }),
    );
    await quiet();
    expect(stopped).toBe(0);
    endpoint.release();
    await Promise.all(stops);
    expect(await store.stats()).toMatchObject({ pending: 0, ended: 1 });
    await webhooks.stop();
  });

  it("does nothing before start, and start may follow, even while it is running", async () => {
    const endpoint = holdingEndpoint();
    const { register, emit, quiet, webhooks, sent } = openHarness({ answer: endpoint.answer });
    await webhooks.stop();
    await register();
    await emit();
    await quiet();
    expect(sent).toEqual([]);
    await webhooks.start();
    await webhooks.start();
    await quiet();
    expect(sent).toHaveLength(1);
    const stopped = webhooks.stop();
    const started = webhooks.start();
    await emit();
    endpoint.release();
    await Promise.all([stopped, started]);
    await quiet();
    expect(sent).toHaveLength(2);
  });
});

describe("a start during a stop", () => {
  it("waits for its end, so that the stop gives up nothing that was begun after it", async () => {
    const endpoint = holdingEndpoint();
    const { register, emit, quiet, webhooks, clock, store, sent } = await startHarness({
      answer: endpoint.answer,
    });
    await register();
    const first = await emit();
    await quiet();
    const stopped = webhooks.stop({ graceMs: 1_000 });
    const started = webhooks.start();
    const second = await emit();
    await quiet();
    await clock.advance(1_000);
    await Promise.all([stopped, started]);
    await quiet();
    // The first one was given back, and is sent again.
    expect(
      sent
        .slice(1)
        .map(({ eventId }) => eventId)
        .sort(),
    ).toEqual([first, second].sort());
    expect(await store.stats()).toMatchObject({ leased: 2, pending: 2 });
    endpoint.release();
    await quiet();
    expect(await store.stats()).toMatchObject({ pending: 0, ended: 2 });
  });
});

describe("a storage that gives only some of what is due", () => {
  it("is called again at once", async () => {
    const { register, emit, webhooks, quiet, sent } = openHarness({
      answer: () => forever(),
      change: (store) => ({ claim: (request) => store.claim({ ...request, room: { fast: 1, slow: 1 } }) }),
    });
    await register();
    for (let count = 0; count < 5; count++) await emit();
    await webhooks.start();
    await quiet();
    expect(sent).toHaveLength(5);
  });
});

describe("a storage that rejects for a while", () => {
  const away = (): Promise<never> => Promise.reject(new Error("storage away"));

  it("stops nothing for good: the loop goes on within 5 s of its return", async () => {
    let isAway = false;
    const { register, emit, run, sent, webhooks, log } = await startHarness({
      change: (store) => ({ claim: (request) => (isAway ? away() : store.claim(request)) }),
    });
    await register();
    isAway = true;
    await emit();
    await run(10 * MINUTE);
    await expect(webhooks.idle()).rejects.toThrow("storage away");
    expect(sent).toEqual([]);
    isAway = false;
    await run(5 * SECOND);
    expect(sent).toHaveLength(1);
    await webhooks.idle();
    expect(log).toContain("error the storage could not be asked for due deliveries");
  });

  it("is asked about ever less often, a second apart at most", async () => {
    const asked: number[] = [];
    let isAway = false;
    const { register, emit, run, clock } = await startHarness({
      change: (store) => ({
        claim(request) {
          if (!isAway) return store.claim(request);
          asked.push(clock.now() - START);
          return away();
        },
      }),
    });
    await register();
    isAway = true;
    await emit();
    await run(30 * SECOND);
    const waits = asked.slice(1).map((at, index) => at - (asked[index] ?? 0));
    expect(waits.slice(0, 8)).toEqual([100, 200, 400, 800, 1_000, 1_000, 1_000, 1_000]);
  });

  it("has an outcome settled later, and nothing is sent twice", async () => {
    let isAway = true;
    const { register, emit, run, sent, store, log } = await startHarness({
      change: (real) => ({ settle: (settlements) => (isAway ? away() : real.settle(settlements)) }),
    });
    await register();
    await emit();
    await run(30 * SECOND);
    expect(await store.stats()).toMatchObject({ pending: 1, leased: 1 });
    isAway = false;
    await run(5 * SECOND);
    expect(await store.stats()).toMatchObject({ pending: 0, ended: 1 });
    await run(DAY);
    expect(sent).toHaveLength(1);
    expect(log).toContain("warn a delivery could not be settled");
  });

  it("that cannot take one outcome has the others stored with a few more tries", async () => {
    let poison = "";
    const { register, emit, run, store, webhooks } = await startHarness({
      change: (real) => ({
        settle: (settlements) =>
          settlements.some(({ id }) => id.endsWith(poison)) ? away() : real.settle(settlements),
      }),
    });
    const { id } = await register();
    poison = await emit();
    for (let index = 0; index < 4; index++) await emit();
    await run(2 * SECOND);
    expect(await store.stats()).toMatchObject({ pending: 1, ended: 4 });
    expect(await webhooks.deliveries.get(`${id}.${poison}`)).toMatchObject({ state: "pending" });
  });

  it("is away in one of its parts only has the outcomes of the others stored at once", async () => {
    const first: string[] = [];
    const { register, emit, quiet, store } = await startHarness({
      change: (real) => ({
        partitionOf: (webhookId) => (first.includes(webhookId) ? 1 : 0),
        settle: (settlements) =>
          settlements.some(({ webhookId }) => first.includes(webhookId))
            ? new Promise(() => {})
            : real.settle(settlements),
      }),
    });
    first.push((await register()).id);
    await register();
    for (let index = 0; index < 4; index++) await emit();
    await quiet();
    expect(await store.stats()).toMatchObject({ pending: 4, ended: 4 });
  });

  it.each([
    ["forgets a failure that cannot be stored until the lease is over: the next claim finds out", 500, false],
    ["goes on trying to store a 2xx after the lease: it stays true", 200, true],
  ])("%s", async (_, status, goesOn) => {
    let isAway = true;
    const reports: { token: string; at: number }[] = [];
    const { register, emit, run, store, clock } = await startHarness({
      answer: () => status,
      change: (real) => ({
        settle(settlements) {
          for (const { token } of settlements) reports.push({ token, at: clock.now() - START });
          return isAway ? away() : real.settle(settlements);
        },
      }),
    });
    await register();
    await emit();
    await run(90 * SECOND);
    const first = reports.filter(({ token }) => token === reports[0]?.token);
    expect(Math.max(...first.map(({ at }) => at)) > 66 * SECOND).toBe(goesOn);
    isAway = false;
    await run(10 * SECOND);
    const { pending, ended } = await store.stats();
    expect({ pending, ended }).toEqual(goesOn ? { pending: 0, ended: 1 } : { pending: 1, ended: 0 });
  });

  it("gives its error to emit", async () => {
    const { emit } = await startHarness({ change: () => ({ append: away }) });
    await expect(emit()).rejects.toThrow("storage away");
  });

  it("is not waited for by stop beyond the grace", async () => {
    const { register, emit, quiet, stop, clock } = await startHarness({
      change: (real) => ({
        claim: async (request) => ((await real.stats()).pending > 0 ? forever() : real.claim(request)),
      }),
    });
    await register();
    await emit();
    await quiet();
    await stop(2_000);
    expect(clock.now()).toBe(START + 2_000);
    // The call itself is given up after four seconds, and then nothing is left.
    await clock.advance(4_000);
    expect(clock.nextTimerAt()).toBeUndefined();
  });
});

describe("a storage that is full", () => {
  it("refuses an event as a whole, and every event it took is delivered", async () => {
    const endpoint = holdingEndpoint();
    const { register, emit, quiet, sent, store } = await startHarness({
      answer: endpoint.answer,
      storage: memoryStorage({ limits: { pending: 9 } }),
    });
    await register("https://hooks.example.com/a");
    await register("https://hooks.example.com/b");
    const taken: string[] = [];
    for (let count = 0; count < 4; count++) taken.push(await emit());
    await expect(emit()).rejects.toMatchObject({ code: "storage_full" });
    expect(await store.stats()).toMatchObject({ pending: 8, events: 4 });
    await quiet();
    endpoint.release();
    await quiet();
    taken.push(await emit());
    await quiet();
    while (endpoint.open.length > 0) {
      endpoint.release();
      await quiet();
    }
    expect(sent.map(({ eventId }) => eventId).toSorted()).toEqual([...taken, ...taken].toSorted());
  });
});

describe("a claim that is asked for a moment before its time", () => {
  it("is asked for again at once: idle() waits for what is due by the time of the answer", async () => {
    const inner = memoryStorage();
    let ahead = 0;
    let isEarly = false;
    const storage: Storage = {
      webhooks(context) {
        const store = inner.webhooks(context);
        return {
          ...store,
          now: () => store.now() + ahead,
          async claim(request) {
            if (!isEarly) return store.claim(request);
            // Another script ran first, with a later time, and made it due then.
            isEarly = false;
            ahead += 2;
            return { claims: [], nextAt: request.now + 1 };
          },
        };
      },
      close: () => inner.close(),
    };
    const { webhooks, register, emit, sent } = await startHarness({ storage, answer: () => 200 });
    await register();
    await webhooks.idle();
    isEarly = true;
    await emit();
    await webhooks.idle();
    expect(sent).toHaveLength(1);
  });
});

describe("a slot that is freed during a claim that finds nothing", () => {
  it("is filled at once, without a hint and without waiting for the next look", async () => {
    const inner = memoryStorage();
    let held: ((answer: { claims: []; nextAt: number }) => void) | undefined;
    let isHolding = false;
    let isMute = false;
    const storage: Storage = {
      webhooks(context) {
        const store = inner.webhooks(context);
        return {
          ...store,
          watch: (listener) => store.watch((at) => (isMute ? undefined : listener(at))),
          claim(request) {
            if (!isHolding) return store.claim(request);
            isHolding = false;
            isMute = true;
            return new Promise((resolve) => {
              held = () => resolve({ claims: [], nextAt: request.now });
            });
          },
        };
      },
      close: () => inner.close(),
    };
    let finish: ((result: OutboundResult) => void) | undefined;
    const answer = () =>
      finish
        ? 200
        : new Promise<OutboundResult>((resolve) => {
            finish = resolve;
          });
    const options = { delivery: { perEndpoint: 1 } };
    const { register, emit, sent } = await startHarness({ storage, answer, options });
    await register();
    await register();
    await emit();
    while (sent.length < 2) await eventLoopTurn();
    isHolding = true;
    await emit();
    while (!held) await eventLoopTurn();
    finish?.(response(200));
    for (let turn = 0; turn < 5; turn++) await eventLoopTurn();
    held({ claims: [], nextAt: 0 });
    for (let turn = 0; turn < 20; turn++) await eventLoopTurn();
    expect(sent).toHaveLength(4);
  });
});
