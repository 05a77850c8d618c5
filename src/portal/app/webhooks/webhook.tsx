/** One webhook: its tabs, and what they share. */

import type { WebhookWithStatsJson } from "../../shapes.js";
import { Badge, ErrorMessage, Heading, Loading, Tabs } from "../components/small.js";
import { useResource } from "../use-resource.js";
import type { ViewProps } from "../view.js";
import { webhookPath } from "./calls.js";
import { DeliveriesTab } from "./deliveries.js";
import { EndpointUrl } from "./list.js";
import { OverviewTab } from "./overview.js";
import { SettingsTab } from "./settings.js";
import { HEALTH_TONES, labelHealth, splitUrl } from "./wording.js";

const REFRESH_MS = 5_000;

const TABS = [
  ["", "Overview", OverviewTab],
  ["/deliveries", "Deliveries", DeliveriesTab],
  ["/settings", "Settings", SettingsTab],
] as const;

function WebhookTitle({ webhook }: { readonly webhook: WebhookWithStatsJson }) {
  const { host, path } = splitUrl(webhook.url);
  const health = labelHealth(webhook.stats);
  return (
    <div class="title-row">
      <Heading title={host + path}>
        <EndpointUrl url={webhook.url} />
      </Heading>
      <Badge tone={HEALTH_TONES[health]}>{health}</Badge>
    </div>
  );
}

export function WebhookView({ params: { webhookId = "", tab = "" } }: ViewProps) {
  const { data, error, reload } = useResource(
    (api) => api.get<WebhookWithStatsJson>(webhookPath(webhookId), { include: "stats" }),
    [webhookId],
    REFRESH_MS,
  );
  const base = `/webhooks/${webhookId}`;
  const current = tab === "" ? base : `${base}/${tab}`;
  const Tab = TABS.find(([suffix]) => base + suffix === current)?.[2];
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
      <WebhookTitle webhook={data} />
      <Tabs
        label="Webhook"
        tabs={TABS.map(([suffix, text]) => [base + suffix, text] as const)}
        current={current}
      />
      <Tab webhook={data} reload={reload} />
    </>
  );
}
