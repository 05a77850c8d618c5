/**
 * Claims from one partition: leases due deliveries with `exchange`, and reads their webhooks and
 * events.
 */

import type { Claim, ClaimRequest, Lane, WebhookStore } from "../../src/webhooks/store.js";
import { createClaimReader } from "./claim-reader.js";
import type { EventCache } from "./event-cache.js";
import type { ClaimExchange } from "./exchange.js";
import type { FirstLeases } from "./first-leases.js";
import { encodeLease, type Leased, type LeasedRows, toLeasedRows } from "./lease-codec.js";
import type { Partition } from "./partition.js";
import type { Settlements } from "./settlements.js";
import type { RedisStoreContext } from "./store-context.js";
import type { Upkeep } from "./upkeep.js";

/** When to claim again from a partition that failed, while the others work. */
export const UNREACHED_MS = 500;
/** How long the deliveries of a webhook wait if its secret cannot be unsealed. */
const UNUSABLE_MS = 60_000;

export const EMPTY_ROOM = { fast: 0, slow: 0 } as const;

export type ClaimResult = Awaited<ReturnType<WebhookStore["claim"]>>;

export interface PartitionClaims {
  /** Claims, after the upkeep that the partition needs. */
  readonly claim: (partition: Partition, request: ClaimRequest) => Promise<ClaimResult>;
  /** Leases once, without upkeep. */
  readonly lease: (partition: Partition, request: ClaimRequest) => Promise<ClaimResult>;
  /**
   * Makes claims of rows that a script leased under `token`. Releases the rows that cannot be used.
   */
  readonly toClaims: (
    partition: Partition,
    leased: Leased,
    token: string,
    now: number,
  ) => Promise<ClaimResult>;
  /**
   * Releases the deliveries that a request leased and whose reply was lost. Errors are ignored,
   * because the leases then expire.
   */
  readonly release: (partition: Partition, request: ClaimRequest) => Promise<void>;
}

export interface PartitionClaimsOptions {
  readonly context: RedisStoreContext;
  readonly getExchange: (partition: Partition) => ClaimExchange;
  readonly settlements: Settlements;
  readonly firstLeases: FirstLeases;
  readonly cache: EventCache;
  readonly upkeep: Upkeep;
}

/** The room of a request that its claims have left. */
export const getRoomLeft = (room: ClaimRequest["room"], claims: readonly Claim[]): Record<Lane, number> => {
  const left = { ...room };
  for (const { lane } of claims) left[lane] -= 1;
  return { fast: Math.max(0, left.fast), slow: Math.max(0, left.slow) };
};

export function createPartitionClaims({
  context,
  getExchange,
  settlements,
  firstLeases,
  cache,
  upkeep,
}: PartitionClaimsOptions): PartitionClaims {
  const { partitions, logger } = context;
  const readers = partitions.all.map((partition) =>
    createClaimReader(context, partition, firstLeases, cache),
  );

  const readClaims = async (
    partition: Partition,
    leased: LeasedRows,
    now: number,
  ): Promise<readonly Claim[]> => {
    const reader = readers[partition.number];
    if (reader === undefined || leased.rows.length === 0) return [];
    try {
      const { claims, unusable, unreadable } = await reader.read(leased, now);
      settlements.releaseRows(unusable, leased, now, now + UNUSABLE_MS);
      const names = unreadable.map(({ ref }) => `!${ref}`);
      // If this fails, the leases expire.
      if (names.length > 0) await upkeep.tidy(partition, now, names).catch(() => {});
      return claims;
    } catch (error) {
      settlements.releaseRows(leased.rows, leased, now);
      throw error;
    }
  };

  const toClaims: PartitionClaims["toClaims"] = async (partition, leased, token, now) => {
    upkeep.raiseAlarms(partition, leased);
    const claims = await readClaims(partition, toLeasedRows(leased, token), now);
    return { claims, nextAt: leased.nextAt === "" ? null : Number(leased.nextAt) };
  };

  const releaseLeased = (leased: Leased, { token, now }: ClaimRequest): void => {
    const rows = toLeasedRows(leased, token);
    settlements.releaseRows(rows.rows, rows, now);
  };

  const leaseOnce = async (
    partition: Partition,
    request: ClaimRequest,
  ): Promise<{ readonly leased: Leased; readonly result: ClaimResult }> => {
    const { now, token } = request;
    const onLate = (late: Leased): void => releaseLeased(late, request);
    const leased = await getExchange(partition).claim({ now, args: encodeLease(request), onLate });
    return { leased, result: await toClaims(partition, leased, token, now) };
  };

  const claim: PartitionClaims["claim"] = async (partition, request) => {
    const { now } = request;
    const { leased, result } = await leaseOnce(partition, request);
    const { claims } = result;
    if (leased.isOverdue) upkeep.startTidying(partition, now);
    try {
      await upkeep.freeCrowded(partition, now);
      if (!leased.hasExpired) return result;
      await upkeep.tidy(partition, now, []);
      const room = getRoomLeft(request.room, claims);
      // With the same token the script would return what it leased before.
      const more = await leaseOnce(partition, { ...request, token: `${request.token}.more`, room });
      return { ...more.result, claims: [...claims, ...more.result.claims] };
    } catch (error) {
      if (claims.length === 0) throw error;
      logger.error({ error }, "expired leases of a partition could not be recovered");
      return { claims, nextAt: now + UNREACHED_MS };
    }
  };

  return {
    claim,
    lease: async (partition, request) => (await leaseOnce(partition, request)).result,
    toClaims,
    async release(partition, request) {
      const release = (leased: Leased): void => releaseLeased(leased, request);
      // The same request again returns what it leased before. Without room it leases nothing else.
      const args = encodeLease({ ...request, room: EMPTY_ROOM });
      await getExchange(partition)
        .claim({ now: request.now, args, onLate: release })
        .then(release, () => {});
    },
  };
}
