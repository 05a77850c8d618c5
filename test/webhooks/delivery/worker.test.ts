/**
 * The worker over a store that a test scripts call by call, for orders of events that no real
 * storage can be held to.
 */

import { describe, expect, it } from "vitest";
import { silentLogger } from "../../../src/core/logger.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import type { Audit } from "../../../src/webhooks/config/config.js";
import type { MakeAttempt } from "../../../src/webhooks/delivery/attempt.js";
import type { AttemptResult } from "../../../src/webhooks/delivery/outcome.js";
import type { Flight } from "../../../src/webhooks/delivery/slots.js";
import { DeliveryWorker } from "../../../src/webhooks/delivery/worker.js";
import { readCatalogue } from "../../../src/webhooks/event-types/catalogue.js";
import { EventSealer } from "../../../src/webhooks/events/event-sealer.js";
import { readConfig } from "../../../src/webhooks/options.js";
import type { Claim, ClaimRequest, Lane, Settlement, WebhookStore } from "../../../src/webhooks/store.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { eventLoopTurn, START } from "../../support/webhook-harness.js";

const NOTHING = { claims: [], nextAt: null };

async function turns(count = 20): Promise<void> {
  for (let turn = 0; turn < count; turn++) await eventLoopTurn();
}

/** Resolves when it is opened. */
function gate(): { readonly passed: Promise<void>; readonly open: () => void } {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}

/** The parts of a claim that a worker looks at. */
const claimOf = (id: string, lane: Lane, crashes = 0): Claim =>
  ({
    id,
    lane,
    crashes,
    isRecovered: false,
    token: "token",
    step: 0,
    isExtra: false,
    dueAt: 0,
    postponed: 0,
    startedAt: null,
    webhook: { id: "webhook", account: "clinic" },
    event: { id: "event" },
  }) as unknown as Claim;

const delivered = ({ claim: { id } }: Flight): AttemptResult => ({
  id,
  webhookId: "webhook",
  account: "clinic",
  token: "token",
  outcome: { state: "delivered" },
  startedAt: 0,
  attempt: null,
  endpoint: null,
});

function openWorker({
  store = {},
  attempt = () => null,
  slots = { concurrency: 30, slowConcurrency: 5 },
}: {
  readonly store?: Partial<WebhookStore>;
  readonly attempt?: MakeAttempt;
  readonly slots?: { readonly concurrency: number; readonly slowConcurrency: number };
}) {
  const clock = manualClock(START);
  let hint = (_at: number): void => {};
  const scripted = {
    maxSleepMs: 30_000,
    now: () => clock.now(),
    partitionOf: () => 0,
    watch(listener: (at: number) => void) {
      hint = listener;
      return () => {};
    },
    settle: async (settlements: readonly Settlement[]) => settlements.map(() => "settled" as const),
    claim: async () => NOTHING,
    ...store,
  } as WebhookStore;
  const config = readConfig({
    storage: memoryStorage(),
    access: { authenticate: () => null, canRead: () => true },
    delivery: slots,
    clock,
  });
  const worker = new DeliveryWorker(
    {
      store: scripted,
      sealer: new EventSealer({ store: scripted, clock, seals: false, isShared: true }),
      config,
      logger: silentLogger,
      telemetry: undefined,
      catalogue: readCatalogue(config.events),
      audit: NO_AUDIT,
    },
    attempt,
    {
      dueAt: () => Number.POSITIVE_INFINITY,
      expect() {},
      startIfDue: () => undefined,
      isRunning: () => false,
    },
  );
  return { worker, clock, hint: () => hint(clock.now()) };
}

/** Reports to nobody. */
const NO_AUDIT = { record() {}, reportsEnds: () => false, recordEnds() {} } as unknown as Audit;

describe("the worker", () => {
  it("asks again for slots that a reservation held while a claim was on its way", async () => {
    const rooms: ClaimRequest["room"][] = [];
    const { passed, open } = gate();
    const { worker, hint } = openWorker({
      store: {
        async claim({ room }) {
          rooms.push(room);
          if (rooms.length === 1) return NOTHING;
          if (rooms.length === 2) await passed;
          // Something is due that only the slow lane takes.
          return { claims: [], nextAt: room.slow > 0 ? null : 1 };
        },
      },
    });
    worker.start();
    await turns();
    const reservation = worker.reserve();
    hint();
    await turns();
    expect(rooms.at(-1)).toMatchObject({ slow: 0 });
    reservation?.end(undefined);
    open();
    await turns();
    expect(rooms.at(-1)).toMatchObject({ slow: 5 });
    await worker.stop(0);
  });

  it("still asks for what is due elsewhere after a call that claimed from its own partition", async () => {
    const rooms: ClaimRequest["room"][] = [];
    const { worker, hint } = openWorker({
      store: {
        async claim({ room }) {
          rooms.push(room);
          // Something is due that only the slow lane takes.
          return { claims: [], nextAt: rooms.length === 1 || room.slow > 0 ? null : 1 };
        },
      },
    });
    worker.start();
    await turns();
    const reservation = worker.reserve();
    hint();
    await turns();
    expect(rooms.at(-1)).toMatchObject({ slow: 0 });
    reservation?.end({ claims: [], nextAt: null });
    await turns();
    expect(rooms.at(-1)).toMatchObject({ slow: 5 });
    await worker.stop(0);
  });

  it("has one poison delivery in flight, even if two calls claim some at a time", async () => {
    const stored = gate();
    const ended = gate();
    let claims = 0;
    let underWay = 0;
    let most = 0;
    const { worker, hint } = openWorker({
      store: {
        claim: async () =>
          ++claims === 2
            ? { claims: [claimOf("1", "fast", 5), claimOf("2", "fast", 5)], nextAt: null }
            : NOTHING,
        async settle(settlements) {
          await stored.passed;
          return settlements.map(() => "settled");
        },
      },
      async attempt() {
        most = Math.max(most, ++underWay);
        await ended.passed;
        return null;
      },
    });
    worker.start();
    await turns();
    const reservation = worker.reserve();
    hint();
    await turns();
    reservation?.end({ claims: [claimOf("3", "fast", 5), claimOf("4", "fast", 5)], nextAt: null });
    await turns();
    stored.open();
    await turns();
    expect(most).toBe(1);
    ended.open();
    await worker.stop(0);
  });

  it("continues to claim when too many settlements waited and are recorded", async () => {
    const stored = gate();
    const left = ["1", "2", "3", "4", "5", "6"];
    const attempted: string[] = [];
    const { worker } = openWorker({
      slots: { concurrency: 1, slowConcurrency: 1 },
      store: {
        async claim({ room }) {
          const claims = left.splice(0, room.slow).map((id) => claimOf(id, "slow"));
          return { claims, nextAt: left.length > 0 ? 0 : null };
        },
        async settle(settlements) {
          await stored.passed;
          return settlements.map(() => "settled");
        },
      },
      attempt(flight) {
        attempted.push(flight.claim.id);
        return delivered(flight);
      },
    });
    worker.start();
    await turns();
    // Twice the slots: what is over and not recorded must stay few.
    expect(attempted).toHaveLength(4);
    stored.open();
    await turns();
    expect(attempted).toHaveLength(6);
    await worker.stop(0);
  });

  it("leaves no timer and asks the storage for nothing once it has stopped", async () => {
    let calls = 0;
    const { worker, clock } = openWorker({
      store: {
        claim: async () => (++calls === 1 ? { claims: [claimOf("1", "slow")], nextAt: null } : NOTHING),
        settle() {
          calls += 1;
          return Promise.reject(new Error("away"));
        },
      },
      attempt: delivered,
    });
    worker.start();
    await turns();
    const stopped = worker.stop(0);
    await clock.advance(1);
    await stopped;
    const before = calls;
    expect(before).toBeGreaterThan(1);
    await turns();
    // A timer would keep the process alive.
    expect(clock.nextTimerAt()).toBeUndefined();
    await clock.advance(600_000);
    expect(calls).toBe(before);
  });
});
