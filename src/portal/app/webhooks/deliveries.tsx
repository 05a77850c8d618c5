/** The delivery log of a webhook, and of the account: pages, keys, and sending again. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { WebhookWithStatsJson } from "../../shapes.js";
import { announce } from "../components/live.js";
import { ErrorMessage, Heading, Loading, RelativeTime, useCopy } from "../components/small.js";
import {
  type Column,
  findRowLink,
  KeysDialog,
  Table,
  useRowChoice,
  useRowKeys,
} from "../components/table.js";
import { usePage } from "../page-context.js";
import { texts } from "../texts.js";
import { formatTime } from "../times.js";
import { useResource } from "../use-resource.js";
import type { ViewProps } from "../view.js";
import { deliveryLink, readAllWebhooks } from "./calls.js";
import { DeliveryPanel, keepPlace, takePlace } from "./delivery.js";
import { ClearButton, DeliveryFilters, DeliveryPages, useListAddress } from "./delivery-filters.js";
import { createContentColumns, type Row, toRows } from "./delivery-name.js";
import {
  describePage,
  type FoundPage,
  isNarrowed,
  type ListAddress,
  parseListAddress,
  readListPage,
  type StateCounts,
} from "./delivery-pages.js";
import type { TabProps } from "./endpoint-actions.js";
import { EndpointName } from "./list.js";
import { nameDelivery, RetryMissed, RowActions, Selection } from "./resend.js";
import { getNextAttempt } from "./wording.js";

const PER_PAGE = 50;

/** From this width a delivery opens beside the list. */
const WIDE = "(min-width: 1440px)";
/** From this width the filters fit in one row with a button for each state. */
const ROOMY = "(min-width: 1200px)";

interface LogProps {
  /** Absent: the deliveries of all webhooks. */
  webhookId?: string;
  webhooks: Map<string, WebhookWithStatsJson>;
  counts: StateCounts;
  /** Reads the webhooks again. */
  reload: () => Promise<void>;
}

function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const update = (): void => setMatches(list.matches);
    list.addEventListener("change", update);
    return () => list.removeEventListener("change", update);
  }, [query]);
  return matches;
}

interface Shown extends FoundPage {
  /** The address that this page was read for. */
  key: string;
}

/** Reads the page of an address. It is read again when the statistics of a webhook change. */
function useLog({ webhookId, webhooks }: LogProps, shown: ListAddress) {
  const address = { ...shown, open: undefined };
  const { now } = usePage();
  const key = JSON.stringify(address);
  // The deliveries change only if the statistics do.
  const version = JSON.stringify([...webhooks.values()].map(({ stats }) => stats));
  const log = useResource(
    async (api): Promise<Shown> => ({
      ...(await readListPage(api, webhookId, address, { limit: PER_PAGE, now: now() })),
      key,
    }),
    [key, version],
  );
  return { ...log, isStale: log.data?.key !== key };
}

/**
 * Announces how much a filter leaves, moves to the top of another page, and returns the visitor to
 * the place that a delivery was opened from. Returns the heading, and what to call before a page.
 */
function useArrival(data: Shown | undefined, count: string) {
  const heading = useRef<HTMLHeadingElement>(null);
  const isPaging = useRef(false);
  const lastKey = useRef<string | undefined>(undefined);
  const key = data?.key;
  useEffect(() => {
    if (key === undefined || key === lastKey.current) return;
    const isFirst = lastKey.current === undefined;
    lastKey.current = key;
    if (isFirst) {
      const place = takePlace();
      if (place === undefined) return;
      scrollTo(0, place.top);
      findRowLink(place.id)?.focus({ preventScroll: true });
    } else announce(count);
    if (!isPaging.current) return;
    isPaging.current = false;
    heading.current?.focus({ preventScroll: true });
    heading.current?.scrollIntoView({ block: "start" });
  }, [key]);
  const startPaging = (): void => {
    isPaging.current = true;
  };
  return [heading, startPaging] as const;
}

interface ColumnProps extends LogProps {
  openId: string | undefined;
  onOpen: (event: MouseEvent, row: Row) => void;
  isChosen: (id: string) => boolean;
  onToggle: (id: string) => void;
}

/** All columns of the table. A list of the account also names the endpoint. */
function useColumns({ webhookId, webhooks, reload, openId, onOpen, isChosen, onToggle }: ColumnProps) {
  const { zone } = usePage();
  const copy = useCopy();
  const statusOf = (row: Row) => webhooks.get(row.webhookId)?.status ?? "ENABLED";
  const choice: Column<Row> = {
    name: texts.deliveries.select,
    isUnnamed: true,
    class: "choice",
    cell: (row) => (
      <input
        type="checkbox"
        aria-label={texts.deliveries.selectOne({
          name: nameDelivery(row),
          time: formatTime(row.createdAt, zone),
        })}
        checked={isChosen(row.id)}
        onChange={() => onToggle(row.id)}
      />
    ),
  };
  const endpoint: Column<Row> = {
    name: texts.deliveries.endpoint,
    class: "cut endpoint",
    cell: ({ webhookId: id }) => {
      const webhook = webhooks.get(id);
      return (
        <a href={`#/webhooks/${id}`}>{webhook === undefined ? id : <EndpointName webhook={webhook} />}</a>
      );
    },
  };
  const next: Column<Row> = {
    name: texts.deliveries.next,
    class: "time next",
    cell: (row) => {
      if (row.isSentAgain) return <span class="quiet">{texts.deliveries.sentAgainSince}</span>;
      const at = getNextAttempt({ status: statusOf(row) }, row.nextAttemptAt);
      return at === null ? "–" : <RelativeTime at={at} />;
    },
  };
  const actions: Column<Row> = {
    name: texts.common.actions,
    isUnnamed: true,
    class: "actions",
    cell: (row) => (
      <RowActions
        delivery={row}
        isDisabled={statusOf(row) === "DISABLED"}
        onSent={reload}
        more={[
          { text: texts.deliveries.copyEventId, act: () => copy(row.eventId, texts.deliveries.eventId) },
          { text: texts.deliveries.copyDeliveryId, act: () => copy(row.id, texts.deliveries.deliveryId) },
          {
            text: texts.deliveries.copyAddress,
            act: () => copy(new URL(deliveryLink(row), location.href).href, texts.webhooks.address),
          },
        ]}
      />
    ),
  };
  const content = createContentColumns(onOpen, openId);
  return [choice, ...(webhookId === undefined ? [endpoint] : []), ...content, next, actions];
}

/** Opens deliveries, beside the list where there is room, and moves among them with keys. */
function useOpening(
  rows: Row[],
  [address, change]: ReturnType<typeof useListAddress>,
  toggle: (id: string) => void,
) {
  const isWide = useMedia(WIDE);
  const [areKeysShown, showKeys] = useState(false);
  const { open } = address;
  /** The delivery that is open or about to be: the address follows a moment after a key. */
  const current = useRef(open);
  useEffect(() => {
    current.current = open;
  }, [open]);
  useEffect(() => {
    const [webhookId = ""] = open?.split(".", 1) ?? [];
    if (open !== undefined && !isWide) location.replace(deliveryLink({ webhookId, id: open }));
  }, [open, isWide]);
  const close = (): void => {
    change({ ...address, open: undefined }, true);
    findRowLink(open)?.focus();
  };
  const onOpen = (event: MouseEvent, { id }: Row): void => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (isWide) {
      event.preventDefault();
      change({ ...address, open: id }, open !== undefined);
    } else keepPlace(id);
  };
  const move = (from: string | undefined, step: number): void => {
    const at = rows.findIndex(({ id }) => id === from);
    const row = rows[at === -1 && step < 0 ? rows.length - 1 : at + step];
    if (row === undefined) return;
    const link = findRowLink(row.id);
    link?.scrollIntoView({ block: "nearest" });
    if (open !== undefined) {
      current.current = row.id;
      change({ ...address, open: row.id }, true);
    }
    if (document.activeElement?.closest(".delivery-panel") == null) link?.focus();
  };
  useRowKeys((key, focused) => {
    const marked = focused ?? open;
    if (key === "j" || key === "k") move(current.current ?? focused, key === "j" ? 1 : -1);
    else if (key === "x" && marked !== undefined) toggle(marked);
    else if (key === "?") showKeys(true);
    else if (key === "Escape" && open !== undefined) close();
    else return false;
    return true;
  });
  const keys = areKeysShown && <KeysDialog onClose={() => showKeys(false)} />;
  return { openId: isWide ? open : undefined, onOpen, close, keys, showKeys: () => showKeys(true) };
}

/** The rows, or what stands in their place. */
function LogTable({
  log: { data, error, isStale },
  rows,
  columns,
  isFiltered,
}: {
  log: ReturnType<typeof useLog>;
  rows: Row[];
  columns: Column<Row>[];
  isFiltered: boolean;
}) {
  if (error !== undefined && isStale) return <ErrorMessage error={error} />;
  if (data === undefined) return <Loading />;
  if (rows.length === 0)
    return <p class="empty">{isFiltered ? texts.deliveries.clearOrWiden : texts.deliveries.nothingSent}</p>;
  return (
    <div class="log-table" aria-busy={isStale}>
      <Table
        caption={texts.deliveries.captionNewest}
        columns={columns}
        header={texts.deliveries.event}
        rows={rows}
        opens
      />
    </div>
  );
}

function DeliveryLog(props: LogProps) {
  const { webhookId, webhooks, counts, reload } = props;
  const location = useListAddress();
  const [address, change] = location;
  const log = useLog(props, address);
  const { data } = log;
  const rows = toRows(data?.deliveries ?? []);
  const choice = useRowChoice(rows);
  const opening = useOpening(rows, location, choice.toggle);
  const count = data === undefined ? "" : describePage(data, address, counts);
  const [heading, startPaging] = useArrival(data, count);
  const { openId, onOpen } = opening;
  const isNarrow = !useMedia(ROOMY) || openId !== undefined;
  const reloadAll = async (): Promise<void> => {
    await Promise.all([reload(), log.reload()]);
  };
  const columns = useColumns({
    ...props,
    reload: reloadAll,
    openId,
    onOpen,
    isChosen: choice.isChosen,
    onToggle: choice.toggle,
  });
  const filter = (next: ListAddress, isReplaced?: boolean): void =>
    change({ ...next, after: undefined, open: undefined }, isReplaced);
  const page = (next: ListAddress): void => {
    startPaging();
    change(next);
  };
  return (
    <div class={openId === undefined ? "log" : "log with-panel"}>
      <div class={webhookId === undefined ? "log-list of-all" : "log-list"}>
        <DeliveryFilters address={address} change={filter} counts={counts} isNarrow={isNarrow} />
        <div class="log-head">
          <h2 tabIndex={-1} ref={heading}>
            <span class="unseen">{texts.deliveries.heading}</span>
            {count}
          </h2>
          <ClearButton address={address} change={filter} />
          <button type="button" class="bare small keys-button" onClick={opening.showKeys}>
            <kbd>?</kbd> {texts.parts.keys}
          </button>
        </div>
        <LogTable
          log={log}
          rows={rows}
          columns={columns}
          isFiltered={isNarrowed(address) || address.state !== undefined}
        />
        <div class="log-foot">
          {rows.length > 0 && (
            <Selection
              choice={choice}
              total={rows.length}
              isDisabled={webhookId !== undefined && webhooks.get(webhookId)?.status === "DISABLED"}
              onDone={reloadAll}
            />
          )}
          {data !== undefined && <DeliveryPages address={address} page={data} onPage={page} />}
        </div>
      </div>
      {openId !== undefined && (
        <DeliveryPanel
          id={openId}
          onClose={opening.close}
          onOther={(id) => change({ ...address, open: id }, true)}
        />
      )}
      {opening.keys}
    </div>
  );
}

export function DeliveriesTab({ webhook, reload }: TabProps) {
  return (
    <>
      <DeliveryLog
        webhookId={webhook.id}
        webhooks={new Map([[webhook.id, webhook]])}
        counts={webhook.stats}
        reload={reload}
      />
      <RetryMissed webhook={webhook} reload={reload} />
    </>
  );
}

const REFRESH_MS = 30_000;

/** The deliveries of all webhooks of the account. */
export function AllDeliveries({ query }: ViewProps) {
  const filter = JSON.stringify({ ...parseListAddress(query), open: undefined });
  const { data, error, reload } = useResource(readAllWebhooks, [filter], REFRESH_MS);
  const counts = { pending: 0, delivered: 0, failed: 0, withheld: 0 };
  for (const { stats } of data?.values() ?? []) {
    counts.pending += stats.pending;
    counts.delivered += stats.delivered;
    counts.failed += stats.failed;
    counts.withheld += stats.withheld;
  }
  return (
    <>
      <Heading title={texts.deliveries.all} />
      {error !== undefined && <ErrorMessage error={error} />}
      {data === undefined && error === undefined && <Loading />}
      {data !== undefined && <DeliveryLog webhooks={data} counts={counts} reload={reload} />}
    </>
  );
}
