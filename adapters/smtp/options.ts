/** Options of `smtpNotifier`: their type for hosts, and the table of their defaults and ranges. */

import { domainToASCII } from "node:url";
import { type Clock, systemClock } from "../../src/core/clock.js";
import { loggerOption } from "../../src/core/host-options.js";
import type { Logger } from "../../src/core/logger.js";
import { hook, value, wholeNumber } from "../../src/core/options.js";
import type { Webhook } from "../../src/index.js";
import type { Mail, MailFacts } from "./mail.js";

type Awaitable<T> = T | PromiseLike<T>;

/** A transporter of nodemailer, or a replacement for it. */
export interface Transporter {
  /** Sends a mail in nodemailer's form. Rejects if no recipient was accepted. */
  sendMail(mail: object): Promise<unknown>;
}

/** Texts of the host instead of the English ones. */
export interface MailTemplates {
  /** Returns `{ subject, text, html }` in place of the English mail that warns. */
  readonly warning?: ((facts: MailFacts) => Mail) | undefined;
  /** The same for the mail about a disabled endpoint. */
  readonly disabled?: ((facts: MailFacts) => Mail) | undefined;
}

/** Returns the recipients of mails about a webhook; `null` or an empty list for nobody. */
export type Recipients = (webhook: Webhook) => Awaitable<string | readonly string[] | null | undefined>;

/** Options of `smtpNotifier`. */
export interface SmtpNotifierOptions {
  /**
   * With a user name the connection must be encrypted, unless `requireTLS` is given. Options are
   * those of nodemailer's `createTransport`, and a transporter is never closed. For URLs and
   * options, a single connection is opened, which closes after 10 s without mails.
   */
  transport: string | object;
  /** The sender. */
  from: string;
  /**
   * The recipients; a function gets the webhook and may return `null` for nobody. If it throws, the
   * mail is retried later.
   */
  to: string | readonly string[] | Recipients;
  /** Returns the absolute http: or https: URL of a page with the webhook's deliveries. */
  portalUrl?: ((webhook: Webhook) => string | null | undefined) | undefined;
  templates?: MailTemplates | undefined;
  /**
   * Time limit of one mail, less than `limits.hookMs`; for a slow server raise both. Default 4000.
   */
  timeoutMs?: number | undefined;
  clock?: Clock | undefined;
  /** Default: `console`, for warnings and errors; `false` logs nothing. */
  logger?: Logger | false | undefined;
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

const isSmtpUrl = (value: string): boolean =>
  URL.canParse(value) && /^smtps?:$/.test(new URL(value).protocol) && new URL(value).hostname !== "";

const isAddresses = (value: unknown): boolean =>
  Array.isArray(value)
    ? value.length > 0 && value.every((one) => readAddress(one) !== undefined)
    : readAddress(value) !== undefined;

const ADDRESS = "an address such as 'Webhooks <hooks@example.org>'";

export const smtpNotifierOptions = {
  transport: value<SmtpNotifierOptions["transport"] | undefined>(
    "an smtp:// or smtps:// URL, options of nodemailer, or a transporter",
    (value) => (typeof value === "string" ? isSmtpUrl(value) : isObject(value) && !Array.isArray(value)),
    undefined,
  ),
  from: value<string | undefined>(ADDRESS, (value) => readAddress(value) !== undefined, undefined),
  to: value<SmtpNotifierOptions["to"] | undefined>(
    "an address, a list of addresses, or a function",
    (value) => typeof value === "function" || isAddresses(value),
    undefined,
  ),
  portalUrl: hook<NonNullable<SmtpNotifierOptions["portalUrl"]>>(),
  templates: {
    warning: hook<NonNullable<MailTemplates["warning"]>>(),
    disabled: hook<NonNullable<MailTemplates["disabled"]>>(),
  },
  timeoutMs: wholeNumber("ms", 4_000, { min: 1, max: 60_000 }),
  clock: value<Clock>("a clock", isObject, systemClock),
  logger: loggerOption,
};

// Reads mail addresses. Pure.

export interface MailAddress {
  /** Empty without a name. */
  name: string;
  /** `local@domain`, the domain in ASCII and lower case. */
  address: string;
}

const LOCAL = /^[^\s\p{Cc}\p{Cf}<>()[\]\\,;:"@]{1,64}$/u;
const DOMAIN = /^(?=.{1,253}$)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*$/;
/** Longest text that is read as an address, because reading a long domain is slow. */
const MAX_LENGTH = 1_000;
const NAME = /^[^\p{Cc}<>]{0,200}$/u;

/**
 * Reads `local@domain` or `Name <local@domain>`. Returns `undefined` for anything else, such as a
 * text with a line end or a second address.
 */
export function readAddress(value: unknown): MailAddress | undefined {
  if (typeof value !== "string" || value.length > MAX_LENGTH) return undefined;
  const [, quoted = "", inside] = /^([^<>]*)<([^<>]*)>$/.exec(value.trim()) ?? [];
  const address = inside ?? value.trim();
  const at = address.lastIndexOf("@");
  const [local, domain] = [address.slice(0, Math.max(at, 0)), domainToASCII(address.slice(at + 1))];
  const name = quoted.trim().replace(/^"(.*)"$/, "$1");
  if (!LOCAL.test(local) || !DOMAIN.test(domain) || !NAME.test(name)) return undefined;
  return { name, address: `${local}@${domain}` };
}
