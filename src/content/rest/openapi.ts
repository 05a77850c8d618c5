/** The route table as an OpenAPI 3.1 document. Pure; knows no row. */

import type { Argument, Json, JsonObject } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import { ERROR_STATUSES, errorResponse } from "./error-codes.js";
import { toRoutePath } from "./index-routes.js";
import { type NameRecord, recordNames } from "./openapi-records.js";
import { toJsonSchema } from "./openapi-schema.js";
import { listParameterNames, MAX_SEGMENT } from "./route-tree.js";
import type { Method, RestEndpoint, RestRoute } from "./types.js";

/** Changes with the form of the interface, not with the package. */
const INTERFACE_VERSION = "2";

const ref = (kind: string, name: string): JsonObject => ({ $ref: `#/components/${kind}/${name}` });

/**
 * OpenAPI 3.1 with schemas in JSON Schema 2020-12. `title`: of the site. An argument of a write may stand in the query too; it is listed in the body, where
 * clients send it.
 */
export function describeContentOpenApi(
  routes: readonly RestRoute[],
  { title, baseUrl }: { readonly title: string; readonly baseUrl: string },
): JsonObject {
  const schemas: Record<string, JsonObject> = { ...SCHEMAS };
  const nameOf = recordNames(schemas);
  const paths = Object.fromEntries(routes.map((route) => [templateOf(route), pathItem(route, nameOf)]));
  const tags = [...new Map(routes.map((route) => [tagOf(route), route]))];
  return {
    openapi: "3.1.0",
    info: { title, version: INTERFACE_VERSION, description: INTRODUCTION },
    servers: [{ url: baseUrl }],
    security: [],
    tags: tags.map(([name]) => ({ name, description: `What begins with the path ${name}.` })),
    paths,
    components: {
      schemas,
      parameters: PARAMETERS,
      headers: HEADERS,
      responses: {
        NotModified: { description: "What is known is current.", headers: READ_HEADERS },
        ...Object.fromEntries(ERROR_STATUSES.map((status) => [`Error${status}`, errorResponse(status)])),
      },
    },
  };
}

const INTRODUCTION = `The content of the site: the REST interface that clients of WordPress speak.

Who is asking is for the site to find out, with a cookie or a header of its own; credentials that it does not accept are answered 401, and without any the
published content is readable.

A path that answers GET answers HEAD too, and every path OPTIONS, with its arguments and the schema of its records. An unknown path or method is answered 404
with the code \`rest_no_route\`. POST with \`_method\` in the query, or with the header \`X-HTTP-Method-Override\`, stands for another method. With \`_envelope\` in
the query, status and headers stand beside the body; with \`_jsonp\`, an anonymous answer to GET is a script; with \`_pretty\` it is indented.

Every argument has a maximum. GET, DELETE and anonymous requests take a body of 64 KiB at most, and a JSON body 10 000 values. An answer that would be too
large is refused with 413 \`rest_response_too_large\`: ask for fewer records, or for less of each with \`_fields\`.

Records have one schema for each context, \`post.view\` and so on, since a context has fields of its own. What a schema requires is in every answer unless \`_fields\`
asks for less; where it asks for members that an object does not have, an empty list stands in its place. Dates are written without an offset: \`2026-03-01T12:00:00\`, in the time zone of the site or, where the name ends in \`_gmt\`, in UTC.`;

const LINK: JsonObject = {
  type: "object",
  required: ["href"],
  properties: { href: { type: "string" } },
  additionalProperties: true,
};

const SCHEMAS: { readonly [name: string]: JsonObject } = {
  Error: {
    type: "object",
    required: ["code", "message"],
    properties: {
      code: { type: "string", description: "For programs." },
      message: { type: "string", description: "For people; its words may change." },
      data: {
        type: ["object", "null"],
        properties: {
          status: { type: "integer", description: "That of the answer." },
          params: {
            description: "The arguments at fault: their names, or a message for each.",
            type: ["object", "array"],
          },
          details: { type: "object", description: "An error for each of them." },
        },
        additionalProperties: true,
      },
      additional_errors: { type: "array", items: ref("schemas", "Error") },
    },
    additionalProperties: false,
  },
  Links: {
    description: "By relation: where else to go from here.",
    type: "object",
    additionalProperties: { type: "array", items: LINK },
  },
  Embedded: {
    description: "By relation: the records that the links lead to, where `_embed` asks for them.",
    type: "object",
    additionalProperties: { type: "array", items: { type: ["object", "array"] } },
  },
};

const PARAMETERS: JsonObject = {
  Fields: {
    name: "_fields",
    in: "query",
    description: "The members that are wanted, with commas between them: `id,title.rendered`.",
    schema: { type: "string", maxLength: LENGTHS.selection },
  },
  Embed: {
    name: "_embed",
    in: "query",
    description:
      "Relations whose records are wanted in `_embedded`, with commas between them; empty for all.",
    allowEmptyValue: true,
    schema: { type: "string", maxLength: LENGTHS.selection },
  },
  IfUnmodifiedSince: {
    name: "If-Unmodified-Since",
    in: "header",
    description:
      "The item's `modified_gmt` as an HTTP date: where somebody has changed it since, nothing is done.",
    schema: { type: "string", maxLength: LENGTHS.date },
  },
};

const HEADERS: JsonObject = {
  ETag: { description: "Names this version of the answer.", schema: { type: "string", pattern: '^W/"' } },
  Allow: {
    description: "The methods of this path that the caller may use now; absent where there are none.",
    schema: { type: "string" },
  },
  Link: {
    description: "The index, and the pages beside this one.",
    required: true,
    schema: { type: "string" },
  },
  Total: {
    description: "Records on all pages together.",
    required: true,
    schema: { type: "integer", minimum: 0 },
  },
  TotalPages: { description: "Pages in all.", required: true, schema: { type: "integer", minimum: 0 } },
  Location: {
    description: "The address of what was made.",
    required: true,
    schema: { type: "string", format: "uri" },
  },
  "Retry-After": {
    description: "Seconds after which to try again.",
    schema: { type: "integer", minimum: 0 },
  },
};

const COMMON: JsonObject = { Allow: ref("headers", "Allow"), Link: ref("headers", "Link") };
const READ_HEADERS: JsonObject = { ...COMMON, ETag: ref("headers", "ETag") };
const PAGE_HEADERS: JsonObject = {
  "X-WP-Total": ref("headers", "Total"),
  "X-WP-TotalPages": ref("headers", "TotalPages"),
};

const templateOf = (route: RestRoute): string =>
  toRoutePath(route).replace(/:([a-z_]+)(?:\(word\))?/g, "{$1}");

/** The path as far as the name of the records. */
const tagOf = ({ namespace, path }: RestRoute): string =>
  `/${namespace}${/^\/[^/]*/.exec(path)?.[0] ?? ""}`.replace("//", "/");

function pathItem(route: RestRoute, nameOf: NameRecord): JsonObject {
  const names = listParameterNames(toRoutePath(route));
  const item: Record<string, Json> = {};
  if (names.length > 0) item["parameters"] = names.map((name) => pathParameter(route, name));
  for (const endpoint of route.endpoints) {
    const args = Object.entries(endpoint.args).filter(([name]) => !names.includes(name));
    for (const method of endpoint.methods) {
      item[method.toLowerCase()] = {
        operationId: `${method.toLowerCase()}${templateOf(route).replace(/[^a-z0-9]+/gi, "_")}`,
        tags: [tagOf(route)],
        summary: endpoint.described?.summary ?? summaryOf(route, endpoint, method),
        ...input(method, endpoint, args),
        responses: responsesOf(route, endpoint, method, nameOf),
      };
    }
  }
  return item;
}

function pathParameter(route: RestRoute, name: string): JsonObject {
  const described = route.endpoints
    .map(({ args }) => args[name]?.description)
    .find((text) => text !== undefined);
  return {
    name,
    in: "path",
    required: true,
    ...(described === undefined ? {} : { description: described }),
    schema: route.path.includes(`:${name}(word)`)
      ? { type: "string", pattern: "^[\\w-]+$", maxLength: MAX_SEGMENT }
      : { type: "integer", minimum: 0 },
  };
}

const endsInParameter = ({ path }: RestRoute): boolean =>
  path.slice(path.lastIndexOf("/") + 1).startsWith(":");

function summaryOf(route: RestRoute, endpoint: RestEndpoint, method: Method): string {
  const words = route.path.split("/").filter((segment) => segment !== "" && !segment.startsWith(":"));
  const what = words.join(" ");
  if (method === "GET")
    return formOf(route, endpoint, method) === "item" ? `Read one of ${what}` : `List ${what}`;
  if (method === "DELETE") return `Delete one of ${what}`;
  return endsInParameter(route) ? `Update one of ${what}` : `Add to ${what}`;
}

function input(
  method: Method,
  { receive, described }: RestEndpoint,
  args: readonly (readonly [string, Argument])[],
): JsonObject {
  const general = [
    ref("parameters", "Fields"),
    ...(method === "GET" && described?.form !== "json" ? [ref("parameters", "Embed")] : []),
    ...(described?.errors?.includes(412) ? [ref("parameters", "IfUnmodifiedSince")] : []),
  ];
  if (method === "GET" || method === "DELETE")
    return { parameters: [...args.map(queryParameter), ...general] };
  if (args.length === 0) return { parameters: general };
  const properties = Object.fromEntries(args);
  const schema = toJsonSchema({ type: "object", properties });
  const required = receive !== undefined || args.some(([, argument]) => argument.required === true);
  return {
    parameters: general,
    requestBody: {
      required,
      content: {
        ...(receive === undefined
          ? { "application/json": { schema }, "application/x-www-form-urlencoded": { schema } }
          : {
              "multipart/form-data": {
                schema: {
                  ...schema,
                  required: ["file"],
                  properties: { file: FILE, ...(schema["properties"] as JsonObject) },
                },
              },
              "*/*": { schema: FILE },
            }),
      },
    },
  };
}

const FILE: JsonObject = {
  description: "The bytes of the file. Outside a form, `Content-Disposition` gives its name.",
  type: "string",
  contentMediaType: "application/octet-stream",
};

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

type Form = NonNullable<NonNullable<RestEndpoint["described"]>["form"]>;

/** What the row says; else a list where there are pages, `deleted` for DELETE, and otherwise the record. */
function formOf({ schema }: RestRoute, { args, described }: RestEndpoint, method: Method): Form {
  if (described?.form !== undefined) return described.form;
  if (schema === undefined && described?.schema === undefined) return "json";
  if (method === "DELETE") return "deleted";
  return method === "GET" && "per_page" in args ? "items" : "item";
}

function answerOf(route: RestRoute, endpoint: RestEndpoint, method: Method, nameOf: NameRecord): JsonObject {
  const { args, described = {} } = endpoint;
  const form = formOf(route, endpoint, method);
  const schema = described.schema ?? route.schema ?? {};
  if (form === "json") return toJsonSchema(schema);
  const isWrite = method !== "GET" && method !== "DELETE";
  const record = nameOf(schema, described.context ?? ("context" in args ? "any" : isWrite ? "edit" : "view"));
  if (form === "item") return record;
  if (form === "items") return { type: "array", items: record };
  if (form === "keyed") return { type: "object", additionalProperties: record };
  const deleted: JsonObject = {
    type: "object",
    required: ["deleted", "previous"],
    properties: { deleted: { type: "boolean", const: true }, previous: record },
    additionalProperties: false,
  };
  return form === "trashed" ? { anyOf: [nameOf(schema, "edit"), deleted] } : deleted;
}

function responsesOf(
  route: RestRoute,
  endpoint: RestEndpoint,
  method: Method,
  nameOf: NameRecord,
): JsonObject {
  const { described = {}, receive } = endpoint;
  const isRead = method === "GET";
  const isCreated = method === "POST" && !endsInParameter(route) && described.form !== "json";
  const status = described.status ?? (isCreated ? 201 : 200);
  const errors = new Set([400, 401, 500, 503, ...(described.errors ?? [])]);
  if (formOf(route, endpoint, method) !== "json") errors.add(403);
  if (route.path.includes("/:")) errors.add(404);
  // Whatever the method is, a body that comes with it is read.
  for (const error of [408, 413, 415]) errors.add(error);
  if (receive !== undefined) for (const error of [412, 501]) errors.add(error);
  if (method === "DELETE") errors.add(501);
  const isPaged = formOf(route, endpoint, method) === "items" && "per_page" in endpoint.args;
  const schema = answerOf(route, endpoint, method, nameOf);
  return {
    [status]: {
      description: "It was done.",
      headers: {
        ...(isRead ? READ_HEADERS : COMMON),
        ...(isPaged ? PAGE_HEADERS : {}),
        ...(status === 201 ? { Location: ref("headers", "Location") } : {}),
      },
      content: {
        "application/json": { schema },
        ...(described.otherType === undefined
          ? {}
          : { [described.otherType]: { schema: { type: "string" } } }),
      },
    },
    ...(isRead ? { "304": ref("responses", "NotModified") } : {}),
    ...Object.fromEntries(
      [...errors].sort((a, b) => a - b).map((error) => [error, ref("responses", `Error${error}`)]),
    ),
  };
}
