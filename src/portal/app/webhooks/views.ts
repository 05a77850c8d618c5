/** The views of webhooks in the order of the navigation. If two paths match, the first one wins. */

import { Activity as ActivityIcon, Send, Tags, Webhook } from "../components/icons.js";
import { texts } from "../texts.js";
import type { View } from "../view.js";
import { Activity } from "./activity.js";
import { countTroubled, readEndpointTargets } from "./calls.js";
import { AllDeliveries } from "./deliveries.js";
import { DeliveryView } from "./delivery.js";
import { EventTypeCatalogue } from "./event-catalogue.js";
import { WebhookList } from "./list.js";
import { Register } from "./register.js";
import { WebhookView } from "./webhook.js";

export const webhookViews: View[] = [
  {
    path: "/webhooks",
    part: "webhooks",
    label: () => texts.views.webhooks,
    icon: Webhook,
    component: WebhookList,
    readCount: countTroubled,
    readTargets: readEndpointTargets,
  },
  {
    path: "/deliveries",
    part: "webhooks",
    label: () => texts.views.deliveries,
    icon: Send,
    component: AllDeliveries,
    searchPath: (text) => `/deliveries?${new URLSearchParams({ q: text })}`,
  },
  { path: "/webhooks/new", part: "webhooks", component: Register },
  {
    path: "/webhooks/:webhookId/:tab?",
    part: "webhooks",
    component: WebhookView,
    key: ({ webhookId }) => `webhook ${webhookId}`,
  },
  { path: "/webhooks/:webhookId/deliveries/:deliveryId", part: "webhooks", component: DeliveryView },
  {
    path: "/event-types",
    part: "webhooks",
    label: () => texts.views.eventTypes,
    icon: Tags,
    component: EventTypeCatalogue,
  },
  {
    path: "/activity",
    part: "webhooks",
    label: () => texts.views.activity,
    icon: ActivityIcon,
    component: Activity,
    key: () => "activity",
    isOffered: ({ hasAuditLog = false }) => hasAuditLog,
  },
];
