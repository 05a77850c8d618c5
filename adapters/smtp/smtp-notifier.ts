/** Sends mails about the health of endpoints, with nodemailer, which the host installs. */

import { PostbellError } from "../../src/core/errors.js";
import { guardedLogger } from "../../src/core/logger.js";
import { readOptions } from "../../src/core/options.js";
import type { Notify } from "../../src/index.js";
import { defaultMail, type HealthMail, type Mail, type MailFacts, toMailFacts } from "./mail.js";
import { readAddress } from "./mail-address.js";
import { createUnsent } from "./mail-error.js";
import { createMailPeriods } from "./mail-period.js";
import { createMailSender } from "./mail-sender.js";
import { type SmtpNotifierOptions, smtpNotifierOptions } from "./options.js";
import { findPortalUrl, findRecipients } from "./recipients.js";

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
 * it. By then, nodemailer's own time-outs have ended it.
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
      ...{ from, messageId, date: new Date(now) },
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
          .then((known) => known && periods.record(period, known, about))
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
