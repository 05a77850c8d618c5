/**
 * Creates the test event that a subscriber can request. It holds no record and is marked as a test.
 */

import { randomUUID } from "node:crypto";
import { TEST_EVENT_TYPE } from "../event-types/catalogue.js";
import type { FhirResource } from "../fhir.js";
import type { EventRecord } from "../store.js";
import { buildPayload } from "./bundle.js";

/** Source: FHIR R4, OperationOutcome. HTEST is HL7's tag for data that is about no real patient. */
const RESOURCE: FhirResource = {
  resourceType: "OperationOutcome",
  meta: {
    tag: [
      {
        system: "http://terminology.hl7.org/CodeSystem/v3-ActReason",
        code: "HTEST",
        display: "test health data",
      },
    ],
  },
  issue: [
    {
      severity: "information",
      code: "informational",
      diagnostics: "This is a test of your webhook. It is about no record.",
    },
  ],
};

/** Creates a test event. Its notification names `sentType` as event type and holds `RESOURCE`. */
export async function createTestEvent({
  account,
  sentType,
  now,
}: {
  readonly account: string;
  readonly sentType: string;
  readonly now: number;
}): Promise<EventRecord> {
  const id = randomUUID();
  const built = await buildPayload({
    eventId: id,
    account,
    type: sentType,
    occurredAt: now,
    isOccurredAtGiven: false,
    resource: RESOURCE,
    limits: { entries: 1, bytes: Number.MAX_SAFE_INTEGER },
  });
  return { id, account, type: TEST_EVENT_TYPE, ...built };
}
