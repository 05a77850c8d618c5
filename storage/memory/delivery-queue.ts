/** The queue of deliveries in memory: append, claim and settle. */

import { isPostbellError } from "../../src/core/errors.js";
import { subscribes } from "../../src/webhooks/event-types/catalogue.js";
import { formatDeliveryId } from "../../src/webhooks/store/records.js";
import type { AppendRequest, AppendResult, EventRecord, WebhookStore } from "../../src/webhooks/store.js";
import { copyEvent } from "../event-copy.js";
import { addDelivery } from "./add-delivery.js";
import { checkPending, DELIVERY_BYTES, eventBytes, memoryFull, resize } from "./bounds.js";
import { claimDue } from "./claim-order.js";
import type { Account, MemoryEndpoint, MemoryEvent } from "./records.js";
import { completeEvent, expire, freeRemoved, makeRoom } from "./retention.js";
import { settleAll } from "./settle.js";
import { type MemoryStoreContext, type State, scoped } from "./state.js";

/** Lists the deliveries of an event to the webhooks that it is stored for. */
const listDeliveries = (
  eventId: string,
  receivers: readonly string[],
): { readonly id: string; readonly webhookId: string }[] =>
  receivers.map((webhookId) => ({ id: formatDeliveryId({ webhookId, eventId, serial: 0 }), webhookId }));

/** Finds an event with the same id that is stored or remembered. */
function findKnown(
  state: State,
  account: Account | undefined,
  { account: name, id }: EventRecord,
  now: number,
): { readonly digest: string; readonly receivers: readonly string[] } | undefined {
  const stored = account?.events.get(id);
  if (stored) return { digest: stored.record.digest, receivers: stored.receivers };
  return state.remembered.get(scoped(name, id), now);
}

/** Lists the ENABLED webhooks that get an event. `webhookId`: the only one that gets a test. */
const listReceivers = (
  account: Account | undefined,
  type: string,
  webhookId: string | undefined,
): readonly MemoryEndpoint[] =>
  [...(account?.endpoints.after(0) ?? [])].filter(
    ({ record }) =>
      record.status === "ENABLED" &&
      (webhookId === undefined ? subscribes(record.eventTypes, type) : record.id === webhookId),
  );

/** Adds an event to its account, without deliveries. The caller has checked that there is room. */
function addEvent(
  state: State,
  account: Account,
  event: EventRecord,
  { rememberMs, now, webhookId, receivers }: AppendRequest & { readonly receivers: readonly string[] },
): MemoryEvent {
  const stored: MemoryEvent = {
    id: event.id,
    order: ++state.order,
    record: copyEvent(event),
    account,
    bytes: 0,
    storedAt: now,
    rememberUntil: now + rememberMs,
    deliveries: [],
    receivers,
    isTest: webhookId !== undefined,
    open: 0,
    ended: null,
    place: null,
    queuedAt: now,
    turn: 0,
    previous: null,
    next: null,
  };
  account.events.add(stored, now);
  return stored;
}

/** @throws `storage_full`. */
function appendEvent(context: MemoryStoreContext, event: EventRecord, request: AppendRequest): AppendResult {
  const { state, retention } = context;
  const { rememberMs, now, webhookId } = request;
  const account = state.accounts.get(event.account);
  const webhooks = account?.endpoints.size ?? 0;
  const known = findKnown(state, account, event, now);
  if (known) {
    if (known.digest !== event.digest) return { result: "conflict" };
    return { result: "duplicate", deliveries: listDeliveries(event.id, known.receivers), webhooks };
  }
  const endpoints = listReceivers(account, event.type, webhookId);
  const receivers = endpoints.map(({ id }) => id);
  const deliveries = listDeliveries(event.id, receivers);
  // An event without receivers is stored only if a webhook may recover it later.
  const isRecoverable = webhookId === undefined && retention.ms > 0 && webhooks > 0;
  if (!account || (endpoints.length === 0 && !isRecoverable)) {
    const remembered = { digest: event.digest, receivers, expiresAt: now + rememberMs };
    state.remembered.set(scoped(event.account, event.id), remembered);
    return { result: "stored", deliveries, webhooks };
  }

  checkPending(state, account, endpoints.length);
  const bytes = eventBytes(event.payload);
  if (!makeRoom(state, bytes + endpoints.length * DELIVERY_BYTES, now)) throw memoryFull(state, "bytes");
  const stored = addEvent(state, account, event, { ...request, receivers });
  resize(state, stored, bytes);
  for (const endpoint of endpoints) addDelivery(context, endpoint, stored);
  if (endpoints.length === 0) completeEvent(context, stored, now);
  return { result: "stored", deliveries, webhooks };
}

export function createMemoryDeliveryQueue(
  context: MemoryStoreContext,
): Pick<WebhookStore, "append" | "claim" | "settle"> {
  const { state } = context;

  return {
    async append(request) {
      expire(state, request.now);
      freeRemoved(context, request.now);
      const results: AppendResult[] = [];
      for (const event of request.events) {
        try {
          const appended = appendEvent(context, event, request);
          results.push(appended);
          if (appended.result === "conflict") break;
        } catch (error) {
          if (!isPostbellError(error)) throw error;
          results.push({ result: "refused", error });
          break;
        }
      }
      return { results, ...(request.claim && { claimed: claimDue(context, request.claim) }) };
    },

    async claim(request) {
      expire(state, request.now);
      freeRemoved(context, request.now);
      return claimDue(context, request);
    },

    async settle(settlements) {
      return settleAll(context, settlements);
    },
  };
}
