/** The delivery log of a webhook, and of the account: search, filters, pages, and sending again. */

import { useState } from "preact/hooks";
import type {
  DeliveryPageJson,
  DeliveryRowJson,
  DeliveryStateJson,
  EventTypesJson,
  NamedWebhookJson,
  WebhookJson,
  WebhookListJson,
} from "../../shapes.js";
import type { Api } from "../api.js";
import { FieldError, Form, readTimeField, SelectField, TextField, TimeField } from "../components/form.js";
import { Badge, ErrorMessage, Heading, Loading, RelativeTime } from "../components/small.js";
import { type Column, PagerButtons, Table, usePager } from "../components/table.js";
import { usePage } from "../page-context.js";
import { useResource } from "../use-resource.js";
import { type DeliveryFilter, deliveryLink, findDeliveries } from "./calls.js";
import { DeliveryName } from "./delivery-name.js";
import type { TabProps } from "./endpoint-actions.js";
import { EndpointName } from "./list.js";
import { BulkResend, ResendButton, RetryMissed } from "./resend.js";
import { describeAttempt, describeReason, getNextAttempt, labelState, TEST_TYPE } from "./wording.js";

const PER_PAGE = 25;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const UUID_LENGTH = 36;

const STATES: readonly (readonly [DeliveryStateJson | "", string])[] = [
  ["", "Any"],
  ["pending", "Pending or retrying"],
  ["delivered", "Delivered"],
  ["failed", "Failed"],
  ["withheld", "Withheld"],
];

const NO_TEXTS = { eventId: "", state: "", type: "", since: "", until: "" };

/** What the visitor set the filters to. */
type FilterTexts = Readonly<typeof NO_TEXTS>;

function readEventId(text: string): string | undefined {
  const id = text.trim();
  if (id === "") return undefined;
  if (!UUID.test(id)) throw new FieldError("event_id", "Paste the whole event ID: it has 36 characters.");
  return id.toLowerCase();
}

function Filters({
  eventTypes,
  onChange,
}: {
  readonly eventTypes: readonly string[];
  readonly onChange: (filter: DeliveryFilter) => void;
}) {
  const { zone } = usePage();
  const [texts, setTexts] = useState<FilterTexts>(NO_TEXTS);
  const set = (name: keyof FilterTexts) => (value: string) => setTexts({ ...texts, [name]: value });
  const act = async (): Promise<void> =>
    onChange({
      eventId: readEventId(texts.eventId),
      state: (texts.state as DeliveryStateJson) || undefined,
      type: texts.type || undefined,
      since: readTimeField("since", texts.since, zone),
      until: readTimeField("until", texts.until, zone),
    });
  return (
    <Form label="Filter the deliveries" submit="Filter" kind="plain" isRow act={act}>
      <TextField
        label="Event ID"
        names={["event_id"]}
        type="search"
        class="code"
        maxLength={UUID_LENGTH}
        value={texts.eventId}
        onChange={set("eventId")}
      />
      <SelectField
        label="State"
        names={["state"]}
        value={texts.state}
        onChange={set("state")}
        options={STATES}
      />
      <SelectField
        label="Event type"
        names={["type"]}
        value={texts.type}
        onChange={set("type")}
        options={[["", "Any"], ...[...eventTypes, TEST_TYPE].map((name) => [name, name] as const)]}
      />
      <TimeField label="From" name="since" value={texts.since} onChange={set("since")} />
      <TimeField label="Before" name="until" value={texts.until} onChange={set("until")} />
    </Form>
  );
}

interface Row extends DeliveryRowJson {
  readonly key: string;
  /** True if a newer delivery of the same event is on this page. */
  readonly isSentAgain: boolean;
}

/**
 * Marks deliveries that have a newer one of the same event to the same webhook. `deliveries`: newest
 * first.
 */
function toRows(deliveries: readonly DeliveryRowJson[]): readonly Row[] {
  const seen = new Set<string>();
  return deliveries.map((delivery) => {
    const sent = `${delivery.webhookId} ${delivery.eventId}`;
    const isSentAgain = seen.has(sent);
    seen.add(sent);
    return { ...delivery, key: delivery.id, isSentAgain };
  });
}

function State(row: Row) {
  const { label, tone } = labelState(row);
  return (
    <>
      <Badge tone={tone}>{label}</Badge>
      {row.reason !== null && <div class="quiet small">{describeReason(row.reason)}</div>}
    </>
  );
}

function Attempts({ attemptCount, lastAttempt }: Row) {
  if (lastAttempt === null) return <>None yet</>;
  return (
    <>
      {attemptCount > 1 && <div>{attemptCount} attempts</div>}
      <div>{describeAttempt(lastAttempt)}</div>
    </>
  );
}

const CONTENT: readonly Column<Row>[] = [
  { name: "Event", cell: (row) => <DeliveryName delivery={row} link={deliveryLink(row)} /> },
  { name: "State", cell: (row) => <State {...row} /> },
  { name: "Created", cell: (row) => <RelativeTime at={row.createdAt} /> },
  { name: "Attempts", cell: (row) => <Attempts {...row} /> },
];

/** The columns about what comes next. `statusOf`: the status of the webhook of a row. */
const createNextColumns = (
  statusOf: (row: Row) => WebhookJson["status"],
  reload: () => Promise<void>,
): readonly Column<Row>[] => [
  {
    name: "Next attempt",
    cell: (row) => {
      const next = getNextAttempt({ status: statusOf(row) }, row.nextAttemptAt);
      return next === null ? "–" : <RelativeTime at={next} />;
    },
  },
  {
    name: "Send again",
    isUnnamed: true,
    cell: (row) =>
      row.isSentAgain ? (
        <span class="quiet">Sent again since</span>
      ) : (
        <ResendButton delivery={row} isDisabled={statusOf(row) === "DISABLED"} onSent={reload} />
      ),
  },
];

/** The columns of the table, with those that act. */
function createColumns(
  chosen: ReadonlySet<string>,
  onToggle: (id: string) => void,
  { webhook, reload }: TabProps,
): readonly Column<Row>[] {
  const choice: Column<Row> = {
    name: "Select",
    isUnnamed: true,
    cell: (row) => (
      <input
        type="checkbox"
        aria-label={`Select ${row.type}, ${row.createdAt}`}
        checked={chosen.has(row.id)}
        onChange={() => onToggle(row.id)}
      />
    ),
  };
  return [choice, ...CONTENT, ...createNextColumns(() => webhook.status, reload)];
}

export function DeliveriesTab({ webhook, reload }: TabProps) {
  const [filter, setFilter] = useState<DeliveryFilter>({});
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const pager = usePager();
  const types = useResource((api) => api.get<EventTypesJson>("v1/event-types"), []);
  // The deliveries change only if the statistics do.
  const log = useResource(
    (api) => findDeliveries(api, webhook.id, filter, { limit: PER_PAGE, cursor: pager.cursor }),
    [pager.cursor, filter, JSON.stringify(webhook.stats)],
  );
  const reloadAll = async (): Promise<void> => {
    await Promise.all([reload(), log.reload()]);
  };
  const toggle = (id: string): void =>
    setChosen((before) => {
      const next = new Set(before);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  const deselect = (id: string): void =>
    setChosen((before) => new Set([...before].filter((other) => other !== id)));
  const change = (next: DeliveryFilter): void => {
    setFilter(next);
    pager.reset();
    setChosen(new Set());
  };
  const { data, error } = log;
  const tab = { webhook, reload: reloadAll };
  return (
    <>
      <Filters eventTypes={types.data?.eventTypes ?? []} onChange={change} />
      <RetryMissed {...tab} />
      {error !== undefined && <ErrorMessage error={error} />}
      {data === undefined && error === undefined && <Loading />}
      {data !== undefined && data.deliveries.length > 0 && (
        <BulkResend {...tab} chosen={chosen} onSent={deselect} />
      )}
      {data !== undefined && (
        <LogTable page={data} pager={pager} columns={createColumns(chosen, toggle, tab)} />
      )}
    </>
  );
}

function LogTable({
  page: { deliveries, next },
  pager,
  columns,
}: {
  readonly page: DeliveryPageJson;
  readonly pager: ReturnType<typeof usePager>;
  readonly columns: readonly Column<Row>[];
}) {
  return (
    <>
      {deliveries.length === 0 ? (
        <p>{next === null ? "No delivery here." : "None so far; older ones may follow."}</p>
      ) : (
        <Table
          caption="Deliveries, newest first"
          columns={columns}
          header="Event"
          rows={toRows(deliveries)}
        />
      )}
      <PagerButtons pager={pager} next={next} labels={["Newer", "Older"]} />
    </>
  );
}

/** Reads all webhooks of the account, by id. */
async function readWebhooks({ get }: Pick<Api, "get">): Promise<ReadonlyMap<string, NamedWebhookJson>> {
  const found = new Map<string, NamedWebhookJson>();
  let cursor: string | undefined;
  do {
    const page: WebhookListJson<NamedWebhookJson> = await get("v1/webhooks", {
      include: "details",
      cursor,
      limit: 100,
    });
    for (const webhook of page.webhooks) found.set(webhook.id, webhook);
    cursor = page.next ?? undefined;
  } while (cursor !== undefined);
  return found;
}

const REFRESH_MS = 30_000;

/** The deliveries of all webhooks of the account. */
export function AllDeliveries() {
  const [filter, setFilter] = useState<DeliveryFilter>({});
  const pager = usePager();
  const types = useResource((api) => api.get<EventTypesJson>("v1/event-types"), []);
  const { data, error, reload } = useResource(
    async (api) => {
      const [webhooks, page] = await Promise.all([
        readWebhooks(api),
        findDeliveries(api, undefined, filter, { limit: PER_PAGE, cursor: pager.cursor }),
      ]);
      return { webhooks, page };
    },
    [pager.cursor, filter],
    REFRESH_MS,
  );
  const endpoint: Column<Row> = {
    name: "Endpoint",
    cell: ({ webhookId }) => {
      const webhook = data?.webhooks.get(webhookId);
      return (
        <a href={`#/webhooks/${webhookId}`} class="address">
          {webhook === undefined ? webhookId : <EndpointName webhook={webhook} />}
        </a>
      );
    },
  };
  const statusOf = ({ webhookId }: Row) => data?.webhooks.get(webhookId)?.status ?? "ENABLED";
  const change = (next: DeliveryFilter): void => {
    setFilter(next);
    pager.reset();
  };
  return (
    <>
      <Heading title="All deliveries" />
      <Filters eventTypes={types.data?.eventTypes ?? []} onChange={change} />
      {error !== undefined && <ErrorMessage error={error} />}
      {data === undefined && error === undefined && <Loading />}
      {data !== undefined && (
        <LogTable
          page={data.page}
          pager={pager}
          columns={[endpoint, ...CONTENT, ...createNextColumns(statusOf, reload)]}
        />
      )}
    </>
  );
}
