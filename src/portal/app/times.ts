/** Times and durations in words of the language of the page, and the hours of a chart. */

import type { HourJson } from "../shapes.js";
import { locale, texts } from "./texts.js";

/** The zone in which times are shown. `local` is the visitor's own. */
export type Zone = "UTC" | "local";

const FORMATS = {
  day: { day: "numeric", month: "short" },
  minute: { hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
  time: { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
  date: {
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  },
  exact: {
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hourCycle: "h23",
  },
} as const satisfies Record<string, Intl.DateTimeFormatOptions>;

const formats = new Map<string, Intl.DateTimeFormat>();

/** Formatters are slow to create, so each is created once. */
function getFormat(zone: Zone, parts: keyof typeof FORMATS): Intl.DateTimeFormat {
  const key = `${locale} ${zone} ${parts}`;
  let format = formats.get(key);
  if (format === undefined) {
    format = new Intl.DateTimeFormat(locale, {
      ...(zone === "UTC" && { timeZone: "UTC" }),
      ...FORMATS[parts],
    });
    formats.set(key, format);
  }
  return format;
}

/** `22 Nov` */
export const formatDay = (ms: number, zone: Zone): string => getFormat(zone, "day").format(ms);
/** `14:05` */
export const formatMinute = (ms: number, zone: Zone): string => getFormat(zone, "minute").format(ms);
/** `22 Nov, 14:05` */
export const formatTime = (at: string | number, zone: Zone): string =>
  getFormat(zone, "time").format(new Date(at));
/** `22 Nov 2026, 14:05`, in UTC. */
export const formatUtcTime = (ms: number): string => getFormat("UTC", "date").format(ms);
/** `22 Nov 2026, 14:05:09 UTC` */
export const formatExactTime = (at: string | number, zone: Zone): string =>
  `${getFormat(zone, "exact").format(new Date(at))} ${nameZone(zone)}`;

/** `UTC`, or the visitor's zone, such as `Europe/Berlin`. */
export const nameZone = (zone: Zone): string =>
  zone === "UTC" ? "UTC" : getFormat("local", "day").resolvedOptions().timeZone;

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `340 ms`, `1.2 s`, `12 s`, `5 min`, `8 h`, `3 days` */
export function formatDuration(ms: number): string {
  if (ms < SECOND) return texts.time.milliseconds({ value: Math.round(ms) });
  if (ms < 10 * SECOND) return texts.time.seconds({ value: Math.round(ms / 100) / 10 });
  if (ms < 90 * SECOND) return texts.time.seconds({ value: Math.round(ms / SECOND) });
  if (ms < 90 * MINUTE) return texts.time.minutes({ value: Math.round(ms / MINUTE) });
  if (ms < 2 * DAY) return texts.time.hours({ value: Math.round(ms / HOUR) });
  return texts.time.days({ count: Math.round(ms / DAY) });
}

/** `just now`, `5 min ago`, `in 8 h` */
export function formatRelativeTime(at: string | number, now: number): string {
  const ms = new Date(at).getTime() - now;
  const { time } = texts;
  if (Math.abs(ms) < 5 * SECOND) return ms > 0 ? time.now : time.justNow;
  // Days have an ending of their own in some languages: `3 Tage`, `vor 3 Tagen`.
  const count = Math.round(Math.abs(ms) / DAY);
  if (Math.abs(ms) >= 2 * DAY) return ms < 0 ? time.daysAgo({ count }) : time.inDays({ count });
  const duration = formatDuration(Math.abs(ms));
  return ms < 0 ? time.ago({ duration }) : time.in({ duration });
}

/** `1,872`, as the language of the page writes it. */
export const formatNumber = (value: number): string => value.toLocaleString(locale);

/** The offset of the zone at a time: local time minus UTC. */
export const getOffsetMs = (ms: number, zone: Zone): number =>
  zone === "UTC" ? 0 : -new Date(ms).getTimezoneOffset() * MINUTE;

/** `2026-11-22 14:05`, as a visitor reads and types it. */
export const toTimeInput = (ms: number, zone: Zone): string =>
  new Date(ms + getOffsetMs(ms, zone)).toISOString().slice(0, 16).replace("T", " ");

const TYPED = /^\s*(\d{4}-\d{2}-\d{2})(?:[ T]+(\d{1,2}:\d{2}))?\s*$/;

/** The longest text that a visitor may type for a time. */
export const TIME_INPUT_LENGTH = 20;

/**
 * Reads what a visitor typed: a day, or a day and a time of 24 hours. Returns ISO 8601, `undefined`
 * for an empty text, and `null` for a text that is no time.
 */
export function fromTimeInput(text: string, zone: Zone): string | null | undefined {
  if (text.trim() === "") return undefined;
  const [, day, minutes = "00:00"] = TYPED.exec(text.slice(0, TIME_INPUT_LENGTH)) ?? [];
  if (day === undefined) return null;
  const date = new Date(`${day}T${minutes.padStart(5, "0")}:00${zone === "UTC" ? "Z" : ""}`);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

// The hours of a chart.

/** An hour of a chart. */
export interface Hour extends Omit<HourJson, "at"> {
  /** Its start in epoch ms. */
  from: number;
}

/**
 * Returns the last `count` hours, oldest first, up to and including the one of `now`. An hour
 * without attempts counts 0.
 */
export function fillHours(hours: readonly HourJson[], now: number, count: number): Hour[] {
  const byStart = new Map(hours.map((hour) => [Date.parse(hour.at), hour]));
  const last = Math.floor(now / HOUR) * HOUR;
  return Array.from({ length: count }, (_, index) => {
    const from = last - (count - 1 - index) * HOUR;
    const { delivered = 0, failed = 0, p50 = null, p95 = null } = byStart.get(from) ?? {};
    return { from, delivered, failed, p50, p95 };
  });
}

/**
 * Estimates the answer time of several hours in ms: the mean of the percentiles of the hours,
 * weighted by their attempts. It is exact if the hours are alike, and too low for the 95th
 * percentile if only a few hours were slow. Returns `null` without an answer.
 */
export function estimatePercentile(hours: Hour[], name: "p50" | "p95"): number | null {
  const measured = hours.flatMap(({ delivered, failed, [name]: value }) =>
    value === null ? [] : [{ value, weight: delivered + failed }],
  );
  const weight = measured.reduce((sum, hour) => sum + hour.weight, 0);
  const total = measured.reduce((sum, hour) => sum + hour.value * hour.weight, 0);
  return weight === 0 ? null : total / weight;
}

/** `In 24 hours 930 delivered, 70 failed attempts, the most at 13 Jan, 10:00.` */
export function summariseHours(hours: Hour[], zone: Zone): string {
  const sum = (name: "delivered" | "failed"): number => hours.reduce((total, hour) => total + hour[name], 0);
  const [delivered, failed] = [sum("delivered"), sum("failed")];
  const worst = hours.reduce<Hour | undefined>(
    (found, hour) => (hour.failed > (found?.failed ?? 0) ? hour : found),
    undefined,
  );
  const values = { hours: hours.length, delivered, failed };
  return worst === undefined
    ? texts.charts.summary(values)
    : texts.charts.summaryWithPeak({ ...values, peak: formatTime(worst.from, zone) });
}
