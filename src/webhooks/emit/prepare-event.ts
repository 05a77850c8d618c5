/** Turns an event that the host emits into the record that is stored. */

import { randomUUID } from "node:crypto";
import { type Clock, withTimeout } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import { isUuid } from "../../core/uuid.js";
import { checkName, parseEventTime } from "../call-arguments.js";
import { type Catalogue, focalTypes } from "../event-types/catalogue.js";
import type { ResolveEntry } from "../events/bundle.js";
import { type BuiltPayload, buildPayload } from "../events/bundle.js";
import type { FhirResource } from "../fhir.js";
import type { WebhooksSettings } from "../settings/settings.js";
import type { EventRecord } from "../store.js";
import { type EventInput, invalidEvent, readEventInput } from "./event-input.js";

/**
 * Checks an event and builds its record. Returns a promise only if it has to wait for the host's
 * `resolveReference`. `trace`: the `traceparent` to store with it.
 */
export type PrepareEvent = (
  input: EventInput,
  trace: string | undefined,
) => EventRecord | Promise<EventRecord>;

/**
 * Returns a reference to a record, or `undefined` for a record without a valid id.
 *
 * Source: FHIR R4, data type `id`.
 */
function getSubject({ resourceType, id }: FhirResource): string | undefined {
  const isId = typeof id === "string" && id.length <= 64 && /^[A-Za-z0-9.-]+$/.test(id);
  return isId ? `${resourceType}/${id}` : undefined;
}

interface PrepareContext {
  readonly settings: Pick<WebhooksSettings, "limits" | "resolveReference">;
  readonly catalogue: Catalogue;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The storage's time. */
  readonly now: () => number;
}

export function createPrepareEvent({
  settings: { limits, resolveReference },
  catalogue,
  clock,
  logger,
  now,
}: PrepareContext): PrepareEvent {
  /** All lookups of one event share one time limit, which begins here. */
  const createResolver = (account: string, eventType: string): ResolveEntry | undefined => {
    if (resolveReference === undefined) return undefined;
    const until = clock.monotonic() + limits.hookMs;
    return async (reference) => {
      const leftMs = until - clock.monotonic();
      if (leftMs <= 0) return null;
      try {
        const found = (async () => resolveReference(reference, { account, eventType }))();
        return await withTimeout(clock, leftMs, found, () => new Error("no answer in time"));
      } catch (error) {
        // An event without one of its entries is better than a lost event.
        logger.warn(
          { account, eventType, error },
          "resolveReference failed; the event is sent without an entry for it",
        );
        return null;
      }
    };
  };

  return (input, trace) => {
    const { type, account, resource, related, id = randomUUID(), occurredAt } = readEventInput(input);
    checkName("account", account);
    if (typeof type !== "string") {
      throw invalidEvent("type", "type must be a string, the name of an event type.");
    }
    if (typeof id !== "string" || !isUuid(id)) throw invalidEvent("id", "id must be a UUID.");
    const eventId = id.toLowerCase();
    const built = buildPayload({
      eventId,
      account,
      type,
      occurredAt: occurredAt === undefined ? now() : parseEventTime("occurredAt", occurredAt),
      isOccurredAtGiven: occurredAt !== undefined,
      resource,
      related,
      focalTypes: focalTypes(catalogue, type),
      resolve: createResolver(account, type),
      trace,
      limits: { entries: limits.entries, bytes: limits.notificationBytes },
    });
    const subject = getSubject(resource);
    const toRecord = ({ payload, digest }: BuiltPayload): EventRecord => ({
      ...{ id: eventId, account, type, digest, payload },
      ...(subject !== undefined && { subject }),
    });
    return built instanceof Promise ? built.then(toRecord) : toRecord(built);
  };
}
