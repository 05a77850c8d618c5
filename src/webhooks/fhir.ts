/** The parts of a FHIR resource that Postbell reads: its type and its id. */

/**
 * A FHIR resource as a host passes it to `emit`. Every resource of `@types/fhir` is assignable to
 * it, and so is an object literal.
 *
 * It is a union because an interface (`fhir4.Patient`) is not assignable to a type with an index
 * signature, and a literal with other fields is not assignable to a type without one.
 */
export type FhirResource = ResourceHead | ParsedResource;

/** The fields that `emit` needs of a resource. */
export interface ResourceHead {
  readonly resourceType: string;
  readonly id?: string | undefined;
}

/** A FHIR resource as it was parsed from its stored JSON. */
export interface ParsedResource {
  readonly resourceType: string;
  readonly id?: string | undefined;
  readonly [element: string]: unknown;
}
