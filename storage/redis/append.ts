/** Stores events on Redis, many in one call of append.lua, which may also claim. */

import { withTimeout } from "../../src/core/clock.js";
import { isPostbellError } from "../../src/core/errors.js";
import { formatDeliveryId } from "../../src/webhooks/store/records.js";
import type {
  AppendedEvent,
  AppendRequest,
  AppendResponse,
  AppendResult,
  Claim,
  ClaimResponse,
  EventRecord,
  WebhookStore,
} from "../../src/webhooks/store.js";
import { createBatcher } from "../batcher.js";
import { copyEvent } from "../queue/append.js";
import { encodeStoredText } from "../stored-text.js";
import {
  CLAIM_WITHIN_MS,
  type ClaimReply,
  decodeClaimReply,
  type EventCache,
  encodeClaim,
  type Leased,
  type Origin,
} from "./claim-reader.js";
import { decodeOrderTime, decodeUuid, encodeLabel, encodeText, encodeUuid } from "./codec.js";
import { FilterCache, filtersChanged, MAX_FILTER_TRIES } from "./filters.js";
import type { Partition } from "./partition.js";
import { partitionFull, resultUnknown } from "./redis-errors.js";
import type { RedisStoreContext } from "./session.js";
import type { Upkeep } from "./upkeep.js";

/** The most events in a call: more would hold Redis up for more than a few milliseconds. */
const APPENDED_PER_CALL = 32;
const APPENDED_BYTES_PER_CALL = 1_048_576;
/** The most calls in flight. Meanwhile the next call gathers events, so batches grow under load. */
const CONCURRENT_CALLS = 2;

/** The result of an event whose account has a filter that this process does not know. */
const UNDECIDED = "undecided";

type PartResult = AppendResult | typeof UNDECIDED;

type PartResponse = { results: readonly PartResult[] } & Pick<AppendResponse, "claimed">;

/** The reply of append.lua. */
type AppendReply = [lines: string, claimed: ClaimReply];

/** Consecutive events of one request that go to Redis in one call. */
interface Part {
  items: AppendItem[];
  now: number;
  claim: AppendRequest["claim"];
  /** When the storage was called, by the monotonic clock. */
  calledAt: number;
}

type ClaimingPart = Part & { claim: NonNullable<Part["claim"]> };

const isClaiming = (part: Part): part is ClaimingPart => part.claim !== undefined;

/** Takes over deliveries that are leased with an event: the queue does. */
interface LeaseHandler {
  createNonce(): string;
  toClaims(partition: Partition, leased: Leased, now: number): Promise<ClaimResponse>;
  release(claims: readonly Claim[], now: number): void;
  releaseLeased(leased: Leased, now: number): void;
}

export function createAppend(
  context: RedisStoreContext,
  cache: EventCache,
  upkeep: Upkeep,
  queue: LeaseHandler,
): WebhookStore["append"] {
  const { partitions, limits, isReplicated, clock, logger, connectionId, runDurably, notifyWorkers } =
    context;

  const filters = new FilterCache(context);

  const batchers = partitions.all.map((partition) =>
    createBatcher<Part, PartResponse>({
      run: (parts) => appendParts(partition, parts),
      maxItems: APPENDED_PER_CALL,
      concurrency: CONCURRENT_CALLS,
      getCount: ({ items }) => items.length,
      getBytes: ({ items }) => items.reduce((sum, { event }) => sum + event.payload.length, 0),
      maxBytes: APPENDED_BYTES_PER_CALL,
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
  const splitRequest = (request: AppendRequest): Part[] => {
    const { events, rememberMs, now, webhookId, createFilterTest, claim } = request;
    const calledAt = clock.monotonic();
    const parts: Part[] = [];
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
        nonce: queue.createNonce(),
        webhookId,
        createFilterTest,
        keepMs: event.keepMs,
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

  const sendOnce = (part: Part): Promise<PartResponse> => {
    const [first] = part.items;
    const batcher = first && batchers[partitions.ofAccount(first.event.account).number];
    if (batcher === undefined) throw new RangeError("every account has a partition");
    return batcher.add(part);
  };

  /** Sends a part. Reads filters that this process does not know, and sends what waits for them. */
  const send = async (part: Part): Promise<AppendResponse> => {
    const results: AppendResult[] = [];
    let { items, claim } = part;
    for (let tries = 0; tries < MAX_FILTER_TRIES; tries++) {
      const { count } = filters;
      const { results: sent, claimed } = await sendOnce({ ...part, items, claim });
      const decided = sent.filter((result) => result !== UNDECIDED);
      results.push(...decided);
      if (decided.length === sent.length) return { results, ...(claimed && { claimed }) };
      // Nothing was claimed unless the first event was stored.
      if (decided.length > 0) claim = undefined;
      const [undecided, ...others] = items.slice(decided.length);
      if (undecided === undefined) break;
      await filters.load(undecided.event.account, count);
      items = [{ ...undecided, follows: false }, ...others];
    }
    if (results.length === 0) throw filtersChanged();
    return { results: [...results, { result: "refused", error: filtersChanged() }] };
  };

  const appendParts = async (
    partition: Partition,
    parts: readonly Part[],
  ): Promise<readonly PartResponse[]> => {
    const now = await context.connect(Math.max(...parts.map((part) => part.now)));
    // One claim is enough for all. A replicated call waits for a replica, and its leases would too.
    const claimer = isReplicated ? undefined : parts.find(isClaiming);
    const items = parts.flatMap((part) => part.items);
    const first = claimer?.items[0];
    const token = claimer?.claim.token ?? "";
    const options = {
      pending: limits.pending,
      pendingPerAccount: limits.pendingPerAccount,
      dataSet: queue.createNonce(),
      lease: claimer && encodeClaim(claimer.claim),
      claimer: first && items.indexOf(first) + 1,
    };
    const before = connectionId();
    const { reply, confirmed } = await runDurably("append", partition, {
      now,
      options,
      items: items.flatMap((item) => encodeItem(item, now, filters)),
      // The call has leased deliveries after its caller was rejected.
      onLate: (late) => queue.releaseLeased(decodeClaimReply((late as AppendReply)[1], token), now),
    });
    const [lines, claimReply] = reply as AppendReply;
    const leased = decodeClaimReply(claimReply, token);
    // A caller that claims learns from `nextAt` when something is due.
    if (claimer === undefined) notifyWorkers(leased.notifyAt);
    // Expired leases are only recovered by a claim of a worker.
    if (leased.hasExpired) notifyWorkers(String(now));
    if (leased.excess.length > 0) upkeep.start(partition, now, leased.excess);
    const origin = { dataSet: leased.dataSet, connection: before === connectionId() ? before : Number.NaN };
    const results = decodeResults(items, lines.split("\n"), { now, origin, confirmed });
    // Also without a claimer, because the reply shows if Redis was emptied.
    const claiming = queue.toClaims(partition, leased, now);
    const claimed = await claimInTime(claiming, claimer?.calledAt ?? clock.monotonic(), now);
    let end = 0;
    return parts.map((part) => {
      end += part.items.length;
      const partResults = results
        .slice(end - part.items.length, end)
        .filter((result) => result !== undefined);
      return { results: partResults, ...(part === claimer && isStored(partResults[0]) && { claimed }) };
    });
  };

  /** Decodes the line of each event, and caches what was stored. `undefined` for one not tried. */
  const decodeResults = (
    items: readonly AppendItem[],
    lines: readonly string[],
    { now, origin, confirmed }: { now: number; origin: Origin; confirmed: boolean | undefined },
  ): (PartResult | undefined)[] => {
    const decodeDeliveries = createDeliveryDecoder();
    return items.map((item, place) => {
      const [result, order = "", shorts = "", webhooks, account] = (lines[place] ?? "skipped").split(" ");
      if (result === "skipped") return undefined;
      if (result === UNDECIDED) return UNDECIDED;
      if (result === "full") return { result: "refused", error: partitionFull(order, limits) };
      if (result === "conflict") return { result };
      if (order !== "-" && shorts !== "" && item.webhookId === undefined)
        cacheEvent(item, order, String(account), { now, origin });
      const deliveries = decodeDeliveries(item.event.id, shorts);
      const stored = {
        deliveries,
        webhooks: Number(webhooks),
        ...(confirmed !== undefined && { confirmed }),
      };
      return { result: result === "stored" ? "stored" : "duplicate", ...stored };
    });
  };

  /** Caches an event for the claims to come. */
  const cacheEvent = (
    { event, short, rememberMs }: AppendItem,
    order: string,
    account: string,
    { now, origin }: { now: number; origin: Origin },
  ): void => {
    // Half the time that the id is remembered for, because the clocks of processes may differ a
    // little.
    const until = now + rememberMs / 2;
    cache.add(short, account, { event, createdAt: decodeOrderTime(order) }, { origin, until });
  };

  /** Resolves with `undefined` if the claims take longer than the caller of `append` waits. */
  const claimInTime = async (
    claiming: Promise<ClaimResponse>,
    calledAt: number,
    now: number,
  ): Promise<ClaimResponse | undefined> => {
    const createError = (): Error => resultUnknown("no reply in time");
    const leftMs = CLAIM_WITHIN_MS - (clock.monotonic() - calledAt);
    try {
      if (leftMs <= 0) throw createError();
      return await withTimeout(clock, leftMs, claiming, createError);
    } catch (error) {
      // The events are stored. Their deliveries are left to a later claim.
      logger.warn({ error }, "nothing could be claimed with an event");
      notifyWorkers(String(now));
      claiming.then((late) => queue.release(late.claims, now)).catch(() => {});
      return undefined;
    }
  };

  return append;
}

const isStored = (result: PartResult | undefined): boolean =>
  result !== undefined && result !== UNDECIDED && "deliveries" in result;

/** An event that waits to be stored. */
interface AppendItem {
  event: EventRecord;
  /** The encoded id of the event. */
  short: string;
  rememberMs: number;
  nonce: string;
  webhookId: string | undefined;
  createFilterTest: AppendRequest["createFilterTest"];
  keepMs: number | undefined;
  /** True if it is stored only if the item before it was. */
  follows: boolean;
}

/** Encodes an event for `append.lua`. */
function encodeItem(
  { event, short, rememberMs, nonce, webhookId, createFilterTest, keepMs, follows }: AppendItem,
  now: number,
  filters: FilterCache,
): [head: string, stored: string] {
  const head = JSON.stringify({
    account: encodeText(event.account),
    id: short,
    type: encodeText(event.type),
    rememberUntil: Math.round(now + rememberMs),
    nonce,
    target: webhookId && encodeUuid(webhookId),
    keepMs,
    follows,
    passes: webhookId === undefined ? filters.decide(event, createFilterTest) : undefined,
  });
  return [head, `${JSON.stringify(event.digest)}\n${encodeLabel(event)}\n${encodeStoredText(event.payload)}`];
}

/**
 * Returns a decoder for the deliveries of events. The events of one call mostly go to the same
 * webhooks, so it decodes each list of webhook ids once.
 */
function createDeliveryDecoder(): (eventId: string, shorts: string) => AppendedEvent["deliveries"] {
  const decoded = new Map<string, readonly string[]>();
  return (eventId, shorts) => {
    let webhookIds = decoded.get(shorts);
    if (webhookIds === undefined) {
      webhookIds = shorts === "" ? [] : shorts.split(";").map(decodeUuid);
      decoded.set(shorts, webhookIds);
    }
    return webhookIds.map((webhookId) => ({
      id: formatDeliveryId({ webhookId, eventId, serial: 0 }),
      webhookId,
    }));
  };
}
