/** The arguments of the batch route and the check of its requests. */

import type { Argument, Arguments, Json, JsonObject, SchemaProblem } from "../../schema/types.js";
import { validateValue } from "../../schema/validate.js";
import { COUNTS, LENGTHS } from "../argument-bounds.js";

const FREE_FORM = {
  type: "object",
  additionalProperties: true,
  maxProperties: COUNTS.members,
} as const;

const REQUESTS: Argument = {
  type: "array",
  required: true,
  maxItems: 25,
  items: {
    type: "object",
    properties: {
      method: { type: "string", enum: ["POST", "PUT", "PATCH", "DELETE"], default: "POST" },
      path: { type: "string", required: true, maxLength: LENGTHS.batchPath },
      body: FREE_FORM,
      headers: {
        type: "object",
        maxProperties: COUNTS.names,
        additionalProperties: {
          type: ["string", "array"],
          maxLength: LENGTHS.header,
          mostItems: COUNTS.names,
          items: { type: "string", maxLength: LENGTHS.header },
        },
      },
    },
  },
};

export const BATCH_ARGUMENTS: Arguments = {
  validation: { type: "string", enum: ["require-all-validate", "normal"], default: "normal" },
  requests: { ...REQUESTS, validate: checkRequests },
};

/**
 * Adds to the schema that headers must be strings: the schema alone accepts a number for a string
 * and a list for an object, as WordPress does. An empty list counts as an empty object, because PHP
 * writes both alike.
 */
function checkRequests(value: Json, name: string): SchemaProblem | undefined {
  const problem = validateValue(value, REQUESTS, name);
  if (problem !== undefined) return problem;
  for (const [index, item] of Object.entries(value as readonly JsonObject[])) {
    const { headers } = item;
    const at = `${name}[${index}]`;
    if (isFilledList(headers)) return notOfType(`${at}[headers]`, "object");
    const wrong = Object.entries((headers ?? {}) as JsonObject).find(([, header]) => !isHeader(header));
    if (wrong !== undefined) return notOfType(`${at}[headers][${wrong[0]}]`, "string or array");
  }
  return undefined;
}

export const isFilledList = (value: Json | undefined): boolean => Array.isArray(value) && value.length > 0;

const isHeader = (value: Json): boolean =>
  typeof value === "string" ||
  (Array.isArray(value) && value.every((part: Json) => typeof part === "string"));

const notOfType = (param: string, type: string): SchemaProblem => ({
  code: "rest_invalid_type",
  message: `${param} is not of type ${type}.`,
  param,
});
