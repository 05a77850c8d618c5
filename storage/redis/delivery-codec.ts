/**
 * Encodes the ids of deliveries and their attempts, and decodes stored deliveries, whose records
 * `library/deliveries.lua` describes. Functions know a delivery by the number of its webhook and
 * a suffix, `<event>` or `<event>.<serial>`.
 */

import { formatDeliveryId, parseDeliveryId } from "../../src/webhooks/store/records.js";
import type {
  Attempt,
  AttemptSummary,
  Claim,
  DeliveryRecord,
  DeliveryState,
} from "../../src/webhooks/store.js";
import { decodeNumber, decodeText, decodeUuid, encodeUuid } from "./text-codec.js";

/** Returns the suffix of a delivery; `undefined` for any other text. */
export function encodeDeliveryId(id: string): { webhookId: string; suffix: string } | undefined {
  const key = parseDeliveryId(id);
  if (key === undefined) return undefined;
  const { webhookId, eventId, serial } = key;
  return { webhookId, suffix: serial === 0 ? encodeUuid(eventId) : `${encodeUuid(eventId)}.${serial}` };
}

/** Returns the id of a delivery from its suffix. */
export function decodeDeliveryId(webhookId: string, suffix: string): string {
  const [short = "", serial = "0"] = suffix.split(".");
  return formatDeliveryId({ webhookId, eventId: decodeUuid(short), serial: Number(serial) });
}

/**
 * Encodes an attempt as a line: `at,durationMs,step,status` for one that was delivered on schedule,
 * which most are; otherwise JSON.
 */
export function encodeAttempt(attempt: Attempt): string {
  const { at, durationMs, step, isExtra, kind, status, code, excerpt } = attempt;
  const isPlain = kind === "delivered" && !isExtra && excerpt === null && code === `HTTP_${status}`;
  return isPlain ? `${at},${durationMs},${step},${status}` : JSON.stringify(attempt);
}

/** True for the short line of an attempt. */
export const isPlainAttempt = (line: string): boolean => !line.startsWith("{");

function decodeAttempt(line: string): Attempt {
  if (!isPlainAttempt(line)) return JSON.parse(line) as Attempt;
  const [at = 0, durationMs = 0, step = 0, status = 0] = line.split(",").map(Number);
  const code = `HTTP_${status}`;
  return { at, durationMs, step, isExtra: false, kind: "delivered", status, code, excerpt: null };
}

/** Encodes the last attempt of a webhook: as a short line, or as JSON without its excerpt. */
export function encodeAttemptSummary(attempt: Attempt): string {
  const line = encodeAttempt(attempt);
  const { at, kind, status, code } = attempt;
  return isPlainAttempt(line) ? line : JSON.stringify({ at, kind, status, code } satisfies AttemptSummary);
}

export function decodeAttemptSummary(line: string): AttemptSummary {
  const { at, kind, status, code } = decodeAttempt(line);
  return { at, kind, status, code };
}

const STATES: Readonly<Record<string, DeliveryState>> = {
  p: "pending",
  l: "pending",
  d: "delivered",
  f: "failed",
  w: "withheld",
};

function parseLine(line: string) {
  const fields = line.split(",");
  const [state, token, startedAt, completedAt, step, dueAt, postponed, crashes] = fields;
  const [extraAt, recovered, reason] = fields.slice(8);
  return {
    state: STATES[state ?? ""] ?? "failed",
    isInFlight: state === "l",
    token: token ?? "",
    startedAt: decodeNumber(startedAt),
    completedAt: decodeNumber(completedAt),
    step: Number(step ?? 0),
    dueAt: decodeNumber(dueAt),
    postponed: Number(postponed ?? 0),
    crashes: Number(crashes ?? 0),
    isExtra: Boolean(extraAt),
    isRecovered: recovered === "1",
    reason: reason ? decodeText(reason) : null,
  };
}

/** Decodes the line of a leased delivery; an empty one is that of a first lease. */
export function decodeClaimLine(
  line: string,
  createdAt: number,
): Omit<Claim, "id" | "token" | "webhook" | "event" | "lane"> {
  const { startedAt, step, isExtra, dueAt, postponed, crashes, isRecovered } = parseLine(line);
  return { startedAt, step, isExtra, dueAt: dueAt ?? createdAt, postponed, crashes, isRecovered };
}

/** Decodes a delivery that was created at a time. The record of one never claimed is empty. */
export function decodeDelivery(
  record: string,
  createdAt: number,
  about: Pick<DeliveryRecord, "id" | "webhookId" | "eventId" | "type" | "subject" | "tags">,
): DeliveryRecord {
  const [line = "", ...attempts] = (record || "p").split("\n");
  const { state, isInFlight, reason, startedAt, step, dueAt, completedAt } = parseLine(line);
  return {
    ...about,
    state,
    reason,
    createdAt,
    startedAt,
    step,
    isInFlight,
    dueAt: state === "pending" ? (dueAt ?? createdAt) : null,
    endedAt: completedAt,
    attempts: attempts.map(decodeAttempt),
  };
}
