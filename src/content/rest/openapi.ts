/** The route table as an OpenAPI 3.1 document. Pure; knows no row. */

import type { Argument, Json, JsonObject, Schema } from "../../schema/types.js";
import { pathOf } from "./describe.js";
import { parameterNamesOf } from "./route-tree.js";
import type { Endpoint, Method, RestRoute } from "./types.js";

/** Changes with the form of the interface, not with the package. */
const INTERFACE_VERSION = "2";

/**
 * OpenAPI 3.1 with schemas in JSON Schema 2020-12. `title`: of the site. An argument of a write may stand in the query too; it is listed in the body, where
 * clients send it.
 */
export function describeOpenApi(
  routes: readonly RestRoute[],
  { title }: { readonly title: string },
): JsonObject {
  const schemas: Record<string, JsonObject> = { error: ERROR };
  const names = new Map<Schema, string>();
  const named = (schema: Schema): JsonObject => {
    let name = names.get(schema);
    if (name === undefined) {
      name = freeName(schema.title ?? "record", schemas);
      names.set(schema, name);
      schemas[name] = toJsonSchema(schema);
    }
    return { $ref: `#/components/schemas/${name}` };
  };
  const paths = Object.fromEntries(routes.map((route) => [templateOf(route), pathItem(route, named)]));
  return {
    openapi: "3.1.0",
    info: { title, version: INTERFACE_VERSION },
    paths,
    components: { schemas, responses: { error: ERROR_RESPONSE } },
  };
}

/** Two kinds of records may have one title. */
function freeName(title: string, taken: { readonly [name: string]: unknown }): string {
  const base = title.replace(/[^\w.-]/g, "-");
  let name = base;
  for (let count = 2; Object.hasOwn(taken, name); count += 1) name = `${base}-${count}`;
  return name;
}

const ERROR: JsonObject = {
  type: "object",
  required: ["code", "message"],
  properties: {
    code: { type: "string" },
    message: { type: "string" },
    data: {
      type: ["object", "null"],
      properties: {
        status: { type: "integer" },
        params: {
          description: "The arguments at fault: their names, or a message for each.",
          type: ["object", "array"],
        },
        details: { type: "object" },
      },
    },
    additional_errors: { type: "array", items: { $ref: "#/components/schemas/error" } },
  },
};

const ERROR_RESPONSE: JsonObject = {
  description: "It was not done.",
  content: { "application/json": { schema: { $ref: "#/components/schemas/error" } } },
};

const templateOf = (route: RestRoute): string => pathOf(route).replace(/:([a-z_]+)(?:\(word\))?/g, "{$1}");

type Named = (schema: Schema) => JsonObject;

function pathItem(route: RestRoute, named: Named): JsonObject {
  const inPath = parameterNamesOf(pathOf(route));
  const item: Record<string, Json> = {};
  if (inPath.length > 0) {
    item["parameters"] = inPath.map((name) => ({
      name,
      in: "path",
      required: true,
      schema: { type: route.path.includes(`:${name}(word)`) ? "string" : "integer" },
    }));
  }
  for (const endpoint of route.endpoints) {
    const args = Object.entries(endpoint.args).filter(([name]) => !inPath.includes(name));
    for (const method of endpoint.methods) {
      item[method.toLowerCase()] = {
        operationId: `${method.toLowerCase()}${templateOf(route).replace(/[^a-z0-9]+/gi, "_")}`,
        ...input(method, args),
        responses: {
          "2XX": {
            description: "It was done.",
            content: { "application/json": { schema: result(route, endpoint, method, named) } },
          },
          default: { $ref: "#/components/responses/error" },
        },
      };
    }
  }
  return item;
}

function input(method: Method, args: readonly (readonly [string, Argument])[]): JsonObject {
  if (args.length === 0) return {};
  if (method === "GET" || method === "DELETE") return { parameters: args.map(queryParameter) };
  const schema = toJsonSchema({ type: "object", properties: Object.fromEntries(args) });
  const required = args.some(([, argument]) => argument.required === true);
  return { requestBody: { required, content: { "application/json": { schema } } } };
}

/** A list is written with commas, an object with brackets. */
function queryParameter([name, argument]: readonly [string, Argument]): JsonObject {
  const { description, ...schema } = toJsonSchema(argument);
  const style =
    argument.type === "object" ? { style: "deepObject", explode: true } : { style: "form", explode: false };
  return {
    name,
    in: "query",
    ...(description === undefined ? {} : { description }),
    required: argument.required === true,
    ...style,
    schema,
  };
}

/** What the table says of the answer: a list where there are pages, else the record, unless it is deleted or the path names none. */
function result({ path, schema }: RestRoute, { args }: Endpoint, method: Method, named: Named): JsonObject {
  if (schema === undefined || method === "DELETE") return {};
  if (method !== "GET" || /:[^/]+$/.test(path)) return named(schema);
  return "per_page" in args ? { type: "array", items: named(schema) } : {};
}

const SAME_KEYWORDS = [
  "title",
  "description",
  "type",
  "format",
  "enum",
  "default",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "uniqueItems",
] as const satisfies readonly (keyof Schema)[];

/** Draft 4, and the reference's `required` on a property, in the words of 2020-12. */
function toJsonSchema(schema: Schema): JsonObject {
  const translated: Record<string, Json> = {};
  for (const keyword of SAME_KEYWORDS) {
    const value = schema[keyword];
    if (value !== undefined) translated[keyword] = value as Json;
  }
  const { minimum, maximum, items, properties, additionalProperties, required, oneOf, anyOf } = schema;
  if (minimum !== undefined) translated[schema.exclusiveMinimum ? "exclusiveMinimum" : "minimum"] = minimum;
  if (maximum !== undefined) translated[schema.exclusiveMaximum ? "exclusiveMaximum" : "maximum"] = maximum;
  if (schema.readonly) translated["readOnly"] = true;
  if (items !== undefined) translated["items"] = toJsonSchema(items);
  if (oneOf !== undefined) translated["oneOf"] = oneOf.map(toJsonSchema);
  if (anyOf !== undefined) translated["anyOf"] = anyOf.map(toJsonSchema);
  if (additionalProperties !== undefined) {
    translated["additionalProperties"] =
      typeof additionalProperties === "boolean" ? additionalProperties : toJsonSchema(additionalProperties);
  }
  const members = Object.entries(properties ?? {});
  if (properties !== undefined) {
    translated["properties"] = Object.fromEntries(
      members.map(([name, member]) => [name, toJsonSchema(member)]),
    );
  }
  const names = Array.isArray(required)
    ? (required as readonly string[])
    : members.filter(([, member]) => member.required === true).map(([name]) => name);
  if (names.length > 0) translated["required"] = names;
  return translated;
}
