/** All webhooks of the account, and first what needs attention. */

import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { NamedWebhookJson, WebhookListJson, WebhookWithStatsJson } from "../../shapes.js";
import type { Api } from "../api.js";
import { Spark } from "../components/charts.js";
import { Plus } from "../components/icons.js";
import { announce } from "../components/live.js";
import { CopyButton, ErrorMessage, Heading, Loading, RelativeTime } from "../components/small.js";
import { type Column, PagerButtons, Table, usePager } from "../components/table.js";
import { usePage } from "../page-context.js";
import { texts } from "../texts.js";
import {
  estimatePercentile,
  fillHours,
  formatDuration,
  formatNumber,
  formatTime,
  summariseHours,
} from "../times.js";
import { useResource } from "../use-resource.js";
import type { ViewProps } from "../view.js";
import { WEBHOOK_PARTS } from "./calls.js";
import { EndpointUrl, HealthBadge, type TabProps, TestButton } from "./endpoint-actions.js";
import { describeEventTypes } from "./event-types.js";
import { useCause } from "./overview.js";
import { FirstSteps } from "./register.js";
import {
  describeCause,
  describeHealth,
  formatSuccessRate,
  getHealth,
  getNextAttempt,
  HEALTHS,
  nameWebhook,
  needsAttention,
  sortByUrgency,
  splitUrl,
  summariseWebhooks,
} from "./wording.js";

const PER_PAGE = 100;
const MAX_PAGES = 20; // Of a search, which finds what is not on the first one.
const REFRESH_MS = 10_000;
const HOURS = 24;
const MAX_URGENT = 5; // In the block at the top.
const SEARCH_LENGTH = 200;

/** What a webhook is called: its description, or its address. */
export function EndpointName({ webhook }: { webhook: NamedWebhookJson }) {
  const { name, isNamed } = nameWebhook(webhook);
  if (!isNamed) return <EndpointUrl url={webhook.url} />;
  return (
    <bdi class="shortened" title={name}>
      <strong>{name}</strong>
    </bdi>
  );
}

const EndpointLink = ({ webhook }: { webhook: NamedWebhookJson }) => (
  <a href={`#/webhooks/${webhook.id}`} class="endpoint-link">
    <EndpointName webhook={webhook} />
  </a>
);

/** A webhook in trouble, with the cause as its endpoint put it. */
function AttentionItem({ webhook, reload }: TabProps) {
  const { zone } = usePage();
  const { stats } = webhook;
  const { failingSince, disableAt } = stats.health;
  const cause = useCause(webhook);
  const parts =
    getHealth(stats) === "failing" && failingSince !== null
      ? [
          texts.webhooks.cause({ time: formatTime(failingSince, zone) }),
          cause && describeCause(cause.attempt),
          disableAt !== null && texts.webhooks.disableOn({ time: formatTime(disableAt, zone) }),
        ]
      : [describeHealth(stats, zone), cause && describeCause(cause.attempt)];
  const text = parts.filter(Boolean).join(" · ");
  return (
    <li>
      <HealthBadge stats={stats} />
      <EndpointLink webhook={webhook} />
      <span class="attention-text quiet" title={text}>
        {text}
      </span>
      {webhook.status === "ENABLED" && (
        <TestButton
          webhook={webhook}
          reload={reload}
          label={texts.webhooks.sendTestTo({ name: nameWebhook(webhook).name })}
        />
      )}
    </li>
  );
}

function NeedsAttention({
  webhooks,
  reload,
}: {
  webhooks: WebhookWithStatsJson[];
  reload: () => Promise<void>;
}) {
  const urgent = webhooks.filter(({ stats }) => needsAttention(stats));
  if (urgent.length === 0) return null;
  return (
    <section class="card attention" aria-labelledby="attention">
      <h2 id="attention">{texts.webhooks.needsAttention}</h2>
      <ul>
        {urgent.slice(0, MAX_URGENT).map((webhook) => (
          <AttentionItem key={webhook.id} webhook={webhook} reload={reload} />
        ))}
      </ul>
      {urgent.length > MAX_URGENT && (
        <p>
          <a href="#/webhooks?health=attention">
            {texts.webhooks.allThatNeedAttention({ count: urgent.length })}
          </a>
        </p>
      )}
    </section>
  );
}

interface Row extends WebhookWithStatsJson {
  key: string;
}

function EndpointCell(webhook: Row) {
  return (
    <div class="endpoint-line">
      <EndpointLink webhook={webhook} />
      {nameWebhook(webhook).isNamed && (
        <span class="endpoint-address quiet small">
          <EndpointUrl url={webhook.url} />
        </span>
      )}
      <CopyButton text={webhook.url} label={texts.webhooks.addressOf({ name: nameWebhook(webhook).name })} />
    </div>
  );
}

function DayCell({ stats: { hours } }: Row) {
  const { now, zone } = usePage();
  const day = fillHours(hours, now(), HOURS);
  return (
    <Spark
      sentence={summariseHours(day, zone)}
      stacks={day.map(({ delivered, failed }) => ({ good: delivered, bad: failed }))}
    />
  );
}

function SlowestCell({ stats: { hours } }: Row) {
  const { now } = usePage();
  const p95 = estimatePercentile(fillHours(hours, now(), HOURS), "p95");
  return p95 === null ? "–" : formatDuration(p95);
}

const listColumns = (): Column<Row>[] => [
  { name: texts.webhooks.endpoint, class: "endpoint", cell: (row) => <EndpointCell {...row} /> },
  {
    name: texts.webhooks.eventTypes,
    class: "types",
    cell: ({ stats }) => {
      const text = describeEventTypes(stats.eventTypes);
      return <span title={text}>{text}</span>;
    },
  },
  { name: texts.webhooks.health, class: "health", cell: ({ stats }) => <HealthBadge stats={stats} /> },
  { name: texts.webhooks.last24h, class: "day", cell: (row) => <DayCell {...row} /> },
  { name: texts.webhooks.success, isNumber: true, cell: ({ stats }) => formatSuccessRate(stats.lastDay) },
  { name: "p95", isNumber: true, class: "roomy", cell: (row) => <SlowestCell {...row} /> },
  { name: texts.webhooks.waiting, isNumber: true, cell: ({ stats }) => formatNumber(stats.pending) },
  {
    name: texts.webhooks.next,
    class: "roomy",
    cell: (row) => {
      const next = getNextAttempt(row, row.stats.nextAttemptAt);
      return next === null ? "–" : <RelativeTime at={next} />;
    },
  },
];

/** The part of the list that the visitor asked for. It is kept in the address of the view. */
interface ListFilter {
  text: string;
  // A health, or `attention`.
  health: string;
}

const readFilter = (query: URLSearchParams): ListFilter => ({
  text: (query.get("q") ?? "").slice(0, SEARCH_LENGTH),
  health: query.get("health") ?? "",
});

function matches({ text, health }: ListFilter, webhook: WebhookWithStatsJson): boolean {
  const { host, path } = splitUrl(webhook.url);
  const found = `${nameWebhook(webhook).name} ${host}${path} ${describeEventTypes(webhook.stats.eventTypes)}`;
  const isHealth =
    health === "attention" ? needsAttention(webhook.stats) : getHealth(webhook.stats) === health;
  return found.toLowerCase().includes(text.trim().toLowerCase()) && (health === "" || isHealth);
}

function FilterBar({ text, health }: ListFilter) {
  const change = (changed: Partial<ListFilter>): void => {
    const next = { text, health, ...changed };
    const filters = [
      ["q", next.text],
      ["health", next.health],
    ].filter(([, value]) => value !== "");
    location.replace(filters.length === 0 ? "#/webhooks" : `#/webhooks?${new URLSearchParams(filters)}`);
  };
  return (
    <search class="list-filter">
      <input
        type="search"
        aria-label={texts.webhooks.search}
        placeholder={texts.webhooks.placeholder}
        maxLength={SEARCH_LENGTH}
        value={text}
        onInput={(event) => change({ text: event.currentTarget.value })}
      />
      <select
        aria-label={texts.webhooks.health}
        value={health}
        onChange={(event) => change({ health: event.currentTarget.value })}
      >
        <option value="">{texts.webhooks.anyHealth}</option>
        <option value="attention">{texts.webhooks.needsAttention}</option>
        {HEALTHS.map((name) => (
          <option key={name} value={name}>
            {texts.health[name]}
          </option>
        ))}
      </select>
    </search>
  );
}

/** Reads a page, or all pages from the first one on. */
async function readList(
  { get }: Api,
  cursor: string | undefined,
  isWhole: boolean,
): Promise<WebhookListJson> {
  const webhooks: WebhookWithStatsJson[] = [];
  let at = cursor;
  for (let pages = 1; ; pages += 1) {
    const query = { include: WEBHOOK_PARTS, cursor: at, limit: PER_PAGE };
    const page: WebhookListJson = await get("v1/webhooks", query);
    webhooks.push(...page.webhooks);
    if (!isWhole || page.next === null || pages === MAX_PAGES)
      return { webhooks, next: isWhole ? null : page.next };
    at = page.next;
  }
}

/** The block of what is urgent, the numbers and the table. */
function Listing({
  webhooks,
  filter,
  reload,
  pages,
}: {
  webhooks: WebhookWithStatsJson[];
  filter: ListFilter | undefined;
  reload: () => Promise<void>;
  pages: ComponentChildren;
}) {
  const shown = filter === undefined ? webhooks : webhooks.filter((webhook) => matches(filter, webhook));
  const count = filter && texts.webhooks.endpointCount({ count: shown.length });
  useEffect(() => {
    if (count !== undefined) announce(count);
  }, [count]);
  return (
    <>
      {filter === undefined && <NeedsAttention webhooks={webhooks} reload={reload} />}
      <p class="summary">
        {count === undefined
          ? summariseWebhooks(webhooks)
          : texts.webhooks.countOf({ count, total: webhooks.length })}
      </p>
      {shown.length > 0 && (
        <div class="endpoints">
          <Table
            caption={texts.webhooks.caption}
            columns={listColumns()}
            header={texts.webhooks.endpoint}
            opens
            rows={shown.map((webhook) => ({ ...webhook, key: webhook.id }))}
          />
        </div>
      )}
      {pages}
    </>
  );
}

export function WebhookList({ query }: ViewProps) {
  const { session } = usePage();
  const pager = usePager();
  const filter = readFilter(query);
  const isFiltered = filter.text + filter.health !== "";
  const cursor = isFiltered ? undefined : pager.cursor;
  const { data, error, reload } = useResource(
    (api) => readList(api, cursor, isFiltered),
    [cursor, isFiltered],
    REFRESH_MS,
  );
  const isEmpty = data?.webhooks.length === 0 && pager.number === 1;
  return (
    <>
      <div class="title-row">
        <Heading title={texts.views.webhooks} />
        {!isEmpty && <FilterBar {...filter} />}
        {/* An operator owns no webhooks. */}
        {session.account === undefined && (
          <a class="button primary" href="#/webhooks/new">
            <Plus aria-hidden="true" /> {texts.webhooks.addEndpoint}
          </a>
        )}
      </div>
      {error && <ErrorMessage error={error} />}
      {!data && !error && <Loading />}
      {isEmpty && session.account === undefined && <FirstSteps />}
      {isEmpty && session.account !== undefined && <p class="empty">{texts.webhooks.noEndpointHere}</p>}
      {data && !isEmpty && (
        <Listing
          webhooks={sortByUrgency(data.webhooks)}
          filter={isFiltered ? filter : undefined}
          reload={reload}
          pages={
            <PagerButtons
              pager={pager}
              next={isFiltered ? null : data.next}
              labels={[texts.webhooks.back, texts.webhooks.more]}
            />
          }
        />
      )}
    </>
  );
}
