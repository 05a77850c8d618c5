/** Compares what was promised, what the endpoints got, and what the storage holds. */

import { onTestFinished } from "vitest";
import { silentLogger } from "../../../src/core/logger.js";
import { type Clock, systemClock } from "../../../src/index.js";
import type { DeliveryRecord, StoreStats, WebhookStore } from "../../../src/ports.js";
import { type ManualClock, manualClock } from "../../../src/testing/manual-clock.js";
import { KEY, type Ledger } from "./ledger.js";
import type { Subscriber } from "./ledger-subscriber.js";
import type { StorageAddress, StorageInspector, StorageUnderTest } from "./storage-under-test.js";
import { eventually } from "./worker-host.js";

const AFTER_RETENTION_MS = 5 * 24 * 3_600_000;

const context = (clock: Clock = systemClock) => ({
  clock,
  logger: silentLogger,
  perEndpoint: 5,
  retention: { keepMs: 72 * 3_600_000, events: 10_000 },
});

export interface Books {
  readonly deliveries: number;
  /** Promised, and never answered with a 2xx. */
  readonly lost: number;
  /** 2xx beyond the first of each delivery. */
  readonly duplicates: number;
  readonly unsigned: number;
  readonly pending: number;
  readonly leased: number;
  /** Counters and places that were wrong. */
  readonly faults: readonly string[];
}

export interface Checker {
  readonly inspector: StorageInspector;
  readonly store: WebhookStore;
  readonly delivery: (id: string) => Promise<DeliveryRecord>;
  /** Resolves once nothing is pending; the server may be unavailable meanwhile. */
  readonly drained: (withinMs?: number) => Promise<void>;
  readonly books: (ledger: Pick<Ledger, "promised">, subscriber: Subscriber) => Promise<Books>;
  /** Removes all webhooks, lets the retention pass, and lists what is still stored. */
  readonly leftovers: (ledger: Ledger) => Promise<readonly string[]>;
}

export const balanced: Pick<Books, "lost" | "unsigned" | "pending" | "leased" | "faults"> = {
  lost: 0,
  unsigned: 0,
  pending: 0,
  leased: 0,
  faults: [],
};

/** So many claims in a row that free nothing say that there is nothing to free. */
const IDLE_CLAIMS = 5;
/** A storage may look for what is over once a second only. */
const BETWEEN_CLAIMS_MS = 2_000;

/** Claims, which frees a part of what is over, until nothing is left or no claim frees anything. */
async function tidy(store: WebhookStore, clock: ManualClock, inspector: StorageInspector): Promise<void> {
  let before = "";
  for (let idle = 0; idle < IDLE_CLAIMS; ) {
    await clock.advance(BETWEEN_CLAIMS_MS);
    const now = store.now();
    await store.claim({ now, token: "tidy", leaseUntil: now, room: { fast: 0, slow: 0 } });
    const left = await inspector.findLeftovers();
    if (left.length === 0) return;
    const { events, ended, bytes } = await store.stats();
    const after = JSON.stringify([left, events, ended, bytes]);
    idle = after === before ? idle + 1 : 0;
    before = after;
  }
}

/** Closes with the test that opened it. */
export function openChecker(on: StorageUnderTest, address: StorageAddress): Checker {
  const storage = on.open(address);
  const inspector = on.inspect(address);
  onTestFinished(async () => {
    await inspector.close();
    await storage.close();
  });
  const store = storage.webhooks(context());
  return {
    inspector,
    store,
    async delivery(id) {
      const found = await store.getDelivery(id);
      if (!found) throw new Error(`There is no delivery ${id}.`);
      return found;
    },
    async drained(withinMs) {
      let left: StoreStats | undefined;
      const isDrained = async (): Promise<boolean> => {
        left = await store.stats().catch(() => undefined);
        return left?.pending === 0;
      };
      await eventually(isDrained, "all deliveries have ended", withinMs).catch((error: unknown) => {
        throw new Error(`${String(error)}: ${JSON.stringify(left)}`);
      });
    },
    async books({ promised }, { received }) {
      const successes = new Map<string, number>();
      for (const { id, status } of received) {
        if (status === 204) successes.set(id, (successes.get(id) ?? 0) + 1);
      }
      const { pending, leased } = await store.stats();
      return {
        deliveries: promised.size,
        lost: [...promised].filter((id) => !successes.has(id)).length,
        duplicates: [...successes.values()].reduce((sum, count) => sum + count - 1, 0),
        unsigned: received.filter(({ isSigned }) => !isSigned).length,
        pending,
        leased,
        faults: await inspector.findFaults(),
      };
    },
    async leftovers({ webhooks: { registrations } }) {
      const { items: webhooks } = await registrations.list({ account: KEY.account, limit: 100 });
      for (const { id } of webhooks) await registrations.remove(id);
      const clock = manualClock(Date.now() + AFTER_RETENTION_MS);
      // The same records, at a time that this process decides.
      const later = on.open(address, { time: "clock" });
      const tidied = later.webhooks(context(clock));
      await tidy(tidied, clock, inspector);
      // The retention of what was pending begins when the storage removes it.
      await clock.advance(AFTER_RETENTION_MS);
      await tidy(tidied, clock, inspector);
      await later.close();
      return inspector.findLeftovers();
    },
  };
}
