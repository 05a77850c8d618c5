/** A webhook's health and a delivery's state in words. */

import type { DeliveryJson, StatsJson } from "../../shapes.js";
import { h } from "../dom.js";
import { timeText } from "../format.js";

const HEALTH: Readonly<Record<StatsJson["health"]["status"], string>> = {
  ok: "Well",
  failing: "Failing",
  warned: "Failing, warned",
  disabled: "Disabled",
};

/**
 * True if the last attempt failed and no failure is recorded: the webhook was enabled or moved
 * after a failure, or only a test failed.
 */
const isToBeTested = ({ health, lastAttempt }: StatsJson): boolean =>
  health.status === "ok" && lastAttempt !== null && lastAttempt.kind !== "delivered";

export function healthBadge(stats: StatsJson): HTMLElement {
  const { status } = stats.health;
  if (isToBeTested(stats)) return h("span", { class: "badge pending" }, "To be tested");
  const isUntried = status === "ok" && stats.lastAttempt === null;
  return h("span", { class: `badge ${status}` }, isUntried ? "Not tried yet" : HEALTH[status]);
}

export function healthText(stats: StatsJson): string {
  const { health, lastAttempt } = stats;
  const { status, failingSince, warnAt, disableAt } = health;
  const since = failingSince === null ? "" : ` Failing since ${timeText(failingSince)}.`;
  const repair =
    failingSince === null ? "Enable it" : "Repair the endpoint or correct its address, then enable it";
  if (status === "disabled") return `Nothing is sent.${since} ${repair}, then recover what it missed.`;
  if (isToBeTested(stats))
    return "The last attempt failed, and none since shows that the endpoint answers now: send a test, then recover what it missed.";
  if (status === "ok") return lastAttempt === null ? "Nothing was sent yet." : "The endpoint answers.";
  const warned =
    warnAt === null
      ? ""
      : status === "warned"
        ? ` The warning went out ${timeText(warnAt)}.`
        : ` Warning e-mail on ${timeText(warnAt)}.`;
  return `${since.trim()}${warned}${disableAt === null ? "" : ` Will be disabled ${timeText(disableAt)} unless it answers before.`}`;
}

const STATE: Readonly<Record<DeliveryJson["state"], string>> = {
  pending: "Pending",
  delivered: "Delivered",
  failed: "Failed",
  withheld: "Withheld",
};

export const stateBadge = ({ state }: Pick<DeliveryJson, "state">): HTMLElement =>
  h("span", { class: `badge ${state}` }, STATE[state]);

const REASON: Readonly<Record<string, string>> = {
  exhausted: "all attempts of the schedule failed",
  disabled: "the webhook was disabled when it was due",
  access_denied: "the subscriber may not read this record",
  access_unknown: "nobody could say whether the subscriber may read this record",
  crashed: "its attempts were cut off again and again",
  payload_unreadable: "what was stored of the event cannot be read",
  payload_missing: "what was stored of the event is gone",
  record_unreadable: "what was stored of the delivery cannot be read",
};

export const reasonText = (reason: string | null): string | null =>
  reason === null ? null : (REASON[reason] ?? reason);

const KIND: Readonly<Record<string, string>> = {
  delivered: "delivered",
  http: "the endpoint answered with an error",
  dns: "the host has no usable address",
  connect: "no connection",
  tls: "TLS failed",
  timeout: "no answer in time",
  refused: "the address is not allowed",
};

/** `HTTP 500, the endpoint answered with an error`, `ECONNREFUSED, no connection` */
export function attemptText({
  kind,
  status,
  code,
}: {
  kind: string;
  status: number | null;
  code: string;
}): string {
  return `${status === null ? code : `HTTP ${status}`}, ${KIND[kind] ?? kind}`;
}
