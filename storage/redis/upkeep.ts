/**
 * The upkeep of partitions: recovers expired leases, frees old events, fails deliveries that cannot
 * be read, and notices that Redis was emptied. Claims find the work for it.
 */

import type { EventCache } from "./event-codec.js";
import type { Leased } from "./lease-codec.js";
import type { Partition } from "./partition.js";
import { SCRIPTS } from "./scripts.js";
import type { CommonPath } from "./settle-and-claim.js";
import type { RedisStoreContext } from "./store-context.js";

/** Each call frees at most a hundred events of an account. */
const MOST_TIDY_CALLS = 10;

export interface Upkeep {
  /** Logs records that cannot be read, and a data set that was emptied or replaced. */
  raiseAlarms(partition: Partition, found: Pick<Leased, "parked" | "mark">): void;
  /**
   * Runs `tidy`, for accounts that have too many completed events, and for `!reference`s whose
   * events cannot be read. Resolves with the accounts that still have too many.
   */
  tidy(partition: Partition, now: number, names: readonly string[]): Promise<readonly string[]>;
  /**
   * Frees events until no account has too many. Claims wait for it, so that events are not
   * completed faster than they are freed.
   */
  freeCrowded(partition: Partition, now: number): Promise<void>;
  /**
   * Starts to free expired data while claims go on, with one call at a time, and events of accounts
   * that have too many.
   */
  startTidying(partition: Partition, now: number, crowded: readonly string[]): void;
}

export function createUpkeep(
  context: RedisStoreContext,
  getCommonPath: (partition: Partition) => CommonPath,
  cache: EventCache,
): Upkeep {
  const { logger } = context;
  /** The last known mark of each partition: another mark means another data set. */
  const marks = new Map<number, string>();
  const tidying = new Set<Partition>();

  const raiseAlarms: Upkeep["raiseAlarms"] = ({ number }, { parked, mark }) => {
    if (parked.length > 0)
      logger.error(
        { partition: number, deliveries: parked },
        "stored records cannot be read; their deliveries ended as failed",
      );
    const known = marks.get(number);
    if (known !== undefined && known !== mark) {
      logger.error(
        { partition: number, code: "store_reset" },
        "Redis was emptied or replaced: its earlier data is gone",
      );
      cache.clear();
      context.onReset();
    }
    marks.set(number, mark);
  };

  const tidy: Upkeep["tidy"] = async (partition, now, names) => {
    const reply = (await context.run(SCRIPTS.tidy, partition, names, { now })) as [
      string[],
      string,
      string[],
    ];
    const [parked, mark, crowded] = reply;
    raiseAlarms(partition, { parked, mark });
    return crowded;
  };

  return {
    raiseAlarms,
    tidy,
    async freeCrowded(partition, now) {
      const { crowded } = getCommonPath(partition);
      for (let call = 0; call < MOST_TIDY_CALLS && crowded.size > 0; call++) {
        const names = [...crowded];
        const left = new Set(await tidy(partition, now, names));
        for (const name of names) if (!left.has(name)) crowded.delete(name);
      }
    },
    startTidying(partition, now, crowded) {
      if (tidying.has(partition)) return;
      tidying.add(partition);
      tidy(partition, now, crowded)
        .catch((error: unknown) => logger.warn({ error }, "expired data of a partition could not be freed"))
        .finally(() => tidying.delete(partition));
    },
  };
}
