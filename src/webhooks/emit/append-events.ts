/** Stores events, and claims their first deliveries in the same call if slots are free. */

import { isPostbellError, PostbellError } from "../../core/errors.js";
import type { DeliveryWorker } from "../delivery/worker.js";
import {
  type AppendedEvent,
  type AppendResponse,
  type AppendResult,
  type EventRecord,
  REMEMBER_MS,
  type WebhookStore,
} from "../store.js";
import type { Emitted } from "./event-input.js";
import type { LogUnmatched } from "./unmatched-webhooks.js";

export interface AppendOptions {
  /** The only webhook that receives the events. */
  readonly webhookId?: string | undefined;
  /** The connection of the host's transaction in which the events are written. */
  readonly transaction?: object | undefined;
}

/**
 * Stores events in order, until one is not stored. Resolves with a result for each that was stored,
 * and with the `error` of the next: `event_conflict`, or one of the storage.
 */
export type AppendEvents = (
  events: readonly EventRecord[],
  options?: AppendOptions,
) => Promise<{ readonly emitted: readonly Emitted[]; readonly error?: PostbellError | undefined }>;

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

function toError(result: AppendResult | undefined): PostbellError | undefined {
  if (result?.result === "refused") return result.error;
  if (result?.result !== "conflict") return undefined;
  const message = "An event with this id and other content was emitted in the last 24 hours.";
  return new PostbellError("event_conflict", message, { field: "id" });
}

const toEmitted = (
  { id }: EventRecord,
  { result, deliveries, webhooks, confirmed }: AppendedEvent,
): Emitted => ({
  id,
  duplicate: result === "duplicate",
  ...(confirmed === undefined ? {} : { confirmed }),
  deliveries,
  webhooks,
});

/**
 * @param options.onScheduled called if deliveries were stored, with the number of their events.
 * @param options.logUnmatched called with each event that is for the whole account.
 */
export const createAppendEvents =
  (
    store: Pick<WebhookStore, "append" | "now" | "joinsTransactions">,
    worker: Pick<DeliveryWorker, "reserve">,
    options: { readonly onScheduled: (events: number) => void; readonly logUnmatched: LogUnmatched },
  ): AppendEvents =>
  async (events, { webhookId, transaction } = {}) => {
    checkTransaction(store, transaction);
    // Nobody can claim the deliveries of a transaction before it commits.
    const reservation = transaction === undefined ? worker.reserve() : undefined;
    const claim = reservation?.request;
    let response: AppendResponse | undefined;
    try {
      const now = store.now();
      response = await store.append({ events, rememberMs: REMEMBER_MS, now, webhookId, transaction, claim });
    } catch (error) {
      if (!isPostbellError(error)) throw error;
      return { emitted: [], error };
    } finally {
      reservation?.end(response?.claimed);
    }
    const emitted: Emitted[] = [];
    let scheduled = 0;
    for (const [index, event] of events.entries()) {
      const result = response.results[index];
      if (result === undefined || !("deliveries" in result)) {
        if (scheduled > 0) options.onScheduled(scheduled);
        return { emitted, error: toError(result) };
      }
      const own = toEmitted(event, result);
      emitted.push(own);
      if (own.deliveries.length > 0) scheduled += 1;
      if (webhookId === undefined) options.logUnmatched(event, own);
    }
    if (scheduled > 0) options.onScheduled(scheduled);
    return { emitted };
  };
