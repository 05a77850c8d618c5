/** Sends mails one after another on one connection, each within its deadline. */

import { type Clock, withTimeout } from "../../src/core/clock.js";
import { createConcurrencyLimit } from "../../src/core/concurrency-limit.js";
import { ignoreErrors } from "../../src/core/error-events.js";
import { PostbellError } from "../../src/core/errors.js";
import { importFromPackage } from "../../src/core/import-package.js";
import type { SmtpNotifierOptions, Transporter } from "./options.js";

const MAX_WAITING = 1_000;

export interface MailToSend {
  /** In nodemailer's form. */
  mail: object;
  recipients: string[];
  /** Monotonic time. */
  deadline: number;
  /**
   * Called if the deadline passes while the mail is sent. The promise has the final outcome, or
   * `undefined` if the mail was not sent.
   */
  onLate: (outcome: Promise<MailOutcome | undefined>) => void;
}

export interface MailSender {
  /** @throws `mail_not_sent` if the outcome for the recipients is unknown at the deadline. */
  send: (mail: MailToSend) => Promise<MailOutcome>;
  close: () => Promise<void>;
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

// Opens the connection to the mail server, or uses the host's transporter.

interface OpenTransport {
  transporter: Transporter;
  close: () => void;
}

/** Time until a connection without mails closes. Endpoints often fail together. */
const IDLE_MS = 10_000;

/** @throws `invalid_option` if `nodemailer` is not installed. */
async function openTransport(
  transport: SmtpNotifierOptions["transport"],
  timeoutMs: number,
): Promise<OpenTransport> {
  // The mail that met an error reports it. Without a listener, the event would crash the process.
  if (isTransporter(transport)) {
    ignoreErrors(transport);
    return { transporter: transport, close: () => {} };
  }
  const createTransport = await importFromPackage<CreateTransport>(
    () => import("nodemailer"),
    "createTransport",
    { message: "smtpNotifier needs the package nodemailer: npm install nodemailer.", field: "transport" },
  );
  const preset = {
    pool: true,
    maxConnections: 1,
    idleTimeout: IDLE_MS,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
  };
  const made = createTransport(
    typeof transport === "string" ? withPreset(transport, preset) : optionsWithPreset(transport, preset),
  );
  ignoreErrors(made);
  return { transporter: made, close: () => made.close() };
}

const isTransporter = (value: string | object): value is Transporter =>
  typeof value === "object" && "sendMail" in value && typeof value.sendMail === "function";

type Preset = Record<string, string | number | boolean>;

/**
 * Adds the preset to the query of the URL, where every version of nodemailer reads it. Values of
 * the host stay.
 */
function withPreset(text: string, preset: Preset): string {
  const url = new URL(text);
  const isPrivate = url.username === "" || url.protocol === "smtps:";
  const all: Preset = isPrivate ? preset : { ...preset, requireTLS: true };
  for (const [name, value] of Object.entries(all))
    if (!url.searchParams.has(name)) url.searchParams.set(name, String(value));
  return url.href;
}

function optionsWithPreset(options: object, preset: Preset): object {
  if ("url" in options && typeof options.url === "string")
    return { ...options, url: withPreset(options.url, preset) };
  // Otherwise an attacker who removes STARTTLS could read the credentials.
  return { ...preset, ...("auth" in options ? { requireTLS: true } : {}), ...options };
}

type CreateTransport = (options: string | object) => Transporter & { close(): void };

/**
 * A recipient that the server did not accept. `status` is the SMTP reply code, or 0 without one.
 */
interface Unserved {
  address: string;
  status: number;
}

export interface MailOutcome {
  accepted: string[];
  /** 5xx: a retry would get the same response. */
  refused: Unserved[];
  /** 4xx: greylisting, a full mailbox. */
  deferred: Unserved[];
}

/** Fields of nodemailer's results and errors. */
interface SmtpResponse {
  code?: unknown;
  responseCode?: unknown;
  command?: unknown;
  rejectedErrors?: unknown;
}

const getStatus = ({ responseCode }: SmtpResponse): number =>
  typeof responseCode === "number" ? responseCode : 0;

const toResponse = (value: unknown): SmtpResponse =>
  typeof value === "object" && value !== null ? (value as SmtpResponse) : {};

/**
 * Interprets the result of `sendMail`. Recipients that it does not name as rejected are accepted.
 */
function toMailOutcome(result: unknown, recipients: string[]): MailOutcome {
  const { rejectedErrors } = toResponse(result);
  const unserved = new Map(
    (Array.isArray(rejectedErrors) ? (rejectedErrors as unknown[]) : []).map((error) => {
      const { recipient } = error as { recipient?: unknown };
      return [String(recipient).toLowerCase(), getStatus(toResponse(error))];
    }),
  );
  const responses = recipients.map((address) => ({ address, status: unserved.get(address.toLowerCase()) }));
  const withStatus = (isWanted: (status: number) => boolean): Unserved[] =>
    responses.flatMap(({ address, status }) =>
      status !== undefined && isWanted(status) ? [{ address, status }] : [],
    );
  return {
    accepted: responses.filter(({ status }) => status === undefined).map(({ address }) => address),
    refused: withStatus((status) => status >= 500),
    deferred: withStatus((status) => status < 500),
  };
}

/**
 * Interprets an error of `sendMail`, if it concerns the recipients: all were rejected one by one,
 * or the message itself was refused. Returns `undefined` if the server was not reached, refuses the
 * credentials or the sender, or has a transient problem.
 */
function toFailedOutcome(error: unknown, recipients: string[]): MailOutcome | undefined {
  const response = toResponse(error);
  if (Array.isArray(response.rejectedErrors) && response.rejectedErrors.length > 0) {
    const outcome = toMailOutcome(response, recipients);
    return outcome.accepted.length === 0 ? outcome : undefined;
  }
  const status = getStatus(response);
  if (response.command !== "DATA" || status < 500) return undefined;
  return { accepted: [], refused: recipients.map((address) => ({ address, status })), deferred: [] };
}

/**
 * Returns a code such as `ETIMEDOUT` or `EAUTH 535`. The server's words may not be safe to log.
 */
function describeProblem(error: unknown): string {
  const response = toResponse(error);
  const code =
    typeof response.code === "string" && /^[A-Z][A-Z0-9_]{0,31}$/.test(response.code) ? response.code : "";
  return [code || "an error", getStatus(response) || ""].join(" ").trim();
}

/** `why` must be safe to log: it contains no words of the mail server. */
export const createUnsent = (why: string, cause?: unknown): PostbellError =>
  new PostbellError("mail_not_sent", `smtpNotifier: the mail was not sent: ${why}.`, { cause });
