/**
 * Decodes stored deliveries, whose records deliveries.lua writes, and encodes their ids: scripts
 * know a delivery by the number of its webhook and a suffix, `<event>` or `<event>.<serial>`.
 */

import { formatDeliveryId, parseDeliveryId } from "../../src/webhooks/store/records.js";
import type { Attempt, Claim, DeliveryRecord, DeliveryState } from "../../src/webhooks/store.js";
import { decodeNumber, decodeText, decodeUuid, encodeUuid } from "./text-codec.js";

/**
 * Splits the id of a delivery into its webhook and its suffix; `undefined` if it is not such an id.
 */
export function encodeDeliveryId(
  id: string,
): { readonly webhookId: string; readonly suffix: string } | undefined {
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

function parseLine(line: string): DeliveryLine {
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
    startedAt: decodeNumber(startedAt),
    step: Number(step),
    dueAt: Number(dueAt),
    endedAt: decodeNumber(endedAt),
    postponed: Number(postponed),
    crashes: Number(crashes),
    isExtra: extraAt !== "",
    isRecovered: recovered === "1",
    token: token ?? "",
    reason: reason ? decodeText(reason) : null,
  };
}

/** Decodes the line of a leased delivery. */
export function decodeClaimLine(line: string): Omit<Claim, "id" | "webhook" | "event" | "lane"> {
  const { token, startedAt, step, isExtra, dueAt, postponed, crashes, isRecovered } = parseLine(line);
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
  given: Pick<DeliveryRecord, "id" | "webhookId" | "eventId" | "type" | "subject">,
): DeliveryRecord {
  const [line = "", ...attempts] = text.split("\n");
  const { state, reason, createdAt, startedAt, step, dueAt, endedAt } = parseLine(line);
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
