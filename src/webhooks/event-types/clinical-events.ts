/** The built-in catalogue of event types. */

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
export const clinicalEvents: Readonly<ClinicalEvents> = Object.freeze(TABLE);

/** One of the fifty names of {@link clinicalEvents}. */
export type ClinicalEventType = keyof ClinicalEvents;
