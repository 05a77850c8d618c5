/** Times and lengths of time in words, in the visitor's language of dates and zone. */

import { h } from "./dom.js";

const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const minute = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const second = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});

/** The visitor's zone, as `Europe/Berlin`. */
export const zone = (): string => day.resolvedOptions().timeZone;
export const dayText = (ms: number): string => day.format(ms);
export const minuteText = (ms: number): string => minute.format(ms);
/** `22 Nov, 14:05` */
export const timeText = (iso: string | number): string => {
  const ms = new Date(iso).getTime();
  return `${day.format(ms)}, ${minute.format(ms)}`;
};

/** A time to the second, with its exact form for machines and for a pointer that rests on it. */
export function time(iso: string | null, absent = "–"): HTMLElement | string {
  if (iso === null) return absent;
  const ms = Date.parse(iso);
  return h("time", { datetime: iso, title: iso }, `${day.format(ms)}, ${second.format(ms)}`);
}

/** `340 ms`, `12 s`, `5 min`, `8 h`, `3 days` */
export function lengthText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 90_000) return `${Math.round(ms / 1_000)} s`;
  if (ms < 5_400_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / 86_400_000)} days`;
}

/** `5 deliveries`, `1 delivery` */
export const pluralise = (count: number, one: string, many: string): string =>
  `${count} ${count === 1 ? one : many}`;

/** The value of a `datetime-local` field for a time. */
export function toLocalInput(ms: number): string {
  const shifted = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 16);
}

/** The time that a `datetime-local` field says, with its offset; `undefined` where it is empty. */
export const fromLocalInput = (text: string): string | undefined =>
  text === "" ? undefined : new Date(text).toISOString();
