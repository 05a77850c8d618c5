/** A small clinic: records that refer to each other, and how to build an event of them. */

import { type BuiltPayload, type BundleRequest, buildPayload } from "../../src/webhooks/events/bundle.js";

export const EVENT_ID = "0f8fad5b-d9cb-469f-a165-70867728950e";
export const TOPIC = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
export const OCCURRED_AT = Date.UTC(2026, 0, 31, 23, 59, 59, 7);

export const organization = { resourceType: "Organization", id: "org", name: "Clinic 文" };
export const practitioner = {
  resourceType: "Practitioner",
  id: "A987FBC9-4BED-4078-8F07-9141BA07C9F3",
  qualification: [{ issuer: { reference: "Organization/org" } }],
};
export const patient = {
  resourceType: "Patient",
  id: "p.1",
  name: [{ family: 'Zoë "Z" \\', text: '"reference":"Organization/org"' }],
  generalPractitioner: [{ reference: `Practitioner/${practitioner.id}`, display: "Dr. Who" }],
  managingOrganization: { reference: "Organization/org" },
};

/** Builds a payload, of the patient unless said otherwise. */
export async function build(changes: Partial<BundleRequest> = {}): Promise<BuiltPayload> {
  return buildPayload({
    eventId: EVENT_ID,
    account: "clinic",
    type: "patient.updated",
    occurredAt: OCCURRED_AT,
    isOccurredAtGiven: true,
    resource: patient,
    limits: { entries: 100, bytes: 262_144 },
    ...changes,
  });
}

/** A map of records as a `resolve` hook, which notes what it was asked. */
export function recordsOf(records: Readonly<Record<string, unknown>>): {
  resolve: (reference: string) => Promise<unknown>;
  asked: string[];
} {
  const asked: string[] = [];
  return {
    asked,
    resolve: async (reference) => {
      asked.push(reference);
      return records[reference];
    },
  };
}
