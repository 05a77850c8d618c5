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

const RESOURCE_TYPE = /^[A-Za-z][A-Za-z0-9]{0,63}$/;

/**
 * True if `name` has the form of a resource type: a letter, then letters and digits, at most 64 in
 * all. It does not check that FHIR defines the type.
 */
export function isResourceTypeName(name: string): boolean {
  return RESOURCE_TYPE.test(name);
}
