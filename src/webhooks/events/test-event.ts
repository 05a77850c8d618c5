/** Builds the events of tests and samples, which are about no record. */

import { type Catalogue, isPlain, TEST_EVENT_TYPE } from "../event-types/catalogue.js";
import { sampleResource, TEST_META } from "../event-types/clinical-events.js";
import type { FhirResource } from "../fhir.js";
import type { EventRecord } from "../store.js";
import { type BuiltPayload, buildPayload } from "./bundle.js";
import type { BodyForm } from "./notification.js";
import { buildPlainPayload } from "./plain-event.js";

/** Source: FHIR R4, OperationOutcome. */
const TEST_RESOURCE: FhirResource = {
  resourceType: "OperationOutcome",
  meta: TEST_META,
  issue: [
    {
      severity: "information",
      code: "informational",
      diagnostics: "This is a test of your webhook. It is about no record.",
    },
  ],
};

/** The data of a test of a plain type without an example. */
const TEST_DATA = { message: "This is a test of your webhook. It is about no record." };

/**
 * Creates the event of a test, whose notification names `sentType` as event type. A FHIR event has
 * a sample of its resource, or without an event type `TEST_RESOURCE`; a plain one has the example
 * of its type, and is marked with `"test": true`.
 */
export async function createTestEvent(
  { body, catalogue }: { body: BodyForm; catalogue: Catalogue },
  {
    id,
    account,
    sentType,
    now,
  }: {
    id: string;
    account: string;
    sentType: string;
    now: number;
  },
): Promise<EventRecord> {
  const entry = catalogue.types.get(sentType) ?? (body === "plain" ? {} : []);
  const common = { eventId: id, account, type: sentType, occurredAt: now, isOccurredAtGiven: false };
  const bytes = Number.MAX_SAFE_INTEGER;
  const build = (): BuiltPayload | Promise<BuiltPayload> => {
    if (isPlain(entry)) {
      const data = entry.example ?? TEST_DATA;
      return buildPlainPayload({ ...common, data, isTest: true, maxBytes: bytes });
    }
    const [resourceType] = entry;
    const resource = resourceType === undefined ? TEST_RESOURCE : sampleResource(resourceType);
    return buildPayload({ ...common, resource, limits: { entries: 1, bytes } });
  };
  return { id, account, type: TEST_EVENT_TYPE, ...(await build()) };
}
