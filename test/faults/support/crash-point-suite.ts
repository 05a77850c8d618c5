/**
 * A process is killed at each step of an emit, of a delivery, of the reaping, of a health step and
 * of a registration; another one goes on.
 */

import { describe, expect, it } from "vitest";
import { balanced } from "./checker.js";
import { KEY, patientEvent } from "./ledger.js";
import { startForTests } from "./start-for-tests.js";
import type { StorageUnderTest } from "./storage-under-test.js";
import { eventually, type Worker } from "./worker-host.js";
import { openScene, QUICK } from "./worker-scene.js";

const KILLED = { code: null, signal: "SIGKILL" };

interface DeliveryCrash {
  readonly step: string;
  readonly title: string;
  /** The endpoint's responses in turn; 204 from then on. */
  readonly answers?: readonly number[];
  /** Where the parent kills the worker. */
  readonly killedAt?: "hello" | "body" | "request";
  readonly bytes?: number;
  /** Requests that reach the endpoint whole, over both processes. */
  readonly requests: number;
  readonly duplicates?: number;
  readonly cutOff?: number;
  /** Status of each attempt on record; each is a step of its own. */
  readonly attempts: readonly number[];
}

const LARGE = 8 * 1024 * 1024;

const DELIVERY_CRASHES: readonly DeliveryCrash[] = [
  { step: "c3", title: "after the claim", requests: 1, attempts: [204] },
  { step: "c4", title: "after DNS, before the connection", requests: 1, attempts: [204] },
  {
    step: "c5",
    title: "after the connection, before the first byte",
    killedAt: "hello",
    requests: 1,
    attempts: [204],
  },
  {
    step: "c6",
    title: "in the middle of the body",
    killedAt: "body",
    bytes: LARGE,
    requests: 1,
    cutOff: 1,
    attempts: [204],
  },
  {
    step: "c7",
    title: "after the request, before the answer",
    killedAt: "request",
    requests: 2,
    attempts: [204],
  },
  { step: "c8", title: "after the 2xx, before it is stored", requests: 2, duplicates: 1, attempts: [204] },
  { step: "c9", title: "after the 2xx was stored", requests: 1, attempts: [204] },
  {
    step: "c10",
    title: "after a 500, before it is stored",
    answers: [500, 500],
    requests: 3,
    attempts: [500, 204],
  },
  { step: "c11", title: "after a 500 was stored", answers: [500], requests: 2, attempts: [500, 204] },
];

const forever = (): Promise<number> => new Promise(() => {});

/** Declares the tests on one storage. */
export function describeCrashPoints(start: () => Promise<StorageUnderTest>): void {
  const on = startForTests(start);

  describe("a crash while emitting", () => {
    it("c0, before the event reaches the storage: the caller sees no success, and nothing is stored", async () => {
      const { ledger, checker, prepare } = await openScene(on());
      await ledger.register("/");
      const worker = await prepare({ crashAt: "c0" });
      await expect(worker.emit(patientEvent())).rejects.toMatchObject({ code: "died" });
      expect(await worker.exited).toEqual(KILLED);
      expect(await checker.store.stats()).toMatchObject({ events: 0, pending: 0 });
    });

    it("c2, after the reply, before the caller hears of it: emitted again, it is delivered once", async () => {
      const { ledger, checker, subscriber, prepare, launch } = await openScene(on());
      await ledger.register("/");
      const worker = await prepare({ crashAt: "c2" });
      const event = patientEvent();
      await expect(worker.emit(event)).rejects.toMatchObject({ code: "died" });
      expect(await ledger.emit(event)).toMatchObject({ duplicate: true });
      await launch();
      await checker.drained();
      expect(await checker.books(ledger, subscriber)).toEqual({ ...balanced, deliveries: 1, duplicates: 0 });
    });
  });

  describe("a crash while delivering", () => {
    it.each(DELIVERY_CRASHES)("$step, $title", async (crash) => {
      const { step, answers = [], killedAt, bytes = 0 } = crash;
      let victim: Worker | undefined;
      const killAt = (where: DeliveryCrash["killedAt"]) => (): void => {
        if (where === killedAt) victim?.signal("SIGKILL");
      };
      const left = [...answers];
      const { ledger, checker, subscriber, launch, expire } = await openScene(on(), {
        webhooks: { ...QUICK, limits: { notificationBytes: 2 * LARGE } },
        subscriber: {
          onHello: killAt("hello"),
          onBody: killAt("body"),
          answer: () => {
            killAt("request")();
            return killedAt === "request" && !victim?.hasExited() ? forever() : (left.shift() ?? 204);
          },
        },
      });
      await ledger.register("/");
      victim = await launch({ crashAt: step });
      const { deliveries } = await ledger.emit(patientEvent("p1", bytes));
      expect(await victim.exited).toEqual(KILLED);

      await launch();
      await expire(victim);
      await checker.drained();
      const [delivery] = deliveries;
      const { state, attempts } = await checker.delivery(delivery?.id ?? "");
      expect(state).toBe("delivered");
      expect(attempts.map(({ status, step: at }) => [status, at])).toEqual(
        crash.attempts.map((status, at) => [status, at]),
      );
      expect(subscriber.received).toHaveLength(crash.requests);
      expect(subscriber.cutOff()).toBe(crash.cutOff ?? 0);
      expect(await checker.books(ledger, subscriber)).toEqual({
        ...balanced,
        deliveries: 1,
        duplicates: crash.duplicates ?? 0,
      });
    });
  });

  describe("a crash while reaping", () => {
    it("c12: of 150 leases that ran out, a process that dies takes up many, and others all that is left", async () => {
      const webhooks = { ...QUICK, delivery: { ...QUICK.delivery, perEndpoint: 250 } };
      const { ledger, checker, subscriber, launch, expire } = await openScene(on(), { webhooks });
      await ledger.register("/");
      for (let event = 0; event < 150; event++) await ledger.emit();
      const first = await launch({ crashAt: "c3" });
      await first.exited;
      expect(await expire(first)).toBe(150);

      const reaper = await launch({ crashAt: "c12" });
      expect(await reaper.exited).toEqual(KILLED);
      expect(await checker.store.stats()).toMatchObject({ pending: 150 });
      // Storages differ in how many a claim takes up at most.
      expect(await expire(reaper)).toBeGreaterThanOrEqual(100);

      await Promise.all([launch(), launch()]);
      await checker.drained();
      expect(await checker.books(ledger, subscriber)).toEqual({
        ...balanced,
        deliveries: 150,
        duplicates: 0,
      });
    });
  });

  describe("a crash while a failing endpoint is warned of and disabled", () => {
    it.each([
      { crashAt: "c13-warning", title: "while the host is told of it", warnings: 2, announcements: 1 },
      { crashAt: "c13-disable", title: "before it is disabled", warnings: 1, announcements: 1 },
      {
        crashAt: "c13-disabled",
        title: "after it is disabled, before the host is told",
        warnings: 1,
        announcements: 1,
      },
      {
        crashAt: "c13-announce",
        title: "while the host is told that it is disabled",
        warnings: 1,
        announcements: 2,
      },
    ])(
      "c13, $title: warned of at least once, disabled once",
      async ({ crashAt, warnings, announcements }) => {
        const webhooks = {
          ...QUICK,
          retry: { ...QUICK.retry, intervalsMs: [30_000] },
          endpoints: { warnAfterMs: 200, disableAfterMs: 400 },
        };
        const { ledger, checker, launch } = await openScene(on(), {
          webhooks,
          subscriber: { answer: () => 500 },
        });
        const id = await ledger.register("/");
        await ledger.emit();
        const dying = await launch({ crashAt });
        expect(await dying.exited).toEqual(KILLED);

        // The step comes back when the lease of whoever took it has run out.
        await checker.inspector.endNoticeLeases();
        const heir = await launch();
        const notes = () => [...dying.journal(), ...heir.journal()];
        const told = (kind: string) => notes().filter(({ notified }) => notified === kind).length;
        await eventually(() => told("disabled") === announcements, "the host is told");
        await eventually(
          async () => (await checker.store.getWebhook(id))?.noticeAt === null,
          "the step is recorded",
        );
        expect(told("warning")).toBe(warnings);
        expect((await checker.store.getWebhook(id))?.status).toBe("DISABLED");
        expect(notes().filter(({ disabled }) => disabled === id).length).toBe(1);
      },
    );
  });

  describe("a crash while registering", () => {
    it("c14, after the webhook is stored, before its secret is returned: created again with the same key, it is the same one", async () => {
      const { ledger, subscriber, prepare, checker, launch } = await openScene(on());
      const registration = {
        subscriber: KEY,
        url: subscriber.url("/"),
        idempotencyKey: "registration-1",
      };
      const dying = await prepare({ crashAt: "c14" });
      await expect(dying.create(registration)).rejects.toMatchObject({ code: "died" });
      const { items: webhooks } = await ledger.webhooks.registrations.list({ account: KEY.account });
      expect(webhooks).toHaveLength(1);

      const worker = await launch();
      const { webhook, secret } = await worker.create(registration);
      expect(webhook).toEqual(webhooks[0]);
      expect((await checker.store.stats()).webhooks).toBe(1);
      subscriber.trust(webhook.id, secret);
      await ledger.emit();
      await checker.drained();
      expect(await checker.books(ledger, subscriber)).toEqual({ ...balanced, deliveries: 1, duplicates: 0 });
    });
  });
}
