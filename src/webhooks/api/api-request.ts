/** Reads the input of requests to the registration API, and writes the responses. */

import { type Clock, withTimeout } from "../../core/clock.js";
import { isPostbellError, PostbellError } from "../../core/errors.js";
import { describeUnknownKey } from "../../core/known-names.js";
import { readBytes, readJson } from "../../http/body.js";
import { BODY_MS } from "../../http/body-chunks.js";
import { HttpError } from "../../http/errors.js";
import { createJsonWriter } from "../../http/json-response.js";
import type { HttpRequest } from "../../http/types.js";
import { invalidField, TEXT_LENGTHS } from "../call-arguments.js";
import type { Webhook } from "../webhook.js";
import type { BodySchema, SubscriberCall } from "./operation.js";

export const { json: toJsonResponse, error: toErrorResponse } = createJsonWriter({ vary: "Authorization" });

/** A webhook of another account gives the same error as one that does not exist. */
export const findWebhook = ({ parameter, webhooks }: SubscriberCall): Promise<Webhook> =>
  webhooks.registrations.get(parameter("webhookId"));

/** Returns the value of a JSON body. If the body is optional, a missing one is an empty object. */
export async function readBodyValue(
  request: HttpRequest,
  isOptional: boolean,
  limits: { bytes: number; clock: Clock },
): Promise<unknown> {
  const { headers, body } = request;
  const limit = limits.bytes;
  const inTime = <T>(read: Promise<T>): Promise<T> =>
    withTimeout(
      limits.clock,
      BODY_MS,
      read,
      () => new HttpError(408, "request_timeout", "The body did not arrive in time."),
    );
  if (!isOptional || (body !== null && "parsed" in body)) return inTime(readJson(request, { limit }));
  const bytes = await inTime(readBytes(request, { limit }));
  return bytes.length === 0 ? {} : readJson({ headers, body: bytes }, { limit });
}

/**
 * Returns the fields of a request body that the schema accepts.
 *
 * @throws PostbellError `invalid_request` for a body that is not an object, and for an unknown
 * field: if a misspelt `event_types` were ignored, the webhook would subscribe to everything.
 */
export function parseBodyFields(
  body: unknown,
  properties: BodySchema["properties"],
): Record<string, unknown> {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new PostbellError("invalid_request", "The body must be a JSON object.");
  }
  const accepted = Object.keys(properties).filter((name) => properties[name]?.["readOnly"] !== true);
  for (const field of Object.keys(body)) {
    if (Object.hasOwn(properties, field)) continue;
    throw invalidField(field.slice(0, 40), describeUnknownKey("The body has no field", field, accepted));
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
): Record<N, boolean> {
  const include = query.get("include");
  // Cut to one character more than the longest valid list, which makes a longer one invalid.
  const asked = include?.slice(0, names.join().length + 1).split(",") ?? [];
  const isValid = new Set(asked).size === asked.length && asked.every((name) => names.includes(name as N));
  if (!isValid) {
    const expected = names.map((name) => `'${name}'`).join(" or ");
    const list = names.length === 1 ? "" : ", or a list of them with commas, each once";
    throw new PostbellError("invalid_argument", `include must be ${expected}${list}.`, { field: "include" });
  }
  return Object.fromEntries(names.map((name) => [name, asked.includes(name)])) as Record<N, boolean>;
}

/** Returns `limit` and `cursor` of a query. A `limit` that is not a number becomes NaN. */
export function parsePage(query: URLSearchParams): {
  cursor: string | undefined;
  limit: number | undefined;
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

/** Renames the field of an error, and at the start of its message, as the request calls it. */
export async function renameErrorField<T>(names: Record<string, string>, call: PromiseLike<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (!isPostbellError(error)) throw error;
    const { code, message, field = "" } = error;
    const name = names[field];
    if (name === undefined) throw error;
    const shown = message.startsWith(`${field} `) ? `${name}${message.slice(field.length)}` : message;
    throw new PostbellError(code, shown, { field: name, cause: error });
  }
}
