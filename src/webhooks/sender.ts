/** Sends the requests of attempts: through the host's function, or the built-in HTTP client. */

import type { Clock } from "../core/clock.js";
import { createOutboundClient } from "../outbound/client.js";
import { createAddressPolicy } from "../outbound/destination-options.js";
import type { OutboundClient, Send } from "../outbound/types.js";
import { guardSend } from "./delivery/send.js";
import type { WebhooksSettings } from "./settings/settings.js";

export interface Sender {
  readonly send: Send;
  /** Closes the built-in client's connections. Sending again opens new ones. */
  readonly close: () => Promise<void>;
}

export function createSender({
  settings: { delivery, destinations },
  clock,
}: {
  readonly settings: Pick<WebhooksSettings, "delivery" | "destinations">;
  readonly clock: Clock;
}): Sender {
  const policy = createAddressPolicy(destinations);
  // Created with the first request, so that a service that never sends holds nothing.
  let client: OutboundClient | undefined;
  const sendThroughClient: Send = (request) => {
    client ??= createOutboundClient({
      clock,
      policy,
      ca: destinations.ca && Buffer.from(destinations.ca),
      resolve: destinations.resolve,
    });
    return client.send(request);
  };
  return {
    send: delivery.send ? guardSend(delivery.send, clock) : sendThroughClient,
    async close() {
      const used = client;
      client = undefined;
      await used?.close();
    },
  };
}
