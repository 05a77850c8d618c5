/** The audit log of the account: who did what to its webhooks, and when. */

import type { AuditEntryJson, AuditPageJson, NamedWebhookJson } from "../../shapes.js";
import type { Api } from "../api.js";
import { SelectField } from "../components/form.js";
import { ErrorMessage, Heading, Loading } from "../components/small.js";
import { PagerButtons, usePager } from "../components/table.js";
import { usePage } from "../page-context.js";
import { texts } from "../texts.js";
import { formatDay, formatExactTime, formatMinute, nameZone } from "../times.js";
import { useResource } from "../use-resource.js";
import type { ViewProps } from "../view.js";
import { deliveryLink, readSubscriptions } from "./calls.js";
import { EndpointName } from "./list.js";
import { describeAction, listAuditActions, shortenId } from "./wording.js";

const REFRESH_MS = 10_000;
const ENTRIES_PER_PAGE = 50;
/** Pages that are read for one of the view, if the filter leaves few of their entries. */
const MAX_PAGES = 10;

/** Reads entries until a page of the view is full. The API has no filter. */
async function readEntries({ get }: Api, action: string, from: string | undefined): Promise<AuditPageJson> {
  const entries: AuditEntryJson[] = [];
  let cursor = from;
  for (let pages = 1; ; pages += 1) {
    const page: AuditPageJson = await get("v1/audit", { cursor, limit: ENTRIES_PER_PAGE });
    entries.push(...page.entries.filter((entry) => action === "" || entry.action === action));
    if (page.next === null || entries.length >= ENTRIES_PER_PAGE || pages === MAX_PAGES)
      return { entries, next: page.next };
    cursor = page.next;
  }
}

interface EntryProps {
  entry: AuditEntryJson;
  /** `undefined`: the webhook was deleted. */
  webhook: NamedWebhookJson | undefined;
}

function Target({ entry: { webhookId, deliveryId }, webhook }: EntryProps) {
  if (webhook === undefined)
    return (
      <>
        <code title={webhookId}>{shortenId(webhookId)}</code> {texts.activity.deleted}
      </>
    );
  const link =
    deliveryId === undefined ? `#/webhooks/${webhookId}` : deliveryLink({ webhookId, id: deliveryId });
  return (
    <a href={link} class="address">
      <EndpointName webhook={webhook} />
    </a>
  );
}

/** Entries in a row that say the same of the same webhook. */
interface Fold {
  entry: AuditEntryJson;
  count: number;
}

/** Two deliveries differ in nothing that a reader of the list needs. */
const toText = (entry: AuditEntryJson): string => JSON.stringify([entry.webhookId, describeAction(entry)]);

/** Folds equal entries in a row: a hundred deliveries that failed alike are one line. */
function foldEntries(entries: AuditEntryJson[]): Fold[] {
  const folds: Fold[] = [];
  for (const entry of entries) {
    const last = folds.at(-1);
    if (last !== undefined && toText(last.entry) === toText(entry)) last.count += 1;
    else folds.push({ entry, count: 1 });
  }
  return folds;
}

function Entry({ entry, count, webhook }: EntryProps & { count: number }) {
  const { zone } = usePage();
  const [before, after] = describeAction(entry);
  return (
    <li>
      <time dateTime={entry.at} title={formatExactTime(entry.at, zone)}>
        {formatMinute(new Date(entry.at).getTime(), zone)}
      </time>
      <p>
        <bdi>{before}</bdi>
        <Target entry={entry} webhook={webhook} />
        {after}
        {count > 1 && <span class="badge">{texts.activity.times({ count })}</span>}
      </p>
    </li>
  );
}

interface Day {
  name: string;
  entries: AuditEntryJson[];
}

/** Groups entries by their day in the zone of the page. Their order stays. */
function useDays(entries: AuditEntryJson[]): Day[] {
  const { zone, now } = usePage();
  const today = formatDay(now(), zone);
  const days = new Map<string, AuditEntryJson[]>();
  for (const entry of entries) {
    const day = formatDay(new Date(entry.at).getTime(), zone);
    const same = days.get(day);
    if (same === undefined) days.set(day, [entry]);
    else same.push(entry);
  }
  return [...days].map(([name, found]) => ({
    name: name === today ? texts.activity.today({ day: name }) : name,
    entries: found,
  }));
}

function Entries({ entries, byId }: { entries: AuditEntryJson[]; byId: Map<string, NamedWebhookJson> }) {
  const { zone } = usePage();
  return useDays(entries).map(({ name, entries: found }) => (
    <section key={name} class="day" aria-label={name}>
      <h2>
        {name} <span class="quiet small">{nameZone(zone)}</span>
      </h2>
      <ul class="activity">
        {foldEntries(found).map(({ entry, count }, index) => (
          <Entry
            key={`${entry.at} ${index}`}
            entry={entry}
            count={count}
            webhook={byId.get(entry.webhookId)}
          />
        ))}
      </ul>
    </section>
  ));
}

/** The entries with an action, from the newest on. */
function FilteredEntries({ action }: { action: string }) {
  const pager = usePager();
  const { data, error } = useResource(
    async (api) => {
      const [page, webhooks] = await Promise.all([
        readEntries(api, action, pager.cursor),
        readSubscriptions(api),
      ]);
      return { ...page, byId: new Map(webhooks.map((webhook) => [webhook.id, webhook])) };
    },
    [pager.cursor],
    REFRESH_MS,
  );
  if (error !== undefined) return <ErrorMessage error={error} />;
  if (data === undefined) return <Loading />;
  return (
    <>
      {data.entries.length === 0 && (
        <p>
          {action === "" ? texts.activity.empty : texts.activity.noneOfKind}
          {data.next !== null && texts.activity.mayBeOlder}
        </p>
      )}
      <Entries entries={data.entries} byId={data.byId} />
      <PagerButtons
        pager={pager}
        next={data.next}
        labels={[texts.deliveries.newer, texts.deliveries.older]}
      />
    </>
  );
}

const choose = (action: string): void => {
  location.hash = action === "" ? "/activity" : `/activity?${new URLSearchParams({ action })}`;
};

/** The audit log. Its filter is part of the address. */
export function Activity({ query }: ViewProps) {
  const asked = query.get("action") ?? "";
  const action = listAuditActions().some(([name]) => name === asked) ? asked : "";
  return (
    <>
      <Heading title={texts.views.activity} />
      <div class="row">
        <SelectField
          label={texts.activity.action}
          value={action}
          onChange={choose}
          options={[["", texts.activity.allActions], ...listAuditActions()]}
        />
      </div>
      <FilteredEntries key={action} action={action} />
    </>
  );
}
