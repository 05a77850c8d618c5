/** Explains why an endpoint did or did not get an event. `explainDelivery` decides, and is pure. */

import { PostbellError } from "../../core/errors.js";
import { readCallArguments } from "../../core/known-names.js";
import { isUuid } from "../../core/uuid.js";
import { type Actor, hasAuthority } from "../access.js";
import type { ServiceBase } from "../config/config.js";
import { subscribes, TEST_EVENT_TYPE } from "../event-types/catalogue.js";
import { createFilterTest } from "../events/notification.js";
import type { Entitlement } from "../registrations/entitlement.js";
import { MAX_RESENT } from "../store/records.js";
import type { DeliveryRecord, DeliveryStats, EventRecord, WebhookRecord } from "../store.js";
import { listEventDeliveries } from "./delivery-lists.js";

/** The reasons, in the order in which a delivery may have them. */
export const EXPLANATION_REASONS = [
  "delivered",
  "in_flight",
  "waiting",
  "postponed",
  "endpoint_busy",
  "rate",
  "due",
  "failed",
  "not_permitted",
  "disabled",
  "missed",
  "type_not_subscribed",
  "filtered",
  "registered_later",
  "other_test",
  "event_unknown",
] as const;

/**
 * Why an endpoint did or did not get an event.
 *
 * - `delivered`: it did. `in_flight`: a process attempts it now, or does so next. `waiting`: an
 *   attempt failed, and the next one is planned. `postponed`: no attempt was made yet, and
 *   one is planned: it waits for its turn in a recovery, or the service could not make one.
 * - `endpoint_busy`: its attempt is due, and waits until another delivery to the endpoint is no
 *   longer in flight. `rate`: it waits for the next second, since the rate of the webhook is used
 *   up. `due`: it waits for a process with a free slot; one must be started.
 * - `failed`: no attempt succeeded, and none is left. `not_permitted`: its subscriber may not read
 *   the record. `disabled`: the webhook is DISABLED, or its delivery ended because it was.
 * - `missed`: it would get the event now, but was DISABLED, or wanted other events, when the event
 *   was emitted.
 * - `type_not_subscribed`, `filtered`, `registered_later`: the webhook was not to get it.
 *   `other_test`: it is a test of another webhook.
 * - `event_unknown`: there is no such event, or it is no longer kept.
 */
export type ExplanationReason = (typeof EXPLANATION_REASONS)[number];

interface Finding {
  reason: ExplanationReason;
  /** One or two sentences in English, for people. */
  text: string;
}

/** Why an endpoint did or did not get an event, as data and in words. */
export interface Explanation extends Finding {
  /**
   * When the next attempt is due, for `rate` when the next second begins; `null` if none is
   * planned, or one is in flight.
   */
  readonly nextAttemptAt: Date | null;
  /** The delivery that decides; `null` if the webhook has none of this event. */
  readonly deliveryId: string | null;
}

interface ExplainedEvent {
  type: string;
  storedAt: number;
}

/** The records that decide. */
export interface ExplainedRecords {
  now: number;
  webhook: WebhookRecord;
  /** `undefined` if it does not exist, or the caller may not know of it. */
  event: ExplainedEvent | undefined;
  /** The deliveries of the event to the webhook, newest first. */
  deliveries: readonly DeliveryRecord[];
  /** True if the filter of the webhook refuses the event. */
  isFiltered: boolean;
  /** The deliveries that the webhook may get in a second; `null` for any number. */
  perSecond: number | null;
  /** The room of the endpoint; `undefined` if nothing waits for it, or the webhook is gone. */
  room: EndpointRoom | undefined;
}

type EndpointRoom = Pick<DeliveryStats, "inFlight" | "slots" | "openAt">;

const toIso = (ms: number): string => new Date(ms).toISOString();

function describeLastAttempt({ attempts }: DeliveryRecord): string {
  const last = attempts.at(-1);
  return last === undefined
    ? "It was not attempted yet."
    : `Its last attempt, at ${toIso(last.at)}, ended with ${last.code}.`;
}

function explainPending(
  delivery: DeliveryRecord,
  records: ExplainedRecords,
): Finding & { at: number | null } {
  const { now, webhook } = records;
  const at = delivery.dueAt ?? now;
  const last = describeLastAttempt(delivery);
  if (delivery.isInFlight) {
    const text = `An attempt is in flight: a process makes it now, or does so next. ${last}`;
    return { reason: "in_flight", text, at: null };
  }
  if (webhook.status === "DISABLED") {
    const text = `The webhook is DISABLED, so attempts are skipped. Enable it: the next one is due at ${toIso(at)}.`;
    return { reason: "disabled", text, at };
  }
  if (at > now && delivery.attempts.length === 0) {
    const cause =
      delivery.startedAt === null
        ? "It waits for its turn, as in a recovery."
        : "A hook of the service, such as access.canRead, failed, or its resolver or the storage of its data keys was away: look into its log.";
    const text = `No attempt was made yet, and the next one is due at ${toIso(at)}. ${cause}`;
    return { reason: "postponed", text, at };
  }
  if (at > now) {
    const text = `The next attempt is due at ${toIso(at)}. ${last}`;
    return { reason: "waiting", text, at };
  }
  const { reason, text, at: nextAt = at } = explainDue(records);
  return { reason, text: `${text} ${last}`, at: nextAt };
}

/** Explains why a delivery that is due is not in flight. */
function explainDue({ now, perSecond, room }: ExplainedRecords): Finding & { at?: number } {
  if (room !== undefined && room.inFlight >= room.slots) {
    const text = `An attempt is due, and waits for a free slot of the endpoint: ${room.inFlight} of ${room.slots} are in flight.`;
    return { reason: "endpoint_busy", text };
  }
  if (perSecond !== null && room !== undefined && room.openAt > now) {
    const text = `An attempt is due, and waits until ${toIso(room.openAt)}: the webhook gets at most ${perSecond} deliveries in a second.`;
    return { reason: "rate", text, at: room.openAt };
  }
  return { reason: "due", text: "An attempt is due, and waits for a process with a free slot." };
}

function explainCompleted(delivery: DeliveryRecord): Finding {
  const at = delivery.endedAt === null ? "" : ` at ${toIso(delivery.endedAt)}`;
  if (delivery.state === "delivered") return { reason: "delivered", text: `It was delivered${at}.` };
  if (delivery.state === "withheld") {
    const text = `It was withheld${at}: the subscriber of the webhook may not read the record. Grant access, then recover what was withheld.`;
    return { reason: "not_permitted", text };
  }
  if (delivery.reason === "disabled") {
    const text = `It ended${at}: the webhook was DISABLED until its last attempt. Recover what has failed.`;
    return { reason: "disabled", text };
  }
  const text = `It failed${at} for the reason ${delivery.reason}. ${describeLastAttempt(delivery)} Recover what has failed.`;
  return { reason: "failed", text };
}

/** Explains an event that the webhook has no delivery of. */
function explainMissing(
  { type, storedAt }: ExplainedEvent,
  { webhook, isFiltered }: ExplainedRecords,
): Finding {
  if (type === TEST_EVENT_TYPE)
    return { reason: "other_test", text: "It is a test, which went to another webhook only." };
  if (storedAt < webhook.createdAt) {
    const text = `It was emitted at ${toIso(storedAt)}, before the webhook was registered at ${toIso(webhook.createdAt)}.`;
    return { reason: "registered_later", text };
  }
  if (!subscribes(webhook.eventTypes, type))
    return { reason: "type_not_subscribed", text: `The webhook does not subscribe to '${type}'.` };
  if (isFiltered)
    return { reason: "filtered", text: "The filter of the webhook does not let this event pass." };
  if (webhook.status === "DISABLED")
    return { reason: "disabled", text: "The webhook is DISABLED. Enable it, then recover what it missed." };
  const text =
    "The webhook was DISABLED, or wanted other events, when the event was emitted. Recover what it missed.";
  return { reason: "missed", text };
}

/** Returns the delivery that explains an event: any that succeeded, or waits, or the newest. */
const findDeciding = (deliveries: readonly DeliveryRecord[]): DeliveryRecord | undefined =>
  deliveries.find(({ state }) => state === "delivered") ??
  deliveries.find(({ isInFlight }) => isInFlight) ??
  deliveries.find(({ state }) => state === "pending") ??
  deliveries[0];

/** Explains why an endpoint did or did not get an event. */
export function explainDelivery(records: ExplainedRecords): Explanation {
  const delivery = findDeciding(records.deliveries);
  if (delivery?.state === "pending") {
    const { reason, text, at } = explainPending(delivery, records);
    return { reason, text, nextAttemptAt: at === null ? null : new Date(at), deliveryId: delivery.id };
  }
  const { reason, text } = delivery === undefined ? explainNone(records) : explainCompleted(delivery);
  return { reason, text, nextAttemptAt: null, deliveryId: delivery?.id ?? null };
}

const explainNone = (records: ExplainedRecords): Finding =>
  records.event === undefined
    ? { reason: "event_unknown", text: "There is no such event, or it is no longer kept." }
    : explainMissing(records.event, records);

/** @throws `invalid_argument` for a text that is not a UUID. */
export function readEventId(eventId: string): string {
  if (typeof eventId === "string" && isUuid(eventId)) return eventId.toLowerCase();
  throw new PostbellError("invalid_argument", "The id of an event must be a UUID.", { field: "eventId" });
}

/** The deliveries of an event that explain it: all that it may have to one webhook. */
const MAX_EXPLAINED = MAX_RESENT + 1;

/**
 * Returns the call `deliveries.explain`.
 *
 * @param mayKnow true if the subscriber of a webhook may read an event that it has no delivery of
 */
export function createExplain(
  { store, sealer, config }: ServiceBase,
  entitlement: Entitlement,
  mayKnow: (webhook: WebhookRecord, event: EventRecord) => Promise<boolean>,
): (request: { eventId: string; webhookId: string }, actor: Actor) => Promise<Explanation> {
  return async (request, actor) => {
    const input = readCallArguments("explain", request, ["eventId", "webhookId"]);
    const eventId = readEventId(input.eventId);
    const webhook = await entitlement.find(input.webhookId, actor);
    await entitlement.requireManager(webhook, actor);
    const { rows } = await listEventDeliveries(store, eventId, [webhook], { limit: MAX_EXPLAINED });
    const deliveries = rows.map(({ delivery }) => delivery);
    const stored = await store.getEvent({ account: webhook.account, id: eventId });
    const event = await sealer.openStored(stored);
    const isHidden =
      event !== undefined &&
      deliveries.length === 0 &&
      !hasAuthority(actor) &&
      !(await mayKnow(webhook, event));
    const { filter, perSecond = config.delivery.perSecond } = webhook;
    const now = store.now();
    const deciding = findDeciding(deliveries);
    const isWaiting = deciding?.state === "pending" && !deciding.isInFlight;
    return explainDelivery({
      now,
      webhook,
      event: isHidden ? undefined : event,
      deliveries,
      isFiltered: event !== undefined && filter != null && !createFilterTest(event)(filter),
      perSecond: perSecond ?? null,
      room: isWaiting ? await store.deliveryStats(webhook.id, now) : undefined,
    });
  };
}
