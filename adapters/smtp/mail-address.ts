/** Reads mail addresses. Pure. */

import { domainToASCII } from "node:url";

export interface MailAddress {
  /** Empty without a name. */
  readonly name: string;
  /** `local@domain`, the domain in ASCII and lower case. */
  readonly address: string;
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
