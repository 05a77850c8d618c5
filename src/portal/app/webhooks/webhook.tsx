/** One webhook: its header with the actions, its tabs, and what they share. */

import { useEffect } from "preact/hooks";
import type { WebhookWithStatsJson } from "../../shapes.js";
import { Menu } from "../components/button.js";
import { Ellipsis } from "../components/icons.js";
import { CopyButton, ErrorMessage, Heading, Loading } from "../components/small.js";
import { usePage } from "../page-context.js";
import { texts } from "../texts.js";
import { formatNumber } from "../times.js";
import { useResource } from "../use-resource.js";
import type { ViewProps } from "../view.js";
import { WEBHOOK_PARTS, webhookPath } from "./calls.js";
import { DeliveriesTab } from "./deliveries.js";
import { DiagnosisTab } from "./diagnosis.js";
import {
  EnableButton,
  EndpointUrl,
  HealthBadge,
  RetryButton,
  type TabProps,
  TestButton,
  TestMenu,
  useDisable,
} from "./endpoint-actions.js";
import { EndpointName } from "./list.js";
import { OverviewTab } from "./overview.js";
import { SettingsTab } from "./settings.js";
import { countLogged, nameWebhook } from "./wording.js";

const REFRESH_MS = 5_000;

const TABS = [
  ["", "overview", OverviewTab],
  ["/deliveries", "deliveries", DeliveriesTab],
  ["/settings", "settings", SettingsTab],
  ["/diagnosis", "diagnosis", DiagnosisTab],
] as const;

type TabName = (typeof TABS)[number][1];

/** The actions that are not needed every day. */
function MoreMenu(tab: TabProps) {
  const { go, fail } = usePage();
  const [disable, question] = useDisable(tab);
  const { id, status } = tab.webhook;
  const openSetting = (section: string) => (): void => go(`/webhooks/${id}/settings?section=${section}`);
  return (
    <>
      <Menu
        label={texts.webhook.more}
        class="icon-only"
        items={[
          { text: `${texts.diagnosis.examine} …`, act: () => go(`/webhooks/${id}/diagnosis`) },
          { text: texts.webhook.rotate, act: openSetting("secret") },
          ...(status === "ENABLED"
            ? [{ text: texts.webhook.disable, act: () => void disable().catch(fail) }]
            : []),
          { text: texts.webhook.delete, act: openSetting("danger"), isDangerous: true },
        ]}
      >
        <Ellipsis aria-hidden="true" />
      </Menu>
      {question}
    </>
  );
}

function WebhookHeader({ part, ...tab }: TabProps & { part: TabName | undefined }) {
  const { webhook } = tab;
  const { name, isNamed } = nameWebhook(webhook);
  return (
    <>
      <div class="webhook-head">
        <div class="webhook-name">
          <Heading title={name} {...(part !== undefined && { part: texts.webhook[part] })}>
            <EndpointName webhook={webhook} />
          </Heading>
          {!isNamed && <CopyButton text={webhook.url} label={texts.webhook.copyAddress} />}
          <HealthBadge stats={webhook.stats} />
        </div>
        <div class="webhook-actions">
          {/* The settings have it among their own. */}
          {webhook.status === "DISABLED" && part !== "settings" && <EnableButton {...tab} />}
          {/* First: what a repaired endpoint needs is the next key. */}
          <RetryButton {...tab} />
          <div class="split">
            <TestButton {...tab} />
            <TestMenu {...tab} />
          </div>
          <MoreMenu {...tab} />
        </div>
      </div>
      {isNamed && (
        <p class="webhook-address">
          <EndpointUrl url={webhook.url} />{" "}
          <CopyButton text={webhook.url} label={texts.webhook.copyAddress} />
        </p>
      )}
    </>
  );
}

/** Brings the section of the settings into sight that the address names. */
function useSection(section: string | null, isRead: boolean): void {
  useEffect(() => {
    if (section === null || !isRead) return undefined;
    // The settings read the event types before they show anything.
    const observer = new MutationObserver(() => show());
    const show = (): void => {
      const found = document.getElementById(section);
      if (found === null) return;
      observer.disconnect();
      found.scrollIntoView({ block: "start" });
      found.querySelector<HTMLElement>("button, input, select")?.focus({ preventScroll: true });
    };
    observer.observe(document.body, { childList: true, subtree: true });
    show();
    return () => observer.disconnect();
  }, [section, isRead]);
}

export function WebhookView({ params: { webhookId = "", tab = "" }, query }: ViewProps) {
  const { data, error, reload } = useResource(
    (api) => api.get<WebhookWithStatsJson>(webhookPath(webhookId), { include: WEBHOOK_PARTS }),
    [webhookId],
    REFRESH_MS,
  );
  useSection(query.get("section"), data !== undefined);
  const base = `/webhooks/${webhookId}`;
  const current = tab === "" ? base : `${base}/${tab}`;
  const [, part, Tab] = TABS.find(([suffix]) => base + suffix === current) ?? [];
  if (data === undefined || Tab === undefined) {
    const isMissing = data !== undefined || error !== undefined;
    return (
      <>
        <Heading title={isMissing ? texts.page.notFound : texts.webhook.label} />
        {error !== undefined && <ErrorMessage error={error} />}
        {data !== undefined && <p>{texts.page.noSuchPage}</p>}
        {!isMissing && <Loading />}
      </>
    );
  }
  return (
    <>
      <WebhookHeader webhook={data} reload={reload} part={part} />
      <nav class="tabs" aria-label={texts.webhook.label}>
        {TABS.map(([suffix, name]) => (
          <a key={suffix} href={`#${base}${suffix}`} aria-current={name === part ? "page" : undefined}>
            {texts.webhook[name]}
            {name === "deliveries" && (
              // The name of the link stays the same while the number changes.
              <span class="count" aria-hidden="true">
                {formatNumber(countLogged(data.stats))}
              </span>
            )}
          </a>
        ))}
      </nav>
      <Tab webhook={data} reload={reload} query={query} />
    </>
  );
}
