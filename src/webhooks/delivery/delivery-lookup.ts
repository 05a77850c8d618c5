/** Finds deliveries and their webhooks for a caller, and decides which details it may see. */

import { isPostbellError } from "../../core/errors.js";
import type { Actor } from "../access.js";
import { notFound } from "../call-arguments.js";
import type { Entitlement } from "../registrations/entitlement.js";
import type { DeliveryRecord, WebhookRecord, WebhookStore } from "../store.js";
import type { Delivery } from "./deliveries.js";
import { parseDeliveryId } from "./delivery-id.js";
import { hasDetails, hideDetails, hideUnsentSubject, toDelivery } from "./delivery-view.js";

export interface DeliveryLookup {
  /** @throws `not_found`. */
  readonly findDelivery: (id: string) => Promise<DeliveryRecord>;
  /** @throws `not_found` also for a delivery of another account. */
  readonly findWebhook: (delivery: DeliveryRecord, actor: Actor) => Promise<WebhookRecord>;
  /** Converts records for the actor. Calls a hook of the host only if a record has details. */
  readonly toVisible: (
    records: readonly DeliveryRecord[],
    webhook: WebhookRecord,
    actor: Actor,
  ) => Promise<readonly Delivery[]>;
}

export function createDeliveryLookup(
  store: Pick<WebhookStore, "getDelivery">,
  entitlement: Entitlement,
): DeliveryLookup {
  /** A hook that fails hides the details only: every key of the account may read the rest. */
  const mayReadDetails = (webhook: WebhookRecord, actor: Actor): Promise<boolean> =>
    entitlement.canManage(webhook, actor).catch((error: unknown) => {
      if (isPostbellError(error, "access_unavailable")) return false;
      throw error;
    });

  return Object.freeze<DeliveryLookup>({
    async findDelivery(id) {
      const delivery = parseDeliveryId(id) && (await store.getDelivery(id));
      if (!delivery) throw notFound("delivery");
      return delivery;
    },

    async findWebhook({ webhookId }, actor) {
      try {
        return await entitlement.find(webhookId, actor);
      } catch (error) {
        throw isPostbellError(error, "not_found") ? notFound("delivery") : error;
      }
    },

    async toVisible(stored, webhook, actor) {
      const records = stored.map(hideUnsentSubject);
      const isVisible = !records.some(hasDetails) || (await mayReadDetails(webhook, actor));
      return (isVisible ? records : records.map(hideDetails)).map(toDelivery);
    },
  });
}
