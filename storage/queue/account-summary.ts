/** Sums up the webhooks of an account for the list of accounts. */

import type { AccountSummary, WebhookRecord } from "../../src/webhooks/store.js";
import { type PastHour, type RecentHour, sumLastDay } from "./recent-attempts.js";

type EndpointState = keyof AccountSummary["endpoints"];

/** Returns the health that a webhook is counted under. */
export function getEndpointState({
  status,
  failingSince,
  warnedAt,
}: Pick<WebhookRecord, "status" | "failingSince" | "warnedAt">): EndpointState {
  if (status === "DISABLED") return "disabled";
  if (warnedAt !== null) return "warned";
  return failingSince === null ? "ok" : "failing";
}

/** A webhook of an account, with the hours that its attempts were counted in. */
export interface SummedWebhook {
  state: EndpointState;
  newest: RecentHour | null;
  past: readonly PastHour[];
}

/** Sums up webhooks: how many there are of each health, and their attempts of the last day. */
export function sumWebhooks(
  webhooks: readonly SummedWebhook[],
  now: number,
): Pick<AccountSummary, "endpoints" | "lastDay"> {
  const endpoints = { ok: 0, failing: 0, warned: 0, disabled: 0 };
  const lastDay = { succeeded: 0, failed: 0 };
  for (const { state, newest, past } of webhooks) {
    endpoints[state] += 1;
    const { succeeded, failed } = sumLastDay(newest, past, now);
    lastDay.succeeded += succeeded;
    lastDay.failed += failed;
  }
  return { endpoints, lastDay };
}
