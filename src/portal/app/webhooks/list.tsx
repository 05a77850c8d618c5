/** All webhooks of the account, those with a problem first, and what was done to them. */

import type {
  AuditEntryJson,
  AuditPageJson,
  NamedWebhookJson,
  WebhookListJson,
  WebhookWithStatsJson,
} from "../../shapes.js";
import { Badge, ErrorMessage, Heading, Loading, RelativeTime } from "../components/small.js";
import { type Column, PagerButtons, Table, usePager } from "../components/table.js";
import { usePage } from "../page-context.js";
import { formatDuration } from "../times.js";
import { useResource } from "../use-resource.js";
import { deliveryLink, readSubscriptions, WEBHOOK_PARTS } from "./calls.js";
import { describeEventTypes } from "./event-types.js";
import {
  describeAction,
  describeHealth,
  formatSuccessRate,
  getNextAttempt,
  HEALTH_TONES,
  labelHealth,
  nameWebhook,
  shortenId,
  sortByUrgency,
  splitUrl,
  summariseWebhooks,
} from "./wording.js";

const PER_PAGE = 100;
const REFRESH_MS = 10_000;

interface Row extends WebhookWithStatsJson {
  readonly key: string;
}

/** The address of an endpoint: its host stands out, its query is not shown. */
export function EndpointUrl({ url }: { readonly url: string }) {
  const { host, path } = splitUrl(url);
  return (
    <>
      <strong>{host}</strong>
      <span class="quiet">{path}</span>
    </>
  );
}

/** What a webhook is called: its description, or its address. */
export function EndpointName({
  webhook,
}: {
  readonly webhook: Pick<NamedWebhookJson, "description" | "url">;
}) {
  const { name, isNamed } = nameWebhook(webhook);
  return isNamed ? <strong>{name}</strong> : <EndpointUrl url={webhook.url} />;
}

function Endpoint({ stats, ...webhook }: Row) {
  const { id, url } = webhook;
  return (
    <>
      <a href={`#/webhooks/${id}`} class="address">
        <EndpointName webhook={webhook} />
      </a>
      {nameWebhook(webhook).isNamed && (
        <div class="small address">
          <EndpointUrl url={url} />
        </div>
      )}
      <div class="quiet small">{describeEventTypes(stats.eventTypes)}</div>
    </>
  );
}

function Health({ stats }: Row) {
  const { zone } = usePage();
  const label = labelHealth(stats);
  return (
    <>
      <Badge tone={HEALTH_TONES[label]}>{label}</Badge>
      {label !== "Healthy" && <div class="quiet small">{describeHealth(stats, zone)}</div>}
    </>
  );
}

const COLUMNS: readonly Column<Row>[] = [
  { name: "Endpoint", cell: (row) => <Endpoint {...row} /> },
  { name: "Health", cell: (row) => <Health {...row} /> },
  { name: "Success, 24 h", isNumber: true, cell: ({ stats }) => formatSuccessRate(stats.lastDay) },
  {
    name: "Average time",
    isNumber: true,
    cell: ({ stats: { lastDay } }) => (lastDay.averageMs === null ? "–" : formatDuration(lastDay.averageMs)),
  },
  { name: "Pending", isNumber: true, cell: ({ stats }) => stats.pending },
  { name: "Failed", isNumber: true, cell: ({ stats }) => stats.failed },
  {
    name: "Next attempt",
    cell: (row) => {
      const next = getNextAttempt(row, row.stats.nextAttemptAt);
      return next === null ? "–" : <RelativeTime at={next} />;
    },
  },
];

export function WebhookList() {
  const pager = usePager();
  const { data, error } = useResource(
    (api) =>
      api.get<WebhookListJson>("v1/webhooks", {
        include: WEBHOOK_PARTS,
        cursor: pager.cursor,
        limit: PER_PAGE,
      }),
    [pager.cursor],
    REFRESH_MS,
  );
  const isEmpty = data?.webhooks.length === 0 && pager.number === 1;
  return (
    <>
      <div class="title-row">
        <Heading title="Webhooks" />
        <a class="button primary" href="#/webhooks/new">
          Add endpoint
        </a>
      </div>
      {error !== undefined && <ErrorMessage error={error} />}
      {data === undefined && error === undefined && <Loading />}
      {isEmpty && <p>There is no webhook yet. Add an endpoint to receive events.</p>}
      {data !== undefined && !isEmpty && (
        <>
          <p class="summary">
            {summariseWebhooks(data.webhooks)}
            {(pager.number > 1 || data.next !== null) && " on this page"}
          </p>
          <Table
            caption="Webhooks of the account"
            columns={COLUMNS}
            header="Endpoint"
            rows={sortByUrgency(data.webhooks).map((webhook) => ({ ...webhook, key: webhook.id }))}
          />
          <PagerButtons pager={pager} next={data.next} labels={["Back", "More webhooks"]} />
        </>
      )}
    </>
  );
}

type ActivityRow = AuditEntryJson & {
  readonly key: string;
  /** `undefined`: the webhook was deleted. */
  readonly webhook: NamedWebhookJson | undefined;
};

function Actor({ actor }: ActivityRow) {
  if (actor.type === "key") return <>Key {actor.id}</>;
  return actor.type === "host" ? <>The application</> : <span class="quiet">Automatic</span>;
}

function ActivityTarget({ webhookId, deliveryId, webhook }: ActivityRow) {
  if (webhook === undefined) return <code title={webhookId}>{shortenId(webhookId)}</code>;
  const link =
    deliveryId === undefined ? `#/webhooks/${webhookId}` : deliveryLink({ webhookId, id: deliveryId });
  return (
    <a href={link} class="address">
      <EndpointName webhook={webhook} />
    </a>
  );
}

const ACTIVITY_COLUMNS: readonly Column<ActivityRow>[] = [
  { name: "Action", cell: (row) => describeAction(row) },
  { name: "Webhook", cell: (row) => <ActivityTarget {...row} /> },
  { name: "By", cell: (row) => <Actor {...row} /> },
  { name: "When", cell: ({ at }) => <RelativeTime at={at} /> },
];

const ENTRIES_PER_PAGE = 50;

/** The audit log of the account. */
export function Activity() {
  const pager = usePager();
  const { data, error } = useResource(
    async (api) => {
      const [page, webhooks] = await Promise.all([
        api.get<AuditPageJson>("v1/audit", { cursor: pager.cursor, limit: ENTRIES_PER_PAGE }),
        readSubscriptions(api),
      ]);
      const byId = new Map(webhooks.map((webhook) => [webhook.id, webhook]));
      const rows = page.entries.map((entry, index) => ({
        ...entry,
        key: `${entry.at} ${index}`,
        webhook: byId.get(entry.webhookId),
      }));
      return { rows, next: page.next };
    },
    [pager.cursor],
    REFRESH_MS,
  );
  return (
    <>
      <Heading title="Activity" />
      {error !== undefined && <ErrorMessage error={error} />}
      {data === undefined && error === undefined && <Loading />}
      {data?.rows.length === 0 && <p>Nothing has been done yet.</p>}
      {data !== undefined && data.rows.length > 0 && (
        <>
          <Table
            caption="What was done to the webhooks of the account"
            columns={ACTIVITY_COLUMNS}
            header="Action"
            rows={data.rows}
          />
          <PagerButtons pager={pager} next={data.next} labels={["Newer", "Older"]} />
        </>
      )}
    </>
  );
}
