/**
 * The upkeep of partitions: recovers expired leases, frees old events, fails deliveries that cannot
 * be read, and notices that Redis was emptied. Claims and settlements find the work for it.
 */

import type { EventCache, Leased } from "./claim-reader.js";
import type { Partition } from "./partition.js";
import type { RedisStoreContext } from "./session.js";

/** Each call frees at most a hundred events of an account. */
const MAX_TIDY_CALLS = 10;

/** Accounts that have too many completed events, and references whose events cannot be read. */
interface TidyWork {
  accounts?: string[];
  unreadable?: string[];
}

export class Upkeep {
  readonly #context: RedisStoreContext;
  readonly #cache: EventCache;
  /** The last known data set of each partition. */
  readonly #dataSets = new Map<number, string>();
  readonly #tidying = new Set<Partition>();

  constructor(context: RedisStoreContext, cache: EventCache) {
    this.#context = context;
    this.#cache = cache;
  }

  /** Logs records that cannot be read, and a data set that was emptied or replaced. */
  raiseAlarms({ number }: Partition, { unreadable, dataSet }: Pick<Leased, "unreadable" | "dataSet">): void {
    const { logger, onReset } = this.#context;
    if (unreadable.length > 0)
      logger.error(
        { partition: number, deliveries: unreadable },
        "stored records cannot be read; their deliveries are not attempted",
      );
    const before = this.#dataSets.get(number);
    if (before !== undefined && before !== "" && before !== dataSet) {
      logger.error(
        { partition: number, code: "store_reset" },
        "Redis was emptied or replaced: its earlier data is gone",
      );
      this.#cache.clear();
      onReset();
    }
    this.#dataSets.set(number, dataSet);
  }

  /** Runs `tidy` once. Resolves with the accounts that still have too many events. */
  async tidy(partition: Partition, now: number, work: TidyWork = {}): Promise<string[]> {
    const reply = await this.#context.run("tidy", partition, { now, options: work });
    const [unreadable, dataSet, excess] = reply as [string[], string, string[]];
    this.raiseAlarms(partition, { unreadable, dataSet });
    return excess;
  }

  /**
   * Frees events until no account has too many. Settlements wait for it, so that events are not
   * completed faster than they are freed. Never rejects.
   */
  async freeExcess(partition: Partition, now: number, accounts: string[]): Promise<void> {
    try {
      let left = accounts;
      for (let call = 0; call < MAX_TIDY_CALLS && left.length > 0; call++)
        left = await this.tidy(partition, now, { accounts: left });
    } catch (error) {
      this.#context.logger.warn({ error }, "completed events of a partition could not be freed");
    }
  }

  /** Starts to free expired data while claims go on, with one call at a time. */
  start(partition: Partition, now: number, accounts: string[] = []): void {
    if (this.#tidying.has(partition)) return;
    this.#tidying.add(partition);
    this.tidy(partition, now, { accounts })
      .catch((error: unknown) =>
        this.#context.logger.warn({ error }, "expired data of a partition could not be freed"),
      )
      .finally(() => this.#tidying.delete(partition));
  }
}
