/**
 * The guarded GET for pages of other sites. It opens its client at the first request, and again
 * after it was closed.
 */

import type { Clock } from "../../core/clock.js";
import { checkUrl } from "../../outbound/address-policy.js";
import { createOutboundClient } from "../../outbound/client.js";
import { createAddressPolicy, type DestinationOptions } from "../../outbound/destination-options.js";
import { createGuardedGet, type GuardedGet } from "../../outbound/guarded-get.js";
import type { OutboundClient } from "../../outbound/types.js";

export interface PageGet {
  readonly get: GuardedGet;
  /** True if browsers may be sent to the URL: without TLS is fine, a private address is not. */
  readonly isAllowed: (url: string) => boolean;
  /** Closes the connections. A later request opens new ones. */
  readonly close: () => Promise<void>;
}

export function createPageGet(clock: Clock, destinations: DestinationOptions): PageGet {
  const { ca, resolve } = destinations;
  const policy = createAddressPolicy(destinations);
  const shown = { ...policy, allowHttp: true };
  let client: OutboundClient | undefined;
  let guarded: GuardedGet | undefined;

  const open = (): GuardedGet => {
    const trusted = ca === undefined ? undefined : Buffer.from(ca);
    client ??= createOutboundClient({ clock, policy, ca: trusted, resolve });
    guarded ??= createGuardedGet({ client, clock, anyPort: policy.allowPrivateNetworks });
    return guarded;
  };

  return {
    get: (request) => open()(request),
    isAllowed: (url) => checkUrl(url, shown).ok,
    async close() {
      const closing = client;
      client = undefined;
      guarded = undefined;
      await closing?.close();
    },
  };
}

/** True for the content type of a page. */
export const isHtml = (contentType: string): boolean =>
  /^\s*(?:text\/html|application\/xhtml\+xml)\s*(?:;|$)/i.test(contentType);
