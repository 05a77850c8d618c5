/**
 * The schemas, parameters and headers that many operations of the content interface use. Plain
 * data.
 */

import { componentRef } from "../../http/openapi-document.js";
import type { JsonObject } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";

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

export const sharedSchemas: { readonly [name: string]: JsonObject } = {
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

export const describedHeaders: JsonObject = {
  Allow: componentRef("headers", "Allow"),
  Link: componentRef("headers", "Link"),
};
export const describedReadHeaders: JsonObject = {
  ...describedHeaders,
  ETag: componentRef("headers", "ETag"),
};
export const describedPageHeaders: JsonObject = {
  "X-WP-Total": componentRef("headers", "Total"),
  "X-WP-TotalPages": componentRef("headers", "TotalPages"),
};
