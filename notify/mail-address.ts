/** What counts as a mail address. Pure. */

import { domainToASCII } from "node:url";

export interface MailAddress {
  /** Empty where there is none. */
  readonly name: string;
  /** `local@domain`, the domain in ASCII and lower case. */
  readonly address: string;
}

const LOCAL = /^[^\s\p{Cc}\p{Cf}<>()[\]\\,;:"@]{1,64}$/u;
const DOMAIN = /^(?=.{1,253}$)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*$/;
/** Longer texts are no address: the parts of one have a maximum, and reading a domain is slow when it is long. */
const MAX_LENGTH = 1_000;
const NAME = /^[^\p{Cc}<>]{0,200}$/u;

/** Reads `local@domain` or `Name <local@domain>`; `undefined` where it is neither, so also where it holds a line end or a second address. */
export function readAddress(given: unknown): MailAddress | undefined {
  if (typeof given !== "string" || given.length > MAX_LENGTH) return undefined;
  const [, quoted = "", inside] = /^([^<>]*)<([^<>]*)>$/.exec(given.trim()) ?? [];
  const address = inside ?? given.trim();
  const at = address.lastIndexOf("@");
  const [local, domain] = [address.slice(0, Math.max(at, 0)), domainToASCII(address.slice(at + 1))];
  const name = quoted.trim().replace(/^"(.*)"$/, "$1");
  if (!LOCAL.test(local) || !DOMAIN.test(domain) || !NAME.test(name)) return undefined;
  return { name, address: `${local}@${domain}` };
}
