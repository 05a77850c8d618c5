/**
 * When an endpoint may be served, and with how many deliveries: its free slots, its slow start, its
 * rate, and the settlements of its deliveries. Pure. Memory and SQL call these functions. On Redis
 * `library/rules.lua` repeats them, on Postgres the functions in `functions`; `vectors.json`
 * proves them equal.
 */

import type {
  DeliveryState,
  EndpointReport,
  Lane,
  Settlement,
  SettleResult,
  WebhookStatus,
} from "../../src/webhooks/store.js";
import { HEAD_START_MS, MAX_SECONDS_AHEAD, MS_PER_SECOND } from "./constants.js";

// Slow start: after a failure an endpoint gets one attempt at a time, and with each success one
// more, up to `perEndpoint`.

/** The attempts that an endpoint may have in flight; `null` means `perEndpoint`. */
export type SlowStart = number | null;

/** Returns the slow start after some successes in a row. */
export function growSlowStart(slowStart: SlowStart, successes: number, perEndpoint: number): SlowStart {
  if (slowStart === null || slowStart + successes >= perEndpoint) return null;
  return slowStart + successes;
}

/** Returns how many more attempts may be in flight. Below 0 after the limit was lowered. */
export const countFreeSlots = (slowStart: SlowStart, inFlight: number, perEndpoint: number): number =>
  Math.min(perEndpoint, slowStart ?? perEndpoint) - inFlight;

// The rate, in whole seconds of the storage's clock.

/** How many deliveries of an endpoint were claimed in a second, which is counted from the epoch. */
export interface ClaimedSecond {
  second: number;
  count: number;
}

const toSecond = (now: number): number => Math.floor(now / MS_PER_SECOND);

/** Returns the second that counts at `now`, and what was claimed in it. */
function getSecond(claimed: ClaimedSecond | null, now: number): ClaimedSecond {
  const second = toSecond(now);
  const isCurrent =
    claimed !== null && claimed.second >= second && claimed.second <= second + MAX_SECONDS_AHEAD;
  return isCurrent ? claimed : { second, count: 0 };
}

/** Returns how many deliveries may be claimed at `now`. `perSecond`: `null` for any number. */
export const countLeft = (perSecond: number | null, claimed: ClaimedSecond | null, now: number): number =>
  perSecond === null ? Number.POSITIVE_INFINITY : Math.max(0, perSecond - getSecond(claimed, now).count);

/** Returns when the next delivery may be claimed: `now`, or when the next second begins. */
export function findOpenTime(perSecond: number | null, claimed: ClaimedSecond | null, now: number): number {
  if (perSecond === null) return now;
  const { second, count } = getSecond(claimed, now);
  return count < perSecond ? now : (second + 1) * MS_PER_SECOND;
}

/** Counts deliveries that are claimed at `now`. */
export function addClaimed(claimed: ClaimedSecond | null, now: number, count: number): ClaimedSecond {
  const current = getSecond(claimed, now);
  return { second: current.second, count: current.count + count };
}

// The offer: an endpoint is ready from the time on at which it may be served next.

/**
 * True if an endpoint keeps its turn, whatever has changed about it: it is ready already. Serving
 * it finds out what there is.
 */
export const keepsTurn = (readyAt: number | null, now: number): boolean => readyAt !== null && readyAt <= now;

/**
 * Returns when an endpoint may be served next; `null` for not before something changes.
 *
 * @param head when the first delivery of its queue may be claimed; `null` if the queue is empty
 * @param openTime the result of {@link findOpenTime}
 */
export const findReadyTime = (head: number | null, freeSlots: number, openTime: number): number | null =>
  head === null || freeSlots <= 0 ? null : Math.max(head, openTime);

/** True if sleeping workers must be notified: an endpoint is ready earlier than before. */
export const isEarlier = (readyAt: number | null, before: number | null): readyAt is number =>
  readyAt !== null && (before === null || readyAt < before);

// Whose turn it is: the order of deliveries within their endpoint, and the shares of endpoints in a
// claim.

export const LANES: readonly Lane[] = ["fast", "slow"];

/** The times of a delivery that place it in the queue of its endpoint. */
interface QueuedTimes {
  startedAt: number | null;
  dueAt: number;
  /** When an extra attempt is due; `null` if none was requested. */
  extraAt: number | null;
}

/**
 * Returns the time by which a pending delivery is queued. Only one that is due already gets the
 * head start of a first attempt: any other would be served too early.
 */
export function findQueueTime({ startedAt, dueAt, extraAt }: QueuedTimes, now: number): number {
  const at = extraAt ?? dueAt;
  return startedAt === null && at <= now ? at - HEAD_START_MS : at;
}

/**
 * Returns how many deliveries an endpoint may get in one round of a claim: the room of the lane is
 * divided equally among the endpoints that are ready, and the first in turn get what is left over.
 * A round serves at most `room` endpoints. What some do not need is divided in the next round.
 *
 * @param index the endpoint's place among them, from 0
 */
export const divideRoom = (room: number, endpoints: number, index: number): number =>
  Math.floor(room / endpoints) + (index < room % endpoints ? 1 : 0);

// The report of an attempt on its endpoint.

/** The fields of an endpoint that a report reads. */
interface ReportedEndpoint {
  generation: number;
  status: WebhookStatus;
  slowStart: SlowStart;
  failingSince: number | null;
}

/** The health of an endpoint after it began to fail, or recovered. */
export interface HealthChange {
  failingSince: number | null;
  warnedAt: null;
  noticeAt: number | null;
}

/** The changes of an endpoint by a report. */
export interface ReportChange {
  lane: Lane;
  slowStart: SlowStart;
  /** `undefined` if the health stays as it is. */
  health: HealthChange | undefined;
}

/**
 * Decides what the report of an attempt changes; `undefined` for nothing, because the webhook has
 * got another URL or was enabled again meanwhile. A DISABLED webhook keeps its health.
 *
 * @param attempts how many attempts in a row the report stands for
 */
export function applyReport(
  { generation, status, slowStart, failingSince }: ReportedEndpoint,
  report: EndpointReport,
  attempts: number,
  perEndpoint: number,
): ReportChange | undefined {
  if (report.generation !== generation) return undefined;
  const change: ReportChange = {
    lane: report.lane,
    slowStart: report.ok ? growSlowStart(slowStart, attempts, perEndpoint) : 1,
    health: undefined,
  };
  if (status !== "ENABLED" || report.ok === (failingSince === null)) return change;
  change.health = report.ok
    ? { failingSince: null, warnedAt: null, noticeAt: null }
    : { failingSince: report.at, warnedAt: null, noticeAt: report.noticeAt };
  return change;
}

// The settlement of a delivery.

/**
 * Decides if a settlement is recorded. A 2xx that was read is a fact, whoever reports it; anything
 * else counts only from the holder of the lease.
 *
 * @param token the token of the lease; `null` if the delivery is not leased
 */
export function classifySettlement(
  state: DeliveryState,
  token: string | null,
  settlement: { outcome: Settlement["outcome"]; token: string },
): SettleResult {
  if (state === "delivered" || state === "withheld") return "gone";
  if (settlement.outcome.state === "delivered") return "settled";
  if (state !== "pending") return "gone";
  return token === settlement.token ? "settled" : "stale";
}
