/** The views of webhooks in the order of the navigation. If two paths match, the first one wins. */

import type { View } from "../view.js";
import { AllDeliveries } from "./deliveries.js";
import { DeliveryView } from "./delivery.js";
import { WebhookList } from "./list.js";
import { Register } from "./register.js";
import { WebhookView } from "./webhook.js";

export const webhookViews: readonly View[] = [
  { path: "/webhooks", part: "webhooks", label: "Webhooks", component: WebhookList },
  { path: "/deliveries", part: "webhooks", label: "All deliveries", component: AllDeliveries },
  { path: "/webhooks/new", part: "webhooks", component: Register },
  {
    path: "/webhooks/:webhookId/:tab?",
    part: "webhooks",
    component: WebhookView,
    key: ({ webhookId }) => `webhook ${webhookId}`,
  },
  { path: "/webhooks/:webhookId/deliveries/:deliveryId", part: "webhooks", component: DeliveryView },
];
