/** The little that Postbell has to know of a FHIR resource. */

/**
 * A FHIR resource as a host gives it. Every resource of `@types/fhir` fits as it is, and so does an object literal.
 *
 * Two shapes, because an interface (`fhir4.Patient`) never fits an index signature, and a literal with more than these fields
 * never fits a type without one.
 */
export type FhirResource = ResourceHead | ParsedResource;

/** The least of a resource that `emit` needs. */
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

/** Whether `name` can be the name of a resource type: letters and digits, at most 64. Says nothing of whether FHIR defines it. */
export function isResourceTypeName(name: string): boolean {
  return RESOURCE_TYPE.test(name);
}
