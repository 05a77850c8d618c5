/** Builds the parts that the OpenAPI documents of all services share: frame, references, errors. */

import type { JsonObject } from "../schema/types.js";

/** A reference to a reusable component of the document. */
export const componentRef = (
  kind: "schemas" | "responses" | "headers" | "parameters",
  name: string,
): JsonObject => ({ $ref: `#/components/${kind}/${name}` });

/** The template of a path in the route table: `/posts/:id` becomes `/posts/{id}`. */
export const toPathTemplate = (path: string): string => path.replace(/:(\w+)(?:\(word\))?/g, "{$1}");

export interface OpenApiContents {
  info: JsonObject;
  baseUrl: string;
  security: JsonObject[];
  /** Descriptions by name of the tag. */
  tags: Record<string, string>;
  paths: JsonObject;
  webhooks?: JsonObject;
  components: JsonObject;
}

/** Returns an OpenAPI 3.1 document. */
export const buildOpenApiDocument = ({
  info,
  baseUrl,
  security,
  tags,
  paths,
  webhooks,
  components,
}: OpenApiContents): JsonObject => ({
  openapi: "3.1.0",
  info,
  servers: [{ url: baseUrl }],
  security,
  tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
  paths,
  ...(webhooks === undefined ? {} : { webhooks }),
  components,
});

/** Returns the error responses of an operation: references to components of the document. */
export const referToErrors = (statuses: Iterable<number>): JsonObject =>
  Object.fromEntries(
    [...statuses]
      .sort((a, b) => a - b)
      .map((status) => [status, componentRef("responses", `Error${status}`)]),
  );

/** Returns the components that {@link referToErrors} refers to. */
export const defineErrors = <Status extends number>(
  statuses: readonly Status[],
  describe: (status: Status) => JsonObject,
): JsonObject => Object.fromEntries(statuses.map((status) => [`Error${status}`, describe(status)]));

/** Describes the response of an error status: the schema `Error` with the codes of this status. */
export const describeErrorResponse = ({
  description,
  headers,
  properties,
  example,
}: {
  description: string;
  headers: JsonObject;
  /** Restricts properties of the schema `Error`. */
  properties: JsonObject;
  example: JsonObject;
}): JsonObject => ({
  description,
  headers,
  content: {
    "application/json": {
      schema: { allOf: [componentRef("schemas", "Error")], type: "object", properties },
      example,
    },
  },
});

/**
 * Returns a function that gives the document of a base URL. The base URL follows from the `Host`
 * header, so it can differ between requests. `build` runs once, and each call replaces `servers` in
 * a shallow copy. The copies share everything else: clone a document before you give it to a host.
 */
export function cacheDocument(build: () => JsonObject): (baseUrl: string) => JsonObject {
  let document: JsonObject | undefined;
  return (baseUrl) => {
    document ??= build();
    return { ...document, servers: [{ url: baseUrl }] };
  };
}
