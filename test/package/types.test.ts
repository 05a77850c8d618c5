/**
 * Checked by `tsc`: a line that should not compile and does is an unused `@ts-expect-error`, which
 * is an error itself.
 */

import type { Bundle, Consent, Observation, Patient } from "fhir/r4.js";
import { describe, expect, it } from "vitest";
import type { Attempt, SignatureProblem, Storage, VerifyInput } from "../../src/index.js";
import {
  type Claim,
  type ClaimRequest,
  type DeliveryKey,
  type DeliveryRecord,
  type EndpointReport,
  type EventRecord,
  FIRST_ATTEMPT_HEAD_START_MS,
  formatDeliveryId,
  type Lane,
  type Page,
  parseDeliveryId,
  type Retention,
  type Settlement,
  type SettleResult,
  type StorageContext,
  type StoreStats,
  subscribes,
  type WebhookChange,
  type WebhookRecord,
  type WebhookStore,
} from "../../src/ports.js";
import type { NotificationBundle } from "../../src/receiver/index.js";
import type { EventCatalogue } from "../../src/webhooks/event-types/catalogue.js";
import { clinicalEvents } from "../../src/webhooks/event-types/clinical-events.js";
import type { EventName } from "../../src/webhooks/event-types/event-data.js";
import type { FhirResource, ParsedResource } from "../../src/webhooks/fhir.js";

/** Infers as `createWebhooks` does. */
function service<const C extends EventCatalogue = typeof clinicalEvents>(options: {
  events?: C | undefined;
}) {
  expect(options).toBeDefined();
  return { emit: (event: { type: EventName<C>; resource: FhirResource }): string => event.type };
}

const patient: Patient = { resourceType: "Patient", active: true, name: [{ family: "Zoë" }] };

describe("the types", () => {
  it("let the compiler know the event types of the default catalogue", () => {
    const { emit } = service({});
    expect(emit({ type: "patient.updated", resource: patient })).toBe("patient.updated");
    // @ts-expect-error no such event type
    expect(emit({ type: "patient.upated", resource: patient })).toBe("patient.upated");
    // @ts-expect-error consent has no deleted event
    expect(emit({ type: "consent.deleted", resource: patient })).toBe("consent.deleted");
  });

  it("let the compiler know those of a host's own catalogue, and no others", () => {
    const { emit } = service({
      events: { "invoice.paid": "Invoice", "person.merged": ["Person", "Patient"] },
    });
    expect(emit({ type: "invoice.paid", resource: { resourceType: "Invoice" } })).toBe("invoice.paid");
    // @ts-expect-error a type of the default catalogue
    expect(emit({ type: "patient.updated", resource: patient })).toBe("patient.updated");
    const extended = service({ events: { ...clinicalEvents, "invoice.paid": "Invoice" } });
    expect(extended.emit({ type: "patient.updated", resource: patient })).toBe("patient.updated");
  });

  it("take any type for a catalogue that is only known at run time", () => {
    const loaded: EventCatalogue = { "invoice.paid": "Invoice" };
    expect(service({ events: loaded }).emit({ type: "invoice.paid", resource: patient })).toBe(
      "invoice.paid",
    );
  });

  it("take the resources of @types/fhir, literals and parsed JSON as they are", () => {
    const observation: Observation = {
      resourceType: "Observation",
      id: undefined,
      status: "final",
      code: { text: "Weight" },
      contained: [patient],
    };
    const consent: Consent = JSON.parse('{"resourceType":"Consent"}') as Consent;
    const parsed: ParsedResource = JSON.parse('{"resourceType":"Basic"}') as ParsedResource;
    const resources: FhirResource[] = [
      patient,
      observation,
      consent,
      parsed,
      { resourceType: "Patient", name: [{ family: "Zoë" }], extra: { deep: [1, 2] } },
    ];
    // @ts-expect-error a resource names its type
    resources.push({ id: "1" });
    // @ts-expect-error an id is a string
    resources.push({ resourceType: "Patient", id: 1 });
    expect(resources).toHaveLength(7);
  });

  it("let a hook and a receiver go on with @types/fhir by assertion alone", () => {
    const seen = Object.freeze({ resourceType: "Patient", active: true }) as ParsedResource;
    expect((seen as Patient).active).toBe(true);
    const asBundle = (bundle: NotificationBundle): Bundle => bundle;
    expect(asBundle).toBeTypeOf("function");
    const rename = (): void => {
      // @ts-expect-error what a hook is given is not its own to change
      seen.id = "2";
    };
    expect(rename).toThrow(TypeError);
  });

  it("let an author write a storage with the names of the package alone", () => {
    interface Names {
      records: [WebhookRecord, WebhookChange, EventRecord, DeliveryRecord, Attempt, DeliveryKey];
      calls: [Claim, ClaimRequest, Settlement, SettleResult, EndpointReport, Lane, Page];
      rest: [Storage, StorageContext, WebhookStore, StoreStats, Retention, VerifyInput, SignatureProblem];
    }
    const names: (keyof Names)[] = ["records", "calls", "rest"];
    expect(names).toHaveLength(3);
    const key = {
      webhookId: "7c9e6679-7425-40de-944b-e07fc1f90ae7",
      eventId: "0f8fad5b-d9cb-469f-a165-70867728950e",
      serial: 2,
    };
    expect(parseDeliveryId(formatDeliveryId(key))).toEqual(key);
    expect(subscribes(["patient.*"], "patient.created")).toBe(true);
    expect(FIRST_ATTEMPT_HEAD_START_MS).toBe(3_600_000);
  });
});
