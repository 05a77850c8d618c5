/** The attempts that are still planned, and the layout of the plot. Pure. Times are in epoch ms. */

import type { DeliveryJson } from "../../shapes.js";

/** Attempted once, whatever the schedule. */
const TEST_TYPE = "webhook.test";

/**
 * Returns when a delivery is attempted if every attempt fails: the next time as the log has it, the
 * later ones by the schedule, without jitter. `schedule` is in ms after the first attempt.
 */
export function plannedAttempts(
  {
    state,
    type,
    startedAt,
    nextAttemptAt,
  }: Pick<DeliveryJson, "state" | "type" | "startedAt" | "nextAttemptAt">,
  schedule: readonly number[],
): readonly number[] {
  if (state !== "pending" || nextAttemptAt === null) return [];
  const next = Date.parse(nextAttemptAt);
  if (type === TEST_TYPE) return [next];
  const started = startedAt === null ? next : Date.parse(startedAt);
  return [next, ...schedule.map((offset) => started + offset).filter((at) => at > next)];
}

const isTroubled = ({ state, attempts }: DeliveryJson): boolean =>
  state === "failed" || (state === "pending" && attempts.length > 0);

/** Chooses the deliveries for the plot, newest first. Those in trouble have priority. */
export function plotted(deliveries: readonly DeliveryJson[], room: number): readonly DeliveryJson[] {
  const newest = (a: DeliveryJson, b: DeliveryJson): number =>
    Date.parse(b.createdAt) - Date.parse(a.createdAt);
  const once = [...new Map(deliveries.map((delivery) => [delivery.id, delivery])).values()].sort(newest);
  const chosen = [...once.filter(isTroubled), ...once.filter((delivery) => !isTroubled(delivery))];
  return chosen.slice(0, room).sort(newest);
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const STEPS = [1, 5, 15, 30, 60, 180, 360, 720, 1_440, 2_880, 10_080, 43_200].map(
  (minutes) => minutes * MINUTE,
);

/** Returns up to `most` round times between `from` and `to`. `offsetMs` is local time minus UTC. */
export function ticks(
  from: number,
  to: number,
  most: number,
  offsetMs: number,
): { readonly step: number; readonly at: readonly number[] } {
  const step = STEPS.find((candidate) => (to - from) / candidate <= most) ?? (to - from) / most;
  const first = Math.ceil((from + offsetMs) / step) * step - offsetMs;
  const at: number[] = [];
  for (let time = first; time <= to; time += step) at.push(time);
  return { step, at };
}

export type TimeSpan = "all" | "day" | "hour";

/** From when to when the plot goes. Around now, or over everything there is, with some air. */
export function toDomain(span: TimeSpan, now: number, times: readonly number[]): readonly [number, number] {
  if (span === "day") return [now - 12 * HOUR, now + 12 * HOUR];
  if (span === "hour") return [now - 30 * MINUTE, now + 30 * MINUTE];
  const from = Math.min(now - MINUTE, ...times);
  const to = Math.max(now + MINUTE, ...times);
  const air = (to - from) * 0.02;
  return [from - air, to + air];
}
