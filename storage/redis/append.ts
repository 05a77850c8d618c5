/** Stores events on Redis, many in one call of append.lua, which may also claim. */

import { withTimeout } from "../../src/core/clock.js";
import { isPostbellError } from "../../src/core/errors.js";
import { formatDeliveryId } from "../../src/webhooks/store/records.js";
import type {
  AppendedEvent,
  AppendRequest,
  AppendResponse,
  AppendResult,
  EventRecord,
  WebhookStore,
} from "../../src/webhooks/store.js";
import { createBatcher } from "../batcher.js";
import { copyEvent } from "../queue/append.js";
import { encodeStoredText } from "../stored-text.js";
import { CLAIM_WITHIN_MS } from "./claim-rotation.js";
import type { RedisArgument } from "./clients.js";
import { type EventCache, encodeLabel, type Origin } from "./event-codec.js";
import { decodeLeaseReply, encodeLease, type LeaseReply, NO_LEASE, toLeasedRows } from "./lease-codec.js";
import type { Partition } from "./partition.js";
import type { ClaimResult, PartitionClaims } from "./partition-claims.js";
import { partitionFull, resultUnknown } from "./redis-errors.js";
import { SCRIPTS } from "./scripts.js";
import type { Settlements } from "./settlements.js";
import type { RedisStoreContext } from "./store-context.js";
import { decodeUuid, encodeText, encodeUuid } from "./text-codec.js";
import type { Upkeep } from "./upkeep.js";

/** The most events in a script: more would hold Redis up for more than a few milliseconds. */
const APPENDED_PER_CALL = 32;
const APPENDED_BYTES_PER_CALL = 1_048_576;
/** The most calls in flight. Meanwhile the next call gathers events, so batches grow under load. */
const CONCURRENT_CALLS = 2;

/** Consecutive events of one request that go to Redis in one call. */
interface Part {
  readonly items: readonly AppendItem[];
  readonly now: number;
  readonly claim: AppendRequest["claim"];
  /** When the storage was called, by the monotonic clock. */
  readonly calledAt: number;
}

type ClaimingPart = Part & { readonly claim: NonNullable<Part["claim"]> };

const isClaiming = (part: Part): part is ClaimingPart => part.claim !== undefined;

export function createAppend({
  context,
  claims,
  settlements,
  upkeep,
  cache,
  nonce,
}: {
  readonly context: RedisStoreContext;
  readonly claims: PartitionClaims;
  readonly settlements: Settlements;
  readonly upkeep: Upkeep;
  readonly cache: EventCache;
  readonly nonce: () => string;
}): WebhookStore["append"] {
  const { partitions, limits, isReplicated, clock, logger, connectionId, runDurably, notifyWorkers } =
    context;
  const bounds = [limits.pending, limits.pendingPerAccount];

  const batchers = partitions.all.map((partition) =>
    createBatcher<Part, AppendResponse>({
      run: (parts) => appendParts(partition, parts),
      most: APPENDED_PER_CALL,
      concurrency: CONCURRENT_CALLS,
      getCount: ({ items }) => items.length,
      getBytes: ({ items }) => items.reduce((sum, { event }) => sum + event.payload.length, 0),
      mostBytes: APPENDED_BYTES_PER_CALL,
    }),
  );

  const append = async (request: AppendRequest): Promise<AppendResponse> => {
    const [first, ...rest] = splitRequest(request);
    if (first === undefined) return { results: [] };
    const { results, claimed } = await send(first);
    const all = [...results];
    try {
      for (const part of rest) {
        if (!isStored(all.at(-1))) break;
        all.push(...(await send(part)).results);
      }
    } catch (error) {
      // The parts before it are stored.
      if (!isPostbellError(error)) throw error;
      all.push({ result: "refused", error });
    }
    return { results: all, ...(claimed && { claimed }) };
  };

  /** Each part has events of one partition, and fits in a call. The first one carries the claim. */
  const splitRequest = ({ events, rememberMs, now, webhookId, claim }: AppendRequest): readonly Part[] => {
    const calledAt = clock.monotonic();
    const parts: (Part & { readonly items: AppendItem[] })[] = [];
    let bytes = 0;
    let last: Partition | undefined;
    for (const event of events) {
      const partition = partitions.ofAccount(event.account);
      const items = parts.at(-1)?.items;
      bytes += event.payload.length;
      const isFull = items?.length === APPENDED_PER_CALL || bytes > APPENDED_BYTES_PER_CALL;
      const follows = items !== undefined && partition === last && !isFull;
      const item: AppendItem = {
        event: copyEvent(event),
        short: encodeUuid(event.id),
        rememberMs,
        nonce: nonce(),
        webhookId,
        follows,
      };
      if (follows) {
        items.push(item);
        continue;
      }
      bytes = event.payload.length;
      last = partition;
      parts.push({ items: [item], now, calledAt, claim: parts.length === 0 ? claim : undefined });
    }
    return parts;
  };

  const send = (part: Part): Promise<AppendResponse> => {
    const [first] = part.items;
    const batcher = first && batchers[partitions.ofAccount(first.event.account).number];
    if (batcher === undefined) throw new RangeError("every account has a partition");
    return batcher.add(part);
  };

  const appendParts = async (
    partition: Partition,
    parts: readonly Part[],
  ): Promise<readonly AppendResponse[]> => {
    const now = await context.connect(Math.max(...parts.map((part) => part.now)));
    // One claim is enough for all. A replicated call waits for a replica, and its leases would too.
    const claimer = isReplicated ? undefined : parts.find(isClaiming);
    const items = parts.flatMap((part) => part.items);
    const first = claimer?.items[0];
    const claimerPlace = first === undefined ? 0 : items.indexOf(first) + 1;
    const args = [...(claimer ? encodeLease(claimer.claim) : NO_LEASE), ...bounds, nonce(), claimerPlace];
    for (const item of items) args.push(...encodeEvent(item, now));
    const onLate = (late: unknown): void => releaseLate(late as LeaseReply, claimer, now);
    const before = connectionId();
    const { reply, confirmed } = await runDurably(SCRIPTS.append, partition, args, { now, onLate });
    const leased = decodeLeaseReply(reply as LeaseReply);
    const { mark, crowded } = leased;
    // A caller that claims learns from `nextAt` when something is due.
    if (claimer === undefined) notifyWorkers(leased.notifyAt);
    // Expired leases are only recovered by a claim of a worker.
    if (leased.hasExpired) notifyWorkers(String(now));
    if (crowded.length > 0) upkeep.startTidying(partition, now, crowded);
    const origin = { mark, connection: before === connectionId() ? before : Number.NaN };
    const results = decodeResults(items, (reply as LeaseReply)[0].split("\n"), { now, origin, confirmed });
    // Also without a claimer, because the reply shows if Redis was emptied.
    const claiming = claims.toClaims(partition, leased, claimer?.claim.token ?? "", now);
    const claimed = await claimInTime(claiming, claimer?.calledAt ?? clock.monotonic(), now);
    let end = 0;
    return parts.map((part) => {
      end += part.items.length;
      const own = results.slice(end - part.items.length, end).filter((result) => result !== undefined);
      return { results: own, ...(part === claimer && isStored(own[0]) && { claimed }) };
    });
  };

  /** Decodes the line of each event, and caches what was stored. `undefined` for one not tried. */
  const decodeResults = (
    items: readonly AppendItem[],
    lines: readonly string[],
    { now, origin, confirmed }: { now: number; origin: Origin; confirmed: boolean | undefined },
  ): (AppendResult | undefined)[] => {
    const decodeDeliveries = createDeliveryDecoder();
    return items.map((item, place) => {
      const [result, order = "", shorts = "", webhooks] = (lines[place] ?? "skipped").split(" ");
      if (result === "skipped") return undefined;
      if (result === "full") return { result: "refused", error: partitionFull(order, limits) };
      if (result === "conflict") return { result };
      if (order !== "-" && shorts !== "" && item.webhookId === undefined)
        cacheEvent(item, order, shorts, { now, origin });
      const deliveries = decodeDeliveries(item.event.id, shorts);
      const stored = {
        deliveries,
        webhooks: Number(webhooks),
        ...(confirmed !== undefined && { confirmed }),
      };
      return { result: result === "stored" ? "stored" : "duplicate", ...stored };
    });
  };

  /** Caches an event for the claims to come. `shorts`: the encoded ids of its webhooks. */
  const cacheEvent = (
    { event, short, rememberMs }: AppendItem,
    order: string,
    shorts: string,
    { now, origin }: { now: number; origin: Origin },
  ): void => {
    const createdAt = Number.parseInt(order.slice(0, 11), 16);
    // Half the time that the id is remembered for, because the clocks of processes may differ a
    // little.
    const until = now + rememberMs / 2;
    cache.add(short, { event, createdAt, receivers: shorts.split(";").length }, origin, until);
  };

  /** Releases what a call leased after its caller was rejected. */
  const releaseLate = (late: LeaseReply, claimer: ClaimingPart | undefined, now: number): void => {
    if (claimer === undefined) return;
    const leased = toLeasedRows(decodeLeaseReply(late), claimer.claim.token);
    settlements.releaseRows(leased.rows, leased, now);
  };

  /** Resolves with `undefined` if the claims take longer than the caller of `append` waits. */
  const claimInTime = async (
    claiming: Promise<ClaimResult>,
    calledAt: number,
    now: number,
  ): Promise<ClaimResult | undefined> => {
    const createError = (): Error => resultUnknown("no reply in time");
    const leftMs = CLAIM_WITHIN_MS - (clock.monotonic() - calledAt);
    try {
      if (leftMs <= 0) throw createError();
      return await withTimeout(clock, leftMs, claiming, createError);
    } catch (error) {
      // The events are stored. Their deliveries are left to a later claim.
      logger.warn({ error }, "nothing could be claimed with an event");
      notifyWorkers(String(now));
      claiming.then((late) => settlements.release(late.claims, now)).catch(() => {});
      return undefined;
    }
  };

  return append;
}

const isStored = (result: AppendResult | undefined): boolean =>
  result !== undefined && "deliveries" in result;

/** An event that waits to be stored. */
interface AppendItem {
  readonly event: EventRecord;
  /** The encoded id of the event. */
  readonly short: string;
  readonly rememberMs: number;
  readonly nonce: string;
  readonly webhookId: string | undefined;
  /** True if it is stored only if the item before it was. */
  readonly follows: boolean;
}

/** Encodes an event for `append.lua`. */
const encodeEvent = (
  { event, short, rememberMs, nonce, webhookId, follows }: AppendItem,
  now: number,
): readonly RedisArgument[] => [
  encodeText(event.account),
  [
    short,
    encodeText(event.type),
    Math.round(now + rememberMs),
    nonce,
    webhookId === undefined ? "" : encodeUuid(webhookId),
    follows ? "1" : "",
  ].join("\n"),
  `${JSON.stringify(event.digest)}\n${encodeLabel(event)}\n${encodeStoredText(event.payload)}`,
];

/**
 * Returns a decoder for the deliveries of events. The events of one call mostly go to the same
 * webhooks, so it decodes each list of webhook ids once.
 */
function createDeliveryDecoder(): (eventId: string, shorts: string) => AppendedEvent["deliveries"] {
  const known = new Map<string, readonly string[]>();
  return (eventId, shorts) => {
    let webhookIds = known.get(shorts);
    if (webhookIds === undefined) {
      webhookIds = shorts === "" ? [] : shorts.split(";").map(decodeUuid);
      known.set(shorts, webhookIds);
    }
    return webhookIds.map((webhookId) => ({
      id: formatDeliveryId({ webhookId, eventId, serial: 0 }),
      webhookId,
    }));
  };
}
