/**
 * The methods of a webhook store that keep registrations. Each storage implements them in its
 * registry.
 */

import type { WebhookStore } from "../src/webhooks/store.js";

export type RegistryMethods = Pick<
  WebhookStore,
  "createWebhook" | "getWebhook" | "listWebhooks" | "updateWebhook" | "removeWebhook"
>;
