/**
 * Appends events. It only inserts rows and locks none, so an event can be written in a transaction
 * of the host, however long that lasts.
 */

import { PostbellError } from "../../src/core/errors.js";
import type { EventRecord, WebhookStore } from "../../src/webhooks/store.js";
import { encodeStoredText } from "../stored-text.js";
import {
  type AccountState,
  type AppendRequest,
  encodeReceivers,
  groupReceivers,
  type PlannedEvent,
  planEvent,
} from "./append-plan.js";
import {
  KNOWN,
  KNOWN_TYPES,
  type KnownRow,
  RECEIVERS,
  RECEIVERS_TYPES,
  type ReceiverRow,
} from "./append-queries.js";
import type { NewEvent, SqlTransaction, SqlValues } from "./database.js";
import { toDeliveryId } from "./delivery-rows.js";
import { insertEvents } from "./new-events.js";
import { remember } from "./remembered-ids.js";
import type { SqlStoreContext } from "./store-context.js";

export type AppendResult = Awaited<ReturnType<WebhookStore["append"]>>;

const NUL = "\u0000";
const toKey = ({ account, id }: Pick<EventRecord, "account" | "id">): string => account + NUL + id;

const toResult = (
  result: "stored" | "duplicate",
  eventId: string,
  receivers: readonly string[],
  account: AccountState | undefined,
): AppendResult => ({
  result,
  deliveries: receivers.map((webhookId) => ({ id: toDeliveryId(webhookId, eventId, 0), webhookId })),
  webhooks: account?.webhooks.length ?? 0,
});

const toKnownResult = (
  { event }: AppendRequest,
  { digest, receivers }: KnownRow,
  accounts: ReadState["accounts"],
): AppendResult =>
  digest === encodeStoredText(event.digest)
    ? toResult("duplicate", event.id, JSON.parse(receivers) as string[], accounts.get(event.account))
    : { result: "conflict" };

/** The state that events are planned by, as it was read or is assumed. */
interface ReadState {
  readonly known: ReadonlyMap<string, KnownRow>;
  readonly accounts: ReadonlyMap<string, AccountState>;
}

const listKeys = (requests: readonly AppendRequest[]): readonly SqlValues[] =>
  requests.map(({ event, now }) => [event.account, event.id, now]);

const readKnown = (
  transaction: SqlTransaction,
  requests: readonly AppendRequest[],
): Promise<readonly KnownRow[]> => transaction.forEach<KnownRow>(KNOWN, KNOWN_TYPES, listKeys(requests));

const groupKnown = (rows: readonly KnownRow[]): ReadonlyMap<string, KnownRow> =>
  new Map(rows.map((row) => [toKey(row), row]));

const listAccounts = (requests: readonly AppendRequest[]): readonly string[] => [
  ...new Set(requests.map(({ event }) => event.account)),
];

/** Reads what is known of events, and the webhooks of their accounts. */
async function readForAppend(
  transaction: SqlTransaction,
  requests: readonly AppendRequest[],
  { receivers: cache }: SqlStoreContext,
): Promise<ReadState> {
  const names = listAccounts(requests);
  if (transaction.appends !== undefined) {
    const { known, receivers } = await transaction.appends.read(listKeys(requests), names);
    const accounts = groupReceivers(names, receivers);
    for (const [name, { webhooks }] of accounts) cache.set(name, webhooks);
    return { known: groupKnown(known), accounts };
  }
  const lists = names.map((name) => [name]);
  const [known, receivers] = await Promise.all([
    readKnown(transaction, requests),
    transaction.forEach<ReceiverRow>(RECEIVERS, RECEIVERS_TYPES, lists),
  ]);
  return { known: groupKnown(known), accounts: groupReceivers(names, receivers) };
}

const toNewEvent = (own: PlannedEvent): NewEvent => {
  const { event, now, rememberMs, webhookId } = own.request;
  const { account, id, type, subject, digest, payload } = event;
  return {
    ...{ account, id },
    type: encodeStoredText(type),
    subject: subject === undefined ? null : encodeStoredText(subject),
    digest: encodeStoredText(digest),
    payload: encodeStoredText(payload),
    bytes: Buffer.byteLength(payload),
    rememberUntil: now + rememberMs,
    receivers: encodeReceivers(own),
    isTest: webhookId !== undefined,
    endpoints: own.receivers.map(({ position }) => position),
  };
};

/** Remembers the ids of events that are not kept. */
const rememberIds = (transaction: SqlTransaction, planned: readonly PlannedEvent[]): Promise<void> =>
  remember(
    transaction,
    planned.map((own) => {
      const { event, now, rememberMs } = own.request;
      const { account, id, digest } = event;
      return {
        ...{ account, id, digest: encodeStoredText(digest), receivers: encodeReceivers(own) },
        expires_at: now + rememberMs,
      };
    }),
  );

/** The results of requests, and the events among them that are new. */
interface Plan {
  readonly requests: readonly AppendRequest[];
  readonly results: readonly (AppendResult | PostbellError)[];
  readonly planned: readonly PlannedEvent[];
  readonly accounts: ReadState["accounts"];
}

function planAll(
  requests: readonly AppendRequest[],
  { known, accounts }: ReadState,
  context: SqlStoreContext,
): Plan {
  const seen = new Map<string, PlannedEvent>();
  const results = requests.map((request) => {
    const key = toKey(request.event);
    const stored = known.get(key);
    if (stored !== undefined) return toKnownResult(request, stored, accounts);
    const same = seen.get(key);
    if (same !== undefined) {
      const { digest, account, id } = same.request.event;
      const receivers = encodeReceivers(same);
      return toKnownResult(request, { account, id, digest: encodeStoredText(digest), receivers }, accounts);
    }
    const own = accounts.get(request.event.account);
    const planned = planEvent(request, own, context);
    if (planned instanceof PostbellError) return planned;
    seen.set(key, planned);
    return toResult(
      "stored",
      request.event.id,
      planned.receivers.map(({ id }) => id),
      own,
    );
  });
  return { requests, results, planned: [...seen.values()], accounts };
}

/** Returns the results of a plan. `late`: events that other processes have stored first. */
async function listResults(
  transaction: SqlTransaction,
  { requests, results, accounts }: Plan,
  late: readonly PlannedEvent[],
): Promise<Plan["results"]> {
  if (late.length === 0) return results;
  const lost = late.map(({ request }) => request);
  const first = groupKnown(await readKnown(transaction, lost));
  return results.map((result, index) => {
    const request = requests[index];
    const winner = request && lost.includes(request) ? first.get(toKey(request.event)) : undefined;
    return request && winner ? toKnownResult(request, winner, accounts) : result;
  });
}

const NOTHING_KNOWN: ReadonlyMap<string, KnownRow> = new Map();

/**
 * Appends events without reading first, as if nothing had changed since the webhooks of their
 * accounts were read. Returns `undefined`, and stores nothing, if that is not so.
 */
async function appendAssumed(
  transaction: SqlTransaction,
  requests: readonly AppendRequest[],
  context: SqlStoreContext,
): Promise<Plan["results"] | undefined> {
  const names = listAccounts(requests);
  const rows = names.flatMap((name) => context.receivers.get(name) ?? []);
  if (transaction.appends === undefined || names.some((name) => !context.receivers.has(name)))
    return undefined;
  const accounts = groupReceivers(
    names,
    rows.map((row) => ({ ...row, pending: 0 })),
  );
  const plan = planAll(requests, { known: NOTHING_KNOWN, accounts }, context);
  const { planned, results } = plan;
  const isPlain =
    planned.every(({ isKept }) => isKept) && !results.some((result) => result instanceof PostbellError);
  if (!isPlain) return undefined;
  const assumed = [...accounts].map(([account, { webhooks, pending }]) => ({
    account,
    webhooks: webhooks.map(({ position, updated_at }) => `${position}:${updated_at}`).join(","),
    mostPending: context.pendingPerAccount - pending,
  }));
  const now = requests[0]?.now ?? 0;
  const positions = await transaction.appends.insert(planned.map(toNewEvent), now, assumed);
  if (positions === undefined) return undefined;
  return listResults(
    transaction,
    plan,
    planned.filter((_, index) => positions[index] === undefined),
  );
}

/** Stores events that are kept. Returns those that another process stored first. */
async function storeKept(
  transaction: SqlTransaction,
  planned: readonly PlannedEvent[],
): Promise<readonly PlannedEvent[]> {
  if (planned.length === 0) return [];
  const now = planned[0]?.request.now ?? 0;
  const added = planned.map(toNewEvent);
  const positions =
    transaction.appends === undefined
      ? await insertEvents(transaction, added, now)
      : await transaction.appends.insert(added, now);
  return planned.filter((_, index) => positions?.[index] === undefined);
}

/**
 * Appends events in one transaction. All have the same `now`. Returns a result for each, or the
 * error for an account that is full.
 */
export async function appendAll(
  transaction: SqlTransaction,
  requests: readonly AppendRequest[],
  context: SqlStoreContext,
): Promise<readonly (AppendResult | PostbellError)[]> {
  const assumed = await appendAssumed(transaction, requests, context);
  if (assumed !== undefined) return assumed;
  const plan = planAll(requests, await readForAppend(transaction, requests, context), context);
  await rememberIds(
    transaction,
    plan.planned.filter(({ isKept }) => !isKept),
  );
  const late = await storeKept(
    transaction,
    plan.planned.filter(({ isKept }) => isKept),
  );
  return listResults(transaction, plan, late);
}
