/** Writes the two mails, as text and as HTML. Pure. */

import type { Webhook } from "../src/index.js";

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
  readonly portalUrl: string | null;
}

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

export function toMailFacts({
  webhook,
  failingSince,
  disableAt,
  portalUrl,
  now,
}: {
  readonly webhook: Webhook;
  readonly failingSince: Date;
  readonly disableAt: Date | null;
  readonly portalUrl: string | null;
  readonly now: number;
}): MailFacts {
  const { origin, pathname, hostname } = new URL(webhook.url);
  return {
    kind: disableAt === null ? "disabled" : "warning",
    webhook,
    endpoint: `${origin}${pathname}`,
    host: hostname,
    failingSince,
    failingSinceText: formatDay(failingSince),
    failingFor: formatDuration(now - failingSince.getTime()),
    disableAt,
    disableAtText: disableAt && formatDay(disableAt),
    disableIn: disableAt && `in ${formatDuration(disableAt.getTime() - now)}`,
    portalUrl,
  };
}

type Block = { readonly text: string } | { readonly endpoint: string } | { readonly link: string };

/** Writes the mail that is sent unless the host has a template. */
export function defaultMail(facts: MailFacts): Mail {
  const { kind, host, endpoint, failingFor, failingSinceText, disableIn, disableAtText, portalUrl, webhook } =
    facts;
  const subject =
    kind === "warning"
      ? `Webhook endpoint ${host} is failing and will be disabled ${disableIn}`
      : `Webhook endpoint ${host} was disabled`;
  const failed = `has not sent a single 2xx response for ${failingFor}, since ${failingSinceText}.`;
  const blocks: readonly Block[] = [
    { text: "The webhook endpoint" },
    { endpoint },
    ...(kind === "warning"
      ? [
          { text: failed },
          {
            text: `If it keeps failing, it will be disabled ${disableIn}: on ${disableAtText}. It then receives no events until it is enabled again.`,
          },
          {
            text: "The delivery log shows why the attempts fail. A single 2xx response, to a retry or to a test event, stops this.",
          },
        ]
      : [
          { text: `was disabled: it ${failed}` },
          { text: "It receives no events until it is enabled again." },
          {
            text: "Repair the endpoint, enable it, then recover the missed events that are still stored.",
          },
        ]),
    ...(portalUrl === null ? [] : [{ text: "Its deliveries, with every attempt:" }, { link: portalUrl }]),
    { text: `Webhook ${webhook.id}` },
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

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (sign) => ENTITIES[sign] ?? "");
