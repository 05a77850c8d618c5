/** Writes the two mails, as text and as HTML. Pure. */

import type { FailingEndpoint, Webhook } from "../../src/index.js";
import type { EndpointFailure } from "../../src/ports.js";

/** Facts for a template. All of them may come from a subscriber, so escape them. */
export interface MailFacts {
  readonly kind: "warning" | "disabled";
  /** Its `url` may contain a password or a token: use `endpoint` in a mail. */
  readonly webhook: Webhook;
  /** URL of the endpoint without user name, password, query and fragment. */
  readonly endpoint: string;
  /** Host name of the endpoint. */
  readonly host: string;
  readonly failingSince: Date;
  /** `failingSince` in the form `Thursday 1 January 2026, 00:00 UTC`. */
  readonly failingSinceText: string;
  /** Duration such as `3 days`. */
  readonly failingFor: string;
  /** `null` in the mail of a disabled endpoint. */
  readonly disableAt: Date | null;
  readonly disableAtText: string | null;
  /** Such as `in 24 hours`; `null` in the mail of a disabled endpoint. */
  readonly disableIn: string | null;
  /** The last failure, such as `HTTP 500 on Thursday 1 January 2026, 00:00 UTC`; may be `null`. */
  readonly lastFailureText: string | null;
  /** How many deliveries wait for an attempt. */
  readonly pending: number;
  /** Until when they are retried; `null` in the mail of a disabled endpoint. */
  readonly retriedUntil: Date | null;
  readonly retriedUntilText: string | null;
  readonly portalUrl: string | null;
}

/** A mail, with all that a mail program shows. */
export interface Mail {
  readonly subject: string;
  readonly text: string;
  readonly html?: string | undefined;
}

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = "January February March April May June July August September October November December".split(
  " ",
);

/** Formats a date as `Thursday 1 January 2026, 00:00 UTC`. */
function formatDay(date: Date): string {
  const time = date.toISOString().slice(11, 16);
  return `${DAYS[date.getUTCDay()]} ${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}, ${time} UTC`;
}

/** Formats a duration as `3 days`, `24 hours` or `1 minute`, rounded. */
function formatDuration(ms: number): string {
  const minutes = Math.max(Math.round(ms / 60_000), 0);
  const hours = Math.round(minutes / 60);
  const [count, unit] =
    hours >= 48 ? [Math.round(hours / 24), "day"] : hours >= 2 ? [hours, "hour"] : [minutes, "minute"];
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}

const FAILURES: Record<string, string> = {
  dns: "The host name has no usable address",
  connect: "No connection",
  tls: "The TLS handshake failed",
  timeout: "No response in time",
  refused: "The address is not allowed",
};

/** Describes a failure as `HTTP 500 on …` or `No connection (ECONNREFUSED) on …`. */
const formatFailure = ({ at, kind, status, code }: EndpointFailure): string =>
  `${status === null ? `${FAILURES[kind] ?? kind} (${code})` : `HTTP ${status}`} on ${formatDay(at)}`;

/** One health notification. */
export interface HealthMail extends FailingEndpoint {
  kind: MailFacts["kind"];
  disableAt: Date | null;
  retriedUntil: Date | null;
}

export function toMailFacts({
  kind,
  webhook,
  failingSince,
  lastFailure,
  pending,
  disableAt,
  retriedUntil,
  portalUrl,
  now,
}: HealthMail & { portalUrl: string | null; now: number }): MailFacts {
  const { origin, pathname, hostname } = new URL(webhook.url);
  return {
    kind,
    webhook,
    endpoint: `${origin}${pathname}`,
    host: hostname,
    failingSince,
    failingSinceText: formatDay(failingSince),
    failingFor: formatDuration(now - failingSince.getTime()),
    disableAt,
    disableAtText: disableAt && formatDay(disableAt),
    disableIn: disableAt && `in ${formatDuration(disableAt.getTime() - now)}`,
    lastFailureText: lastFailure && formatFailure(lastFailure),
    pending,
    retriedUntil,
    retriedUntilText: retriedUntil && formatDay(retriedUntil),
    portalUrl,
  };
}

type Block = { text: string } | { endpoint: string } | { link: string };

const countDeliveries = (count: number): string =>
  count === 1 ? "1 delivery is waiting" : `${count} deliveries are waiting`;

/** Writes how many deliveries wait, and until when they are retried. */
function writePending({ pending, retriedUntilText }: MailFacts): string {
  const retried = pending === 1 ? "It is retried" : "They are retried";
  return `${countDeliveries(pending)}. ${retried} until ${retriedUntilText} at the latest.`;
}

/** Writes the sentences about an endpoint that is to be disabled. */
function writeWarning(facts: MailFacts): string[] {
  const { failingFor, failingSinceText, pending, disableIn, disableAtText } = facts;
  return [
    `has not returned a 2xx response for ${failingFor}, since ${failingSinceText}.`,
    ...(pending === 0 ? [] : [writePending(facts)]),
    `If the endpoint keeps failing, it will be disabled ${disableIn}, on ${disableAtText}. It then receives no events until it is enabled again.`,
    "A single 2xx response, to a retry or to a test, prevents this.",
  ];
}

/** Writes the sentences about an endpoint that was disabled. */
function writeDisabled({ failingFor, failingSinceText, pending }: MailFacts): string[] {
  return [
    `was disabled: it had not returned a 2xx response for ${failingFor}, since ${failingSinceText}.`,
    `It receives no events until it is enabled again.${pending === 0 ? "" : ` ${countDeliveries(pending)} and will not be attempted before that.`}`,
    "Repair the endpoint, enable it, then retry what it missed: events are stored for a limited time.",
  ];
}

/** Writes the mail that is sent unless the host has a template. */
export function defaultMail(facts: MailFacts): Mail {
  const { kind, host, endpoint, lastFailureText, disableIn, portalUrl, webhook } = facts;
  const subject =
    kind === "warning"
      ? `Webhook endpoint ${host} is failing and will be disabled ${disableIn}`
      : `Webhook endpoint ${host} was disabled`;
  const [first, ...rest] = kind === "warning" ? writeWarning(facts) : writeDisabled(facts);
  const blocks: Block[] = [
    { text: "The webhook endpoint" },
    { endpoint },
    { text: first ?? "" },
    ...(lastFailureText === null ? [] : [{ text: `Last failure: ${lastFailureText}.` }]),
    ...rest.map((text) => ({ text })),
    ...(portalUrl === null ? [] : [{ text: "See every attempt and its response:" }, { link: portalUrl }]),
    { text: `Webhook ID: ${webhook.id}` },
  ];
  return {
    subject,
    text: `${blocks.map(asText).join("\n\n")}\n`,
    html: `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>${escapeHtml(subject)}</title></head>
<body style="font-family: sans-serif; line-height: 1.5; max-width: 40em">
${blocks.map(asHtml).join("\n")}
</body>
</html>
`,
  };
}

function asText(block: Block): string {
  if ("text" in block) return block.text;
  return `    ${"endpoint" in block ? block.endpoint : block.link}`;
}

function asHtml(block: Block): string {
  if ("text" in block) return `<p>${escapeHtml(block.text)}</p>`;
  // Not a link: the endpoint expects POSTs, and a subscriber chose its URL.
  if ("endpoint" in block) return `<p><code>${escapeHtml(block.endpoint)}</code></p>`;
  return `<p><a href="${escapeHtml(block.link)}">${escapeHtml(block.link)}</a></p>`;
}

const ENTITIES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (sign) => ENTITIES[sign] ?? "");
