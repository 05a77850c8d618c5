/** The attempts that are still planned, and the layout of the timeline. Pure. Times: epoch ms. */

import type { DeliveryRowJson, StatsJson } from "../../shapes.js";
import { formatDay, formatMinute, getOffsetMs, type Zone } from "../times.js";
import { TEST_TYPE } from "./wording.js";

/**
 * Returns when a delivery is attempted if every attempt fails: the next time as the log has it, the
 * later ones by the schedule, without jitter. `schedule` is in ms after the first attempt.
 */
export function planAttempts(
  { state, type, startedAt, nextAttemptAt }: DeliveryRowJson,
  schedule: readonly number[],
): number[] {
  if (state !== "pending" || nextAttemptAt === null) return [];
  const next = Date.parse(nextAttemptAt);
  if (type === TEST_TYPE) return [next];
  const started = startedAt === null ? next : Date.parse(startedAt);
  return [next, ...schedule.map((offset) => started + offset).filter((at) => at > next)];
}

const isTroubled = ({ state, attemptCount }: DeliveryRowJson): boolean =>
  state === "failed" || (state === "pending" && attemptCount > 0);

/** Chooses the deliveries for the timeline: first those in trouble, each part newest first. */
export function chooseDeliveries(deliveries: DeliveryRowJson[], limit: number): DeliveryRowJson[] {
  const byNewest = (a: DeliveryRowJson, b: DeliveryRowJson): number =>
    Date.parse(b.createdAt) - Date.parse(a.createdAt);
  const unique = [...new Map(deliveries.map((delivery) => [delivery.id, delivery])).values()].sort(byNewest);
  const chosen = [...unique.filter(isTroubled), ...unique.filter((delivery) => !isTroubled(delivery))];
  return chosen.slice(0, limit);
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [1, 5, 15, 30, 60, 180, 360, 720, 1_440, 2_880, 10_080, 43_200].map(
  (minutes) => minutes * MINUTE,
);

/** The span of the timeline: what happened lately and the day ahead, an hour, or everything. */
export type TimeSpan = "day" | "hour" | "all";

/** From when to when the timeline goes. */
export interface TimeRange {
  from: number;
  to: number;
}

/** `times`: everything that the whole schedule has to show. */
export function selectRange(span: TimeSpan, now: number, times: number[]): TimeRange {
  if (span === "day") return { from: now - 2 * HOUR, to: now + DAY };
  if (span === "hour") return { from: now - HOUR / 2, to: now + HOUR / 2 };
  const from = Math.min(now - MINUTE, ...times);
  const to = Math.max(now + MINUTE, ...times);
  const margin = (to - from) * 0.02;
  return { from: from - margin, to: to + margin };
}

/** The place of a time on the timeline, in per cent of its width. */
export const placeOf = (at: number, { from, to }: TimeRange): number =>
  Math.round(((at - from) / (to - from)) * 10_000) / 100;

export const isWithin = (at: number, { from, to }: TimeRange): boolean => at >= from && at <= to;

/** Up to this many labels fit below each other's width on a phone. */
const MAX_TICKS = 5;

/** The labels of the timeline, at round times of the zone. */
export function labelTimes({ from, to }: TimeRange, zone: Zone): { at: number; text: string }[] {
  const step = STEPS.find((candidate) => (to - from) / candidate <= MAX_TICKS) ?? (to - from) / MAX_TICKS;
  const offsetMs = getOffsetMs(from, zone);
  const ticks: { at: number; text: string }[] = [];
  for (let at = Math.ceil((from + offsetMs) / step) * step - offsetMs; at <= to; at += step) {
    const isDay = step >= DAY || (at + getOffsetMs(at, zone)) % DAY === 0;
    ticks.push({ at, text: isDay ? formatDay(at, zone) : formatMinute(at, zone) });
  }
  return ticks;
}

/** The time from which planned attempts are skipped; `null` if none is. */
export const getStopTime = ({ health }: StatsJson): number | null => {
  if (health.status === "disabled") return Number.NEGATIVE_INFINITY;
  return health.disableAt === null ? null : Date.parse(health.disableAt);
};
