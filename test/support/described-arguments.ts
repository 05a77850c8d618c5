/**
 * Every argument that an OpenAPI document describes, so that a test reaches a new route by itself.
 */

import type { JsonObject } from "../../src/schema/types.js";

export interface DescribedArgument {
  readonly method: string;
  /** A template: `/core/v2/posts/{id}`. */
  readonly path: string;
  readonly name: string;
  readonly place: "query" | "path" | "header" | "body";
  /** References are resolved. */
  readonly schema: JsonObject;
}

interface Parameter {
  readonly name: string;
  readonly in: "query" | "path" | "header";
  readonly schema: JsonObject;
}

const METHODS = ["get", "post", "put", "patch", "delete"];

/** Looks up `#/components/schemas/Name`; anything else is returned as it is. */
function resolved(value: JsonObject, document: JsonObject): JsonObject {
  const ref = value["$ref"];
  if (typeof ref !== "string") return value;
  const steps = ref.slice(2).split("/");
  const found = steps.reduce<unknown>((at, step) => (at as JsonObject)[step], document) as JsonObject;
  return resolved(found, document);
}

/** The schema with every reference in it resolved. No schema of an argument refers to itself. */
function whole(value: unknown, document: JsonObject): unknown {
  if (Array.isArray(value)) return value.map((one) => whole(one, document));
  if (typeof value !== "object" || value === null) return value;
  const found = resolved(value as JsonObject, document);
  return Object.fromEntries(Object.entries(found).map(([name, member]) => [name, whole(member, document)]));
}

export function describedArguments(document: JsonObject): readonly DescribedArgument[] {
  const found: DescribedArgument[] = [];
  for (const [path, item] of Object.entries(document["paths"] as { [path: string]: JsonObject })) {
    for (const method of METHODS) {
      const operation = item[method] as JsonObject | undefined;
      if (operation === undefined) continue;
      const parameters = [item["parameters"], operation["parameters"]].flat() as (JsonObject | undefined)[];
      for (const given of parameters) {
        if (given === undefined) continue;
        const { name, in: place, schema } = resolved(given, document) as unknown as Parameter;
        found.push({ method, path, name, place, schema: whole(schema, document) as JsonObject });
      }
      const body = operation["requestBody"] as
        | { content: { [type: string]: { schema: JsonObject } } }
        | undefined;
      for (const [type, { schema }] of Object.entries(body?.content ?? {})) {
        // A form takes the same arguments.
        if (type === "application/x-www-form-urlencoded" || type === "*/*") continue;
        const { properties = {} } = whole(schema, document) as {
          properties?: { [name: string]: JsonObject };
        };
        for (const [name, property] of Object.entries(properties)) {
          found.push({ method, path, name, place: "body", schema: property });
        }
      }
    }
  }
  return found;
}
