/** Decides which webhooks get an event, and if the event is kept. */

import { PostbellError } from "../../src/core/errors.js";
import { subscribes } from "../../src/webhooks/event-types/subscription.js";
import type { WebhookStore } from "../../src/webhooks/store.js";
import type { ReceiverRow } from "./append-queries.js";
import type { SqlStoreContext } from "./store-context.js";
import { decodeEventTypes } from "./webhook-rows.js";

export type AppendRequest = Parameters<WebhookStore["append"]>[0];

/** An account, as the events of one batch see it. */
export interface AccountState {
  readonly webhooks: readonly (ReceiverRow & { readonly types: readonly string[] | null })[];
  pending: number;
}

/** An event that is new, with the webhooks that get it. */
export interface PlannedEvent {
  readonly request: AppendRequest;
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
export function planEvent(
  request: AppendRequest,
  account: AccountState | undefined,
  { retention, pendingPerAccount }: SqlStoreContext,
): PlannedEvent | PostbellError {
  const { event, webhookId } = request;
  const receivers = (account?.webhooks ?? []).filter(
    ({ status, types, id }) =>
      status === "ENABLED" && (webhookId === undefined ? subscribes(types, event.type) : id === webhookId),
  );
  if (account !== undefined && account.pending + receivers.length > pendingPerAccount) {
    return new PostbellError(
      "storage_full",
      `The account has reached limits.pendingPerAccount (${pendingPerAccount}); nothing was stored. Raise it, or try again later.`,
      { field: "limits.pendingPerAccount" },
    );
  }
  if (account !== undefined) account.pending += receivers.length;
  // An event without receivers is stored only if a webhook may recover it later.
  const isRecoverable = webhookId === undefined && retention.ms > 0 && (account?.webhooks.length ?? 0) > 0;
  return { request, receivers, isKept: receivers.length > 0 || isRecoverable };
}

/** Writes the ids of the webhooks that get an event. */
export const encodeReceivers = ({ receivers }: PlannedEvent): string =>
  JSON.stringify(receivers.map(({ id }) => id));
