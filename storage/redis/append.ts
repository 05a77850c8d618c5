/**
 * Storing events on Redis: by the short script where all is common, by the general one where it is
 * not.
 */

import { withTimeout } from "../../src/core/clock.js";
import { formatDeliveryId } from "../../src/webhooks/delivery/delivery-id.js";
import type { ClaimRequest, EventRecord, WebhookStore } from "../../src/webhooks/store.js";
import { createBatch } from "./batch.js";
import { ANSWER_WITHIN_MS, type Claiming, type ClaimReply, leaseArguments, toRows } from "./claiming.js";
import type { RedisArgument } from "./client.js";
import { encodeText, longId, shortId } from "./codec.js";
import type { EventCache, Origin } from "./event-cache.js";
import { type LeaseReply, NO_LEASE, readLeased } from "./exchange.js";
import type { Partition } from "./partition.js";
import { partitionFull, resultUnknown } from "./redis-errors.js";
import { SCRIPTS } from "./scripts.js";
import type { Settlements } from "./settlements.js";
import type { RedisStoreContext } from "./store-context.js";

/** Most of one kind in a script, so that none holds Redis up for more than a few milliseconds. */
const APPENDED_PER_CALL = 32;
const APPENDED_BYTES_PER_CALL = 1_048_576;
/** While these are in flight, the next one fills up: under load batches grow by themselves. */
const CONCURRENT_CALLS = 2;

interface Append {
  readonly event: EventRecord;
  /** The event's id as it is stored. */
  readonly short: string;
  readonly rememberMs: number;
  readonly now: number;
  /** When the storage was called, by the monotonic clock. */
  readonly calledAt: number;
  readonly nonce: string;
  readonly claim: ClaimRequest | undefined;
  readonly webhookId: string | undefined;
}

type Appended = Awaited<ReturnType<WebhookStore["append"]>>;
type Stored = Extract<Appended, { result: "stored" | "duplicate" }>;
type Claimer = Append & { readonly claim: ClaimRequest };

/** What `append.lua` takes of an event. */
const commonArguments = (
  { event, short, rememberMs, nonce }: Append,
  now: number,
): readonly RedisArgument[] => [
  encodeText(event.account),
  short,
  encodeText(event.type),
  `${Math.round(now + rememberMs)},${nonce}`,
  `${JSON.stringify(event.digest)}\n${encodeText(event.type)}\n${event.payload}`,
];

/** What `append-general.lua` takes of an event. */
const generalArguments = ({
  event,
  short,
  rememberMs,
  nonce,
  webhookId,
}: Append): readonly RedisArgument[] => [
  encodeText(event.account),
  short,
  encodeText(event.type),
  JSON.stringify(event.digest),
  event.payload,
  rememberMs,
  nonce,
  webhookId === undefined ? "" : shortId(webhookId),
];

/**
 * Makes the deliveries of events. Events of one call mostly go to the same webhooks, whose ids are
 * then read once.
 */
function createDeliveryList(): (eventId: string, shorts: string) => Stored["deliveries"] {
  const known = new Map<string, readonly string[]>();
  return (eventId, shorts) => {
    let webhookIds = known.get(shorts);
    if (webhookIds === undefined) {
      webhookIds = shorts === "" ? [] : shorts.split(";").map(longId);
      known.set(shorts, webhookIds);
    }
    return webhookIds.map((webhookId) => ({
      id: formatDeliveryId({ webhookId, eventId, serial: 0 }),
      webhookId,
    }));
  };
}

export function createAppend({
  context,
  claiming,
  settlements,
  cache,
  nonce,
}: {
  readonly context: RedisStoreContext;
  readonly claiming: Claiming;
  readonly settlements: Settlements;
  readonly cache: EventCache;
  readonly nonce: () => string;
}): WebhookStore["append"] {
  const { partitions, limits, runDurably, notifyWorkers, isReplicated, logger, clock, connectionId } =
    context;
  const bounds: readonly RedisArgument[] = [limits.pending, limits.pendingPerAccount];

  /**
   * The events are stored: claims that cannot be read while their caller waits are left to a later
   * claim.
   */
  const orLater = async (
    claimed: Promise<ClaimReply>,
    calledAt: number,
    now: number,
  ): Promise<ClaimReply | undefined> => {
    const late = (): Error => resultUnknown("no reply in time");
    const leftMs = ANSWER_WITHIN_MS - (clock.monotonic() - calledAt);
    try {
      if (leftMs <= 0) throw late();
      return await withTimeout(clock, leftMs, claimed, late);
    } catch (error) {
      logger.warn({ error }, "nothing could be claimed with an event");
      notifyWorkers(String(now));
      claimed.then(({ claims }) => settlements.release(claims, now)).catch(() => {});
      return undefined;
    }
  };

  /** Keeps an event for the claims to come. `line`: its order and the short ids of its webhooks. */
  const keep = ({ event, short, rememberMs }: Append, line: string, origin: Origin, now: number): string => {
    const [order = "", shorts = ""] = line.split(" ");
    const createdAt = Number.parseInt(order.slice(0, 11), 16);
    // Half the time that the id is remembered for, since the clocks of processes may differ a
    // little.
    const until = now + rememberMs / 2;
    cache.add(short, { event, createdAt, receivers: shorts.split(";").length }, origin, until);
    return shorts;
  };

  /** Resolves with `undefined` where nothing was done, since not all is common. */
  const appendCommon = async (
    partition: Partition,
    items: readonly Append[],
    claimer: Claimer | undefined,
    now: number,
  ): Promise<readonly Appended[] | undefined> => {
    const token = claimer?.claim.token ?? "";
    const lease = claimer ? leaseArguments(claimer.claim) : NO_LEASE;
    const args = [...lease, ...bounds, nonce(), ...items.flatMap((item) => commonArguments(item, now))];
    const wasDone = (reply: unknown): boolean => (reply as unknown[]).length > 0;
    const onLate = (late: unknown): void => {
      if (claimer === undefined) return;
      // The client may have sent it again, on another connection, after it was done.
      if (!wasDone(late)) return void claiming.giveBack(partition, { ...claimer.claim, now });
      const leased = toRows(readLeased(late as LeaseReply), token);
      settlements.releaseRows(leased.rows, leased, now);
    };
    const before = connectionId();
    const { reply, confirmed } = await runDurably(SCRIPTS.append, partition, args, { now, onLate, wasDone });
    if (!wasDone(reply)) return undefined;
    const leased = readLeased(reply as LeaseReply);
    // A caller that claims is told by `nextAt`.
    if (claimer === undefined) notifyWorkers(leased.hint);
    // What the lease met that only a pass of the dispatcher puts right.
    if (leased.hasExpired) notifyWorkers(String(now));
    const lines = (reply as LeaseReply)[0].split("\n");
    const origin = { mark: leased.mark, connection: before === connectionId() ? before : Number.NaN };
    const shorts = items.map((item, place) => keep(item, lines[place] ?? "", origin, now));
    // Also without a claimer, since the reply tells whether Redis was emptied.
    const taken = claiming.take(partition, leased, token, now);
    const claimed = await orLater(taken, claimer?.calledAt ?? clock.monotonic(), now);
    const deliveriesOf = createDeliveryList();
    return items.map((item, place) => ({
      result: "stored",
      deliveries: deliveriesOf(item.event.id, shorts[place] ?? ""),
      ...(confirmed !== undefined && { confirmed }),
      ...(item === claimer && { claimed }),
    }));
  };

  const appendAny = async (
    partition: Partition,
    items: readonly Append[],
    claimer: Claimer | undefined,
    now: number,
  ): Promise<readonly (Appended | Error)[]> => {
    const args = [...bounds, ...items.flatMap(generalArguments)];
    const { reply, confirmed } = await runDurably(SCRIPTS.appendGeneral, partition, args, { now });
    const answers = reply as [string, string][];
    notifyWorkers(String(answers[items.length]));
    const deliveriesOf = createDeliveryList();
    const appended = items.map(({ event }, place): Appended | Error => {
      const [result = "", detail = ""] = answers[place] ?? [];
      if (result === "full") return partitionFull(detail, limits);
      if (result === "conflict") return { result };
      const deliveries = deliveriesOf(event.id, detail);
      return {
        result: result as Stored["result"],
        deliveries,
        ...(confirmed !== undefined && { confirmed }),
      };
    });
    const place = claimer ? items.indexOf(claimer) : -1;
    const own = appended[place];
    // Whose event was refused is told so, and does not look for claims.
    if (claimer === undefined || !own || own instanceof Error || own.result === "conflict") return appended;
    const claimed = await orLater(
      claiming.lease(partition, { ...claimer.claim, now }),
      claimer.calledAt,
      now,
    );
    return appended.with(place, { ...own, claimed });
  };

  const append = async (
    partition: Partition,
    items: readonly Append[],
  ): Promise<readonly (Appended | Error)[]> => {
    const now = await context.at(Math.max(...items.map((item) => item.now)));
    // One of them is enough to lease what is due; with an answer that waits for a replica the
    // leases would wait too.
    const claimer = isReplicated
      ? undefined
      : items.find((item): item is Claimer => item.claim !== undefined);
    const hasTest = items.some(({ webhookId }) => webhookId !== undefined);
    const appended = hasTest ? undefined : await appendCommon(partition, items, claimer, now);
    if (appended) return appended;
    return appendAny(partition, items, claimer, now).catch((error: unknown) => {
      if (claimer) void claiming.giveBack(partition, { ...claimer.claim, now });
      throw error;
    });
  };

  const batches = partitions.all.map((partition) =>
    createBatch<Append, Appended | Error>({
      run: (items) => append(partition, items),
      most: APPENDED_PER_CALL,
      concurrency: CONCURRENT_CALLS,
      bytesOf: ({ event }) => event.payload.length,
      mostBytes: APPENDED_BYTES_PER_CALL,
    }),
  );

  return async ({ event, ...rest }) => {
    const batch = batches[partitions.ofAccount(event.account).number];
    if (batch === undefined) throw new RangeError("every account has a partition");
    const own = Object.freeze({ ...event });
    const { rememberMs, now, claim, webhookId } = rest;
    const item: Append = {
      event: own,
      short: shortId(event.id),
      rememberMs,
      now,
      calledAt: clock.monotonic(),
      nonce: nonce(),
      claim,
      webhookId,
    };
    const answer = await batch.add(item);
    if (answer instanceof Error) throw answer;
    return answer;
  };
}
