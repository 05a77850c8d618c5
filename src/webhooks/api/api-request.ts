/** The parts that all routes of the registration API share: their request, responses and input. */

import { PostbellError } from "../../core/errors.js";
import { describeUnknownKey } from "../../core/known-names.js";
import { createJsonWriter } from "../../http/json-response.js";
import type { PathParameter } from "../../http/router.js";
import type { HttpRequest } from "../../http/types.js";
import type { Subscriber } from "../access.js";
import { TEXT_LENGTHS } from "../text-lengths.js";
import type { BodySchema } from "./operation.js";

export interface ApiRequest {
  readonly request: HttpRequest;
  readonly parameter: PathParameter;
  readonly subscriber: Subscriber;
  /** Charges the account's limit for what costs as much as so many further requests. */
  readonly charge: (count: number) => void;
}

export const { json: toJsonResponse, error: toErrorResponse } = createJsonWriter({ vary: "Authorization" });

export const invalidRequest = (field: string, message: string): PostbellError =>
  new PostbellError("invalid_request", message, { field });

/**
 * Returns the fields of a request body that the schema accepts.
 *
 * @throws PostbellError `invalid_request` for a body that is not an object, and for an unknown
 * field: if a misspelt `event_types` were ignored, the webhook would subscribe to everything.
 */
export function parseBodyFields(
  body: unknown,
  { properties }: BodySchema,
): Readonly<Record<string, unknown>> {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new PostbellError("invalid_request", "The body must be a JSON object.");
  }
  const accepted = Object.keys(properties).filter((name) => properties[name]?.["readOnly"] !== true);
  for (const field of Object.keys(body)) {
    if (Object.hasOwn(properties, field)) continue;
    throw invalidRequest(field.slice(0, 40), describeUnknownKey("The body has no field", field, accepted));
  }
  return Object.fromEntries(
    accepted
      .filter((field) => Object.hasOwn(body, field))
      .map((field) => [field, (body as Record<string, unknown>)[field]]),
  );
}

/**
 * Returns what a query asks to include: a list such as `include=stats,event_types`. Names are
 * those that the route serves.
 *
 * @throws PostbellError `invalid_argument` for an unknown or repeated name.
 */
export function parseInclude<N extends string>(
  query: URLSearchParams,
  names: readonly N[],
): Readonly<Record<N, boolean>> {
  const include = query.get("include");
  // Cut to one character more than the longest valid list, which makes a longer one invalid.
  const asked = include?.slice(0, names.join().length + 1).split(",") ?? [];
  const isValid = new Set(asked).size === asked.length && asked.every((name) => names.includes(name as N));
  if (!isValid) {
    const known = names.map((name) => `'${name}'`).join(" or ");
    const list = names.length === 1 ? "" : ", or a list of them with commas, each once";
    throw new PostbellError("invalid_argument", `include must be ${known}${list}.`, { field: "include" });
  }
  return Object.fromEntries(names.map((name) => [name, asked.includes(name)])) as Record<N, boolean>;
}

/** Returns `limit` and `cursor` of a query. A `limit` that is not a number becomes NaN. */
export function parsePage(query: URLSearchParams): {
  readonly cursor: string | undefined;
  readonly limit: number | undefined;
} {
  const limit = query.get("limit");
  const cursor = query.get("cursor") ?? undefined;
  if (cursor !== undefined && cursor.length > TEXT_LENGTHS.cursor) {
    throw new PostbellError("invalid_argument", "cursor must be the `next` of the previous page.", {
      field: "cursor",
    });
  }
  const isNumber = /^[0-9]{1,9}$/.test(limit ?? "");
  // NaN fails the check of the range, which every list has.
  return { cursor, limit: limit === null ? undefined : isNumber ? Number(limit) : Number.NaN };
}
