/** Calls of a store before, during and after an outage. The clock stands still unless moved. */

import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, it } from "vitest";
import { PostbellError } from "../../src/core/errors.js";
import { createStorageCircuit } from "../../src/core/storage-circuit.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { recordingLogger } from "../support/registration-api.js";
import { eventLoopTurn, forever, type Held, held } from "../support/webhook-harness.js";

const SECOND = 1_000;
const MINUTE = 60_000;

const away = (): PostbellError =>
  new PostbellError("storage_unavailable", "No connection.", { reason: "ECONNREFUSED", isOutage: true });
/** A failure that says nothing about other calls. */
const failing = (): PostbellError =>
  new PostbellError("storage_unavailable", "Read only.", { reason: "25006" });

type Behaviour = () => Promise<unknown>;
const works: Behaviour = async () => "response";
const isAway: Behaviour = () => Promise.reject(away());

function setUp(given: { call?: Behaviour; ping?: Behaviour; problem?: string } = {}) {
  const clock = manualClock(0);
  const { logger, log } = recordingLogger();
  const circuit = createStorageCircuit({ clock, logger, service: "webhooks" });
  const store = { call: works, ping: works, calls: 0, pings: 0, pinging: 0, mostPinging: 0, ...given };
  const bounded = circuit.connect({
    ping: async () => {
      store.pings += 1;
      store.pinging += 1;
      store.mostPinging = Math.max(store.mostPinging, store.pinging);
      try {
        return await store.ping();
      } finally {
        store.pinging -= 1;
      }
    },
    connectionProblem: () => given.problem,
  });
  const call = bounded(() => {
    store.calls += 1;
    return store.call();
  });
  const codeOf = (): Promise<string> =>
    call().then(
      () => "resolved",
      (error: PostbellError) => `${error.code} ${error.effect}`,
    );
  const lines = (): readonly string[] =>
    log.filter(({ level }) => level !== "debug").map(({ level, message }) => `${level} ${message}`);
  const setAway = (): void => {
    store.call = isAway;
    store.ping = isAway;
  };
  const setBack = (): void => {
    store.call = works;
    store.ping = works;
  };
  return { clock, circuit, store, call, codeOf, log, lines, setAway, setBack };
}

describe("a storage without a connection", () => {
  it("refuses the calls after the first at once, without being asked", async () => {
    const { store, call, codeOf, setAway } = setUp();
    setAway();
    await codeOf();
    store.call = forever;
    store.ping = forever;
    // The clock stands still.
    const codes = await Promise.all(Array.from({ length: 50 }, codeOf));
    expect(new Set(codes)).toEqual(new Set(["storage_unavailable none"]));
    await expect(call()).rejects.toMatchObject({
      message: "The storage is unavailable (ECONNREFUSED). This call was not sent. Try again later.",
      ...{ isOutage: true, isPermanent: false },
    });
    expect(store.calls).toBe(1);
  });

  it("is used again within a second of its return, found by one ping at a time", async () => {
    const { clock, store, codeOf, setAway, setBack } = setUp();
    setAway();
    await codeOf();
    for (let second = 0; second < 60; second++) {
      await Promise.all([codeOf(), codeOf(), codeOf()]);
      await clock.advance(SECOND);
    }
    expect(store.calls).toBe(1);
    expect(store.pings).toBeLessThanOrEqual(66);
    setBack();
    await clock.advance(SECOND);
    expect(await codeOf()).toBe("resolved");
    expect(store.mostPinging).toBe(1);
    const { pings } = store;
    await clock.advance(MINUTE);
    expect(store.pings).toBe(pings);
  });

  it("is logged in the context in which the service was created, not in that of a request", async () => {
    const tenants = new AsyncLocalStorage<string>();
    const contexts: unknown[] = [];
    const note = (_: object, message: string): void => void contexts.push([message, tenants.getStore()]);
    const clock = manualClock(0);
    const logger = { debug: note, info: note, warn: note, error: note };
    const circuit = tenants.run("service", () =>
      createStorageCircuit({ clock, logger, service: "webhooks" }),
    );
    let isBack = false;
    const ping = async (): Promise<void> => {
      if (!isBack) throw away();
    };
    const call = circuit.connect({ ping, connectionProblem: () => undefined })(ping);
    await tenants.run("clinic-a", () => call().catch(() => {}));
    await clock.advance(MINUTE);
    await tenants.run("clinic-b", () => call().catch(() => {}));
    isBack = true;
    await tenants.run("clinic-b", () => clock.advance(SECOND));
    expect(contexts).toEqual([
      ["the storage is unavailable", "service"],
      ["the storage is still unavailable", "service"],
      ["the storage is available again after 61 s", "service"],
    ]);
  });

  it("waits for a ping that hangs before it sends the next", async () => {
    const { clock, store, codeOf, setAway } = setUp();
    setAway();
    await codeOf();
    store.ping = forever;
    await clock.advance(MINUTE);
    // Each is given up after four seconds, and the next comes after its pause.
    expect(store.pings).toBeGreaterThan(10);
    expect(store.pings).toBeLessThan(16);
  });

  it("leaves calls that were sent before their own result, and a success ends the outage", async () => {
    const { store, call, codeOf, circuit, setAway } = setUp();
    const early: Held<unknown> = held();
    store.call = () => early.promise;
    const sent = call();
    setAway();
    await codeOf();
    expect(circuit.isOpen()).toBe(true);
    early.resolve("late response");
    expect(await sent).toBe("late response");
    expect(circuit.isOpen()).toBe(false);
  });

  it("leaves the error of a call that was sent before as it is: it may have taken effect", async () => {
    const { clock, store, call, codeOf, setAway } = setUp();
    store.call = forever;
    const sent = call().catch((error: unknown) => error);
    setAway();
    await codeOf();
    await clock.advance(4 * SECOND);
    expect(await sent).toMatchObject({
      effect: "unknown",
      message: "The storage did not respond within 4 seconds; the call may or may not have taken effect.",
    });
  });

  it("is not taken for unavailable again because of a call that was sent before its return", async () => {
    const { clock, store, call, codeOf, circuit, setAway, setBack } = setUp();
    let fail = (): void => {};
    store.call = () =>
      new Promise((_, reject) => {
        fail = () => reject(away());
      });
    const sent = call().catch(() => "failed");
    setAway();
    await codeOf();
    setBack();
    await clock.advance(SECOND);
    fail();
    expect(await sent).toBe("failed");
    await eventLoopTurn();
    expect([circuit.isOpen(), await codeOf()]).toEqual([false, "resolved"]);
  });

  it("is not pinged any more once the host has closed it", async () => {
    const { clock, store, call, codeOf, lines, setAway } = setUp();
    setAway();
    await codeOf();
    store.ping = () =>
      Promise.reject(
        new PostbellError("storage_unavailable", "Closed.", { isPermanent: true, isOutage: false }),
      );
    await clock.advance(SECOND);
    const { pings } = store;
    await clock.advance(MINUTE);
    expect(store.pings).toBe(pings);
    expect(lines()).toEqual(["error the storage is unavailable"]);
    await expect(call()).rejects.toMatchObject({ message: "Closed.", isPermanent: true });
  });
});

describe("a call that fails alone", () => {
  it.each<[string, Behaviour]>([
    ["is slow", forever],
    ["is refused by a storage that is read-only", () => Promise.reject(failing())],
    [
      "fails in one node of several",
      () => Promise.reject(new PostbellError("storage_unavailable", "", { isOutage: false })),
    ],
  ])("closes nothing to others if it %s", async (_, behaviour) => {
    const { clock, store, call, codeOf, circuit } = setUp();
    for (let count = 0; count < 10; count++) {
      store.call = behaviour;
      const failed = call().catch(() => "failed");
      await clock.advance(4 * SECOND);
      expect(await failed).toBe("failed");
      store.call = works;
      expect([circuit.isOpen(), await codeOf()]).toEqual([false, "resolved"]);
    }
  });

  it("is an outage if the ping fails too", async () => {
    const { clock, store, call, codeOf, circuit } = setUp({ call: forever, ping: forever });
    const slow = call().catch(() => "failed");
    await clock.advance(4 * SECOND);
    await slow;
    expect(circuit.isOpen()).toBe(false);
    await clock.advance(4 * SECOND);
    expect(circuit.isOpen()).toBe(true);
    expect(await codeOf()).toBe("storage_unavailable none");
    expect(store.calls).toBe(1);
  });

  it("names the problem of the connection if it took too long", async () => {
    const { clock, call, circuit } = setUp({ call: forever, problem: "ECONNREFUSED 127.0.0.1:6379" });
    const slow = call().catch((error: unknown) => error);
    await clock.advance(4 * SECOND);
    expect(await slow).toMatchObject({
      message: expect.stringContaining("(no connection: ECONNREFUSED 127.0.0.1:6379)"),
      reason: "ECONNREFUSED 127.0.0.1:6379",
    });
    expect(circuit.isOpen()).toBe(true);
  });
});

describe("the log", () => {
  it("has a line when the outage begins, one a minute, and one when it is over, whoever else logs it", async () => {
    const { clock, circuit, call, lines, log, setAway, setBack } = setUp();
    setAway();
    for (let tenths = 0; tenths < 1_250; tenths++) {
      await call().catch((error: unknown) => {
        circuit.logger.error({ error }, "a request failed");
        circuit.logger.warn({ error, delivery: String(tenths) }, "a delivery could not be settled");
      });
      await clock.advance(100);
    }
    setBack();
    await clock.advance(SECOND);
    expect(lines()).toEqual([
      "error the storage is unavailable",
      "warn the storage is still unavailable",
      "warn the storage is still unavailable",
      "warn the storage is available again after 2 min",
    ]);
    const fields = log.filter(({ level }) => level !== "debug").map((line) => line.fields);
    const cause = { service: "webhooks", reason: "ECONNREFUSED", cause: "No connection." };
    expect(fields).toEqual([
      cause,
      { ...cause, forMs: MINUTE, failed: 1, refused: 600 },
      { ...cause, forMs: 2 * MINUTE, failed: 1, refused: 1_200 },
      { service: "webhooks", forMs: expect.any(Number), failed: 1, refused: 1_249 },
    ]);
    expect(log.filter(({ level }) => level === "debug")).toHaveLength(2_500);
  });

  it("says if waiting does not help, and names a later cause", async () => {
    const wrong = new PostbellError("storage_unavailable", "Correct the password.", {
      ...{ reason: "WRONGPASS", isPermanent: true, isOutage: true },
    });
    const { clock, store, call, codeOf, log } = setUp();
    store.call = () => Promise.reject(wrong);
    store.ping = () => Promise.reject(wrong);
    await codeOf();
    await expect(call()).rejects.toMatchObject({
      ...{ message: "Correct the password.", reason: "WRONGPASS", isPermanent: true, effect: "none" },
    });
    store.ping = isAway;
    await clock.advance(61 * SECOND);
    expect(log.map(({ level, message }) => `${level} ${message}`)).toEqual([
      "error the storage is unavailable until its configuration is changed",
      "warn the storage is still unavailable",
    ]);
    expect(log[1]?.fields).toMatchObject({ reason: "ECONNREFUSED" });
  });

  it.each([
    { title: "refuses", error: failing(), shown: { reason: "25006", cause: "Read only." } },
    {
      title: "is full",
      error: new PostbellError("storage_full", "The disk is full."),
      shown: { cause: "The disk is full." },
    },
  ])(
    "has one line a minute for each message about a storage that responds and $title",
    async ({ error, shown }) => {
      const { clock, circuit, log } = setUp();
      for (let second = 0; second < 120; second++) {
        circuit.logger.error({ error }, "a request failed");
        circuit.logger.error({ error: new Error("another") }, "another failed");
        await clock.advance(SECOND);
      }
      const own = log.filter(({ message }) => message === "a request failed");
      // No stack of this package.
      expect(own.map(({ fields }) => fields)).toEqual([shown, { ...shown, omitted: 59 }]);
      expect(log.filter(({ message }) => message === "another failed")).toHaveLength(120);
    },
  );
});

describe("the status", () => {
  it("tells that the storage was never reached, until it was", async () => {
    const { clock, circuit, codeOf, setAway, setBack } = setUp();
    setAway();
    await codeOf();
    await clock.advance(5 * SECOND);
    const since = { unreachedMs: 5 * SECOND, outageMs: 5 * SECOND };
    expect(circuit.check()).toEqual({ hasFailed: true, ...since, cause: "ECONNREFUSED" });
    setBack();
    await clock.advance(SECOND);
    expect(circuit.check()).toMatchObject({ unreachedMs: 0, outageMs: 0 });
  });

  it("sends a ping if no call has shown yet whether the storage responds", async () => {
    const { circuit, store, setAway, clock } = setUp();
    setAway();
    expect(circuit.check()).toMatchObject({ hasFailed: false, outageMs: 0 });
    await eventLoopTurn();
    expect(circuit.check()).toMatchObject({ hasFailed: true, unreachedMs: 1, cause: "ECONNREFUSED" });
    store.ping = works;
    await clock.advance(SECOND);
    const { pings } = store;
    expect(circuit.check()).toMatchObject({ unreachedMs: 0 });
    expect(store.pings).toBe(pings);
  });

  it("has no cause if the reason has no code", async () => {
    const reason = "no reply in time";
    const hangs: Behaviour = () =>
      Promise.reject(new PostbellError("storage_unavailable", "No reply.", { reason, isOutage: true }));
    const { circuit, codeOf } = setUp({ call: hangs, ping: hangs });
    await codeOf();
    expect(circuit.check()).toMatchObject({ hasFailed: true, cause: undefined });
  });

  it("has not failed by a call with a wrong argument", async () => {
    const refuses: Behaviour = () =>
      Promise.reject(new PostbellError("invalid_argument", "Wrong cursor.", { field: "cursor" }));
    const { circuit, codeOf } = setUp({ call: refuses });
    await codeOf();
    expect(circuit.check()).toMatchObject({ hasFailed: false, outageMs: 0 });
  });

  it("is not reached by a response that refuses this process", async () => {
    const { circuit, store } = setUp();
    store.ping = () => Promise.reject(new PostbellError("invalid_option", "Migrate the schema."));
    circuit.check();
    await eventLoopTurn();
    expect(circuit.check()).toEqual({
      ...{ hasFailed: true, unreachedMs: 1, outageMs: 0 },
      cause: "invalid_option",
    });
  });
});
