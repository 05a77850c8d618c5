/** One webhook: its tabs, and what they share. */

import type { WebhookWithStatsJson } from "../../shapes.js";
import { Badge, ErrorMessage, Heading, Loading, Tabs } from "../components/small.js";
import { useResource } from "../use-resource.js";
import type { ViewProps } from "../view.js";
import { WEBHOOK_PARTS, webhookPath } from "./calls.js";
import { DeliveriesTab } from "./deliveries.js";
import { EndpointName, EndpointUrl } from "./list.js";
import { OverviewTab } from "./overview.js";
import { SettingsTab } from "./settings.js";
import { HEALTH_TONES, labelHealth, nameWebhook } from "./wording.js";

const REFRESH_MS = 5_000;

const TABS = [
  ["", "Overview", OverviewTab],
  ["/deliveries", "Deliveries", DeliveriesTab],
  ["/settings", "Settings", SettingsTab],
] as const;

function WebhookTitle({ webhook, part }: { readonly webhook: WebhookWithStatsJson; readonly part: string }) {
  const { name, isNamed } = nameWebhook(webhook);
  const health = labelHealth(webhook.stats);
  return (
    <>
      <div class="title-row">
        <Heading title={name} part={part}>
          <EndpointName webhook={webhook} />
        </Heading>
        <Badge tone={HEALTH_TONES[health]}>{health}</Badge>
      </div>
      {isNamed && (
        <p class="address">
          <EndpointUrl url={webhook.url} />
        </p>
      )}
    </>
  );
}

export function WebhookView({ params: { webhookId = "", tab = "" } }: ViewProps) {
  const { data, error, reload } = useResource(
    (api) => api.get<WebhookWithStatsJson>(webhookPath(webhookId), { include: WEBHOOK_PARTS }),
    [webhookId],
    REFRESH_MS,
  );
  const base = `/webhooks/${webhookId}`;
  const current = tab === "" ? base : `${base}/${tab}`;
  const [, part = "", Tab] = TABS.find(([suffix]) => base + suffix === current) ?? [];
  if (data === undefined || Tab === undefined) {
    const isMissing = data !== undefined || error !== undefined;
    return (
      <>
        <Heading title={isMissing ? "Not found" : "Webhook"} />
        {error !== undefined && <ErrorMessage error={error} />}
        {data !== undefined && <p>There is no such page.</p>}
        {!isMissing && <Loading />}
      </>
    );
  }
  return (
    <>
      <WebhookTitle webhook={data} part={part} />
      <Tabs
        label="Webhook"
        tabs={TABS.map(([suffix, text]) => [base + suffix, text] as const)}
        current={current}
      />
      <Tab webhook={data} reload={reload} />
    </>
  );
}
