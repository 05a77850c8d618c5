/** The feed of a webhook: the events that its endpoint should have received, as sent now. */

import { PostbellError } from "../../core/errors.js";
import { readCallArguments } from "../../core/known-names.js";
import type { Actor } from "../access.js";
import { readLimit } from "../call-arguments.js";
import type { ServiceBase } from "../config/config.js";
import { TEST_EVENT_TYPE } from "../event-types/catalogue.js";
import { readPayload } from "../events/notification.js";
import type { Entitlement } from "../registrations/entitlement.js";
import { parseDeliveryId } from "../store/records.js";
import type { DeliveryRecord, DeliveryState, WebhookRecord } from "../store.js";
import { buildBody, createPermissions } from "./attempt.js";
import { CLOCK_SKEW_MS, readEach } from "./delivery-lists.js";

/** An event that an endpoint should have received. */
export interface FeedEvent {
  readonly deliveryId: string;
  readonly eventId: string;
  readonly type: string;
  /** The state of its first delivery. */
  readonly state: DeliveryState;
  /** When the delivery was created. */
  readonly createdAt: Date;
  /** The body that an attempt would send now, byte for byte. */
  readonly body: string;
}

/** A page of the feed of a webhook. */
export interface EventPage {
  readonly items: readonly FeedEvent[];
  /** Where to continue, now or days later. Opaque, at most 256 characters, and never `null`. */
  readonly next: string;
  /** True if there may be more events now, even if this page is short or empty. */
  readonly hasMore: boolean;
}

/** The arguments of `listEvents`. */
export interface EventFeedRequest {
  readonly webhookId: string;
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

/**
 * Events that are younger are left out: they are being delivered, and one that a slow call is still
 * storing could come before them.
 */
const FEED_DELAY_MS = 60_000;

/** A page ends after the event that exceeds it. */
const MAX_PAGE_BYTES = 4_194_304;

/** Events that are read and checked at the same time. */
const READ_TOGETHER = 10;

const AFTER = /^([0-9a-f-]{36})_([\x21-\x7e]{0,200})$/;

/** `undefined`: nothing is sent, because the event is gone or may not be read. */
type Sendable = FeedEvent | undefined;

export function createEventFeed(
  base: ServiceBase,
  entitlement: Entitlement,
): (actor: Actor) => (request: EventFeedRequest) => Promise<EventPage> {
  const { store, sealer, config } = base;
  const permissionFor = createPermissions(base);

  const read = async (delivery: DeliveryRecord, webhook: WebhookRecord): Promise<Sendable> => {
    // An event that was sent again is listed once, where it came first. A test is no event.
    if (parseDeliveryId(delivery.id)?.serial !== 0 || delivery.type === TEST_EVENT_TYPE) return undefined;
    const { account, subscriberId } = webhook;
    const stored = await sealer.openStored(await store.getEvent({ account, id: delivery.eventId }));
    if (stored === undefined) return undefined;
    const event = parse(stored.payload);
    if (event === undefined) return undefined;
    const allowed = await permissionFor({ id: subscriberId, account }, event);
    if (allowed === null) throw unavailable();
    if (allowed[0] !== true) return undefined;
    return Object.freeze({
      deliveryId: delivery.id,
      eventId: delivery.eventId,
      type: delivery.type,
      state: delivery.state,
      createdAt: new Date(delivery.createdAt),
      body: buildBody(config, webhook, event, allowed).toString(),
    });
  };

  return (actor) => async (request) => {
    const { webhookId, after, limit } = readCallArguments("listEvents", request, ARGUMENTS);
    const webhook = await entitlement.find(webhookId, actor);
    await entitlement.requireManager(webhook, actor);
    const page = await store.readDeliveriesAfter({
      webhookId,
      after: parseAfter(after, webhookId),
      since: Math.max(0, webhook.createdAt - CLOCK_SKEW_MS),
      until: store.now() - FEED_DELAY_MS,
      limit: readLimit(limit),
    });
    const items: FeedEvent[] = [];
    let place = after === undefined ? "" : after.slice(webhookId.length + 1);
    let bytes = 0;
    for (let first = 0; first < page.rows.length; first += READ_TOGETHER) {
      const rows = page.rows.slice(first, first + READ_TOGETHER);
      const found = await readEach(rows, ({ delivery }) => read(delivery, webhook).catch(toFailure));
      for (const [index, { cursor }] of rows.entries()) {
        const event = found[index];
        const isFailed = event instanceof Error;
        // Without a first event, an empty page would have its reader ask again at once.
        if (isFailed && items.length === 0) throw event;
        if (isFailed || bytes >= MAX_PAGE_BYTES) return toPage({ items, place, hasMore: true }, webhookId);
        place = cursor;
        if (event === undefined) continue;
        items.push(event);
        bytes += Buffer.byteLength(event.body);
      }
    }
    return toPage({ items, place: page.after ?? place, hasMore: page.hasMore }, webhookId);
  };
}

const ARGUMENTS = ["webhookId", "after", "limit"] as const;

const toFailure = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));

const toPage = (
  { items, place, hasMore }: { items: FeedEvent[]; place: string; hasMore: boolean },
  webhookId: string,
): EventPage => Object.freeze({ items: Object.freeze(items), next: `${webhookId}_${place}`, hasMore });

/** @throws `invalid_argument` for any other text than a `next` of this webhook. */
function parseAfter(after: string | undefined, webhookId: string): string | undefined {
  if (after === undefined) return undefined;
  const [, id, place] = (typeof after === "string" && AFTER.exec(after)) || [];
  if (id === webhookId) return place || undefined;
  const message = "after must be the `next` of the previous page of the same webhook.";
  throw new PostbellError("invalid_argument", message, { field: "after" });
}

const unavailable = (): PostbellError =>
  new PostbellError(
    "access_unavailable",
    "access.canRead threw, took too long or returned neither true nor false; try again later.",
  );

/** Returns `undefined` for an event in a form that a later version has written. */
function parse(payload: string): ReturnType<typeof readPayload> | undefined {
  try {
    return readPayload(payload);
  } catch {
    return undefined;
  }
}
