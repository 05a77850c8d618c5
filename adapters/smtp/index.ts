/**
 * Sends mails, for the option `notify` of `createWebhooks`.
 *
 * @module postbell/smtp
 */

import { LRUCache } from "lru-cache";
import type { Clock } from "../../src/core/clock.js";
import { PostbellError } from "../../src/core/errors.js";
import { guardedLogger, type Logger } from "../../src/core/logger.js";
import { readOptions } from "../../src/core/options.js";
import type { Notify, Webhook } from "../../src/index.js";
import { defaultMail, type HealthMail, type Mail, type MailFacts, toMailFacts } from "./mail.js";
import { createMailSender, createUnsent, type MailOutcome } from "./mail-sender.js";
import { type MailAddress, readAddress, type SmtpNotifierOptions, smtpNotifierOptions } from "./options.js";

export type { Mail, MailFacts } from "./mail.js";
export type { MailTemplates, Recipients, SmtpNotifierOptions, Transporter } from "./options.js";

/** A value for the option `notify` of `createWebhooks`. */
export interface SmtpNotifier {
  /** Sends the mail that an endpoint fails and when it will be disabled. */
  readonly warning: NonNullable<Notify["warning"]>;
  /** Sends the mail that an endpoint was disabled. */
  readonly disabled: NonNullable<Notify["disabled"]>;
  /**
   * Waits for mails in flight and closes the connection. The next mail opens it again. `stop()` of
   * the service calls this.
   */
  close(): Promise<void>;
}

/**
 * Longest time for which an abandoned mail may still be on its way, if the transporter cannot abort
 * it. By then, nodemailer's time-outs have ended it.
 */
const LATE_MS = 900_000;
const MAX_SUBJECT = 200;

/**
 * Creates a notifier that mails warnings and disabled endpoints to the recipients in `to`. It needs
 * the package `nodemailer`, which is loaded with the first mail.
 *
 * Guarantee: a call resolves once the mail server has accepted the mail for every recipient, or
 * refused it permanently (5xx, which is logged). Otherwise it rejects, and Postbell calls again a
 * minute later. So each mail is sent at least once. It is sent twice only if it is unknown whether
 * the server accepted it (a crash, a time-out), or if one of several recipients was deferred and
 * another process retries. The `Message-ID` is the same for a webhook, kind and period, so that a
 * duplicate can be recognised.
 *
 * @throws `invalid_option`, also with the first mail if nodemailer is missing. A call rejects with
 * `mail_not_sent` and a reason that is safe to log.
 *
 * @example
 * const notify = smtpNotifier({
 *   transport: "smtp://mail.example.org",
 *   from: "Webhooks <hooks@example.org>",
 *   to: (webhook) => findOwnerAddress(webhook.account),
 * });
 */
export function smtpNotifier(options: SmtpNotifierOptions): SmtpNotifier {
  const settings = readOptions("smtpNotifier", smtpNotifierOptions, options);
  const { transport, to, portalUrl, templates, timeoutMs, clock } = settings;
  const from = readAddress(settings.from);
  if (transport === undefined) throw missingOption("transport");
  if (from === undefined) throw missingOption("from");
  if (to === undefined) throw missingOption("to");
  const logger = guardedLogger(settings.logger);
  const domain = from.address.slice(from.address.lastIndexOf("@") + 1);
  const periods = createMailPeriods(clock, logger);
  const sender = createMailSender(transport, timeoutMs, clock);
  const inFlight = new Set<Promise<unknown>>();

  const toMessageId = (kind: MailFacts["kind"], { webhook, failingSince }: HealthMail): string =>
    `<postbell.${kind}.${webhook.id}.${failingSince.getTime()}@${domain}>`;

  const writeMail = (health: HealthMail, messageId: string): object => {
    const { kind, webhook } = health;
    const now = clock.now();
    const facts = toMailFacts({ ...health, portalUrl: findPortalUrl(webhook, portalUrl, logger), now });
    const thread = kind === "disabled" ? toMessageId("warning", health) : undefined;
    return {
      from,
      messageId,
      date: new Date(now),
      ...checkMail((templates[kind] ?? defaultMail)(facts)),
      ...(thread === undefined ? {} : { inReplyTo: thread, references: thread }),
      // RFC 3834: prevents automatic replies such as holiday notes.
      headers: { "Auto-Submitted": "auto-generated" },
      disableFileAccess: true,
      disableUrlAccess: true,
    };
  };

  const send = async (health: HealthMail): Promise<void> => {
    const { kind, webhook } = health;
    const deadline = clock.monotonic() + timeoutMs;
    const messageId = toMessageId(kind, health);
    const period = periods.get(messageId);
    if (clock.monotonic() < period.lateUntil)
      throw createUnsent("the mail server has not responded to the last one yet");
    const found = await findRecipients(webhook, to, logger);
    const recipients = found.filter(({ address }) => !period.served.has(address));
    if (recipients.length === 0) return;
    const about = { kind, webhook: webhook.id };
    const addresses = recipients.map(({ address }) => address);
    const envelope = { from: from.address, to: addresses };
    const outcome = await sender.send({
      mail: { ...writeMail(health, messageId), to: recipients, envelope },
      recipients: addresses,
      deadline,
      onLate: (late) => {
        period.lateUntil = clock.monotonic() + LATE_MS;
        late
          .then((state) => state && periods.record(period, state, about))
          // The next call retries the recipients that were deferred.
          .catch(() => {})
          .finally(() => (period.lateUntil = Number.NEGATIVE_INFINITY));
      },
    });
    periods.record(period, outcome, about);
  };

  const track = async (sending: Promise<void>): Promise<void> => {
    inFlight.add(sending);
    try {
      await sending;
    } finally {
      inFlight.delete(sending);
    }
  };

  return Object.freeze<SmtpNotifier>({
    warning: (event) => track(send({ ...event, kind: "warning" })),
    disabled: (event) => track(send({ ...event, kind: "disabled", disableAt: null, retriedUntil: null })),
    async close() {
      await Promise.allSettled(inFlight);
      await sender.close();
    },
  });
}

/** Checks the mail of a template, and makes its subject one line. */
function checkMail({ subject, text, html }: Mail): Mail {
  if (typeof subject !== "string" || typeof text !== "string")
    throw createUnsent("a template returned no text");
  if (html !== undefined && typeof html !== "string")
    throw createUnsent("a template returned html that is not a text");
  const line = subject.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ").trim();
  return { subject: line.slice(0, MAX_SUBJECT), text, html };
}

const missingOption = (field: string): PostbellError =>
  new PostbellError("invalid_option", `smtpNotifier: ${field} is required.`, { field });

/** Longest time for which a recipient may be deferred while another one has the mail. */
const MAX_DEFERRED_MS = 3_600_000;
const MAX_PERIODS = 10_000;

/** The mail about one webhook, kind and period of failing. */
interface MailPeriod {
  /** Addresses that need no further try: they have the mail, or are refused. */
  served: Set<string>;
  /** True if somebody has the mail. */
  isSent: boolean;
  /** Monotonic time. */
  deferredAt: number | undefined;
  /** Until this monotonic time, an abandoned mail may still arrive, so that no other is sent. */
  lateUntil: number;
}

interface MailPeriods {
  get: (messageId: string) => MailPeriod;
  /** @throws `mail_not_sent` while a recipient has to be retried. */
  record: (period: MailPeriod, outcome: MailOutcome, about: { kind: string; webhook: string }) => void;
}

function createMailPeriods(clock: Clock, logger: Logger): MailPeriods {
  const periods = new LRUCache<string, MailPeriod>({ max: MAX_PERIODS });
  return {
    get(messageId) {
      const period: MailPeriod = periods.get(messageId) ?? {
        served: new Set(),
        isSent: false,
        deferredAt: undefined,
        lateUntil: Number.NEGATIVE_INFINITY,
      };
      periods.set(messageId, period);
      return period;
    },
    record(period, { accepted, refused, deferred }, about) {
      for (const address of accepted) period.served.add(address);
      period.isSent ||= accepted.length > 0;
      for (const { address, status } of refused) {
        period.served.add(address);
        logger.error({ ...about, recipient: address, status }, "a recipient was refused by the mail server");
      }
      if (deferred.length === 0) return;
      period.deferredAt ??= clock.monotonic();
      if (!period.isSent || clock.monotonic() - period.deferredAt < MAX_DEFERRED_MS)
        throw createUnsent(
          `the mail server deferred it (${deferred.map(({ status }) => status).join(", ")})`,
        );
      for (const { address, status } of deferred) {
        period.served.add(address);
        logger.error({ ...about, recipient: address, status }, "a recipient was deferred for too long");
      }
    },
  };
}

/**
 * Returns the recipients for a webhook, each once. An invalid address is logged and skipped,
 * because a retry would return it again.
 */
async function findRecipients(
  webhook: Webhook,
  to: SmtpNotifierOptions["to"],
  logger: Logger,
): Promise<MailAddress[]> {
  const named = typeof to === "function" ? await to(webhook) : to;
  if (named === null || named === undefined) return [];
  const list: unknown = typeof named === "string" ? [named] : named;
  if (!Array.isArray(list)) throw createUnsent("`to` must return an address, a list of addresses or null");
  const read = list.map(readAddress);
  if (read.includes(undefined))
    logger.error({ webhook: webhook.id }, "a recipient is not a valid mail address");
  return [
    ...new Map(read.flatMap((one) => (one ? [[one.address.toLowerCase(), one] as const] : []))).values(),
  ];
}

/** Returns the link for the mail, or `null` without one. An invalid URL is logged. */
function findPortalUrl(
  webhook: Webhook,
  portalUrl: SmtpNotifierOptions["portalUrl"],
  logger: Logger,
): string | null {
  const link: unknown = portalUrl?.(webhook) ?? null;
  if (link === null) return null;
  if (typeof link === "string" && URL.canParse(link) && /^https?:$/.test(new URL(link).protocol))
    return new URL(link).href;
  logger.error({ webhook: webhook.id }, "`portalUrl` returned no http: or https: URL");
  return null;
}
