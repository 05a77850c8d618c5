/** Event types: the table of the interface, a host's own table, and the message for a name that is in neither. */

import { closest } from "fastest-levenshtein";
import { PostbellError } from "../../core/errors.js";
import { isResourceTypeName } from "../fhir.js";

/**
 * A table of event types: from `prefix.action` to the resource type (or types) that the focal resource of such an event has.
 * Names are lower case letters, digits and hyphens around one dot.
 */
export type EventCatalogue = Readonly<Record<string, string | readonly string[]>>;

/** The names of a catalogue: what `emit({ type })` takes. */
export type EventTypeOf<C extends EventCatalogue> = keyof C & string;

/** One of the fifty names of {@link clinicalEvents}. */
export type ClinicalEventType = EventTypeOf<typeof clinicalEvents>;

/**
 * The fifty event types of the interface, each with the FHIR R4 resource type of its focal resource. The default catalogue.
 *
 * Source: Event Notification and Webhook Registration Interface, "Event types".
 */
export const clinicalEvents = Object.freeze({
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
  // R4 has no DiagnosticRequest: what the drafts of STU3 called so is a ServiceRequest there.
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
} as const);

/** The type of tests in the log. No catalogue may hold it, so nothing else is ever of this type. */
export const TEST_EVENT_TYPE = "webhook.test";

/** A checked catalogue, ready to be asked. */
export interface Catalogue {
  /** From event type to the resource types its focal resource may have. */
  readonly types: ReadonlyMap<string, readonly string[]>;
  /** What stands before the dot in at least one type. */
  readonly prefixes: ReadonlySet<string>;
}

const EVENT_TYPE = /^[a-z0-9-]+\.[a-z0-9-]+$/;

/**
 * Checks a catalogue and makes it ready. Later changes of the table change nothing.
 *
 * Errors: `invalid_option` with field `events` or `events['<name>']` when the table is none, is empty, or a name or resource type is malformed, or is the name of tests, `webhook.test`.
 */
export function readCatalogue(events: EventCatalogue): Catalogue {
  if (typeof events !== "object" || events === null || Array.isArray(events)) {
    throw new PostbellError(
      "invalid_option",
      "createWebhooks: events must be a table from event type to resource type",
      {
        field: "events",
      },
    );
  }
  const types = new Map<string, readonly string[]>();
  for (const [name, resourceTypes] of Object.entries(events)) {
    const field = `events[${quoted(name)}]`;
    if (!EVENT_TYPE.test(name)) {
      throw new PostbellError(
        "invalid_option",
        `createWebhooks: events: ${quoted(name)} is no event type: write prefix.action in lower case letters, digits and hyphens`,
        { field },
      );
    }
    if (name === TEST_EVENT_TYPE) {
      throw new PostbellError(
        "invalid_option",
        `createWebhooks: events: ${quoted(name)} is the name of tests; choose another one`,
        { field },
      );
    }
    const list: readonly unknown[] = Array.isArray(resourceTypes) ? resourceTypes : [resourceTypes];
    const isName = (item: unknown): item is string => typeof item === "string" && isResourceTypeName(item);
    if (list.length === 0 || !list.every(isName)) {
      throw new PostbellError(
        "invalid_option",
        `createWebhooks: ${field} must name one resource type or several`,
        { field },
      );
    }
    types.set(name, Object.freeze([...list]));
  }
  if (types.size === 0) {
    throw new PostbellError("invalid_option", "createWebhooks: events must hold at least one event type", {
      field: "events",
    });
  }
  return Object.freeze({ types, prefixes: new Set(Array.from(types.keys(), contextKey)) });
}

/** The part of an event type before its first dot: the name of the focal resource in the notification's context. */
export function contextKey(type: string): string {
  const dot = type.indexOf(".");
  return dot === -1 ? type : type.slice(0, dot);
}

/**
 * The resource types that the focal resource of an event of this type may have.
 *
 * Errors: `unknown_event_type` when the catalogue does not have it; the message names the nearest type that it has.
 */
export function focalTypes(catalogue: Catalogue, type: string, field = "type"): readonly string[] {
  const found = catalogue.types.get(type);
  if (found === undefined) throw unknownEventType(type, [...catalogue.types.keys()], field);
  return found;
}

/** The error for a name that is none of `candidates`, with the nearest of them in its message. */
export function unknownEventType(name: string, candidates: readonly string[], field: string): PostbellError {
  const guess = findNearest(name, candidates);
  const hint = guess === undefined ? "" : `; did you mean ${quoted(guess)}?`;
  return new PostbellError("unknown_event_type", `unknown event type ${quoted(name)}${hint}`, { field });
}

/** Characters of a foreign name that are compared or quoted; more would only serve who sends megabytes. */
const NAME_LENGTH = 80;

/** The candidate with the smallest edit distance to `name`, the first of equals; `undefined` when there are no candidates. */
export function findNearest(name: string, candidates: readonly string[]): string | undefined {
  return candidates.length === 0 ? undefined : closest(name.slice(0, NAME_LENGTH), candidates);
}

function quoted(name: string): string {
  return name.length > NAME_LENGTH ? `'${name.slice(0, NAME_LENGTH)}…'` : `'${name}'`;
}
