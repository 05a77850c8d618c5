/**
 * The health of a webhook, the state of a delivery and the result of an attempt, in words. Pure.
 */

import type {
  AttemptJson,
  AttemptResultJson,
  AuditEntryJson,
  DeliveryRowJson,
  NamedWebhookJson,
  StatsJson,
  WebhookJson,
} from "../../shapes.js";
import { formatDuration, formatTime, type Zone } from "../times.js";
import type { Tone } from "../tone.js";

/** The event type of tests, which are attempted once. */
export const TEST_TYPE = "webhook.test";

export type HealthLabel = "Healthy" | "Unstable" | "Failing" | "Disabled" | "Not tried yet" | "Needs a test";

/** An endpoint with a lower share of successes in 24 hours is unstable. */
const STABLE_SHARE = 0.95;

/**
 * The health of an endpoint in a word or two. It needs a test if the last attempt failed and no
 * failure is recorded: the webhook was enabled or moved after a failure. It is unstable if the last
 * attempt succeeded, but fewer than 95 % of those of the last 24 hours.
 */
export function labelHealth({ health, lastAttempt, lastDay }: StatsJson): HealthLabel {
  if (health.status === "disabled") return "Disabled";
  if (health.status !== "ok") return "Failing";
  if (lastAttempt === null) return "Not tried yet";
  if (lastAttempt.kind !== "delivered") return "Needs a test";
  return lastDay.succeeded < lastDay.attempts * STABLE_SHARE ? "Unstable" : "Healthy";
}

/** True if somebody should look at the endpoint. */
export const isTroubled = (stats: StatsJson): boolean =>
  !["Healthy", "Not tried yet"].includes(labelHealth(stats));

/** True if an endpoint is in trouble, unless somebody disabled it on purpose. */
export const needsAttention = (stats: StatsJson): boolean =>
  isTroubled(stats) && (stats.health.status !== "disabled" || stats.health.failingSince !== null);

const HEALTH_TONES: Record<HealthLabel, Tone> = {
  Healthy: "good",
  Unstable: "warn",
  Failing: "bad",
  Disabled: "bad",
  "Not tried yet": "neutral",
  "Needs a test": "info",
};

export const HEALTH_LABELS = Object.keys(HEALTH_TONES) as HealthLabel[];

/** The tone of an endpoint's health. One that a person disabled on purpose is no alarm. */
export const getHealthTone = (stats: StatsJson): Tone =>
  stats.health.status === "disabled" && !needsAttention(stats) ? "neutral" : HEALTH_TONES[labelHealth(stats)];

/** Describes the health of an endpoint, and what happens to it next. */
export function describeHealth(stats: StatsJson, zone: Zone): string {
  const { status, failingSince, warnAt, disableAt } = stats.health;
  const since = failingSince === null ? "" : `Failing since ${formatTime(failingSince, zone)}.`;
  switch (labelHealth(stats)) {
    case "Disabled":
      return `Nothing is sent. ${since}`.trim();
    case "Needs a test":
      return "The last attempt failed, and nothing since shows that the endpoint works: send a test.";
    case "Not tried yet":
      return "Nothing has been sent yet.";
    case "Healthy":
      return "The endpoint accepts deliveries.";
    case "Unstable":
      return `${formatSuccessRate(stats.lastDay)} of the attempts of the last 24 hours succeeded, the last one too.`;
    case "Failing": {
      const email = status === "warned" ? "Operator e-mail was sent on" : "Operator e-mail on";
      return [
        since,
        warnAt === null ? "" : `${email} ${formatTime(warnAt, zone)}.`,
        disableAt === null ? "" : `Disabled on ${formatTime(disableAt, zone)} unless it recovers.`,
      ]
        .filter((sentence) => sentence !== "")
        .join(" ");
    }
  }
}

/**
 * Returns when something is next sent to a webhook; `null` if it is disabled, because attempts that
 * fall due are then skipped.
 */
export const getNextAttempt = (
  { status }: { status: WebhookJson["status"] },
  nextAttemptAt: string | null,
): string | null => (status === "DISABLED" ? null : nextAttemptAt);

/** Failures without a response. */
const FAILURES: Record<string, string> = {
  dns: "the host name has no usable address",
  connect: "no connection",
  tls: "the TLS handshake failed",
  timeout: "no answer in time",
  refused: "the address is not allowed",
};

/** `HTTP 204 in 38 ms`, `HTTP 500 in 812 ms`, `no connection (ECONNREFUSED)` */
export function describeResult({ kind, status, code, durationMs }: AttemptResultJson): string {
  const took = durationMs === undefined ? "" : ` in ${formatDuration(durationMs)}`;
  if (status !== null) return `HTTP ${status}${took}`;
  return `${FAILURES[kind] ?? kind}${kind === "timeout" ? took.replace(" in ", " after ") : ""} (${code})`;
}

/** `Delivered: HTTP 204 in 38 ms`, `Failed: no connection (ECONNREFUSED)` */
export const describeAttempt = (attempt: AttemptResultJson): string =>
  `${attempt.kind === "delivered" ? "Delivered" : "Failed"}: ${describeResult(attempt)}`;

const REASONS: Record<string, string> = {
  exhausted: "all attempts of the schedule failed",
  test_failed: "the endpoint did not accept the test",
  disabled: "the webhook was disabled when it was due",
  access_denied: "the subscriber may not read this record",
  access_unknown: "it could not be determined whether the subscriber may read this record",
  crashed: "its attempts were interrupted again and again",
  payload_unreadable: "the stored event cannot be read",
  payload_missing: "the stored event is gone",
  record_unreadable: "the stored delivery cannot be read",
};

/** The actions of the audit log: in a word or two, and what was done to the webhook `…`. */
const ACTIONS: Record<string, [label: string, phrase: string]> = {
  "webhook.created": ["Registered", "registered …"],
  "webhook.changed": ["Changed", "changed the settings of …"],
  "webhook.enabled": ["Enabled", "enabled …"],
  "webhook.disabled": ["Disabled", "disabled …"],
  "webhook.rotated": ["New secret", "made a new secret for …"],
  "webhook.rotation_finished": ["Rotation finished", "let the new secret of … sign"],
  "webhook.transferred": ["Transferred", "transferred … to another key"],
  "webhook.deleted": ["Deleted", "deleted …"],
  "webhook.recovered": ["Events recovered", "recovered missed events of …"],
  "webhook.replayed": ["Events replayed", "sent a span of time to … again"],
  "webhook.tested": ["Test sent", "sent a test to …"],
  "delivery.resent": ["Delivery sent again", "sent a delivery to … again"],
  "delivery.failed": ["Delivery failed", "gave up a delivery to …"],
  "delivery.withheld": ["Delivery withheld", "withheld a delivery to …"],
};

/** The actions with their labels, for a filter. */
export const ACTION_LABELS: [action: string, label: string][] = Object.entries(ACTIONS).map(
  ([action, [label]]) => [action, label],
);

const FIELD_NAMES: Record<string, string> = {
  url: "URL",
  eventTypes: "event types",
  description: "name",
};

function nameActor({ type, ...actor }: AuditEntryJson["actor"]): string {
  if (type === "key") return `Key ${"id" in actor ? actor.id : ""}`;
  if (type === "operator") return `${"name" in actor ? actor.name : ""} (operator)`;
  return type === "host" ? "The application" : "Postbell";
}

/**
 * Says when an endpoint was disabled and by whom: `Disabled 27 Nov, 23:11 by ada.` `entry`: of the
 * audit log, `null` without one.
 */
export function describeDisabling(
  entry: AuditEntryJson | null,
  { failingSince }: StatsJson["health"],
  zone: Zone,
): string {
  const when = entry === null ? "" : ` ${formatTime(entry.at, zone)}`;
  const { type, ...actor } = entry?.actor ?? { type: failingSince === null ? "" : "service" };
  if (type === "service") {
    const at = entry === null ? Number.NaN : Date.parse(entry.at);
    const failedMs = at - Date.parse(failingSince ?? "");
    const length = Number.isNaN(failedMs) ? "" : ` after ${formatDuration(failedMs)} of failures`;
    return `Disabled${when}${length || " because it kept failing"}. Nothing is sent.`;
  }
  const by =
    "id" in actor
      ? ` by ${actor.id}`
      : "name" in actor
        ? ` by ${actor.name} (operator)`
        : type === "host"
          ? " by the application"
          : "";
  return `Disabled${when}${by}. Nothing is sent.`;
}

/**
 * Says in a sentence who did what. Returns what stands before and after the name of the webhook:
 * `["Key ada changed the settings of", ": URL, event types."]`.
 */
export function describeAction({
  action,
  actor,
  fields,
  reason,
  count,
}: AuditEntryJson): [before: string, after: string] {
  const [before = "", after = ""] = (ACTIONS[action]?.[1] ?? `did ${action} to …`).split("…");
  const named = fields?.map((field) => FIELD_NAMES[field] ?? field).join(", ");
  const detail = named ?? count?.toString() ?? describeReason(reason ?? null);
  return [`${nameActor(actor)} ${before.trim()}`, `${after}${detail === "" ? "" : `: ${detail}`}.`];
}

/** Says why a delivery ended undelivered; the empty text if there is no reason. */
export const describeReason = (reason: string | null): string =>
  reason === null ? "" : (REASONS[reason] ?? reason);

interface StateWord {
  label: string;
  tone: Tone;
}

/** The state of a delivery in a word or two. */
export function labelState({
  state,
  type,
  attemptCount,
}: Pick<DeliveryRowJson, "state" | "type" | "attemptCount">): StateWord {
  const isTest = type === TEST_TYPE;
  switch (state) {
    case "pending":
      return {
        label: attemptCount === 0 ? "Pending" : "Retrying",
        tone: attemptCount === 0 ? "info" : "warn",
      };
    case "delivered":
      return { label: isTest ? "Test delivered" : "Delivered", tone: "good" };
    case "failed":
      return { label: isTest ? "Test failed" : "Failed", tone: "bad" };
    case "withheld":
      return { label: "Withheld", tone: "neutral" };
  }
}

/** `98.5 %`, or a dash if there was no attempt. */
export function formatSuccessRate({
  attempts,
  succeeded,
}: Pick<StatsJson["lastDay"], "attempts" | "succeeded">): string {
  if (attempts === 0) return "–";
  const percent = (100 * succeeded) / attempts;
  // 99.96 % is not 100 %.
  return `${(Math.floor(percent * 10) / 10).toLocaleString("en-GB")} %`;
}

/** Splits the URL of an endpoint. The query is left out, since it may contain a secret. */
export function splitUrl(url: string): { host: string; path: string } {
  if (!URL.canParse(url)) return { host: url, path: "" };
  const { host, pathname, search } = new URL(url);
  return { host, path: `${pathname === "/" ? "" : pathname}${search === "" ? "" : "?…"}` };
}

/**
 * Returns what a webhook is called: its description, or its address if it has none. `isNamed` is
 * true for a description.
 */
export function nameWebhook({ description, url }: Pick<NamedWebhookJson, "description" | "url">): {
  name: string;
  isNamed: boolean;
} {
  const named = description?.trim() ?? "";
  const { host, path } = splitUrl(url);
  return { name: named === "" ? host + path : named, isNamed: named !== "" };
}

/** The first characters of an event's id: enough to tell the rows of a page apart. */
export const shortenId = (id: string): string => id.slice(0, 8);

/** `3 of 15 enabled`, with what is wrong first: `1 failing, 1 disabled, 13 of 15 enabled`. */
export function summariseWebhooks(webhooks: { status: WebhookJson["status"]; stats: StatsJson }[]): string {
  const failing = webhooks.filter(({ stats }) => labelHealth(stats) === "Failing").length;
  const unstable = webhooks.filter(({ stats }) => labelHealth(stats) === "Unstable").length;
  const untested = webhooks.filter(({ stats }) => labelHealth(stats) === "Needs a test").length;
  const enabled = webhooks.filter(({ status }) => status === "ENABLED").length;
  const disabled = webhooks.length - enabled;
  return [
    ...(failing > 0 ? [`${failing} failing`] : []),
    ...(unstable > 0 ? [`${unstable} unstable`] : []),
    ...(untested > 0 ? [`${untested} to test`] : []),
    ...(disabled > 0 ? [`${disabled} disabled`] : []),
    `${enabled} of ${webhooks.length} enabled`,
  ].join(", ");
}

const URGENCY: Record<HealthLabel, number> = {
  Failing: 0,
  Disabled: 1,
  "Needs a test": 2,
  Unstable: 3,
  Healthy: 4,
  "Not tried yet": 4,
};

/** Sorts webhooks with a problem before the others. The rest of the order stays. */
export const sortByUrgency = <T extends { stats: StatsJson }>(webhooks: T[]): T[] =>
  webhooks.toSorted((a, b) => URGENCY[labelHealth(a.stats)] - URGENCY[labelHealth(b.stats)]);

/** The number of deliveries in the log. */
export const countLogged = ({ pending, delivered, failed, withheld }: StatsJson): number =>
  pending + delivered + failed + withheld;

/** The longest quotation of an answer. */
const QUOTE_LENGTH = 160;
const WORDS = ["message", "error_description", "error", "detail", "title", "description"] as const;

/** Finds the sentence in a JSON body: `{"error":{"message":"The database is full"}}`. */
function findSentence(value: unknown, depth: number): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null || depth === 0) return undefined;
  const fields = value as Record<string, unknown>;
  for (const name of WORDS) {
    const found = findSentence(fields[name], depth - 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Finds what a page of HTML says: its title, or its text. An excerpt may end within a tag. */
function readPageText(page: string): string {
  const title = /<title[^<>]*>([^<]+)/i.exec(page)?.[1];
  return title ?? page.replace(/<[^<>]*(?:>|$)/g, " ");
}

/**
 * Quotes what an endpoint answered, in one line: the message of a JSON body, the title of a page,
 * or the beginning of the body. Returns `undefined` for an empty answer.
 */
export function quoteAnswer(excerpt: string | null): string | undefined {
  if (excerpt === null) return undefined;
  let text: string | undefined;
  try {
    text = findSentence(JSON.parse(excerpt), 3);
  } catch {
    // Not JSON, or only its beginning.
  }
  text ??= excerpt.trimStart().startsWith("<") ? readPageText(excerpt) : excerpt;
  const line = text.split(/\s+/).join(" ").trim();
  if (line === "") return undefined;
  return line.length > QUOTE_LENGTH ? `“${line.slice(0, QUOTE_LENGTH - 1)}…”` : `“${line}”`;
}

/** `HTTP 500 “The database is full.”`, `no connection (ECONNREFUSED)` */
export function describeCause({ at, kind, status, code, excerpt }: AttemptJson): string {
  const result = describeResult({ at, kind, status, code });
  const quote = quoteAnswer(excerpt);
  return quote === undefined ? result : `${result} ${quote}`;
}
