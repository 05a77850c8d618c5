/**
 * Encodes and decodes events, deliveries and their attempts, whose records `library/deliveries.lua`
 * describes, and the texts, numbers and UUIDs in records, keys and members. Functions know a
 * delivery by the number of its webhook and a suffix, `<event>` or `<event>.<serial>`.
 */

import { formatDeliveryId, parseDeliveryId } from "../../src/webhooks/store/records.js";
import type {
  Attempt,
  AttemptSummary,
  Claim,
  DeliveryRecord,
  DeliveryState,
  EventRecord,
  Lane,
} from "../../src/webhooks/store.js";
import { copyEvent } from "../queue/append.js";
import { decodeStoredText } from "../stored-text.js";

/** Texts that are stored unchanged: nearly every account, type and token. */
const PLAIN = /^[\w.*-]*$/;

/**
 * Any text as one without blanks, commas, slashes and line feeds, so that it can be part of a line,
 * a key or a member.
 */
export const encodeText = (text: string): string =>
  PLAIN.test(text) ? text : encodeURIComponent(JSON.stringify(text).slice(1, -1));
export const decodeText = (encoded: string): string =>
  PLAIN.test(encoded) ? encoded : (JSON.parse(`"${decodeURIComponent(encoded)}"`) as string);

export const decodeNumber = (text: string | undefined): number | null => (text ? Number(text) : null);

/**
 * Encodes a UUID in 22 characters instead of 36: every member that points at an event contains one.
 */
export const encodeUuid = (uuid: string): string =>
  Buffer.from(uuid.replaceAll("-", ""), "hex").toString("base64url");

export function decodeUuid(short: string): string {
  const hex = Buffer.from(short, "base64url").toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** A stored event. */
export interface StoredEvent {
  readonly event: EventRecord;
  readonly createdAt: number;
}

/**
 * Encodes the type of an event with its subject and its tags, if it has any: `type`,
 * `type,subject`, `type,subject,tag,tag`, or `type,,tag` without a subject. Encoded
 * texts have no commas.
 */
export function encodeLabel({ type, subject, tags }: Pick<EventRecord, "type" | "subject" | "tags">): string {
  if (tags !== undefined) return [type, subject ?? "", ...tags].map(encodeText).join(",");
  return subject === undefined ? encodeText(type) : `${encodeText(type)},${encodeText(subject)}`;
}

export function decodeLabel(label: string): Pick<EventRecord, "type" | "subject" | "tags"> {
  const [type = "", subject = "", ...tags] = label.split(",");
  return {
    type: decodeText(type),
    ...(subject !== "" && { subject: decodeText(subject) }),
    ...(tags.length > 0 && { tags: tags.map(decodeText) }),
  };
}

/** Returns the time that an order begins with. */
export const decodeOrderTime = (order: string): number => Number.parseInt(order.slice(0, 11), 16);

/** The first line of `order,remember until,nonce,webhooks⏎digest⏎label⏎payload`. */
const EVENT_HEAD = /^([0-9a-f]{15}),\d+,[^\n]*$/i;

/** Returns `undefined` if the text is not a stored event. */
export function decodeEvent(text: string, account: string, id: string): StoredEvent | undefined {
  const headEnd = text.indexOf("\n");
  const digestAt = headEnd + 1;
  const typeAt = text.indexOf("\n", digestAt) + 1;
  const payloadAt = text.indexOf("\n", typeAt) + 1;
  const [, order = ""] = EVENT_HEAD.exec(text.slice(0, Math.max(0, headEnd))) ?? [];
  if (order === "" || typeAt === 0 || payloadAt === 0) return undefined;
  try {
    const event = copyEvent({
      id,
      account,
      ...decodeLabel(text.slice(typeAt, payloadAt - 1)),
      digest: JSON.parse(text.slice(digestAt, typeAt - 1)) as string,
      payload: decodeStoredText(text.slice(payloadAt)),
    });
    return { event, createdAt: decodeOrderTime(order) };
  } catch {
    return undefined;
  }
}

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

/** The field of a stored webhook that holds its lane. */
const LANE_FIELD = 8;

export const decodeLane = (text: string): Lane =>
  text.split(",", LANE_FIELD + 1)[LANE_FIELD] === "f" ? "fast" : "slow";

export const encodeLane = (lane: Lane): string => (lane === "fast" ? "f" : "s");
