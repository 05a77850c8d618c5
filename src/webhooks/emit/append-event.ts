/** Stores an event, and claims its first deliveries in the same call if slots are free. */

import { PostbellError } from "../../core/errors.js";
import type { DeliveryWorker } from "../delivery/worker.js";
import { type EventRecord, REMEMBER_MS, type WebhookStore } from "../store.js";
import type { Emitted } from "./event-input.js";
import type { LogUnmatched } from "./unmatched-webhooks.js";

export interface AppendEventOptions {
  /** The only webhook that receives the event. */
  readonly webhookId?: string | undefined;
  /** The connection of the host's transaction in which the event is written. */
  readonly transaction?: object | undefined;
}

/** Stores an event. Throws `event_conflict`. */
export type AppendEvent = (event: EventRecord, options?: AppendEventOptions) => Promise<Emitted>;

/** Errors: `invalid_argument` if the storage cannot write in a transaction of the host. */
function checkTransaction(store: Pick<WebhookStore, "joinsTransactions">, transaction: unknown): void {
  if (transaction === undefined) return;
  const problem =
    store.joinsTransactions !== true
      ? "This storage cannot write in a transaction of the host. Use postgresStorage or sqliteStorage, or the outbox."
      : typeof transaction !== "object" || transaction === null
        ? "transaction must be the connection on which the transaction was begun."
        : undefined;
  if (problem !== undefined) throw new PostbellError("invalid_argument", problem, { field: "transaction" });
}

/**
 * @param options.onScheduled called if deliveries were stored.
 * @param options.logUnmatched called with each event that is for the whole account.
 */
export const createAppendEvent =
  (
    store: Pick<WebhookStore, "append" | "now" | "joinsTransactions">,
    worker: Pick<DeliveryWorker, "reserve">,
    { onScheduled, logUnmatched }: { readonly onScheduled: () => void; readonly logUnmatched: LogUnmatched },
  ): AppendEvent =>
  async (event, { webhookId, transaction } = {}) => {
    checkTransaction(store, transaction);
    // Nobody can claim the deliveries of a transaction before it commits.
    const reservation = transaction === undefined ? worker.reserve() : undefined;
    let appended: Awaited<ReturnType<WebhookStore["append"]>> | undefined;
    try {
      appended = await store.append({
        event,
        rememberMs: REMEMBER_MS,
        now: store.now(),
        webhookId,
        transaction,
        claim: reservation?.request,
      });
    } finally {
      reservation?.end(appended && "claimed" in appended ? appended.claimed : undefined);
    }
    if (appended.result === "conflict") {
      throw new PostbellError(
        "event_conflict",
        "An event with this id and other content was emitted in the last 24 hours.",
        { field: "id" },
      );
    }
    const { result, deliveries, confirmed, webhooks } = appended;
    if (deliveries.length > 0) onScheduled();
    const emitted: Emitted = {
      id: event.id,
      duplicate: result === "duplicate",
      ...(confirmed === undefined ? {} : { confirmed }),
      deliveries,
      webhooks,
    };
    if (webhookId === undefined) logUnmatched(event, emitted);
    return emitted;
  };
