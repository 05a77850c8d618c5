/** Describes what an attempt of a delivery sends, for `deliveries.request`. */

import type { Clock } from "../../core/clock.js";
import { PostbellError } from "../../core/errors.js";
import { invalidField } from "../../core/invalid-field.js";
import type { Logger } from "../../core/logger.js";
import { notFound, readCallArguments } from "../call-arguments.js";
import { TEST_EVENT_TYPE } from "../event-types/catalogue.js";
import { type PreparedEvent, readPayload } from "../events/notification.js";
import type { Entitlement } from "../registrations/entitlement.js";
import type { WebhooksSettings } from "../settings/settings.js";
import type { EventRecord, WebhookRecord, WebhookStore } from "../store.js";
import { buildBody, createPermissions, listHeaders } from "./attempt.js";
import { type Deliveries, PER_ATTEMPT } from "./deliveries.js";
import type { DeliveryLookup } from "./delivery-lookup.js";

export interface DescribeRequestContext {
  readonly store: Pick<WebhookStore, "getEvent">;
  readonly settings: WebhooksSettings;
  readonly entitlement: Entitlement;
  readonly clock: Clock;
  readonly logger: Logger;
}

function readEvent({ payload }: EventRecord): PreparedEvent {
  try {
    return readPayload(payload);
  } catch {
    // A later version may have written it.
    throw notFound("event");
  }
}

export function createDescribeRequest(
  { store, settings, entitlement, clock, logger }: DescribeRequestContext,
  lookup: DeliveryLookup,
): Deliveries["request"] {
  const permissionFor = createPermissions({
    access: settings.access,
    hookMs: settings.limits.hookMs,
    clock,
    logger,
  });

  /** Returns for each entry of the event whether it is sent to the webhook. */
  const selectEntries = async (
    { account, subscriberId }: WebhookRecord,
    event: PreparedEvent,
  ): Promise<readonly boolean[]> => {
    const allowed = await permissionFor({ id: subscriberId, account }, event);
    if (allowed === null) {
      throw new PostbellError(
        "access_unavailable",
        "access.canRead threw, took too long or returned neither true nor false; try again later.",
      );
    }
    if (allowed[0] === true) return allowed;
    throw new PostbellError(
      "record_not_readable",
      "The subscriber of the webhook may not read this record now, so nothing would be sent.",
    );
  };

  return async (id, options = {}) => {
    const given = readCallArguments("request", options, ["includeBody", "as"]);
    const { includeBody = false, ...actor } = given;
    if (typeof includeBody !== "boolean")
      throw invalidField("includeBody", "includeBody must be true or false.");
    const record = await lookup.findDelivery(id);
    const webhook = await lookup.findWebhook(record, actor);
    await entitlement.requireManager(webhook, actor);
    const stored = await store.getEvent({ account: webhook.account, id: record.eventId });
    if (!stored) throw notFound("event");
    const event = readEvent(stored);
    const allowed = record.type === TEST_EVENT_TYPE ? [true] : await selectEntries(webhook, event);
    const body = buildBody(settings, webhook, event, allowed);
    return {
      method: "POST",
      url: webhook.url,
      headers: listHeaders(settings, { id: event.id, perAttempt: PER_ATTEMPT }),
      bytes: body.length,
      body: includeBody ? body.toString() : null,
    };
  };
}
