/**
 * Counts the attempts of a webhook by the hour, for the storages. A storage keeps two things: the
 * newest hour, which each settlement changes, and the past ones, which it writes when an hour is
 * over. Pure.
 *
 * The newest hour has a sketch of the durations of its attempts: how many were in each of a hundred
 * classes. A quantile that is read from a sketch differs from the exact one by at most 5 %, and is
 * rounded to a millisecond. Durations above 73 s are in the last class. A sketch is a text,
 * `bd3ch1`: two letters name a class, and the number is how many attempts were in it. A class may
 * occur several times, so that attempts are added by appending them. Every storage keeps this text;
 * add_to_sketch.sql appends as `addToSketch` does, settle.lua may add to the entry of a class.
 */

import type {
  Attempt,
  DeliveryStats,
  HourStats,
  RecentAttempts,
  Settlement,
} from "../../src/webhooks/store.js";
import { MAX_HOURS, MAX_SKETCH_CHARACTERS, MS_PER_HOUR } from "./constants.js";

const CLASSES = 100;

/** Up to here, each millisecond is a class. */
const EXACT_MS = 10;
/** How much larger the end of a class is than that of the class before. */
const GROWTH = 1.05 / 0.95;
const LOG_GROWTH = Math.log(GROWTH);

const LETTER_A = 97;
const NAMES: readonly string[] = Array.from({ length: CLASSES }, (_, index) =>
  String.fromCharCode(LETTER_A + Math.floor(index / 10), LETTER_A + (index % 10)),
);
/** The sketches of one attempt. */
const SINGLE: readonly string[] = NAMES.map((name) => `${name}1`);

function toClass(durationMs: number): number {
  if (!(durationMs > 0)) return 0;
  if (durationMs <= EXACT_MS) return Math.round(durationMs);
  return Math.min(CLASSES - 1, EXACT_MS + Math.ceil(Math.log(durationMs / EXACT_MS) / LOG_GROWTH));
}

/** The middle of a class: as far from its beginning as from its end, in per cent. */
const toMs = (index: number): number =>
  index <= EXACT_MS ? index : Math.round((EXACT_MS * GROWTH ** (index - EXACT_MS) * 2) / (GROWTH + 1));

/** Writes the sketch of attempts that took so many milliseconds. */
export function sketchDurations(durations: readonly number[]): string {
  const [first] = durations;
  if (first !== undefined && durations.length === 1) return SINGLE[toClass(first)] ?? "";
  const counts = new Map<number, number>();
  for (const durationMs of durations) {
    const index = toClass(durationMs);
    counts.set(index, (counts.get(index) ?? 0) + 1);
  }
  return writeSketch(counts);
}

const writeSketch = (counts: ReadonlyMap<number, number>): string =>
  [...counts]
    .sort(([one], [other]) => one - other)
    .map(([index, count]) => `${NAMES[index]}${count}`)
    .join("");

/** Reads how many attempts were in each class. Leaves out what is not an entry. */
function readSketch(sketch: string): ReadonlyMap<number, number> {
  const counts = new Map<number, number>();
  for (const [, name = "", count] of sketch.matchAll(/([a-j]{2})([0-9]{1,15})/g)) {
    const index = (name.charCodeAt(0) - LETTER_A) * 10 + name.charCodeAt(1) - LETTER_A;
    counts.set(index, (counts.get(index) ?? 0) + Number(count));
  }
  return counts;
}

/** Adds the attempts of another sketch. A compacted one has at most one entry for each class. */
export function addToSketch(sketch: string, added: string): string {
  const sum = sketch + added;
  return sum.length <= MAX_SKETCH_CHARACTERS ? sum : writeSketch(readSketch(sum));
}

/** The durations that half, and 95 of 100 attempts did not exceed, in milliseconds. */
export interface Quantiles {
  /** `null` without attempts. */
  p50: number | null;
  p95: number | null;
}

export function readQuantiles(sketch: string): Quantiles {
  const counts = [...readSketch(sketch)].sort(([one], [other]) => one - other);
  const total = counts.reduce((sum, [, count]) => sum + count, 0);
  const find = (percent: number): number | null => {
    let reached = 0;
    const found = counts.find(([, count]) => {
      reached += count;
      return reached * 100 >= total * percent;
    });
    return found === undefined ? null : toMs(found[0]);
  };
  return { p50: find(50), p95: find(95) };
}

/** Reads a class by its name; `null` for any other text. */
export function readClass(name: string | undefined): number | null {
  const index = NAMES.indexOf(name ?? "");
  return index < 0 ? null : toMs(index);
}

/** Attempts that are added, with the sketch of the durations of all of them. */
export interface AddedAttempts extends RecentAttempts {
  sketch: string;
}

/** Returns one attempt as it is added. */
export const toAddedAttempts = (isOk: boolean, { durationMs }: Attempt): AddedAttempts => ({
  succeeded: isOk ? 1 : 0,
  failed: isOk ? 0 : 1,
  durationMs: isOk ? durationMs : 0,
  sketch: sketchDurations([durationMs]),
});

/** Sums up the attempts that settlements with a report count. */
export function sumAttempts(settlements: readonly Settlement[]): AddedAttempts {
  const sum = { succeeded: 0, failed: 0, durationMs: 0 };
  const durations: number[] = [];
  for (const { attempt, endpoint } of settlements) {
    if (attempt === null || endpoint === null) continue;
    durations.push(attempt.durationMs);
    if (endpoint.ok) sum.succeeded += 1;
    else sum.failed += 1;
    if (endpoint.ok) sum.durationMs += attempt.durationMs;
  }
  return { ...sum, sketch: sketchDurations(durations) };
}

/** The attempts of an hour that may go on. `hour`: whole hours since 1970. */
export interface RecentHour extends RecentAttempts {
  hour: number;
  sketch: string;
}

/** The attempts of an hour that is over. */
export interface PastHour extends RecentAttempts, Quantiles {
  hour: number;
}

/** Whole hours before the current one that the last day has. */
const DAY_HOURS = 24;

export const toHour = (now: number): number => Math.floor(now / MS_PER_HOUR);

const toPastHour = ({ sketch, ...counts }: RecentHour): PastHour => ({
  ...counts,
  ...readQuantiles(sketch),
});

/**
 * Adds attempts at `now` to the newest hour. Returns the newest hour then, and in `past` the one
 * before if that is over now.
 *
 * @param before `null` if there were no attempts before
 */
export function addRecentAttempts(
  before: RecentHour | null,
  now: number,
  added: AddedAttempts,
): { newest: RecentHour; past: PastHour | null } {
  const hour = toHour(now);
  // A clock that went back counts in the newest hour.
  if (before === null || before.hour < hour) {
    const { succeeded, failed, durationMs, sketch } = added;
    return {
      newest: { hour, succeeded, failed, durationMs, sketch },
      past: before === null ? null : toPastHour(before),
    };
  }
  const newest: RecentHour = {
    hour: before.hour,
    succeeded: before.succeeded + added.succeeded,
    failed: before.failed + added.failed,
    durationMs: before.durationMs + added.durationMs,
    sketch: addToSketch(before.sketch, added.sketch),
  };
  return { newest, past: null };
}

/** Returns the first hour that counts for the last day. */
export const firstHourOfDay = (now: number): number => toHour(now) - DAY_HOURS;

/** Sums up the hours that are not over for more than 24 hours. */
export function sumLastDay(
  newest: RecentHour | null,
  past: readonly PastHour[],
  now: number,
): RecentAttempts {
  const first = firstHourOfDay(now);
  const sum = { succeeded: 0, failed: 0, durationMs: 0 };
  for (const { hour, succeeded, failed, durationMs } of newest === null ? past : [...past, newest]) {
    if (hour < first) continue;
    sum.succeeded += succeeded;
    sum.failed += failed;
    sum.durationMs += durationMs;
  }
  return sum;
}

/**
 * Lists the last 72 hours. What a clock that was ahead has counted in a later hour is shown in the
 * current one.
 */
function listHours(hours: readonly PastHour[], current: number): readonly HourStats[] {
  const byHour = new Map<number, HourStats>();
  for (const { hour, succeeded, failed, p50, p95 } of hours) {
    if (hour <= current - MAX_HOURS) continue;
    const shown = Math.min(hour, current);
    const before = byHour.get(shown);
    byHour.set(shown, {
      at: shown * MS_PER_HOUR,
      delivered: succeeded + (before?.delivered ?? 0),
      failed: failed + (before?.failed ?? 0),
      p50: p50 ?? before?.p50 ?? null,
      p95: p95 ?? before?.p95 ?? null,
    });
  }
  return [...byHour.values()].sort((one, other) => one.at - other.at);
}

/** Summarises what a storage has kept. The past hours may be in any order. */
export function summariseAttempts(
  newest: RecentHour | null,
  past: readonly PastHour[],
  now: number,
): Pick<DeliveryStats, "lastDay" | "hours"> {
  const hours = newest === null ? past : [...past, toPastHour(newest)];
  return { lastDay: sumLastDay(newest, past, now), hours: listHours(hours, toHour(now)) };
}
