/** The built-in catalogue of event types, and a sample of each type of resource. */

import type { FhirResource } from "../fhir.js";

const TABLE = {
  "patient.created": "Patient",
  "patient.updated": "Patient",
  "patient.deleted": "Patient",
  "encounter.created": "Encounter",
  "encounter.updated": "Encounter",
  "allergy-intolerance.created": "AllergyIntolerance",
  "allergy-intolerance.updated": "AllergyIntolerance",
  "allergy-intolerance.deleted": "AllergyIntolerance",
  "condition.created": "Condition",
  "condition.updated": "Condition",
  "condition.deleted": "Condition",
  "medication-request.created": "MedicationRequest",
  "medication-request.updated": "MedicationRequest",
  "medication-request.deleted": "MedicationRequest",
  "immunization.created": "Immunization",
  "immunization.updated": "Immunization",
  "immunization.deleted": "Immunization",
  "observation.created": "Observation",
  "observation.updated": "Observation",
  "observation.deleted": "Observation",
  // R4 calls it ServiceRequest; drafts of STU3 called it DiagnosticRequest.
  "diagnostic-request.created": "ServiceRequest",
  "diagnostic-request.updated": "ServiceRequest",
  "diagnostic-request.deleted": "ServiceRequest",
  "diagnostic-report.created": "DiagnosticReport",
  "diagnostic-report.updated": "DiagnosticReport",
  "diagnostic-report.deleted": "DiagnosticReport",
  "document-in-reference.created": "DocumentReference",
  "document-in-reference.updated": "DocumentReference",
  "document-in-reference.deleted": "DocumentReference",
  "document-out-reference.created": "DocumentReference",
  "document-out-reference.updated": "DocumentReference",
  "document-out-reference.deleted": "DocumentReference",
  "document-reference.created": "DocumentReference",
  "document-reference-consultation.created": "DocumentReference",
  "document-reference-consultation.updated": "DocumentReference",
  "document-reference-attachment.created": "DocumentReference",
  "document-reference-attachment.deleted": "DocumentReference",
  "episode-of-care.created": "EpisodeOfCare",
  "episode-of-care.updated": "EpisodeOfCare",
  "episode-of-care.deleted": "EpisodeOfCare",
  "encounter-admission.created": "Encounter",
  "encounter-admission.updated": "Encounter",
  "document-reference-admission.created": "DocumentReference",
  "document-reference-admission.updated": "DocumentReference",
  "consent.created": "Consent",
  "consent.updated": "Consent",
  "medication-request-admission.created": "MedicationRequest",
  "medication-request-admission.updated": "MedicationRequest",
  "medication-administration-admission.created": "MedicationAdministration",
  "medication-administration-admission.updated": "MedicationAdministration",
} as const;

type ClinicalEventTable = typeof TABLE;

/**
 * The type of {@link clinicalEvents}: each event type with the resource type of its record. It has
 * a name, so that an error of the compiler shows the name and not the fifty types.
 */
export interface ClinicalEvents extends ClinicalEventTable {}

/**
 * Fifty event types of clinical records, each with the FHIR R4 resource type of its record. It is
 * the default of the `events` option.
 *
 * Source: Event Notification and Webhook Registration Interface, "Event types".
 *
 * @example
 * const events = { ...clinicalEvents, "order.placed": "ServiceRequest" };
 * const webhooks = createWebhooks({ storage, access, events });
 */
export const clinicalEvents: ClinicalEvents = Object.freeze(TABLE);

/** One of the fifty names of {@link clinicalEvents}. */
export type ClinicalEventType = keyof ClinicalEvents;

/**
 * Marks a resource that is about no real patient.
 *
 * Source: HL7 v3, code system ActReason.
 */
export const TEST_META = {
  tag: [
    {
      system: "http://terminology.hl7.org/CodeSystem/v3-ActReason",
      code: "HTEST",
      display: "test health data",
    },
  ],
};

const CODES = "http://terminology.hl7.org/CodeSystem";
const DAY = "2026-03-01";
const patient = { reference: "Patient/sample", display: "Sample patient" };
const medicationCodeableConcept = { text: "Sample medication" };
const concept = (system: string, code: string, display: string) => ({ coding: [{ system, code, display }] });

/**
 * The elements that FHIR R4 requires of each resource type of {@link clinicalEvents}, also those
 * that its invariants require (`ait-1`, `ppc-1`, `ppc-2`).
 */
const SAMPLES: Map<string, object> = new Map(
  Object.entries({
    AllergyIntolerance: {
      clinicalStatus: concept(`${CODES}/allergyintolerance-clinical`, "active", "Active"),
      patient,
    },
    Condition: {
      clinicalStatus: concept(`${CODES}/condition-clinical`, "active", "Active"),
      subject: patient,
    },
    Consent: {
      status: "active",
      scope: concept(`${CODES}/consentscope`, "patient-privacy", "Privacy Consent"),
      category: [concept("http://loinc.org", "59284-0", "Consent Document")],
      patient,
      policyRule: concept(`${CODES}/v3-ActCode`, "OPTIN", "opt-in"),
    },
    DiagnosticReport: { status: "final", code: { text: "Sample report" } },
    DocumentReference: {
      status: "current",
      content: [{ attachment: { contentType: "text/plain", title: "Sample document" } }],
    },
    Encounter: {
      status: "finished",
      class: { system: `${CODES}/v3-ActCode`, code: "AMB", display: "ambulatory" },
    },
    EpisodeOfCare: { status: "active", patient },
    Immunization: {
      status: "completed",
      vaccineCode: { text: "Sample vaccine" },
      patient,
      occurrenceDateTime: DAY,
    },
    MedicationAdministration: {
      status: "completed",
      medicationCodeableConcept,
      subject: patient,
      effectiveDateTime: DAY,
    },
    MedicationRequest: { status: "active", intent: "order", medicationCodeableConcept, subject: patient },
    Observation: { status: "final", code: concept("http://loinc.org", "8867-4", "Heart rate") },
    ServiceRequest: { status: "active", intent: "order", subject: patient },
  }),
);

/** Returns a resource for tests, marked as one: valid for the resource types of the catalogue. */
export const sampleResource = (resourceType: string): FhirResource => ({
  resourceType,
  id: "sample",
  meta: TEST_META,
  ...SAMPLES.get(resourceType),
});
