/** Finds deliveries and their webhooks for a caller, and decides which details it may see. */

import { isPostbellError } from "../../core/errors.js";
import type { Actor } from "../access.js";
import { notFound } from "../call-arguments.js";
import type { Entitlement } from "../registrations/entitlement.js";
import type { DeliveryRecord, WebhookRecord, WebhookStore } from "../store.js";
import type { Delivery } from "./deliveries.js";
import { parseDeliveryId } from "./delivery-id.js";

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

export const toDateOrNull = (ms: number | null): Date | null => (ms === null ? null : new Date(ms));

/** Hides what only the manager of a webhook may see: excerpts of responses, and the subject. */
const hideDetails = (record: DeliveryRecord): DeliveryRecord => ({
  ...record,
  subject: null,
  attempts: record.attempts.map((attempt) => ({ ...attempt, excerpt: null })),
});

const hasDetails = ({ subject, attempts }: DeliveryRecord): boolean =>
  subject !== null || attempts.some(({ excerpt }) => excerpt !== null);

/**
 * Hides the subject of a record that the subscriber may not read, also if `canRead` has not been
 * called yet: each attempt calls it.
 */
const hideUnsentSubject = (record: DeliveryRecord): DeliveryRecord =>
  record.state === "withheld" || record.attempts.length === 0 ? { ...record, subject: null } : record;

const toDelivery = (record: DeliveryRecord): Delivery => ({
  id: record.id,
  webhookId: record.webhookId,
  eventId: record.eventId,
  type: record.type,
  subject: record.subject,
  state: record.state,
  reason: record.reason,
  createdAt: new Date(record.createdAt),
  startedAt: toDateOrNull(record.startedAt),
  nextAttemptAt: toDateOrNull(record.dueAt),
  endedAt: toDateOrNull(record.endedAt),
  attempts: record.attempts.map((attempt) => ({ ...attempt, at: new Date(attempt.at) })),
});
