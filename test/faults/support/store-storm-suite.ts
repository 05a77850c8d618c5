/**
 * Several processes' stores on one storage, each with several calls at once, drawn at random: the
 * storage must hold together whatever meets.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { manualClock } from "../../../src/testing/manual-clock.js";
import type { Claim, Settlement } from "../../../src/webhooks/store.js";
import { startForTests } from "./start-for-tests.js";
import type { StorageUnderTest } from "./storage-under-test.js";
import { type DrivenStore, driveStore, newEvent } from "./store-driver.js";

const STORES = 4;
/** Calls at the same time, per store. */
const LANES = 6;
const CALLS = Number(process.env["STORM_CALLS"] ?? 60);
const WEBHOOKS = 5;
const ACCOUNT = "clinic";
/** So short that events are freed while their neighbours are delivered. */
const RETENTION = { keepMs: 300, events: 40 };

const DAY_MS = 86_400_000;

/** The state that all stores share, and chance. */
interface Storm {
  readonly below: (count: number) => number;
  readonly webhookIds: string[];
  readonly eventIds: string[];
  readonly deliveryIds: string[];
  readonly claims: Claim[];
}

type Action = (driven: DrivenStore, storm: Storm) => Promise<unknown>;

const pick = <T>({ below }: Storm, list: readonly T[]): T | undefined => list[below(list.length)];

const append: Action = async ({ append: add }, storm) => {
  const known = storm.below(8) === 0 ? pick(storm, storm.eventIds) : undefined;
  const appended = await add(newEvent(ACCOUNT, known === undefined ? {} : { id: known }));
  if (!("deliveries" in appended)) return;
  for (const { id } of appended.deliveries) storm.deliveryIds.push(id);
  const event = appended.deliveries[0]?.id.split(".")[1];
  if (event) storm.eventIds.push(event);
};

const claim: Action = async ({ claim: take }, storm) => {
  const leaseMs = storm.below(4) === 0 ? 1 : 60_000;
  storm.claims.push(...(await take({ leaseMs, most: 1 + storm.below(10) })));
};

const outcomeOf = ({ below }: Storm, { step }: Claim, now: number): Settlement["outcome"] => {
  const kind = below(6);
  if (kind === 0) return { state: "failed", reason: "gone" };
  if (kind === 1) return { state: "withheld", reason: "no_access" };
  if (kind > 3) return { state: "delivered" };
  return { state: "pending", step: step + 1, dueAt: now + below(50), postponed: 0, crashes: 0 };
};

const settle: Action = async ({ store, settle: end }, storm) => {
  const taken = storm.claims.splice(0, 1 + storm.below(5));
  for (const claimed of taken) {
    await end(claimed, outcomeOf(storm, claimed, store.now()));
    // Told twice, as after a lost reply.
    if (storm.below(6) === 0) await end(claimed);
  }
};

const resend: Action = async ({ store }, storm) => {
  const id = pick(storm, storm.deliveryIds);
  if (id) await store.resend({ id, account: ACCOUNT, force: storm.below(2) === 0, now: store.now() });
};

const recover: Action = async ({ store }, storm) => {
  const webhookId = pick(storm, storm.webhookIds);
  const now = store.now();
  if (webhookId === undefined) return;
  const range = { since: now - DAY_MS, dueAt: now, everyMs: 0, limit: 20, now };
  await store.recover({ webhookId, account: ACCOUNT, ...range });
};

const update: Action = async ({ store }, storm) => {
  const id = pick(storm, storm.webhookIds);
  const change = storm.below(2) === 0 ? { status: "DISABLED" as const } : { status: "ENABLED" as const };
  if (id) await store.updateWebhook({ id, account: ACCOUNT, change, enabledLimit: 100, now: store.now() });
};

const replace: Action = async ({ store, register }, storm) => {
  const id = storm.webhookIds.shift();
  if (id) await store.removeWebhook({ id, account: ACCOUNT, now: store.now() });
  storm.webhookIds.push((await register(ACCOUNT)).id);
};

const read: Action = async ({ store }, storm) => {
  const webhookId = pick(storm, storm.webhookIds);
  if (webhookId === undefined) return;
  await Promise.all([
    store.stats(),
    store.deliveryStats(webhookId, store.now()),
    store.listDeliveries({ webhookId, limit: 20 }),
  ]);
};

/** Each as often as it is drawn. */
const ACTIONS: readonly Action[] = [
  ...[append, append, append, append, claim, claim, claim, settle, settle, settle],
  ...[resend, recover, update, replace, read],
];

/** Declares the test on one storage. */
export function describeStoreStorm(start: () => Promise<StorageUnderTest>): void {
  const on = startForTests(start);

  describe("four stores with six calls each at once", () => {
    it.each([1, 2, 3])(
      "hold together (seed %i): nothing rejects, all counts agree, and all ends",
      async (seed) => {
        const address = await on().fresh();
        const clock = manualClock(0, { seed });
        const storm: Storm = {
          below: (count) => Math.floor(clock.random() * count),
          ...{ webhookIds: [], eventIds: [], deliveryIds: [], claims: [] },
        };
        const stores = Array.from({ length: STORES }, () => {
          const storage = on().open(address);
          onTestFinished(() => storage.close());
          return driveStore(storage, { retention: RETENTION, perEndpoint: 5 });
        });
        const inspector = on().inspect(address);
        onTestFinished(inspector.close);
        for (let webhook = 0; webhook < WEBHOOKS; webhook++) {
          storm.webhookIds.push((await (stores[0] as DrivenStore).register(ACCOUNT)).id);
        }
        const lane = async (driven: DrivenStore): Promise<void> => {
          for (let call = 0; call < CALLS; call++) await (pick(storm, ACTIONS) as Action)(driven, storm);
        };
        await Promise.all(stores.flatMap((driven) => Array.from({ length: LANES }, () => lane(driven))));
        expect(await inspector.findFaults()).toEqual([]);
        const warnings = stores.flatMap(({ log }) => log).filter(({ level }) => level !== "debug");
        expect(warnings).toEqual([]);

        const [first] = stores as [DrivenStore];
        for (const claimed of storm.claims) await first.settle(claimed);
        await first.drain();
        expect(await inspector.findFaults()).toEqual([]);
        for (const id of storm.webhookIds)
          await first.store.removeWebhook({ id, account: ACCOUNT, now: first.store.now() });
        for (let left = 100; left > 0 && (await first.store.stats()).events > 0; left--) {
          await first.claim();
          await sleep(50);
        }
        expect(await first.store.stats()).toMatchObject({ webhooks: 0, events: 0, pending: 0, leased: 0 });
        expect(await inspector.findFaults()).toEqual([]);
      },
    );
  });
}
