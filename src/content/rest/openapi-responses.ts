/**
 * Describes the responses of the content interface for OpenAPI, and what many operations share.
 * Pure.
 */

import { componentRef, referToErrors } from "../../http/openapi-document.js";
import type { Argument, Json, JsonObject, Schema } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import { errorResponse } from "./error-codes.js";
import { type NameRecord, toJsonSchema } from "./openapi-schema.js";
import type { Method, RestEndpoint, RestRoute } from "./types.js";

/** One method of one endpoint. */
interface DescribedOperation {
  route: RestRoute;
  endpoint: RestEndpoint;
  method: Method;
}

type ResponseForm = NonNullable<NonNullable<RestEndpoint["described"]>["form"]>;

export const endsInParameter = ({ path }: RestRoute): boolean =>
  path.slice(path.lastIndexOf("/") + 1).startsWith(":");

/**
 * Returns the form that the endpoint declares. The default is a list if there are pages, `deleted`
 * for DELETE, and otherwise one record.
 */
export function getResponseForm({ route, endpoint, method }: DescribedOperation): ResponseForm {
  const { args, described } = endpoint;
  if (described?.form !== undefined) return described.form;
  if (route.schema === undefined && described?.schema === undefined) return "json";
  if (method === "DELETE") return "deleted";
  return method === "GET" && "per_page" in args ? "items" : "item";
}

function describeBody(operation: DescribedOperation, nameOf: NameRecord): JsonObject {
  const { route, endpoint, method } = operation;
  const { args, described = {} } = endpoint;
  const form = getResponseForm(operation);
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

/**
 * Every request is authenticated and its body read, so every operation has the errors of both.
 */
const GENERAL_ERRORS = [400, 401, 403, 408, 413, 415, 500, 503] as const;

function listErrors(operation: DescribedOperation): Set<number> {
  const { route, endpoint, method } = operation;
  const errors = new Set<number>([...GENERAL_ERRORS, ...(endpoint.described?.errors ?? [])]);
  if (route.path.includes("/:")) errors.add(404);
  if (endpoint.receive !== undefined) errors.add(412).add(501);
  if (method === "DELETE") errors.add(501);
  return errors;
}

function getSuccessStatus({ route, endpoint, method }: DescribedOperation): number {
  const { described = {} } = endpoint;
  const isCreated = method === "POST" && !endsInParameter(route) && described.form !== "json";
  return described.status ?? (isCreated ? 201 : 200);
}

export function describeResponses(operation: DescribedOperation, nameOf: NameRecord): JsonObject {
  const { endpoint, method } = operation;
  const otherType = endpoint.described?.otherType;
  const isRead = method === "GET";
  const isPaged = getResponseForm(operation) === "items" && "per_page" in endpoint.args;
  const hasTotals = isPaged || endpoint.described?.hasTotals === true;
  const status = getSuccessStatus(operation);
  return {
    [status]: {
      description: "The request succeeded.",
      headers: {
        ...(isRead ? describedReadHeaders : describedHeaders),
        ...(hasTotals ? describedPageHeaders : {}),
        ...(status === 201 ? { Location: componentRef("headers", "Location") } : {}),
      },
      content: {
        "application/json": { schema: describeBody(operation, nameOf) },
        ...(otherType === undefined ? {} : { [otherType]: { schema: { type: "string" } } }),
      },
    },
    ...(isRead ? { "304": componentRef("responses", "NotModified") } : {}),
    ...referToErrors(listErrors(operation)),
    ...(otherType === undefined ? {} : { "404": describeNotFound(otherType) }),
    "4XX": componentRef("responses", "Refused"),
  };
}

/** The 404 of an operation that also answers in another type. */
function describeNotFound(otherType: string): JsonObject {
  const { content, ...response } = errorResponse(404);
  return {
    ...response,
    content: { ...(content as JsonObject), [otherType]: { schema: { type: "string" } } },
  };
}

/** An argument with its name. */
export type NamedArgument = [name: string, argument: Argument];

/**
 * Returns the query parameters of an argument.
 *
 * A list is separated by commas, and a single value needs none. An object uses brackets. An
 * argument that is a list or an object has one parameter for the list, and one for each member of
 * the object, such as `categories[terms]`: OpenAPI allows one style per parameter.
 */
export function describeQueryParameters([name, argument]: NamedArgument): JsonObject[] {
  const { oneOf = [], description } = argument;
  if (!oneOf.some(isObjectSchema)) return [describeQueryParameter([name, argument])];
  return oneOf.flatMap((form) =>
    isObjectSchema(form)
      ? Object.entries(form.properties ?? {}).map(([member, schema]) =>
          describeQueryParameter([`${name}[${member}]`, toOptional(schema)]),
        )
      : [describeQueryParameter([name, { ...toOptional(form), ...(description && { description }) }])],
  );
}

const isObjectSchema = ({ type }: Schema): boolean => type === "object";

const toOptional = (schema: Schema): Argument => ({ ...schema, required: false });

function describeQueryParameter([name, argument]: NamedArgument): JsonObject {
  const { description, ...schema } = toJsonSchema(argument);
  const style = isObjectSchema(argument)
    ? { style: "deepObject", explode: true }
    : { style: "form", explode: false };
  return {
    name,
    in: "query",
    ...(description === undefined ? {} : { description }),
    required: argument.required === true,
    ...style,
    schema: schema["type"] === "array" ? allowSingleValue(schema) : schema,
  };
}

/** One value is a list of one. */
function allowSingleValue({ default: initial, ...list }: JsonObject): JsonObject {
  const { items } = list;
  if (items === undefined) return { ...(initial === undefined ? {} : { default: initial }), ...list };
  return { ...(initial === undefined ? {} : { default: initial }), anyOf: [items, list] };
}

/** Returns the media types of a body that is JSON or a form. */
export function describeFields(args: NamedArgument[]): JsonObject {
  const schema = describeObject(args);
  return {
    "application/json": { schema },
    "application/x-www-form-urlencoded": { schema, ...describeEncoding(schema) },
  };
}

/** Returns the media types of an upload: a form with a file, or the file alone. */
export function describeUpload(args: NamedArgument[]): JsonObject {
  const schema = describeObject(args);
  return {
    "multipart/form-data": {
      schema: {
        ...schema,
        required: ["file"],
        properties: { file: FILE, ...(schema["properties"] as JsonObject) },
      },
      ...describeEncoding(schema),
    },
    "*/*": { schema: FILE },
  };
}

const FILE: JsonObject = {
  description: "The bytes of the file. Outside a form, `Content-Disposition` contains its name.",
  type: "string",
  contentMediaType: "application/octet-stream",
};

const describeObject = (args: NamedArgument[]): JsonObject =>
  toJsonSchema({ type: "object", properties: Object.fromEntries(args) });

/** In a form, a list is separated by commas, and an object uses brackets. */
function describeEncoding({ properties }: JsonObject): JsonObject {
  const encoding = Object.entries(properties as { [name: string]: JsonObject }).flatMap(
    ([name, schema]): [string, Json][] => {
      if (listForms(schema).some(({ type }) => type === "object"))
        return [[name, { style: "deepObject", explode: true }]];
      return schema["type"] === "array" ? [[name, { style: "form", explode: false }]] : [];
    },
  );
  return encoding.length === 0 ? {} : { encoding: Object.fromEntries(encoding) };
}

const listForms = (schema: JsonObject): JsonObject[] => [
  schema,
  ...((schema["anyOf"] ?? schema["oneOf"] ?? []) as JsonObject[]),
];

// The schemas, parameters and headers that many operations of the content interface use. Plain
// data.

const LINK: JsonObject = {
  type: "object",
  required: ["href"],
  properties: { href: { type: "string" } },
  additionalProperties: true,
};

const DETAIL: JsonObject = {
  type: "object",
  required: ["code", "message"],
  properties: { code: { type: "string" }, message: { type: "string" }, data: {} },
  additionalProperties: false,
};

export const sharedSchemas: { [name: string]: JsonObject } = {
  Error: {
    type: "object",
    required: ["code", "message"],
    properties: {
      code: { type: "string", description: "For programs." },
      message: { type: "string", description: "For people; the wording may change." },
      data: {
        type: ["object", "null"],
        properties: {
          status: { type: "integer", description: "The status of the response." },
          params: {
            description: "The invalid arguments: their names, or a message for each.",
            type: ["object", "array"],
          },
          details: {
            description: "One error for each of them.",
            type: "object",
            additionalProperties: DETAIL,
          },
        },
        additionalProperties: true,
      },
      additional_errors: { type: "array", items: componentRef("schemas", "Error") },
    },
    additionalProperties: false,
  },
  Links: {
    description: "Links to related resources, by relation.",
    type: "object",
    additionalProperties: { type: "array", items: LINK },
  },
  Embedded: {
    description: "The linked records that `_embed` requests, by relation.",
    type: "object",
    additionalProperties: { type: "array", items: { type: ["object", "array"] } },
  },
};

export const sharedParameters: JsonObject = {
  Fields: {
    name: "_fields",
    in: "query",
    description: "The properties to return, separated by commas: `id,title.rendered`.",
    schema: { type: "string", maxLength: LENGTHS.selection },
  },
  Embed: {
    name: "_embed",
    in: "query",
    description: "The relations to embed in `_embedded`, separated by commas; empty for all.",
    allowEmptyValue: true,
    schema: { type: "string", maxLength: LENGTHS.selection },
  },
  IfUnmodifiedSince: {
    name: "If-Unmodified-Since",
    in: "header",
    description:
      "`modified_gmt` of the item, as an HTTP date. If the item was changed since, the request fails.",
    schema: { type: "string", maxLength: LENGTHS.date },
  },
  ContentDisposition: {
    name: "Content-Disposition",
    in: "header",
    description: 'The name of a file that is the whole body: `attachment; filename="photo.jpg"`.',
    schema: { type: "string", maxLength: LENGTHS.header },
  },
  ContentMd5: {
    name: "Content-MD5",
    in: "header",
    description: "The MD5 hash of a file that is the whole body, in hexadecimal. Another file is refused.",
    schema: { type: "string", maxLength: LENGTHS.header },
  },
};

export const sharedHeaders: JsonObject = {
  ETag: { description: "The version of the response.", schema: { type: "string", pattern: '^W/"' } },
  Allow: {
    description: "The methods of this path that the caller may use now; absent if the caller may use none.",
    schema: { type: "string" },
  },
  Link: {
    description: "The index, the previous page and the next page.",
    required: true,
    schema: { type: "string" },
  },
  Total: {
    description: "The number of records on all pages.",
    required: true,
    schema: { type: "integer", minimum: 0 },
  },
  TotalPages: {
    description: "The number of pages.",
    required: true,
    schema: { type: "integer", minimum: 0 },
  },
  Location: {
    description: "The URL of the created record.",
    required: true,
    schema: { type: "string", format: "uri" },
  },
  "Retry-After": {
    description: "Seconds after which to try again.",
    schema: { type: "integer", minimum: 0 },
  },
};

const describedHeaders: JsonObject = {
  Allow: componentRef("headers", "Allow"),
  Link: componentRef("headers", "Link"),
};
export const describedReadHeaders: JsonObject = {
  ...describedHeaders,
  ETag: componentRef("headers", "ETag"),
};
const describedPageHeaders: JsonObject = {
  "X-WP-Total": componentRef("headers", "Total"),
  "X-WP-TotalPages": componentRef("headers", "TotalPages"),
};
