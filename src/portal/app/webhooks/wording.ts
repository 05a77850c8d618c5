/** The health of a webhook, the state of a delivery and the result of an attempt, in words. */

import type {
  AttemptJson,
  AttemptResultJson,
  AuditEntryJson,
  DeliveryRowJson,
  NamedWebhookJson,
  StatsJson,
  WebhookJson,
} from "../../shapes.js";
import { texts } from "../texts.js";
import { formatDuration, formatTime, type Zone } from "../times.js";
import type { Tone } from "../tone.js";

/** The event type of tests, which are attempted once. */
export const TEST_TYPE = "webhook.test";

export type HealthKey = "healthy" | "unstable" | "failing" | "disabled" | "untried" | "untested";

/** An endpoint with a lower share of successes in 24 hours is unstable. */
const STABLE_SHARE = 0.95;

/**
 * Returns the health of an endpoint. It needs a test if the last attempt failed and no failure is
 * recorded: the webhook was enabled or moved after a failure. It is unstable if the last attempt
 * succeeded, but fewer than 95 % of those of the last 24 hours.
 */
export function getHealth({ health, lastAttempt, lastDay }: StatsJson): HealthKey {
  if (health.status === "disabled") return "disabled";
  if (health.status !== "ok") return "failing";
  if (lastAttempt === null) return "untried";
  if (lastAttempt.kind !== "delivered") return "untested";
  return lastDay.succeeded < lastDay.attempts * STABLE_SHARE ? "unstable" : "healthy";
}

/** The health of an endpoint in a word or two. */
export const labelHealth = (stats: StatsJson): string => texts.health[getHealth(stats)];

/** True if somebody should look at the endpoint. */
export const isTroubled = (stats: StatsJson): boolean => !["healthy", "untried"].includes(getHealth(stats));

/** True if an endpoint is in trouble, unless somebody disabled it on purpose. */
export const needsAttention = (stats: StatsJson): boolean =>
  isTroubled(stats) && (stats.health.status !== "disabled" || stats.health.failingSince !== null);

const HEALTH_TONES: Record<HealthKey, Tone> = {
  healthy: "good",
  unstable: "warn",
  failing: "bad",
  disabled: "bad",
  untried: "neutral",
  untested: "info",
};

export const HEALTHS = Object.keys(HEALTH_TONES) as HealthKey[];

/** The tone of an endpoint's health. One that a person disabled on purpose is no alarm. */
export const getHealthTone = (stats: StatsJson): Tone =>
  stats.health.status === "disabled" && !needsAttention(stats) ? "neutral" : HEALTH_TONES[getHealth(stats)];

/** Describes the health of an endpoint, and what happens to it next. */
export function describeHealth(stats: StatsJson, zone: Zone): string {
  const { status, failingSince, warnAt, disableAt } = stats.health;
  const { health } = texts;
  const show = (at: string | null, text: (values: { time: string }) => string): string =>
    at === null ? "" : text({ time: formatTime(at, zone) });
  const join = (...sentences: string[]): string => sentences.filter((each) => each !== "").join(" ");
  const since = show(failingSince, health.failingSince);
  switch (getHealth(stats)) {
    case "disabled":
      return join(health.nothingIsSent, since);
    case "untested":
      return health.testIt;
    case "untried":
      return health.nothingSentYet;
    case "healthy":
      return health.accepts;
    case "unstable":
      return health.lastSucceeded({ rate: formatSuccessRate(stats.lastDay) });
    case "failing": {
      const email = status === "warned" ? health.emailSentOn : health.emailOn;
      return join(since, show(warnAt, email), show(disableAt, health.disabledOn));
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

/** `HTTP 204 in 38 ms`, `HTTP 500 in 812 ms`, `no connection (ECONNREFUSED)` */
export function describeResult({ kind, status, code, durationMs }: AttemptResultJson): string {
  const duration = durationMs === undefined ? undefined : formatDuration(durationMs);
  if (status !== null) {
    const response = { status: String(status) };
    return duration === undefined
      ? texts.attempt.http(response)
      : texts.attempt.httpIn({ ...response, duration });
  }
  const { withCode, timeoutAfter, ...failures } = texts.failures;
  const failure =
    kind === "timeout" && duration !== undefined
      ? timeoutAfter({ duration })
      : ((failures as Record<string, string>)[kind] ?? kind);
  return withCode({ failure, code });
}

/** `Delivered: HTTP 204 in 38 ms`, `Failed: no connection (ECONNREFUSED)` */
export const describeAttempt = (attempt: AttemptResultJson): string =>
  texts.attempt[attempt.kind === "delivered" ? "delivered" : "failed"]({ result: describeResult(attempt) });

/** The actions of the audit log with their labels, for a filter. */
export const listAuditActions = (): [action: string, label: string][] =>
  Object.entries(texts.audit).map(([action, { label }]) => [action, label]);

function nameActor({ type, ...actor }: AuditEntryJson["actor"]): string {
  const { activity } = texts;
  if (type === "key") return activity.key({ id: "id" in actor ? actor.id : "" });
  if (type === "operator") return activity.operator({ name: "name" in actor ? actor.name : "" });
  return type === "host" ? activity.application : "Postbell";
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
  const { disabling } = texts;
  if (entry === null) return failingSince === null ? disabling.unknown : disabling.byFailures;
  const time = formatTime(entry.at, zone);
  const { type, ...actor } = entry.actor;
  if (type === "service") {
    const failedMs = Date.parse(entry.at) - Date.parse(failingSince ?? "");
    if (Number.isNaN(failedMs)) return disabling.byFailuresAt({ time });
    return disabling.afterFailuresAt({ time, duration: formatDuration(failedMs) });
  }
  if ("id" in actor) return disabling.byKeyAt({ time, key: actor.id });
  if ("name" in actor) return disabling.byOperatorAt({ time, name: actor.name });
  return type === "host" ? disabling.byApplicationAt({ time }) : disabling.unknownAt({ time });
}

/** Stands in a sentence for the name of a webhook, which is a link. */
const WEBHOOK = Symbol("webhook");

/**
 * Says in a sentence who did what. Returns what stands before and after the name of the webhook:
 * `["Key ada changed the settings of ", ": URL, event types."]`.
 */
export function describeAction({
  action,
  actor,
  fields,
  reason,
  count,
}: AuditEntryJson): [before: string, after: string] {
  const { audit, activity } = texts;
  const values = { actor: nameActor(actor), webhook: WEBHOOK };
  const parts = Object.hasOwn(audit, action)
    ? audit[action as keyof typeof audit].done(values)
    : activity.unknownAction({ ...values, action });
  const at = parts.indexOf(WEBHOOK);
  const named = fields
    ?.map((field) => (activity.fields as Record<string, string>)[field] ?? field)
    .join(", ");
  const detail = named ?? count?.toString() ?? describeReason(reason ?? null);
  const after = parts.slice(at + 1).join("");
  return [parts.slice(0, at).join(""), `${after}${detail === "" ? "" : `: ${detail}`}.`];
}

/** Says why a delivery ended undelivered; the empty text if there is no reason. */
export const describeReason = (reason: string | null): string =>
  reason === null ? "" : ((texts.reasons as Record<string, string>)[reason] ?? reason);

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
  const { states } = texts;
  switch (state) {
    case "pending":
      return attemptCount === 0
        ? { label: states.pending, tone: "info" }
        : { label: states.retrying, tone: "warn" };
    case "delivered":
      return { label: isTest ? states.testDelivered : states.delivered, tone: "good" };
    case "failed":
      return { label: isTest ? states.testFailed : states.failed, tone: "bad" };
    case "withheld":
      return { label: states.withheld, tone: "neutral" };
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
  return texts.time.percent({ value: Math.floor(percent * 10) / 10 });
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
  const { webhooks: words } = texts;
  const count = (health: HealthKey): number =>
    webhooks.filter(({ stats }) => getHealth(stats) === health).length;
  const enabled = webhooks.filter(({ status }) => status === "ENABLED").length;
  const parts: [count: number, text: (values: { count: number }) => string][] = [
    [count("failing"), words.failingCount],
    [count("unstable"), words.unstableCount],
    [count("untested"), words.untestedCount],
    [webhooks.length - enabled, words.disabledCount],
  ];
  return [
    ...parts.filter(([number]) => number > 0).map(([number, text]) => text({ count: number })),
    words.enabledOf({ count: enabled, total: webhooks.length }),
  ].join(", ");
}

const URGENCY: Record<HealthKey, number> = {
  failing: 0,
  disabled: 1,
  untested: 2,
  unstable: 3,
  healthy: 4,
  untried: 4,
};

/** Sorts webhooks with a problem before the others. The rest of the order stays. */
export const sortByUrgency = <T extends { stats: StatsJson }>(webhooks: T[]): T[] =>
  webhooks.toSorted((a, b) => URGENCY[getHealth(a.stats)] - URGENCY[getHealth(b.stats)]);

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
  return line.length > QUOTE_LENGTH ? `${line.slice(0, QUOTE_LENGTH - 1)}…` : line;
}

/** `HTTP 500 “The database is full.”`, `no connection (ECONNREFUSED)` */
export function describeCause({ at, kind, status, code, excerpt }: AttemptJson): string {
  const result = describeResult({ at, kind, status, code });
  const quote = quoteAnswer(excerpt);
  return quote === undefined ? result : `${result} ${texts.attempt.quoted({ text: quote })}`;
}
