/** Tells people by mail what the health of an endpoint leads to. Sends with nodemailer, which the host installs. */

import { LRUCache } from "lru-cache";
import { withTimeout } from "../src/core/clock.js";
import { createConcurrencyLimit } from "../src/core/concurrency-limit.js";
import { PostbellError } from "../src/core/errors.js";
import { guardedLogger } from "../src/core/logger.js";
import { readOptions } from "../src/core/options.js";
import type { Notify, Webhook } from "../src/index.js";
import { defaultMail, type Mail, type MailFacts, toMailFacts } from "./mail.js";
import { type MailAddress, readAddress } from "./mail-address.js";
import { type SmtpNotifierOptions, smtpNotifierOptions } from "./options.js";
import { describeProblem, type MailOutcome, toFailedOutcome, toMailOutcome } from "./outcome.js";
import { openTransport } from "./transport.js";

/** For the option `notify` of `createWebhooks`. */
export interface SmtpNotifier {
  /** Mails that an endpoint fails and when it will be disabled. */
  readonly warning: NonNullable<Notify["warning"]>;
  /** Mails that an endpoint was disabled. */
  readonly disabled: NonNullable<Notify["disabled"]>;
  /** Waits for mails under way and closes the connection; the next mail opens it again. Called by `stop()` of the service. */
  close(): Promise<void>;
}

/** How long one of several recipients may put the mail off while another one has it. */
const STRAGGLER_MS = 3_600_000;
/** How long a mail whose time is over may still be on its way, where the transporter cannot be told to drop it. By then nodemailer's own time-outs have ended it. */
const LATE_MS = 900_000;
const MAX_PERIODS = 10_000;
const MAX_WAITING = 1_000;
const MAX_SUBJECT = 200;

/** What this process knows of the mail of one period. */
interface Period {
  readonly served: Set<string>;
  /** Whether somebody has the mail. */
  isSent: boolean;
  /** Monotonic time. */
  putOffAt: number | undefined;
  /** Until this monotonic time a mail that was given up may still arrive: none is sent beside it. */
  lateUntil: number;
}

/**
 * A notifier that mails the warning and the disabling to whom `to` names. Needs the package `nodemailer` beside this one; it is loaded with the first mail.
 *
 * Guarantee: a call resolves once the mail server has taken the mail for every recipient, or refused it for good (5xx, which is logged); else it rejects, and Postbell
 * calls again a minute later. So each mail is sent at least once, and a second time only where it is unknown whether the server took it (a crash, a time-out), or where
 * one of several recipients was put off and another process takes the notice up. The `Message-ID` is the same for a webhook, kind and period, so that a double can be told.
 *
 * Errors: `invalid_option`, also with the first mail, where nodemailer is missing; `mail_not_sent` from a call, with what is safe to log of the reason.
 */
export function smtpNotifier(options: SmtpNotifierOptions): SmtpNotifier {
  const settings = readOptions("smtpNotifier", smtpNotifierOptions, options);
  const { transport, to, portalUrl, templates, timeoutMs, clock } = settings;
  const from = readAddress(settings.from);
  if (transport === undefined) throw missing("transport");
  if (from === undefined) throw missing("from");
  if (to === undefined) throw missing("to");
  const logger = guardedLogger(settings.logger);
  const domain = from.address.slice(from.address.lastIndexOf("@") + 1);
  const periods = new LRUCache<string, Period>({ max: MAX_PERIODS });
  const turns = createConcurrencyLimit({ running: 1, waiting: MAX_WAITING });
  const underway = new Set<Promise<unknown>>();
  let opened: ReturnType<typeof openTransport> | undefined;

  const idOf = (kind: MailFacts["kind"], { id }: Webhook, failingSince: Date): string =>
    `<postbell.${kind}.${id}.${failingSince.getTime()}@${domain}>`;

  /** Those of a webhook, each once. A bad address among them is logged: asking again would bring it again. */
  const recipientsOf = async (webhook: Webhook): Promise<readonly MailAddress[]> => {
    const named = typeof to === "function" ? await to(webhook) : to;
    if (named === null || named === undefined) return [];
    const list: unknown = typeof named === "string" ? [named] : named;
    if (!Array.isArray(list)) throw unsent("`to` must give an address, a list of addresses or null");
    const read = list.map(readAddress);
    if (read.includes(undefined))
      logger.error({ webhook: webhook.id }, "what was given for a recipient is no mail address");
    const known = new Map(read.flatMap((one) => (one ? [[one.address.toLowerCase(), one] as const] : [])));
    return [...known.values()];
  };

  const linkOf = (webhook: Webhook): string | null => {
    const given: unknown = portalUrl?.(webhook) ?? null;
    if (given === null) return null;
    if (typeof given === "string" && URL.canParse(given) && /^https?:$/.test(new URL(given).protocol))
      return new URL(given).href;
    logger.error({ webhook: webhook.id }, "what `portalUrl` gave is no http: or https: URL");
    return null;
  };

  /** In turn, on the one connection. Rejects at the deadline; what becomes of the mail after all is told to `onLate`: `undefined` where it was not sent. */
  const deliver = async (
    mail: object,
    recipients: readonly string[],
    deadline: number,
    onLate: (outcome: Promise<MailOutcome | undefined>) => void,
  ): Promise<MailOutcome> => {
    const control = new AbortController();
    const turn = turns.run(async () => {
      const leftMs = deadline - clock.monotonic();
      if (leftMs <= 0) throw unsent("the mails before it took too long");
      opened ??= openTransport(transport, timeoutMs);
      const { transporter } = await opened;
      const sending = (async () => transporter.sendMail({ ...mail, signal: control.signal }))();
      return withTimeout(clock, leftMs, sending, () => {
        onLate(
          sending.then(
            (result) => toMailOutcome(result, recipients),
            (error: unknown) => toFailedOutcome(error, recipients),
          ),
        );
        return unsent("the mail server took too long");
      });
    });
    if (turn === undefined) throw unsent("too many mails are waiting");
    try {
      return toMailOutcome(await turn, recipients);
    } catch (error) {
      // Ends what goes on after its time. Only nodemailer from 10.5 on knows how.
      control.abort();
      if (error instanceof PostbellError) throw error;
      const outcome = toFailedOutcome(error, recipients);
      if (outcome === undefined)
        throw unsent(`the mail server could not be used (${describeProblem(error)})`, error);
      return outcome;
    }
  };

  const send = async (
    kind: MailFacts["kind"],
    webhook: Webhook,
    failingSince: Date,
    disableAt: Date | null,
  ): Promise<void> => {
    const deadline = clock.monotonic() + timeoutMs;
    const messageId = idOf(kind, webhook, failingSince);
    const period: Period = periods.get(messageId) ?? {
      served: new Set(),
      isSent: false,
      putOffAt: undefined,
      lateUntil: Number.NEGATIVE_INFINITY,
    };
    periods.set(messageId, period);
    if (clock.monotonic() < period.lateUntil)
      throw unsent("the mail server has not answered the last one yet");
    const recipients = (await recipientsOf(webhook)).filter(({ address }) => !period.served.has(address));
    if (recipients.length === 0) return;

    const now = clock.now();
    const facts = toMailFacts({ webhook, failingSince, disableAt, portalUrl: linkOf(webhook), now });
    const { subject, text, html } = checkedMail((templates[kind] ?? defaultMail)(facts));
    const about = { kind, webhook: webhook.id };
    const addresses = recipients.map(({ address }) => address);
    const thread = kind === "disabled" ? idOf("warning", webhook, failingSince) : undefined;
    const outcome = await deliver(
      {
        ...{ from, to: recipients, subject, text, html, messageId, date: new Date(now) },
        ...(thread === undefined ? {} : { inReplyTo: thread, references: thread }),
        envelope: { from: from.address, to: addresses },
        // RFC 3834: keeps holiday notes and the like from answering.
        headers: { "Auto-Submitted": "auto-generated" },
        disableFileAccess: true,
        disableUrlAccess: true,
      },
      addresses,
      deadline,
      (late) => {
        period.lateUntil = clock.monotonic() + LATE_MS;
        late
          .then((known) => known && record(period, known, about))
          // The next call asks again those who were put off.
          .catch(() => {})
          .finally(() => (period.lateUntil = Number.NEGATIVE_INFINITY));
      },
    );
    record(period, outcome, about);
  };

  /** Errors: `mail_not_sent` while somebody has to be asked again. */
  const record = (
    period: Period,
    { accepted, refused, putOff }: MailOutcome,
    about: { readonly kind: string; readonly webhook: string },
  ): void => {
    for (const address of accepted) period.served.add(address);
    period.isSent ||= accepted.length > 0;
    for (const { address, status } of refused) {
      period.served.add(address);
      logger.error({ ...about, recipient: address, status }, "a recipient was refused by the mail server");
    }
    if (putOff.length === 0) return;
    period.putOffAt ??= clock.monotonic();
    if (!period.isSent || clock.monotonic() - period.putOffAt < STRAGGLER_MS)
      throw unsent(`the mail server put it off (${putOff.map(({ status }) => status).join(", ")})`);
    for (const { address, status } of putOff) {
      period.served.add(address);
      logger.error({ ...about, recipient: address, status }, "a recipient was put off for too long");
    }
  };

  const tracked = async (sending: Promise<void>): Promise<void> => {
    underway.add(sending);
    try {
      await sending;
    } finally {
      underway.delete(sending);
    }
  };

  return Object.freeze<SmtpNotifier>({
    warning: ({ webhook, failingSince, disableAt }) =>
      tracked(send("warning", webhook, failingSince, disableAt)),
    disabled: ({ webhook, failingSince }) => tracked(send("disabled", webhook, failingSince, null)),
    async close() {
      await Promise.allSettled(underway);
      const used = opened;
      opened = undefined;
      (await used?.catch(() => undefined))?.close();
    },
  });
}

/** What a template gave, with a subject of one line. */
function checkedMail({ subject, text, html }: Mail): Mail {
  if (typeof subject !== "string" || typeof text !== "string") throw unsent("a template gave no text");
  if (html !== undefined && typeof html !== "string") throw unsent("the html of a template is no text");
  const line = subject.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ").trim();
  return { subject: line.slice(0, MAX_SUBJECT), text, html };
}

const missing = (field: string): PostbellError =>
  new PostbellError("invalid_option", `smtpNotifier: ${field} is required.`, { field });

const unsent = (why: string, cause?: unknown): PostbellError =>
  new PostbellError("mail_not_sent", `smtpNotifier: the mail was not sent: ${why}.`, { cause });
