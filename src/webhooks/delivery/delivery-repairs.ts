/** Sends single events again, and tests: `resend`, `test` and `sample` of the delivery log. */

import { randomUUID } from "node:crypto";
import { PostbellError } from "../../core/errors.js";
import { readCallArguments } from "../../core/known-names.js";
import { createRateLimit } from "../../http/rate-limit.js";
import type { JsonObject } from "../../schema/types.js";
import type { Actor } from "../access.js";
import { toAuditActor } from "../audit.js";
import { invalidField, notFound } from "../call-arguments.js";
import type { ServiceBase } from "../config/config.js";
import { requireLoggedType, subscribes, TEST_EVENT_TYPE } from "../event-types/catalogue.js";
import { readPayload } from "../events/notification.js";
import { createTestEvent } from "../events/test-event.js";
import type { Entitlement } from "../registrations/entitlement.js";
import type { StartReminder } from "../start-reminder.js";
import { formatDeliveryId } from "../store/records.js";
import { type EventRecord, MAX_RESENT, type WebhookRecord } from "../store.js";
import type { AuditAction, AuditEntry } from "../webhook.js";
import { buildBody } from "./attempt.js";
import type { Deliveries } from "./deliveries.js";
import { createRecoveries, requireSendable, takeToken, webhookDisabled } from "./recover.js";

/** Stores events for one webhook. */
export type AppendForWebhook = (
  events: EventRecord[],
  options: { webhookId: string },
) => Promise<{
  emitted: readonly { deliveries: readonly { id: string }[] }[];
  error?: PostbellError | undefined;
}>;

/** Stands for what differs from test to test. */
const SAMPLE = {
  id: "0b9d3a0e-2f4c-4f57-8d0c-6a1f5e7f3c21",
  webhookId: "5e0f4f6e-7f0b-4a8e-9d5e-3d3f0c1f2a10",
  now: Date.UTC(2026, 2, 1, 12),
} as const;

const attemptInFlight = (): PostbellError =>
  new PostbellError(
    "attempt_in_flight",
    "An attempt of this delivery is in flight, so nothing was sent again; wait for its result, or force it.",
  );

function requireSubscribed(eventTypes: WebhookRecord["eventTypes"], type: string): void {
  if (type === TEST_EVENT_TYPE || subscribes(eventTypes, type)) return;
  const message = `The webhook does not subscribe to '${type}', so it never gets such an event.`;
  throw new PostbellError("invalid_request", message, { field: "type" });
}

export function createDeliveryRepairs(
  base: ServiceBase,
  entitlement: Entitlement,
  append: AppendForWebhook,
  reminder: StartReminder,
): (actor: Actor) => Pick<Deliveries, "resend" | "recover" | "replay" | "test" | "sample"> {
  const { store, config, catalogue, audit } = base;
  const { clock, limits } = config;
  const tests = createRateLimit({ perMinute: limits.repairsPerMinute, clock });

  const record = (
    action: AuditAction,
    { account, id: webhookId }: WebhookRecord,
    actor: Actor,
    fields: Partial<AuditEntry>,
  ): void => audit.record({ account, action, actor: toAuditActor(actor), webhookId, ...fields });

  const recoveries = createRecoveries(base, entitlement, reminder);

  return (actor) => ({
    async resend(request) {
      const { id, force = false } = readCallArguments("resend", request, ["id", "force"]);
      if (typeof force !== "boolean") throw invalidField("force", "force must be true or false.");
      const { delivery, webhook } = await entitlement.findDelivery(id, actor);
      const { webhookId, eventId } = delivery;
      const { account } = await requireSendable(entitlement, webhook, actor);
      if (await store.getDelivery(formatDeliveryId({ webhookId, eventId, serial: MAX_RESENT }))) {
        throw new PostbellError(
          "resend_limit_reached",
          `This event was sent to the webhook again ${MAX_RESENT} times, which is the maximum.`,
        );
      }
      const resent = await store.resend({ id, account, force, now: store.now() });
      if (resent === undefined) throw notFound("delivery");
      if (resent.isInFlight) throw attemptInFlight();
      reminder.expectStart(0);
      record("delivery.resent", webhook, actor, { deliveryId: resent.id, eventId });
      return { id: resent.id };
    },

    ...recoveries(actor),

    async test(request) {
      const { webhookId, type = TEST_EVENT_TYPE } = readCallArguments("test", request, ["webhookId", "type"]);
      requireLoggedType(catalogue, type);
      const webhook = await requireSendable(entitlement, await entitlement.find(webhookId, actor), actor);
      requireSubscribed(webhook.eventTypes, type);
      const refusal = takeToken(tests, webhookId, "Too many tests of this webhook");
      if (refusal !== undefined) throw refusal;
      const event = await createTestEvent(
        { body: config.body, catalogue },
        { id: randomUUID(), account: webhook.account, sentType: type, now: store.now() },
      );
      const { emitted, error } = await append([event], { webhookId });
      if (error !== undefined) throw error;
      const created = emitted[0]?.deliveries[0];
      // The webhook was disabled or deleted after it was looked up.
      if (!created) throw webhookDisabled();
      record("webhook.tested", webhook, actor, { deliveryId: created.id, eventId: event.id });
      return { id: created.id };
    },

    async sample(request = {}) {
      const { type = TEST_EVENT_TYPE } = readCallArguments("sample", request, ["type"]);
      requireLoggedType(catalogue, type);
      const { id, webhookId, now } = SAMPLE;
      const { payload } = await createTestEvent(
        { body: config.body, catalogue },
        { id, account: "", sentType: type, now },
      );
      const body = buildBody(config, { id: webhookId }, readPayload(payload), [true]);
      return JSON.parse(body.toString()) as JsonObject;
    },
  });
}
