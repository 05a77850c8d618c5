/** Stores an event, and claims its first deliveries in the same call if slots are free. */

import { PostbellError } from "../../core/errors.js";
import type { DeliveryDispatcher } from "../delivery/dispatcher.js";
import { type EventRecord, REMEMBER_MS, type WebhookStore } from "../store.js";
import type { Emitted } from "./event-input.js";

/** Stores an event. With `webhookId`, only that webhook receives it. Throws `event_conflict`. */
export type AppendEvent = (event: EventRecord, webhookId?: string) => Promise<Emitted>;

/** @param onScheduled called if deliveries were stored. */
export const createAppendEvent =
  (
    store: Pick<WebhookStore, "append" | "now">,
    dispatcher: Pick<DeliveryDispatcher, "reserve">,
    onScheduled: () => void,
  ): AppendEvent =>
  async (event, webhookId) => {
    const reservation = dispatcher.reserve();
    let appended: Awaited<ReturnType<WebhookStore["append"]>> | undefined;
    try {
      appended = await store.append({
        event,
        rememberMs: REMEMBER_MS,
        now: store.now(),
        webhookId,
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
    const { result, deliveries, confirmed } = appended;
    if (deliveries.length > 0) onScheduled();
    return {
      id: event.id,
      duplicate: result === "duplicate",
      ...(confirmed === undefined ? {} : { confirmed }),
      deliveries,
    };
  };
