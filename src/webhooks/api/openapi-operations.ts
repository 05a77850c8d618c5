/** Describes the operations of the registration API for the OpenAPI document. Pure. */

import { componentRef, referToErrors } from "../../http/openapi-document.js";
import type { Json, JsonObject } from "../../schema/types.js";
import { TEXT_LENGTHS } from "../text-lengths.js";
import type { BodySchema, Operation } from "./operation.js";

export function describePathParameters(path: string): Record<string, Json> {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name = ""]) => name);
  if (names.length === 0) return {};
  return {
    parameters: names.map((name) => ({
      name,
      in: "path",
      required: true,
      description: `The \`id\` of the ${name.replace(/Id$/, "")}.`,
      schema: { type: "string", maxLength: TEXT_LENGTHS.id },
    })),
  };
}

export function describeOperation(operationId: string, operation: Operation): JsonObject {
  const { tag, summary, description, isPublic, parameters, body, response, errors } = operation;
  const { status, schema, example } = response;
  const headers: JsonObject = {
    ...(isPublic ? {} : { "Cache-Control": componentRef("headers", "NoStore") }),
    ...response.headers,
  };
  const responses: Record<string, Json> = {
    [status]: {
      description: response.description,
      headers,
      content: { "application/json": { schema, ...(example === undefined ? {} : { example }) } },
    },
  };
  if ("ETag" in headers)
    responses["304"] = { description: "The client's document is current.", headers: response.headers ?? {} };
  const all = isPublic ? errors : [...errors, 401, 429, 503];
  Object.assign(responses, referToErrors(all));
  return {
    operationId,
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    ...(isPublic ? { security: [] } : {}),
    ...(parameters === undefined ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: describeBody(body) }),
    responses,
  };
}

function describeBody({ required = [], isOptional, properties, example, ...schema }: BodySchema): JsonObject {
  return {
    required: isOptional !== true,
    content: {
      "application/json": {
        schema: {
          ...schema,
          type: "object",
          ...(required.length === 0 ? {} : { required }),
          properties,
          additionalProperties: false,
        },
        example,
      },
    },
  };
}
