/** Asks the host who gets the mail about a webhook, and where its deliveries can be seen. */

import type { Logger } from "../../src/core/logger.js";
import type { Webhook } from "../../src/index.js";
import { type MailAddress, readAddress } from "./mail-address.js";
import { createUnsent } from "./mail-error.js";
import type { SmtpNotifierOptions } from "./options.js";

/**
 * Returns the recipients for a webhook, each once. An invalid address is logged and skipped,
 * because a retry would return it again.
 */
export async function findRecipients(
  webhook: Webhook,
  to: SmtpNotifierOptions["to"],
  logger: Logger,
): Promise<readonly MailAddress[]> {
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
export function findPortalUrl(
  webhook: Webhook,
  portalUrl: SmtpNotifierOptions["portalUrl"],
  logger: Logger,
): string | null {
  const given: unknown = portalUrl?.(webhook) ?? null;
  if (given === null) return null;
  if (typeof given === "string" && URL.canParse(given) && /^https?:$/.test(new URL(given).protocol))
    return new URL(given).href;
  logger.error({ webhook: webhook.id }, "`portalUrl` returned no http: or https: URL");
  return null;
}
