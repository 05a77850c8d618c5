/**
 * Several processes on one storage: ended in order, stalled, replaced, poisoned, and changing the
 * same webhooks at once.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { startProxy } from "../../support/tcp-proxy.js";
import { type Held, held } from "../../support/webhook-harness.js";
import { balanced } from "./checker.js";
import { KEY, patientEvent } from "./ledger.js";
import type { Received } from "./ledger-subscriber.js";
import { startForTests } from "./start-for-tests.js";
import type { StorageUnderTest } from "./storage-under-test.js";
import { type Exit, eventually, type Worker } from "./worker-host.js";
import { ownersOf } from "./worker-leases.js";
import { openScene, QUICK, type Scene } from "./worker-scene.js";

const IN_ORDER = { code: 0, signal: null };

/** An endpoint that holds each request until the test answers it. */
function holdAnswers(): {
  readonly answer: (request: Received) => Promise<number>;
  readonly held: readonly Held<number>[];
  readonly arrived: (count: number) => Promise<void>;
} {
  const requests: Held<number>[] = [];
  return {
    held: requests,
    answer() {
      const request = held<number>();
      requests.push(request);
      return request.promise;
    },
    arrived: (count) => eventually(() => requests.length >= count, `${count} requests have come`),
  };
}

const settledAs = (worker: Worker, state: string, result: string): boolean =>
  worker.journal().some((entry) => entry.as === state && entry.result === result);

const idOf = ({ deliveries }: { readonly deliveries: readonly { readonly id: string }[] }): string =>
  deliveries[0]?.id ?? "";

/** Declares the tests on one storage. */
export function describeProcesses(start: () => Promise<StorageUnderTest>): void {
  const on = startForTests(start);

  describe("SIGTERM", () => {
    interface Ending {
      readonly title: string;
      readonly answers?: readonly number[];
      readonly answerAfterMs?: number;
      readonly graceMs?: number;
      /** How long the endpoint takes. */
      readonly endpointMs?: number;
      readonly signals?: number;
      readonly isReady: (scene: Scene, worker: Worker) => boolean;
      /** Requests of both processes. */
      readonly requests: number;
      readonly duplicates?: number;
    }
    const hasRequest = ({ subscriber }: Scene): boolean => subscriber.received.length > 0;

    const ENDINGS: readonly Ending[] = [
      {
        title: "while the host is asked for access",
        answerAfterMs: 300,
        isReady: (_, worker) => worker.journal().some(({ asked }) => asked !== undefined),
        requests: 1,
      },
      {
        title: "while access is asked for, and the grace is too short",
        answerAfterMs: 3_000,
        graceMs: 100,
        isReady: (_, worker) => worker.journal().some(({ asked }) => asked !== undefined),
        requests: 1,
      },
      { title: "while the endpoint answers", endpointMs: 300, isReady: hasRequest, requests: 1 },
      {
        title: "twice while the endpoint answers",
        endpointMs: 300,
        signals: 2,
        isReady: hasRequest,
        requests: 1,
      },
      {
        title: "between a failure and its retry",
        answers: [500],
        isReady: (_, worker) => settledAs(worker, "pending", "settled"),
        requests: 2,
      },
      {
        title: "while the endpoint answers, and the grace is too short",
        endpointMs: 1_500,
        graceMs: 100,
        isReady: hasRequest,
        requests: 2,
        duplicates: 1,
      },
    ];

    it.each(ENDINGS)(
      "$title: ends with code 0, and the rest is delivered by another process",
      async (ending) => {
        const { answers = [], endpointMs = 0, signals = 1, answerAfterMs, graceMs = 5_000 } = ending;
        const left = [...answers];
        const scene = await openScene(on(), {
          subscriber: {
            answer: async () => {
              await sleep(endpointMs);
              return left.shift() ?? 204;
            },
          },
        });
        const { ledger, checker, subscriber, launch, expire } = scene;
        await ledger.register("/");
        const worker = await launch({ answerAfterMs, graceMs });
        const delivery = idOf(await ledger.emit());
        await eventually(() => ending.isReady(scene, worker), ending.title);
        for (let sent = 0; sent < signals; sent++) worker.signal("SIGTERM");
        expect(await worker.exited).toEqual(IN_ORDER);

        await launch();
        await expire(worker);
        await checker.drained();
        expect((await checker.delivery(delivery)).state).toBe("delivered");
        expect(subscriber.received).toHaveLength(ending.requests);
        const { duplicates, ...books } = await checker.books(ledger, subscriber);
        expect(books).toEqual({ ...balanced, deliveries: 1 });
        expect(duplicates).toBeLessThanOrEqual(ending.duplicates ?? 0);
      },
    );

    it("finds nothing left to close where the storage was closed before, twice", async () => {
      const { launch } = await openScene(on());
      const worker = await launch();
      await worker.closeStorage();
      await worker.closeStorage();
      worker.signal("SIGTERM");
      expect(await worker.exited).toEqual(IN_ORDER);
    });
  });

  describe("several workers", () => {
    it("are replaced one by one under load: nothing lost, nothing twice", async () => {
      const scene = await openScene(on(), {
        subscriber: {
          answer: async () => {
            await sleep(15);
            return 204;
          },
        },
      });
      const { ledger, checker, subscriber, launch } = scene;
      for (let endpoint = 0; endpoint < 5; endpoint++) await ledger.register(`/${endpoint}`);
      let workers: readonly Worker[] = await Promise.all([launch(), launch(), launch()]);
      let isOver = false;
      const emitting = (async () => {
        // On a busy machine the workers may be replaced before there were enough.
        for (let emitted = 0; !isOver || emitted <= 100; emitted++) {
          await ledger.emit();
          await sleep(10);
        }
      })();
      for (let round = 0; round < 2; round++) {
        const next: Worker[] = [];
        for (const worker of workers) {
          next.push(await launch());
          worker.signal("SIGTERM");
          expect(await worker.exited).toEqual(IN_ORDER);
        }
        workers = next;
      }
      isOver = true;
      await emitting;
      await checker.drained();
      const { deliveries, ...books } = await checker.books(ledger, subscriber);
      expect(books).toEqual({ ...balanced, duplicates: 0 });
      expect(deliveries).toBeGreaterThan(500);
    });

    it("made alike share the work: no two claims have one token, no delivery is made twice", async () => {
      const { ledger, checker, subscriber, launch } = await openScene(on());
      for (let endpoint = 0; endpoint < 3; endpoint++) await ledger.register(`/${endpoint}`);
      const workers = await Promise.all([launch(), launch(), launch()]);
      await Promise.all(Array.from({ length: 100 }, () => ledger.emit()));
      await checker.drained();
      expect(await checker.books(ledger, subscriber)).toEqual({
        ...balanced,
        deliveries: 300,
        duplicates: 0,
      });
      const tokens = workers.flatMap((worker) => worker.journal().flatMap(({ token }) => token ?? []));
      expect(new Set(tokens).size).toBe(tokens.length);
      const owners = workers.flatMap(ownersOf);
      expect(new Set(owners).size).toBe(owners.length);
    });
  });

  describe("an event that kills its process", () => {
    const webhooks = {
      ...QUICK,
      retry: { intervalsMs: [6_000, 60_000], everyMs: 60_000, windowMs: 600_000, jitter: 0 },
    };

    it("is held back by a full step for each crash after the fifth; the others go on", async () => {
      const { ledger, checker, subscriber, launch, expire } = await openScene(on(), { webhooks });
      await ledger.register("/");
      const poisoned = idOf(await ledger.emit(patientEvent("poison")));
      for (let event = 0; event < 20; event++) await ledger.emit();
      const others = [...ledger.promised].filter((id) => id !== poisoned);

      let deaths = 0;
      let worker = await launch({ poison: "poison" });
      const isHeldBack = async (ms: number): Promise<boolean> => {
        if (worker.hasExited()) {
          deaths++;
          const dead = worker;
          worker = await launch({ poison: "poison" });
          await expire(dead);
        }
        const { dueAt } = await checker.delivery(poisoned);
        return (dueAt ?? 0) > Date.now() + ms;
      };
      // A poison delivery is postponed by up to 2 s while another one is in flight: no step yet.
      await eventually(() => isHeldBack(2_500), "the event is held back");
      expect(deaths).toBe(5);
      await eventually(() => isHeldBack(50_000), "the event is held back for the next step");
      expect(deaths).toBe(6);

      const delivered = (): Set<string> =>
        new Set(subscriber.received.filter(({ status }) => status === 204).map(({ id }) => id));
      await eventually(() => others.every((id) => delivered().has(id)), "the others are delivered");
      expect(delivered()).not.toContain(poisoned);
      expect(await checker.delivery(poisoned)).toMatchObject({ state: "pending", step: 0, attempts: [] });
    });
  });

  describe("registrations changed by two processes at once", () => {
    const enabledOf = async ({ ledger }: Scene): Promise<number> => {
      const { items: webhooks } = await ledger.webhooks.registrations.list({
        account: KEY.account,
        limit: 100,
      });
      return webhooks.filter(({ status }) => status === "ENABLED").length;
    };
    const codesOf = async (calls: readonly Promise<unknown>[]): Promise<string[]> =>
      Promise.all(
        calls.map((call) =>
          call.then(
            () => "done",
            (error: { code: string }) => error.code,
          ),
        ),
      );
    const countOf = (codes: readonly string[], code: string): number =>
      codes.filter((one) => one === code).length;

    it("has exactly 15 ENABLED after fifty creations, and after fifty enablings", async () => {
      const scene = await openScene(on());
      const { subscriber, prepare, ledger } = scene;
      const [one, two] = await Promise.all([prepare(), prepare()]);
      const create = (worker: Worker, number: number): Promise<unknown> =>
        worker.create({ subscriber: KEY, url: subscriber.url(`/${number}`) });
      const both = Array.from({ length: 25 }, (_, number) => [create(one, number), create(two, number)]);
      const codes = await codesOf(both.flat());
      expect(countOf(codes, "done")).toBe(15);
      expect(countOf(codes, "webhook_limit_reached")).toBe(35);
      expect(await enabledOf(scene)).toBe(15);

      const { registrations } = ledger.webhooks;
      const disableAll = async (): Promise<readonly string[]> => {
        const { items: webhooks } = await registrations.list({ account: KEY.account, limit: 100 });
        for (const { id } of webhooks) await registrations.update({ id, status: "DISABLED" });
        return webhooks.map(({ id }) => id);
      };
      await disableAll();
      for (let number = 0; number < 10; number++)
        await registrations.create({ subscriber: KEY, url: subscriber.url("/") });
      const ids = await disableAll();
      expect(ids).toHaveLength(25);
      const enable = (worker: Worker) => (id: string) => worker.update({ id, status: "ENABLED" });
      const enabling = await codesOf([...ids.map(enable(one)), ...[...ids].reverse().map(enable(two))]);
      expect(new Set(enabling)).toEqual(new Set(["done", "webhook_limit_reached"]));
      expect(await enabledOf(scene)).toBe(15);
    });

    it.each([204, 500])(
      "forgets a webhook that was removed while its endpoint took a request and then answered %i",
      async (status) => {
        const endpoint = holdAnswers();
        const { ledger, checker, launch, prepare, subscriber } = await openScene(on(), {
          subscriber: endpoint,
        });
        const id = await ledger.register("/");
        const [sender, other] = await Promise.all([launch(), prepare()]);
        await ledger.emit();
        await endpoint.arrived(1);
        await other.remove(id);
        endpoint.held[0]?.resolve(status);
        const outcome = status === 204 ? "delivered" : "pending";
        await eventually(() => settledAs(sender, outcome, "gone"), "the late report is dropped");
        expect(await checker.store.stats()).toMatchObject({ webhooks: 0, pending: 0, leased: 0, ended: 0 });
        expect(subscriber.received).toHaveLength(1);
        expect(await checker.leftovers(ledger)).toEqual([]);
      },
    );

    it("skips the steps of a webhook that was disabled while leased, and goes on once it is enabled", async () => {
      const endpoint = holdAnswers();
      const { ledger, checker, launch, prepare, subscriber } = await openScene(on(), {
        subscriber: endpoint,
      });
      const id = await ledger.register("/");
      const [, other] = await Promise.all([launch(), prepare()]);
      const delivery = idOf(await ledger.emit());
      await endpoint.arrived(1);
      await other.update({ id, status: "DISABLED" });
      endpoint.held[0]?.resolve(500);
      await eventually(async () => (await checker.delivery(delivery)).step >= 3, "steps are skipped");
      expect(subscriber.received).toHaveLength(1);
      await other.update({ id, status: "ENABLED" });
      await endpoint.arrived(2);
      endpoint.held[1]?.resolve(204);
      await checker.drained();
      const { attempts } = await checker.delivery(delivery);
      expect(attempts.map(({ status }) => status)).toEqual([500, 204]);
      expect(attempts[1]?.step).toBeGreaterThanOrEqual(3);
      expect(await checker.books(ledger, subscriber)).toEqual({ ...balanced, deliveries: 1, duplicates: 0 });
    });

    it("makes the very next step of a webhook that was disabled and enabled before it", async () => {
      const endpoint = holdAnswers();
      const retry = { ...QUICK.retry, intervalsMs: [1_500] };
      const { ledger, checker, launch, prepare } = await openScene(on(), {
        subscriber: endpoint,
        webhooks: { ...QUICK, retry },
      });
      const id = await ledger.register("/");
      const [, other] = await Promise.all([launch(), prepare()]);
      const delivery = idOf(await ledger.emit());
      await endpoint.arrived(1);
      await other.update({ id, status: "DISABLED" });
      endpoint.held[0]?.resolve(500);
      await eventually(async () => (await checker.delivery(delivery)).step === 1, "the failure is stored");
      await other.update({ id, status: "ENABLED" });
      await endpoint.arrived(2);
      endpoint.held[1]?.resolve(204);
      await checker.drained();
      const { attempts } = await checker.delivery(delivery);
      expect(attempts.map(({ status, step }) => [status, step])).toEqual([
        [500, 0],
        [204, 1],
      ]);
    });

    it("sends what is pending to the new url", async () => {
      const endpoint = holdAnswers();
      const { ledger, checker, launch, prepare, subscriber } = await openScene(on(), {
        subscriber: endpoint,
      });
      const id = await ledger.register("/old");
      const [, other] = await Promise.all([launch(), prepare()]);
      await ledger.emit();
      await endpoint.arrived(1);
      await other.update({ id, url: subscriber.url("/new") });
      endpoint.held[0]?.resolve(500);
      await endpoint.arrived(2);
      endpoint.held[1]?.resolve(204);
      await checker.drained();
      expect(subscriber.received.map(({ path }) => path)).toEqual(["/old", "/new"]);
      expect(await checker.books(ledger, subscriber)).toEqual({ ...balanced, deliveries: 1, duplicates: 0 });
    });
  });

  describe("a process that is stopped for longer than its lease", () => {
    it("between claim and request, sends nothing when it goes on", async () => {
      // It may begin an attempt as long as 15.2 s are not over.
      const webhooks = { ...QUICK, delivery: { deadlineMs: 200, leaseMs: 20_400 } };
      const scene = await openScene(on(), { webhooks });
      const { ledger, checker, subscriber, launch, expire } = scene;
      await ledger.register("/");
      // A busy machine may take a second to stop it.
      const stalled = await launch({ stallMs: 3_000 });
      const claimed = ledger.emit();
      await eventually(
        () => stalled.journal().some(({ asked }) => asked !== undefined),
        "access is asked for",
      );
      stalled.signal("SIGSTOP");
      const stoppedAt = performance.now();
      await claimed;
      const heir = await launch();
      await expire(stalled);
      await checker.drained();
      await heir.kill();
      await eventually(() => performance.now() - stoppedAt > 15_300, "the lease is as good as over");
      stalled.signal("SIGCONT");
      await ledger.emit();
      await checker.drained();
      expect(subscriber.received).toHaveLength(2);
      expect(await checker.books(ledger, subscriber)).toEqual({ ...balanced, deliveries: 2, duplicates: 0 });
    });

    const overtaken = async (): Promise<{
      readonly scene: Scene;
      readonly endpoint: ReturnType<typeof holdAnswers>;
      readonly stalled: Worker;
      readonly heir: Worker;
      readonly delivery: string;
    }> => {
      const endpoint = holdAnswers();
      const webhooks = { ...QUICK, delivery: { deadlineMs: 10_000, leaseMs: 40_000 } };
      const scene = await openScene(on(), { webhooks, subscriber: endpoint });
      await scene.ledger.register("/");
      const stalled = await scene.launch();
      const delivery = idOf(await scene.ledger.emit());
      await endpoint.arrived(1);
      stalled.signal("SIGSTOP");
      await scene.expire(stalled);
      const heir = await scene.launch();
      await endpoint.arrived(2);
      return { scene, endpoint, stalled, heir, delivery };
    };

    it("after the request, has its failure ignored: the process that took over decides", async () => {
      const { scene, endpoint, stalled, delivery } = await overtaken();
      endpoint.held[0]?.resolve(500);
      stalled.signal("SIGCONT");
      await eventually(() => settledAs(stalled, "pending", "stale"), "the failure is dropped");
      expect(await scene.checker.delivery(delivery)).toMatchObject({
        state: "pending",
        step: 0,
        attempts: [],
      });
      endpoint.held[1]?.resolve(204);
      await scene.checker.drained();
      expect(await scene.checker.delivery(delivery)).toMatchObject({
        state: "delivered",
        attempts: [{ status: 204, step: 0 }],
      });
      expect(await scene.checker.books(scene.ledger, scene.subscriber)).toEqual({
        ...balanced,
        deliveries: 1,
        duplicates: 0,
      });
    });

    it("after the request, has its 2xx accepted: a later failure of the process that took over changes nothing", async () => {
      const { scene, endpoint, stalled, heir, delivery } = await overtaken();
      endpoint.held[0]?.resolve(204);
      stalled.signal("SIGCONT");
      await eventually(() => settledAs(stalled, "delivered", "settled"), "the 2xx counts");
      endpoint.held[1]?.resolve(500);
      await eventually(() => settledAs(heir, "pending", "gone"), "the failure is dropped");
      expect(await scene.checker.delivery(delivery)).toMatchObject({
        state: "delivered",
        attempts: [{ status: 204, step: 0 }],
      });
      expect(scene.subscriber.received).toHaveLength(2);
      expect(await scene.checker.books(scene.ledger, scene.subscriber)).toEqual({
        ...balanced,
        deliveries: 1,
        duplicates: 0,
      });
    });
  });
}

/**
 * Declares the tests in which the server of a storage is unavailable at the end of a process.
 * `connectMs`: how long a process waits for a connection that it has begun to open.
 */
export function describeEndWithoutServer(
  start: () => Promise<StorageUnderTest>,
  { connectMs }: { readonly connectMs: number },
): void {
  const on = startForTests(start);
  const GRACE_MS = 500;
  /** Time that a busy machine may need in addition to the grace. */
  const MARGIN_MS = 1_500 + connectMs;

  /** True if a timer or a connection that nobody waits for keeps the process alive. */
  const end = async (worker: Worker): Promise<{ readonly exit: Exit; readonly isInTime: boolean }> => {
    const began = performance.now();
    worker.signal("SIGTERM");
    const exit = await worker.exited;
    return { exit, isInTime: performance.now() - began < GRACE_MS + MARGIN_MS };
  };

  describe("SIGTERM without a server", () => {
    it("ends with code 0 also while the server is down and an outcome cannot be stored", async () => {
      const { server } = on();
      const endpoint = holdAnswers();
      const { ledger, launch } = await openScene(on(), { subscriber: endpoint });
      await ledger.register("/");
      const worker = await launch({ graceMs: GRACE_MS });
      await ledger.emit();
      await endpoint.arrived(1);
      await server?.kill();
      onTestFinished(() => server?.restart());
      endpoint.held[0]?.resolve(204);
      worker.signal("SIGTERM");
      expect(await end(worker)).toEqual({ exit: IN_ORDER, isInTime: true });
    });

    it("ends with code 0 while it still tries to connect", async () => {
      const proxy = await startProxy({ host: "127.0.0.1", port: on().server?.port ?? 0 });
      onTestFinished(() => proxy.stop());
      await proxy.mode("black-hole");
      const { launch, options } = await openScene(on());
      const worker = await launch({
        storage: on().through(options.storage, proxy.port),
        graceMs: GRACE_MS,
        webhooks: { ...QUICK, awaitStorage: false },
      });
      await eventually(() => proxy.connections() > 0, "the worker connects");
      expect(await end(worker)).toEqual({ exit: IN_ORDER, isInTime: true });
    });
  });
}
