/** Builds the events of tests and samples, which are about no record. */

import { type Catalogue, isPlain, TEST_EVENT_TYPE } from "../event-types/catalogue.js";
import { sampleResource, TEST_META } from "../event-types/clinical-events.js";
import type { FhirResource } from "../fhir.js";
import type { EventRecord } from "../store.js";
import { type BuiltPayload, buildPayload } from "./bundle.js";
import type { BodyForm } from "./notification.js";
import { buildPlainPayload } from "./plain-event.js";

const TEST_MESSAGE = "This is a test of your webhook. It is about no record.";

/** Source: FHIR R4, OperationOutcome. */
const buildTestResource = (diagnostics: string): FhirResource => ({
  resourceType: "OperationOutcome",
  meta: TEST_META,
  issue: [{ severity: "information", code: "informational", diagnostics }],
});

/**
 * Creates the event of a test, whose notification names `sentType` as event type. A FHIR event has
 * a sample of its resource, or without an event type an `OperationOutcome`; a plain one has the
 * example of its type, and is marked with `"test": true`.
 *
 * @param message the text of an event without a sample. Default: says that it is a test.
 */
export async function createTestEvent(
  { body, catalogue }: { body: BodyForm; catalogue: Catalogue },
  {
    id,
    account,
    sentType,
    now,
    message = TEST_MESSAGE,
  }: {
    id: string;
    account: string;
    sentType: string;
    now: number;
    message?: string | undefined;
  },
): Promise<EventRecord> {
  const entry = catalogue.types.get(sentType) ?? (body === "plain" ? {} : []);
  const common = { eventId: id, account, type: sentType, occurredAt: now, isOccurredAtGiven: false };
  const bytes = Number.MAX_SAFE_INTEGER;
  const build = (): BuiltPayload | Promise<BuiltPayload> => {
    if (isPlain(entry)) {
      const data = entry.example ?? { message };
      return buildPlainPayload({ ...common, data, isTest: true, maxBytes: bytes });
    }
    const [resourceType] = entry;
    const resource = resourceType === undefined ? buildTestResource(message) : sampleResource(resourceType);
    return buildPayload({ ...common, resource, limits: { entries: 1, bytes } });
  };
  return { id, account, type: TEST_EVENT_TYPE, ...(await build()) };
}
