/**
 * Decides about events that are appended: who gets one, and whether it is kept. Pure. Memory and
 * SQL call these functions. On Redis `library/rules.lua` repeats them; `vectors.json` proves
 * the two equal.
 */

import { subscribes } from "../../src/webhooks/event-types/catalogue.js";
import type { EventFilter } from "../../src/webhooks/event-types/event-filter.js";
import { createFilterTest } from "../../src/webhooks/events/notification.js";
import type { AppendRequest, EventRecord, WebhookStatus } from "../../src/webhooks/store.js";
import { KEPT_FROM } from "./constants.js";

/** The fields of a webhook that decide if it gets an event. */
interface Subscription {
  id: string;
  status: WebhookStatus;
  /** `null`: every type. */
  eventTypes: readonly string[] | null;
}

/**
 * True if a webhook gets an event of this type.
 *
 * @param target the id of the only webhook that gets a test; `undefined` for any other event
 */
export const receives = (
  { id, status, eventTypes }: Subscription,
  type: string,
  target: string | undefined,
): boolean => status === "ENABLED" && (target === undefined ? subscribes(eventTypes, type) : id === target);

/** The webhooks that an event is for, and how it stands with the filters of others. */
export interface FilteredReceivers<W> {
  receivers: W[];
  /** Those that would get it without their filter. */
  filtered: W[];
}

interface FilterRequest {
  webhookId?: AppendRequest["webhookId"];
  createFilterTest?: AppendRequest["createFilterTest"];
}

const NONE: never[] = [];

/**
 * Splits the webhooks that {@link receives} selects by their filters. Without a filter among them
 * it reads nothing. A test, which has a `webhookId`, passes every filter.
 */
export function applyFilters<W>(
  webhooks: W[],
  getFilter: (webhook: W) => EventFilter | null | undefined,
  event: EventRecord,
  { webhookId, createFilterTest: createTest = createFilterTest }: FilterRequest,
): FilteredReceivers<W> {
  if (webhookId !== undefined || !webhooks.some((webhook) => getFilter(webhook) != null))
    return { receivers: webhooks, filtered: NONE };
  const passes = createTest(event);
  const isFiltered = (webhook: W): boolean => {
    const filter = getFilter(webhook);
    return filter != null && !passes(filter);
  };
  return {
    receivers: webhooks.filter((webhook) => !isFiltered(webhook)),
    filtered: webhooks.filter(isFiltered),
  };
}

/** Decides about an event whose id is known: a repetition has the same digest. */
export const compareKnown = (known: string, digest: string): "duplicate" | "conflict" =>
  known === digest ? "duplicate" : "conflict";

/** The counts that decide if an event is kept. */
interface AppendedEvent {
  isTest: boolean;
  receivers: number;
  /** All webhooks of the account. */
  webhooks: number;
  /** How long the event is kept once it is completed. */
  retentionMs: number;
}

/** True if an event is stored. One that nobody gets is stored only if a webhook may recover it. */
export const isKept = ({ isTest, receivers, webhooks, retentionMs }: AppendedEvent): boolean =>
  receivers > 0 || (!isTest && webhooks > 0 && retentionMs > 0);

/**
 * Returns a frozen copy of an event, so that a caller that changes the original changes nothing in
 * the storage. It names the fields, because freezing an object that was spread takes ten
 * times as long.
 */
export function copyEvent({ id, account, type, subject, tags, digest, payload }: EventRecord): EventRecord {
  if (tags !== undefined) {
    const copy = { id, account, type, digest, payload, tags: Object.freeze([...tags]) };
    return Object.freeze(subject === undefined ? copy : { ...copy, subject });
  }
  return Object.freeze(
    subject === undefined
      ? { id, account, type, digest, payload }
      : { id, account, type, subject, digest, payload },
  );
}

/**
 * Returns the place of an event, completed now, among those of its account: the first is freed
 * first if there are too many. One that is kept as long as most has the time as its place. One with
 * a `keepMs` of its own follows all of those, in the order of the ends, and its place tells when it
 * ends: {@link KEPT_FROM} plus that time.
 *
 * @param keepMs `null` for the retention of all
 */
export const findFreePlace = (now: number, keepMs: number | null): number =>
  keepMs === null ? now : KEPT_FROM + now + keepMs;
