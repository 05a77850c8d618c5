/**
 * Claims on Redis: what is due is leased by `exchange`, partition by partition, and handed out with
 * webhooks and events.
 */

import type { Claim, ClaimRequest, Lane, WebhookStore } from "../../src/webhooks/store.js";
import { createClaimReader, type LeasedRows } from "./claim-reader.js";
import { encodeText } from "./codec.js";
import type { EventCache } from "./event-cache.js";
import type { ClaimExchange, Leased } from "./exchange.js";
import type { FirstLeases } from "./first-leases.js";
import type { Partition } from "./partition.js";
import { resultUnknown } from "./redis-errors.js";
import { SCRIPTS } from "./scripts.js";
import type { Settlements } from "./settlements.js";
import type { RedisStoreContext } from "./store-context.js";

/** Most of one lane in a script, so that none holds Redis up for more than a few milliseconds. */
const CLAIMED_PER_CALL = 250;
/** When a partition that failed is asked again, while others work. */
const UNREACHED_MS = 500;
/**
 * How long the deliveries of a webhook wait whose secret cannot be opened, before the next look.
 */
const UNUSABLE_MS = 60_000;
/**
 * Just within the four seconds that the service gives a storage: nobody would take claims that come
 * later.
 */
export const ANSWER_WITHIN_MS = 3_900;
/**
 * Where the partitions took longer than this to answer, the others are asked with the next claim.
 */
const ASK_OTHERS_WITHIN_MS = 1_000;
/** Each frees at most a hundred events of an account. */
const MOST_TIDY_CALLS = 10;

const NO_ROOM = { fast: 0, slow: 0 } as const;

export type ClaimReply = Awaited<ReturnType<WebhookStore["claim"]>>;

export interface Claiming {
  readonly claim: (request: ClaimRequest) => Promise<ClaimReply>;
  /** Leases from one partition, once. */
  readonly lease: (partition: Partition, request: ClaimRequest) => Promise<ClaimReply>;
  /**
   * Releases what a request leased whose answer was lost. Never rejects; where it fails, the leases
   * run out.
   */
  readonly giveBack: (partition: Partition, request: ClaimRequest) => Promise<void>;
  /**
   * Makes claims of what a script leased under a token, raises its alarms, and releases what cannot
   * be used.
   */
  readonly take: (partition: Partition, leased: Leased, token: string, now: number) => Promise<ClaimReply>;
}

/** What a script came upon: records that cannot be read, and the mark of its data set. */
interface Alarms {
  readonly parked: readonly string[];
  readonly mark: string;
}

/** Room in the lanes as the scripts take it, with the token and the end of the lease before it. */
export const leaseArguments = ({
  token,
  leaseUntil,
  room,
}: Pick<ClaimRequest, "token" | "leaseUntil" | "room">) =>
  [
    encodeText(token),
    leaseUntil,
    Math.min(room.fast, CLAIMED_PER_CALL),
    Math.min(room.slow, CLAIMED_PER_CALL),
  ] as const;

const roomLeft = (room: ClaimRequest["room"], claims: readonly Claim[]): Record<Lane, number> => {
  const left = { ...room };
  for (const { lane } of claims) left[lane] -= 1;
  return { fast: Math.max(0, left.fast), slow: Math.max(0, left.slow) };
};

const earliest = (times: readonly (number | null)[]): number | null => {
  const known = times.filter((at): at is number => at !== null);
  return known.length > 0 ? Math.min(...known) : null;
};

export const toRows = ({ rows, webhooks, mark }: Leased, token: string): LeasedRows => ({
  rows,
  webhooks,
  mark,
  token: encodeText(token),
  requestToken: token,
});

export function createClaiming({
  context,
  exchangeOf,
  settlements,
  firstLeases,
  cache,
}: {
  readonly context: RedisStoreContext;
  readonly exchangeOf: (partition: Partition) => ClaimExchange;
  readonly settlements: Settlements;
  readonly firstLeases: FirstLeases;
  readonly cache: EventCache;
}): Claiming {
  const { partitions, logger, clock } = context;
  const readers = partitions.all.map((partition) =>
    createClaimReader(context, partition, firstLeases, cache),
  );
  const marks = new Map<number, string>();

  const raiseAlarms = ({ number }: Partition, { parked, mark }: Alarms): void => {
    if (parked.length > 0)
      logger.error(
        { partition: number, deliveries: parked },
        "stored records cannot be read; their deliveries ended as failed",
      );
    const known = marks.get(number);
    if (known !== undefined && known !== mark) {
      logger.error(
        { partition: number, code: "store_reset" },
        "Redis was emptied or replaced: what it held is gone",
      );
      cache.clear();
      context.onReset();
    }
    marks.set(number, mark);
  };

  /**
   * Runs `tidy`, with accounts that keep too many events, or `!reference`s whose events cannot be
   * read. Resolves with the accounts that still do.
   */
  const tidy = async (
    partition: Partition,
    now: number,
    names: readonly string[],
  ): Promise<readonly string[]> => {
    const reply = (await context.run(SCRIPTS.tidy, partition, names, { now })) as [
      string[],
      string,
      string[],
    ];
    const [parked, mark, crowded] = reply;
    raiseAlarms(partition, { parked, mark });
    return crowded;
  };

  /**
   * Frees events until no account keeps too many. Claims wait for it, so that events end no faster
   * than they are freed.
   */
  const freeCrowded = async (partition: Partition, now: number): Promise<void> => {
    const { crowded } = exchangeOf(partition);
    for (let call = 0; call < MOST_TIDY_CALLS && crowded.size > 0; call++) {
      const names = [...crowded];
      const left = new Set(await tidy(partition, now, names));
      for (const name of names) if (!left.has(name)) crowded.delete(name);
    }
  };

  const tidying = new Set<Partition>();
  /** Frees what was kept long enough, beside the claims; one call at a time. */
  const startTidying = (partition: Partition, now: number): void => {
    if (tidying.has(partition)) return;
    tidying.add(partition);
    tidy(partition, now, [])
      .catch((error: unknown) => logger.warn({ error }, "a partition could not be tidied up"))
      .finally(() => tidying.delete(partition));
  };

  const toClaims = async (
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
      // Where it fails, the leases run out.
      if (names.length > 0) await tidy(partition, now, names).catch(() => {});
      return claims;
    } catch (error) {
      settlements.releaseRows(leased.rows, leased, now);
      throw error;
    }
  };

  const take: Claiming["take"] = async (partition, leased, token, now) => {
    raiseAlarms(partition, leased);
    const claims = await toClaims(partition, toRows(leased, token), now);
    return { claims, nextAt: leased.nextAt === "" ? null : Number(leased.nextAt) };
  };

  const giveBack: Claiming["giveBack"] = async (partition, { now, token, leaseUntil }) => {
    const release = (given: Leased): void => {
      const leased = toRows(given, token);
      settlements.releaseRows(leased.rows, leased, now);
    };
    // Made again, the request is given what it leased before, and without room nothing else.
    const args = leaseArguments({ token, leaseUntil, room: NO_ROOM });
    await exchangeOf(partition)
      .claim({ now, args, onLate: release })
      .then(release, () => {});
  };

  const exchange = async (
    partition: Partition,
    request: ClaimRequest,
  ): Promise<{ readonly leased: Leased; readonly reply: ClaimReply }> => {
    const { now, token } = request;
    const onLate = (late: Leased): void => {
      const leased = toRows(late, token);
      settlements.releaseRows(leased.rows, leased, now);
    };
    const leased = await exchangeOf(partition).claim({ now, args: leaseArguments(request), onLate });
    return { leased, reply: await take(partition, leased, token, now) };
  };

  const claimFrom = async (partition: Partition, request: ClaimRequest): Promise<ClaimReply> => {
    const { now } = request;
    const { leased, reply } = await exchange(partition, request);
    const { claims } = reply;
    if (leased.isOverdue) startTidying(partition, now);
    try {
      await freeCrowded(partition, now);
      if (!leased.hasExpired) return reply;
      await tidy(partition, now, []);
      const room = roomLeft(request.room, claims);
      // Under another token, as the same request would be given what it leased before.
      const more = await exchange(partition, { ...request, token: `${request.token}.more`, room });
      return { ...more.reply, claims: [...claims, ...more.reply.claims] };
    } catch (error) {
      if (claims.length === 0) throw error;
      logger.error({ error }, "a partition could not be tidied up");
      return { claims, nextAt: now + UNREACHED_MS };
    }
  };

  /** The partition that is asked first next time: each has its turn. */
  let first = 0;

  /**
   * Asks all partitions what is due, at once, the first in turn with the whole room; then the
   * others for what is left of it, one after another.
   */
  const claimFromAll = async (request: ClaimRequest, began: number): Promise<ClaimReply> => {
    const inTurn = [...partitions.all.slice(first), ...partitions.all.slice(0, first)];
    first = (first + 1) % inTurn.length;
    const errors: unknown[] = [];
    /**
     * A partition that cannot be reached must not cost the others what they leased. It is asked
     * again soon.
     */
    const ask = (partition: Partition, room: ClaimRequest["room"]): Promise<ClaimReply> =>
      claimFrom(partition, { ...request, room }).catch((error: unknown) => {
        errors.push(error);
        return { claims: [], nextAt: request.now + UNREACHED_MS };
      });
    const replies = await Promise.all(
      inTurn.map((partition, place) => ask(partition, place === 0 ? request.room : NO_ROOM)),
    );
    if (errors.length === inTurn.length) throw errors[0];
    const isLate = clock.monotonic() - began > ASK_OTHERS_WITHIN_MS;
    const claims = [...(replies[0]?.claims ?? [])];
    for (const [place, partition] of inTurn.entries()) {
      const { nextAt } = replies[place] ?? { nextAt: null };
      const room = roomLeft(request.room, claims);
      const isDue = nextAt !== null && nextAt <= request.now;
      if (place === 0 || isLate || !isDue || room.fast + room.slow === 0) continue;
      const reply = await ask(partition, room);
      replies[place] = reply;
      claims.push(...reply.claims);
    }
    for (const error of errors) logger.error({ error }, "a partition could not be asked for due deliveries");
    return { claims, nextAt: earliest(replies.map(({ nextAt }) => nextAt)) };
  };

  return {
    take,
    giveBack,
    lease: async (partition, request) => (await exchange(partition, request)).reply,
    async claim(request) {
      const began = clock.monotonic();
      const now = await context.at(request.now);
      // The times of the request were worked out before the storage's time was known.
      if (now !== request.now) return { claims: [], nextAt: now + 1 };
      const reply = await claimFromAll(request, began);
      if (reply.claims.length === 0 || clock.monotonic() - began < ANSWER_WITHIN_MS) return reply;
      settlements.release(reply.claims, now);
      throw resultUnknown("no reply in time");
    },
  };
}
