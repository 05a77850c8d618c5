/** Sends mails one after another on one connection, each within its deadline. */

import { type Clock, withTimeout } from "../../src/core/clock.js";
import { createConcurrencyLimit } from "../../src/core/concurrency-limit.js";
import { PostbellError } from "../../src/core/errors.js";
import { createUnsent } from "./mail-error.js";
import { describeProblem, type MailOutcome, toFailedOutcome, toMailOutcome } from "./mail-outcome.js";
import type { SmtpNotifierOptions } from "./options.js";
import { openTransport } from "./transport.js";

const MAX_WAITING = 1_000;

export interface MailToSend {
  /** In nodemailer's form. */
  readonly mail: object;
  readonly recipients: readonly string[];
  /** Monotonic time. */
  readonly deadline: number;
  /**
   * Called if the deadline passes while the mail is sent. The promise has the final outcome, or
   * `undefined` if the mail was not sent.
   */
  readonly onLate: (outcome: Promise<MailOutcome | undefined>) => void;
}

export interface MailSender {
  /** @throws `mail_not_sent` if the outcome for the recipients is unknown at the deadline. */
  readonly send: (mail: MailToSend) => Promise<MailOutcome>;
  readonly close: () => Promise<void>;
}

export function createMailSender(
  transport: SmtpNotifierOptions["transport"],
  timeoutMs: number,
  clock: Clock,
): MailSender {
  const queue = createConcurrencyLimit({ running: 1, waiting: MAX_WAITING });
  let opened: ReturnType<typeof openTransport> | undefined;

  const sendNow = async (
    { mail, recipients, deadline, onLate }: MailToSend,
    signal: AbortSignal,
  ): Promise<unknown> => {
    const leftMs = deadline - clock.monotonic();
    if (leftMs <= 0) throw createUnsent("the mails before it took too long");
    opened ??= openTransport(transport, timeoutMs);
    const { transporter } = await opened;
    const sending = (async () => transporter.sendMail({ ...mail, signal }))();
    return withTimeout(clock, leftMs, sending, () => {
      onLate(
        sending.then(
          (result) => toMailOutcome(result, recipients),
          (error: unknown) => toFailedOutcome(error, recipients),
        ),
      );
      return createUnsent("the mail server took too long");
    });
  };

  return {
    async send(mail) {
      const { recipients } = mail;
      const control = new AbortController();
      const turn = queue.run(() => sendNow(mail, control.signal));
      if (turn === undefined) throw createUnsent("too many mails are waiting");
      try {
        return toMailOutcome(await turn, recipients);
      } catch (error) {
        // Aborts a mail that continues after its deadline. Only nodemailer 10.5 and later support
        // it.
        control.abort();
        if (error instanceof PostbellError) throw error;
        const outcome = toFailedOutcome(error, recipients);
        if (outcome === undefined)
          throw createUnsent(`the mail server could not be used (${describeProblem(error)})`, error);
        return outcome;
      }
    },
    async close() {
      const used = opened;
      opened = undefined;
      (await used?.catch(() => undefined))?.close();
    },
  };
}
