/** Lists of deliveries as their addresses name them: filters, and pages. */

import type { DeliveryPageJson, DeliveryRowJson, DeliveryStateJson } from "../../shapes.js";
import type { Api } from "../api.js";
import { texts } from "../texts.js";
import { type DeliveryFilter, findDeliveries, readPage } from "./calls.js";

const STATES: string[] = ["pending", "delivered", "failed", "withheld"] satisfies DeliveryStateJson[];

/** The periods that end now, in ms. */
const PERIODS: Record<string, number> = {
  "1h": 3_600_000,
  "24h": 86_400_000,
  "72h": 259_200_000,
};

/** The filters and the page of a list of deliveries, as its address has them. */
export interface ListAddress extends Omit<DeliveryFilter, "eventId"> {
  /** One of {@link PERIODS}, in place of `since` and `until`. */
  period?: string | undefined;
  /** The text of the search: an event ID, or a part of a record's name. */
  q?: string | undefined;
  /** Where the page begins: the `next` of the page before it. */
  after?: string | undefined;
  /** The id of the delivery that is open beside the list. */
  open?: string | undefined;
}

/** Longer texts of an address are ignored: no cursor, id, type or record is as long. */
const MAX_TEXT = 400;

/** Reads the query of an address. Anybody may have written it, so what is no filter is left out. */
export function parseListAddress(query: URLSearchParams): ListAddress {
  const read = (name: string): string | undefined => {
    const text = query.get(name)?.trim() ?? "";
    return text === "" || text.length > MAX_TEXT ? undefined : text;
  };
  const readTime = (name: string): string | undefined => {
    const ms = Date.parse(read(name) ?? "");
    return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
  };
  const [state, period] = [read("state"), read("period")];
  const hasPeriod = period !== undefined && Object.hasOwn(PERIODS, period);
  return {
    state: state !== undefined && STATES.includes(state) ? (state as DeliveryStateJson) : undefined,
    type: read("type"),
    period: hasPeriod ? period : undefined,
    since: hasPeriod ? undefined : readTime("since"),
    until: hasPeriod ? undefined : readTime("until"),
    q: read("q"),
    after: read("after"),
    open: read("open"),
  };
}

/** Returns `path` with a query: what {@link parseListAddress} reads. */
export function formatListAddress(path: string, address: ListAddress): string {
  const entries = Object.entries(address).filter((entry): entry is [string, string] => Boolean(entry[1]));
  return entries.length === 0 ? path : `${path}?${new URLSearchParams(entries)}`;
}

/** An event ID, alone or within the id of a delivery. */
const EVENT_ID =
  /^(?:[0-9a-f-]{36}\.)?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?:\.[0-9]{1,9})?$/;

/** A part of a subject has no index, so that the page reads so many pages of 100 and looks. */
const SEARCHED_PAGES = 5;

/** Stands before a cursor of a search by a subject, and names which of its forms was found. */
const SUBJECT_CURSOR = /^subject(\d):(.+)$/;

/** The forms of a subject that a visitor may mean: `order A-2015` is also `order/A-2015`. */
const listSubjects = (text: string): string[] =>
  text.includes(" ") ? [text, text.replace(/ +/, "/")] : [text];

/** Finds the deliveries of events about a subject. Returns `undefined` without any. */
async function findBySubject(
  api: { get: Api["get"] },
  webhookId: string | undefined,
  filter: DeliveryFilter,
  { text, limit, after }: { text: string; limit: number; after: string | undefined },
): Promise<FoundPage | undefined> {
  const [, chosen, cursor] = SUBJECT_CURSOR.exec(after ?? "") ?? [];
  for (const [index, subject] of listSubjects(text).entries()) {
    if (chosen !== undefined && Number(chosen) !== index) continue;
    const page = await findDeliveries(api, webhookId, { ...filter, subject }, { limit, cursor });
    const next = page.next === null ? null : `subject${index}:${page.next}`;
    if (page.deliveries.length > 0) return { ...page, next };
  }
  return undefined;
}

/** A page of a list. `searched`: how many deliveries the page itself has searched, if it did. */
export interface FoundPage extends DeliveryPageJson {
  searched?: number;
}

/** Reads the page that an address names. `now`: epoch ms. */
export async function readListPage(
  api: { get: Api["get"] },
  webhookId: string | undefined,
  { state, type, period, since, until, q = "", after }: ListAddress,
  { limit, now }: { limit: number; now: number },
): Promise<FoundPage> {
  const from = period === undefined ? since : new Date(now - (PERIODS[period] ?? 0)).toISOString();
  const filter: DeliveryFilter = { state, type, since: from, until };
  const text = q.toLowerCase();
  const eventId = EVENT_ID.exec(text)?.[1];
  if (text === "" || eventId !== undefined)
    return findDeliveries(api, webhookId, { ...filter, eventId }, { limit, cursor: after });
  if (after === undefined || SUBJECT_CURSOR.test(after)) {
    const page = await findBySubject(api, webhookId, filter, { text: q.trim(), limit, after });
    if (page !== undefined || after !== undefined) return page ?? { deliveries: [], next: null };
  }
  const found: DeliveryRowJson[] = [];
  let [cursor, searched] = [after, 0];
  for (let pages = 1; ; pages += 1) {
    const page = await readPage(api, webhookId, filter, { limit: 100, cursor });
    searched += page.deliveries.length;
    found.push(
      ...page.deliveries.filter(
        ({ subject, eventId }) => subject?.toLowerCase().includes(text) || eventId.startsWith(text),
      ),
    );
    if (page.next === null || found.length >= limit || pages === SEARCHED_PAGES)
      return { deliveries: found, next: page.next, searched };
    cursor = page.next;
  }
}

/** The pages that the visitor came to by "Older", by address: where the page before each begins. */
const trail = new Map<string, { previous: string | undefined; before: number }>();

const toPageKey = (address: ListAddress): string => formatListAddress("", { ...address, open: undefined });

/** Returns how many deliveries are before a page, and where the page before it begins, if known. */
export const findPreviousPage = (address: ListAddress) =>
  address.after === undefined ? { previous: undefined, before: 0 } : trail.get(toPageKey(address));

/** Returns the address of the page after one with `count` deliveries. */
export function findNextPage(address: ListAddress, next: string, count: number): ListAddress {
  const following = { ...address, after: next, open: undefined };
  const place = findPreviousPage(address);
  if (place !== undefined)
    trail.set(toPageKey(following), { previous: address.after, before: place.before + count });
  return following;
}

/** How many deliveries of each state there are. */
export type StateCounts = Record<DeliveryStateJson, number>;

/** `1–50 of 9,700 deliveries`, or what else can be said about how much there is. */
export function describePage(
  { deliveries, next, searched }: FoundPage,
  address: ListAddress,
  counts: StateCounts | undefined,
): string {
  const count = deliveries.length;
  const { deliveries: words } = texts;
  if (searched !== undefined && next !== null) return words.among({ count, searched });
  if (count === 0) return next === null ? words.none : words.noneSoFar;
  const before = findPreviousPage(address)?.before;
  const isAll = next === null && before === 0;
  if (before === undefined || isAll) return words.count({ count });
  const total = isNarrowed(address) ? undefined : countDeliveries(counts, address.state);
  const range = { from: before + 1, to: before + count };
  return total === undefined ? words.range(range) : words.rangeOf({ ...range, total });
}

/** True if more than a state is filtered by: the service does not count such deliveries. */
export const isNarrowed = ({ type, period, since, until, q }: ListAddress): boolean =>
  (type ?? period ?? since ?? until ?? q) !== undefined;

/** How many deliveries there are in a state, or in all. */
export const countDeliveries = (
  counts: StateCounts | undefined,
  state: DeliveryStateJson | undefined,
): number | undefined => {
  if (counts === undefined || state !== undefined) return counts?.[state ?? "pending"];
  return counts.pending + counts.delivered + counts.failed + counts.withheld;
};
