/** All webhooks of the account, those with a problem first. */

import type { NamedWebhookJson, WebhookListJson, WebhookWithStatsJson } from "../../shapes.js";
import { Badge, ErrorMessage, Heading, Loading, RelativeTime } from "../components/small.js";
import { type Column, PagerButtons, Table, usePager } from "../components/table.js";
import { usePage } from "../page-context.js";
import { formatDuration } from "../times.js";
import { useResource } from "../use-resource.js";
import { WEBHOOK_PARTS } from "./calls.js";
import { describeEventTypes } from "./event-types.js";
import {
  describeHealth,
  formatSuccessRate,
  getNextAttempt,
  HEALTH_TONES,
  labelHealth,
  nameWebhook,
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
