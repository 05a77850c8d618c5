/**
 * Stores events on Redis, many in one call: with the short script append.lua if all are common,
 * else with append-general.lua, which handles every case.
 */

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
import { copyEvent } from "../event-copy.js";
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

/** An empty reply says that an event is not common, so that nothing was stored. */
const wasDone = (reply: unknown): boolean => (reply as unknown[]).length > 0;

export function createAppend({
  context,
  claims,
  settlements,
  cache,
  nonce,
}: {
  readonly context: RedisStoreContext;
  readonly claims: PartitionClaims;
  readonly settlements: Settlements;
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
    const isTest = parts.some(({ items }) => items[0]?.webhookId !== undefined);
    const common = isTest ? undefined : await appendCommon(partition, parts, claimer, now);
    if (common !== undefined) return common;
    return appendGeneral(partition, parts, claimer, now).catch((error: unknown) => {
      if (claimer) void claims.release(partition, { ...claimer.claim, now });
      throw error;
    });
  };

  /** Resolves with `undefined` if nothing was stored, because an event is not common. */
  const appendCommon = async (
    partition: Partition,
    parts: readonly Part[],
    claimer: ClaimingPart | undefined,
    now: number,
  ): Promise<readonly AppendResponse[] | undefined> => {
    const args = [...(claimer ? encodeLease(claimer.claim) : NO_LEASE), ...bounds, nonce()];
    for (const { items } of parts) for (const item of items) encodeCommonEvent(item, now, args);
    const onLate = (late: unknown): void => releaseLate(late, partition, claimer, now);
    const before = connectionId();
    const { reply, confirmed } = await runDurably(SCRIPTS.append, partition, args, { now, onLate, wasDone });
    if (!wasDone(reply)) return undefined;
    const leased = decodeLeaseReply(reply as LeaseReply);
    // A caller that claims learns from `nextAt` when something is due.
    if (claimer === undefined) notifyWorkers(leased.notifyAt);
    // Expired leases are only recovered by a claim of a worker.
    if (leased.hasExpired) notifyWorkers(String(now));
    const origin = { mark: leased.mark, connection: before === connectionId() ? before : Number.NaN };
    const lines = (reply as LeaseReply)[0].split("\n");
    const decodeDeliveries = createDeliveryDecoder();
    let place = 0;
    const results = parts.map(({ items }) =>
      items.map((item): AppendResult => {
        const { shorts, webhooks } = cacheEvent(item, lines[place++] ?? "", origin, now);
        const deliveries = decodeDeliveries(item.event.id, shorts);
        return { result: "stored", deliveries, webhooks, ...(confirmed !== undefined && { confirmed }) };
      }),
    );
    // Also without a claimer, because the reply shows if Redis was emptied.
    const claiming = claims.toClaims(partition, leased, claimer?.claim.token ?? "", now);
    const claimed = await claimInTime(claiming, claimer?.calledAt ?? clock.monotonic(), now);
    return results.map((own, index) => ({
      results: own,
      ...(parts[index] === claimer && { claimed }),
    }));
  };

  /**
   * Caches an event for the claims to come. `line`: its order, the encoded ids of its webhooks, and
   * how many webhooks its account has. Returns the last two.
   */
  const cacheEvent = (
    { event, short, rememberMs }: AppendItem,
    line: string,
    origin: Origin,
    now: number,
  ): { readonly shorts: string; readonly webhooks: number } => {
    const [order = "", shorts = "", webhooks] = line.split(" ");
    const createdAt = Number.parseInt(order.slice(0, 11), 16);
    // Half the time that the id is remembered for, because the clocks of processes may differ a
    // little.
    const until = now + rememberMs / 2;
    cache.add(short, { event, createdAt, receivers: shorts.split(";").length }, origin, until);
    return { shorts, webhooks: Number(webhooks) };
  };

  /** Releases what a call leased after its caller was rejected. */
  const releaseLate = (
    late: unknown,
    partition: Partition,
    claimer: ClaimingPart | undefined,
    now: number,
  ): void => {
    if (claimer === undefined) return;
    // The client may have sent the call twice: then the second reply is empty, and the first
    // leased.
    if (!wasDone(late)) return void claims.release(partition, { ...claimer.claim, now });
    const leased = toLeasedRows(decodeLeaseReply(late as LeaseReply), claimer.claim.token);
    settlements.releaseRows(leased.rows, leased, now);
  };

  const appendGeneral = async (
    partition: Partition,
    parts: readonly Part[],
    claimer: ClaimingPart | undefined,
    now: number,
  ): Promise<readonly AppendResponse[]> => {
    const args = [...bounds, ...parts.flatMap(({ items }) => items.flatMap(encodeEvent))];
    const { reply, confirmed } = await runDurably(SCRIPTS.appendGeneral, partition, args, { now });
    const replies = reply as [string, string, number?][];
    notifyWorkers(String(replies.at(-1)));
    const decodeDeliveries = createDeliveryDecoder();
    const toResult = ({ event }: AppendItem, [result, detail, webhooks = 0]: [string, string, number?]) => {
      if (result === "full") return { result: "refused", error: partitionFull(detail, limits) } as const;
      if (result === "conflict") return { result } as const;
      const deliveries = decodeDeliveries(event.id, detail);
      const stored = { deliveries, webhooks, ...(confirmed !== undefined && { confirmed }) };
      return { result: result === "stored" ? "stored" : "duplicate", ...stored } as const;
    };
    let place = 0;
    const responses = parts.map(({ items }): AppendResponse => {
      const own = items.map((item) => [item, replies[place++] ?? ["", ""]] as const);
      const tried = own.filter(([, [result]]) => result !== "skipped");
      return { results: tried.map(([item, answer]) => toResult(item, answer)) };
    });
    const index = claimer === undefined ? -1 : parts.indexOf(claimer);
    const own = responses[index];
    // A caller whose first event was refused gets the refusal, and no claims.
    if (claimer === undefined || own === undefined || !isStored(own.results[0])) return responses;
    const claiming = claims.lease(partition, { ...claimer.claim, now });
    return responses.with(index, { ...own, claimed: await claimInTime(claiming, claimer.calledAt, now) });
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

/** Adds the arguments of an event for `append.lua`. */
function encodeCommonEvent(
  { event, short, rememberMs, nonce }: AppendItem,
  now: number,
  args: RedisArgument[],
): void {
  const label = encodeLabel(event);
  args.push(
    encodeText(event.account),
    short,
    encodeText(event.type),
    `${Math.round(now + rememberMs)},${nonce}`,
    `${JSON.stringify(event.digest)}\n${label}\n${encodeStoredText(event.payload)}`,
    label,
  );
}

/** Encodes an event for `append-general.lua`. */
const encodeEvent = ({ event, webhookId, ...item }: AppendItem): readonly RedisArgument[] => [
  encodeText(event.account),
  item.short,
  encodeText(event.type),
  JSON.stringify(event.digest),
  encodeStoredText(event.payload),
  item.rememberMs,
  item.nonce,
  webhookId === undefined ? "" : encodeUuid(webhookId),
  encodeLabel(event),
  item.follows ? "1" : "",
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
