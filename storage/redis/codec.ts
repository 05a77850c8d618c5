/**
 * The texts that records are stored as, read and written on this side; the Lua scripts do the same.
 */

import { isPostbellError, PostbellError } from "../../src/core/errors.js";
import type {
  Attempt,
  Claim,
  DeliveryRecord,
  DeliveryState,
  EventRecord,
  WebhookRecord,
  WebhookStatus,
} from "../../src/webhooks/store.js";
import type { Seal } from "./seal.js";

/** What both ways leave as it is: nearly every account, type and token. */
const PLAIN = /^[\w.*-]*$/;

/**
 * Any text as one without blanks, commas, slashes and line feeds, so that it can be part of a line,
 * a key or a member.
 */
export const encodeText = (text: string): string =>
  PLAIN.test(text) ? text : encodeURIComponent(JSON.stringify(text).slice(1, -1));
export const decodeText = (encoded: string): string =>
  PLAIN.test(encoded) ? encoded : (JSON.parse(`"${decodeURIComponent(encoded)}"`) as string);

export const numberOrNull = (text: string | undefined): number | null => (text ? Number(text) : null);
export const encodeNumber = (value: number | null | undefined): string =>
  value == null ? "" : String(value);

/** A UUID in 22 characters instead of 36: it is part of every member that points at an event. */
export const shortId = (uuid: string): string =>
  Buffer.from(uuid.replaceAll("-", ""), "hex").toString("base64url");

export function longId(short: string): string {
  const hex = Buffer.from(short, "base64url").toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

export const statusLetter = (status: WebhookStatus): string => (status === "ENABLED" ? "E" : "D");

/** The types a webhook subscribes to, as its account's roster holds them. */
export const encodeEventTypes = (eventTypes: readonly string[] | null): string =>
  eventTypes === null ? "|*|" : `|${eventTypes.map(encodeText).join("|")}|`;

/** What only a user changes; scripts hand it on unread. */
interface Config {
  readonly id: string;
  readonly account: string;
  readonly subscriberId: string;
  readonly url: string;
  readonly eventTypes: readonly string[] | null;
  readonly createdAt: number;
  readonly secret: string;
  readonly previousSecret: string | null;
  readonly rotateAt: number | null;
  /** Names the change that made it what it is: no two are the same text. */
  readonly change: string;
}

/**
 * A webhook's config with its secrets sealed, as `change` makes it. What it is given beyond the
 * known fields (by a later version) stays.
 */
export function encodeWebhook(record: WebhookRecord, seal: Seal, change: string, stored = "{}"): string {
  const { id, account, subscriberId, url, eventTypes, createdAt, secret, previousSecret, rotateAt } = record;
  const config: Config = {
    id,
    account,
    subscriberId,
    url,
    eventTypes,
    createdAt,
    secret: seal.close(secret, id),
    previousSecret: previousSecret && seal.close(previousSecret, id),
    rotateAt,
    change,
  };
  return JSON.stringify({ ...(JSON.parse(stored) as object), ...config });
}

export interface StoredWebhook {
  readonly record: WebhookRecord;
  /** As it is stored: what a change is worked out from. */
  readonly config: string;
}

/** Errors: `storage_unavailable` where it cannot be read, or its secret cannot be opened. */
export function decodeWebhook(text: string, seal: Seal): StoredWebhook {
  try {
    return parseWebhook(text, seal);
  } catch (error) {
    if (isPostbellError(error)) throw error;
    throw new PostbellError("storage_unavailable", "A stored webhook cannot be read.");
  }
}

function parseWebhook(text: string, seal: Seal): StoredWebhook {
  const feed = text.indexOf("\n");
  const config = text.slice(feed + 1);
  const [, , status, generation, updatedAt, failingSince, warnedAt, noticeAt] = text
    .slice(0, feed)
    .split(",");
  const { id, account, subscriberId, url, eventTypes, createdAt, secret, previousSecret, rotateAt } =
    JSON.parse(config) as Config;
  const record: WebhookRecord = {
    id,
    account,
    subscriberId,
    url,
    status: status === "E" ? "ENABLED" : "DISABLED",
    eventTypes,
    createdAt,
    updatedAt: Number(updatedAt),
    secret: seal.open(secret, id),
    previousSecret: previousSecret && seal.open(previousSecret, id),
    rotateAt,
    generation: Number(generation),
    failingSince: numberOrNull(failingSince),
    warnedAt: numberOrNull(warnedAt),
    noticeAt: numberOrNull(noticeAt),
  };
  return { record, config };
}

/** An event as it is stored. */
export interface StoredEvent {
  readonly event: EventRecord;
  readonly createdAt: number;
  /** How many deliveries it was stored with. */
  readonly receivers: number;
}

/** `order,deliveries,…⏎digest⏎type⏎payload`; `undefined` where it is not such a text. */
const EVENT_HEAD = /^([0-9a-f]{15}),(\d+),[^\n]*$/i;

export function decodeEvent(text: string, account: string, id: string): StoredEvent | undefined {
  const headEnd = text.indexOf("\n");
  const digestAt = headEnd + 1;
  const typeAt = text.indexOf("\n", digestAt) + 1;
  const payloadAt = text.indexOf("\n", typeAt) + 1;
  const [, order = "", receivers = ""] = EVENT_HEAD.exec(text.slice(0, Math.max(0, headEnd))) ?? [];
  if (order === "" || typeAt === 0 || payloadAt === 0) return undefined;
  try {
    const event = Object.freeze({
      id,
      account,
      type: decodeText(text.slice(typeAt, payloadAt - 1)),
      digest: JSON.parse(text.slice(digestAt, typeAt - 1)) as string,
      payload: text.slice(payloadAt),
    });
    return { event, createdAt: Number.parseInt(order.slice(0, 11), 16), receivers: Number(receivers) };
  } catch {
    return undefined;
  }
}

/** Whose a webhook is, also where its secret cannot be opened. */
export function decodeOwner(text: string): { readonly id: string; readonly account: string } | undefined {
  try {
    const { id, account } = JSON.parse(text.slice(text.indexOf("\n") + 1)) as Config;
    return { id, account };
  } catch {
    return undefined;
  }
}

const STATES: Readonly<Record<string, DeliveryState>> = {
  p: "pending",
  l: "pending",
  d: "delivered",
  f: "failed",
  w: "withheld",
};

interface DeliveryLine {
  readonly state: DeliveryState;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly step: number;
  readonly dueAt: number;
  readonly endedAt: number | null;
  readonly postponed: number;
  readonly crashes: number;
  readonly isExtra: boolean;
  readonly isRecovered: boolean;
  readonly token: string;
  readonly reason: string | null;
}

function readLine(line: string): DeliveryLine {
  const [
    state,
    order,
    startedAt,
    step,
    dueAt,
    endedAt,
    postponed,
    crashes,
    extraAt,
    recovered,
    token,
    ,
    ,
    ,
    reason,
  ] = line.split(",");
  return {
    state: STATES[state ?? ""] ?? "failed",
    createdAt: Number.parseInt((order ?? "").slice(0, 11), 16),
    startedAt: numberOrNull(startedAt),
    step: Number(step),
    dueAt: Number(dueAt),
    endedAt: numberOrNull(endedAt),
    postponed: Number(postponed),
    crashes: Number(crashes),
    isExtra: extraAt !== "",
    isRecovered: recovered === "1",
    token: token ?? "",
    reason: reason ? decodeText(reason) : null,
  };
}

/** What the line of a leased delivery says. */
export function decodeClaimLine(line: string): Omit<Claim, "id" | "webhook" | "event" | "lane"> {
  const { token, startedAt, step, isExtra, dueAt, postponed, crashes, isRecovered } = readLine(line);
  return {
    token: decodeText(token),
    startedAt,
    step,
    isExtra,
    dueAt,
    postponed,
    crashes,
    isRecovered,
  };
}

export function decodeDelivery(
  text: string,
  given: Pick<DeliveryRecord, "id" | "webhookId" | "eventId" | "type">,
): DeliveryRecord {
  const [line = "", ...attempts] = text.split("\n");
  const { state, reason, createdAt, startedAt, step, dueAt, endedAt } = readLine(line);
  return {
    ...given,
    state,
    reason,
    createdAt,
    startedAt,
    step,
    dueAt: state === "pending" ? dueAt : null,
    endedAt,
    attempts: attempts.map((attempt) => JSON.parse(attempt) as Attempt),
  };
}
