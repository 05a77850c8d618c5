/** Decides which webhooks get an event, and if the event is kept. */

import { PostbellError } from "../../src/core/errors.js";
import type { AppendRequest, AppendResult, EventRecord, WebhookStatus } from "../../src/webhooks/store.js";
import { compareKnown, isKept, receives } from "../queue/append.js";
import { encodeStoredText } from "../stored-text.js";
import type { KnownRow, ReceiverRow } from "./database.js";
import { toDeliveryId } from "./delivery-rows.js";
import type { SqlStoreContext } from "./store-context.js";
import { decodeEventTypes } from "./webhook-rows.js";

/** An event that waits to be stored. */
export interface AppendEntry extends Pick<AppendRequest, "rememberMs" | "now" | "webhookId"> {
  readonly event: EventRecord;
  /** True if it is stored only if the item before it was. */
  readonly follows: boolean;
}

/** An account, as the events of one batch see it. */
export interface AccountState {
  readonly webhooks: readonly (ReceiverRow & { readonly types: readonly string[] | null })[];
  pending: number;
}

/** An event that is new, with the webhooks that get it. */
export interface PlannedEvent {
  readonly item: AppendEntry;
  readonly receivers: readonly ReceiverRow[];
  readonly isKept: boolean;
}

/** Groups webhooks by their accounts. */
export function groupReceivers(
  names: readonly string[],
  rows: readonly ReceiverRow[],
): ReadonlyMap<string, AccountState> {
  const accounts = new Map(
    names.map((name) => [name, { webhooks: [] as AccountState["webhooks"][number][], pending: 0 }]),
  );
  for (const row of rows) {
    const account = accounts.get(row.account);
    account?.webhooks.push({ ...row, types: decodeEventTypes(row.event_types) });
    if (account) account.pending += row.pending;
  }
  return accounts;
}

/** Decides which webhooks get an event, and if the event is kept. */
function planEvent(
  item: AppendEntry,
  account: AccountState | undefined,
  { retention, pendingPerAccount }: SqlStoreContext,
): PlannedEvent | PostbellError {
  const { event, webhookId } = item;
  const webhooks = account?.webhooks ?? [];
  const receivers = webhooks.filter(({ id, status, types: eventTypes }) =>
    receives({ id, status: status as WebhookStatus, eventTypes }, event.type, webhookId),
  );
  if (account !== undefined && account.pending + receivers.length > pendingPerAccount) {
    return new PostbellError(
      "storage_full",
      `The account has reached limits.pendingPerAccount (${pendingPerAccount}); nothing was stored. Raise it, or try again later.`,
      { field: "limits.pendingPerAccount" },
    );
  }
  if (account !== undefined) account.pending += receivers.length;
  const appended = {
    isTest: webhookId !== undefined,
    receivers: receivers.length,
    webhooks: webhooks.length,
    retentionMs: retention.ms,
  };
  return { item, receivers, isKept: isKept(appended) };
}

/** Writes the ids of the webhooks that get an event. */
export const encodeReceivers = ({ receivers }: PlannedEvent): string =>
  JSON.stringify(receivers.map(({ id }) => id));

const NUL = "\u0000";
export const toKey = ({ account, id }: Pick<EventRecord, "account" | "id">): string => account + NUL + id;

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

export const toKnownResult = (
  { event }: AppendEntry,
  { digest, receivers }: KnownRow,
  accounts: AppendState["accounts"],
): AppendResult => {
  const result = compareKnown(digest, encodeStoredText(event.digest));
  if (result === "conflict") return { result };
  return toResult(result, event.id, JSON.parse(receivers) as string[], accounts.get(event.account));
};

/** The state that events are planned by, as it was read or is assumed. */
export interface AppendState {
  readonly known: ReadonlyMap<string, KnownRow>;
  readonly accounts: ReadonlyMap<string, AccountState>;
}

/** The result for an item. `undefined`: it follows one that was not stored, and was not tried. */
export type ItemResult = AppendResult | undefined;

/** The results for items, and the events among them that are new. */
export interface AppendPlan {
  readonly items: readonly AppendEntry[];
  readonly results: readonly ItemResult[];
  readonly planned: readonly PlannedEvent[];
  readonly accounts: AppendState["accounts"];
}

export const isNotStored = (result: ItemResult): boolean => result !== undefined && !("deliveries" in result);

export function planAll(
  items: readonly AppendEntry[],
  { known, accounts }: AppendState,
  context: SqlStoreContext,
): AppendPlan {
  const seen = new Map<string, PlannedEvent>();
  const planItem = (item: AppendEntry): AppendResult => {
    const key = toKey(item.event);
    const stored = known.get(key);
    if (stored !== undefined) return toKnownResult(item, stored, accounts);
    const same = seen.get(key);
    if (same !== undefined) {
      const { digest, account, id } = same.item.event;
      const receivers = encodeReceivers(same);
      return toKnownResult(item, { account, id, digest: encodeStoredText(digest), receivers }, accounts);
    }
    const own = accounts.get(item.event.account);
    const planned = planEvent(item, own, context);
    if (planned instanceof PostbellError) return { result: "refused", error: planned };
    seen.set(key, planned);
    const receivers = planned.receivers.map(({ id }) => id);
    return toResult("stored", item.event.id, receivers, own);
  };
  let hasStopped = false;
  const results = items.map((item) => {
    hasStopped &&= item.follows;
    if (hasStopped) return undefined;
    const result = planItem(item);
    hasStopped = isNotStored(result);
    return result;
  });
  return { items, results, planned: [...seen.values()], accounts };
}
