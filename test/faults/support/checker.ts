/** Compares what was promised, what the endpoints got, and what Redis holds. */

import { Redis } from "ioredis";
import { onTestFinished } from "vitest";
import { silentLogger } from "../../../src/core/logger.js";
import {
  type Clock,
  type DeliveryRecord,
  type StoreStats,
  systemClock,
  type WebhookStore,
} from "../../../src/index.js";
import { redisStorage } from "../../../storage/redis/index.js";
import { manualClock } from "../../../testing/manual-clock.js";
import { KEY, type Ledger } from "./ledger.js";
import type { Subscriber } from "./ledger-subscriber.js";
import { eventually } from "./worker-host.js";

const AFTER_RETENTION_MS = 5 * 24 * 3_600_000;

const context = (clock: Clock = systemClock) => ({
  clock,
  logger: silentLogger,
  perEndpoint: 5,
  retention: { ms: 72 * 3_600_000, events: 10_000 },
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
  readonly repaired: number;
}

export interface Checker {
  /** A connection of the test itself. */
  readonly redis: Redis;
  readonly store: WebhookStore;
  readonly delivery: (id: string) => Promise<DeliveryRecord>;
  /** Resolves once nothing is pending; the server may be away meanwhile. */
  readonly drained: (withinMs?: number) => Promise<void>;
  readonly books: (ledger: Ledger, subscriber: Subscriber) => Promise<Books>;
  /** Removes all webhooks, lets the retention pass, and gives the keys that are still there. */
  readonly leftovers: (ledger: Ledger) => Promise<readonly string[]>;
}

/** All that stays of a storage that holds nothing. */
export const emptyStorage = (prefix: string): readonly string[] => [
  `{${prefix}:0}:meta`,
  `{${prefix}}:layout`,
];

export const balanced: Pick<Books, "lost" | "unsigned" | "pending" | "leased" | "repaired"> = {
  lost: 0,
  unsigned: 0,
  pending: 0,
  leased: 0,
  repaired: 0,
};

/** Calls `step`, which frees a part, until `left` gets no smaller. */
async function tidy(step: () => Promise<unknown>, left: () => Promise<number>): Promise<void> {
  for (let before = Number.POSITIVE_INFINITY, now = await left(); now < before; now = await left()) {
    before = now;
    await step();
  }
}

/** Closes with the test that opened it. */
export function openChecker(url: string, prefix: string): Checker {
  const redis = new Redis(url);
  redis.on("error", () => {});
  const storage = redisStorage({ url, prefix });
  onTestFinished(async () => {
    redis.disconnect();
    await storage.close();
  });
  const store = storage.webhooks(context());
  return {
    redis,
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
        repaired: (await storage.check()).repaired,
      };
    },
    async leftovers({ webhooks: { registrations } }) {
      const { webhooks } = await registrations.list({ account: KEY.account, limit: 100 });
      for (const { id } of webhooks) await registrations.remove(id);
      const clock = manualClock(Date.now() + AFTER_RETENTION_MS);
      // The same records, at a time that this process decides.
      const later = redisStorage({ url, prefix, time: "clock" });
      const tidied = later.webhooks(context(clock));
      const now = clock.now();
      await tidy(
        () => tidied.claim({ now, token: "tidy", leaseUntil: now, room: { fast: 0, slow: 0 } }),
        async () => {
          const { events, ended, bytes } = await tidied.stats();
          return events + ended + bytes + (await redis.hlen(`{${prefix}:0}:removals`));
        },
      );
      await later.close();
      return (await redis.keys(`{${prefix}*`)).sort();
    },
  };
}
