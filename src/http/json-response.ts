/** Writes JSON responses and JSON errors. Knows no route. */

import type { HttpError } from "./errors.js";
import type { HttpResponse } from "./types.js";

export const JSON_CONTENT_TYPE = "application/json; charset=utf-8";

export interface JsonWriter {
  json: (status: number, value: unknown, headers?: Record<string, string>) => HttpResponse;
  /** `{ error: { code, message, field? } }`, with the status and the headers of the error. */
  error: (error: HttpError) => HttpResponse;
}

/**
 * Returns a writer of responses that no cache may store, because they can hold secrets and data of
 * one account.
 *
 * @param serviceHeaders added to each response of the service, names in lower case.
 */
export function createJsonWriter(serviceHeaders: Record<string, string>): JsonWriter {
  const json: JsonWriter["json"] = (status, value, headers) => ({
    status,
    headers: {
      "content-type": JSON_CONTENT_TYPE,
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      ...serviceHeaders,
      ...headers,
    },
    body: JSON.stringify(value),
  });
  const error: JsonWriter["error"] = ({ status, code, message, field, headers }) =>
    json(status, { error: { code, message, ...(field === undefined ? {} : { field }) } }, headers);
  return Object.freeze({ json, error });
}
