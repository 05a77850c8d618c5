/** What the rows of the registration API have in common: what they are given, how they answer, and how they read an object. */

import { PostbellError } from "../../core/errors.js";
import { HttpError } from "../../http/errors.js";
import type { PathParameter } from "../../http/router.js";
import type { HttpRequest, HttpResponse } from "../../http/types.js";
import type { Subscriber } from "../access.js";
import { findNearest } from "../event-types/event-type-names.js";
import { type BodySchema, TEXT_LENGTHS } from "./operations.js";

export interface ApiRequest {
  readonly request: HttpRequest;
  readonly parameter: PathParameter;
  readonly subscriber: Subscriber;
}

export const JSON_TYPE = "application/json; charset=utf-8";

/** Answers hold what one key may see, some of them a secret: nobody may keep them. */
const PRIVATE_HEADERS = {
  "cache-control": "no-store",
  vary: "Authorization",
  "x-content-type-options": "nosniff",
} as const;

export const toJsonResponse = (
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): HttpResponse => ({
  status,
  headers: { "content-type": JSON_TYPE, ...PRIVATE_HEADERS, ...headers },
  body: JSON.stringify(value),
});

export const invalidRequest = (field: string, message: string): PostbellError =>
  new PostbellError("invalid_request", message, { field });

export const serviceUnavailable = (): HttpError =>
  new HttpError(503, "unavailable", "The service cannot answer at the moment; try again later.", {
    headers: { "retry-after": "5" },
  });

export const rateLimited = (seconds: number, reason: string): HttpError =>
  new HttpError(429, "rate_limited", `${reason}; try again in ${seconds} s.`, {
    headers: { "retry-after": String(seconds) },
  });

/** The object a request body must be. What is not declared is refused, so that a slip of the pen does not subscribe to everything. */
export function readFields(body: unknown, { properties }: BodySchema): Readonly<Record<string, unknown>> {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new PostbellError("invalid_request", "The body must be a JSON object.");
  }
  const accepted = Object.keys(properties).filter((name) => properties[name]?.["readOnly"] !== true);
  for (const field of Object.keys(body)) {
    if (Object.hasOwn(properties, field)) continue;
    const shown = field.slice(0, 40);
    throw invalidRequest(
      shown,
      `There is no field '${shown}'; did you mean '${findNearest(field, accepted)}'?`,
    );
  }
  return Object.fromEntries(
    accepted
      .filter((field) => Object.hasOwn(body, field))
      .map((field) => [field, (body as Record<string, unknown>)[field]]),
  );
}

/** `limit` and `cursor` of a query. */
export function readPage(query: URLSearchParams): {
  readonly cursor: string | undefined;
  readonly limit: number | undefined;
} {
  const limit = query.get("limit");
  const cursor = query.get("cursor") ?? undefined;
  if (cursor !== undefined && cursor.length > TEXT_LENGTHS.cursor) {
    throw new PostbellError("invalid_argument", "cursor must be the `next` of the page before.", {
      field: "cursor",
    });
  }
  const isNumber = /^[0-9]{1,9}$/.test(limit ?? "");
  return {
    cursor,
    // What is no number is refused by whoever checks the range.
    limit: limit === null ? undefined : isNumber ? Number(limit) : Number.NaN,
  };
}
