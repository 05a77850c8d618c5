/** Builds the stored form of an event without a FHIR resource. */

import { hash } from "node:crypto";
import { Validator } from "@cfworker/json-schema";
import { PostbellError } from "../../core/errors.js";
import type { JsonObject } from "../../schema/types.js";
import { type BuiltPayload, checkBytes, toInstant } from "./bundle.js";
import { type PlainHeader, plainBodyBytes, writePayload } from "./notification.js";
import { serialiseData } from "./resource-text.js";

export interface PlainEventRequest {
  /** A UUID. */
  readonly eventId: string;
  readonly type: string;
  /** Epoch milliseconds, within the years 0 to 9999. */
  readonly occurredAt: number;
  /** True if the host gave that time. Only then is it part of the digest. */
  readonly isOccurredAtGiven: boolean;
  readonly data: unknown;
  /** A JSON Schema of `data`, if it is to be checked. */
  readonly schema?: JsonObject | undefined;
  /** The `traceparent` of the span that emits the event: stored, not sent. */
  readonly trace?: string | undefined;
  readonly isTest?: boolean | undefined;
  /** UTF-8 bytes of the largest body. */
  readonly maxBytes: number;
}

/** Compiled once for each schema, which lives as long as its catalogue. */
const validators = new WeakMap<JsonObject, Validator>();

/** Checks the data as it is sent. */
function checkData(text: string, type: string, schema: JsonObject): void {
  let result: ReturnType<Validator["validate"]>;
  try {
    let validator = validators.get(schema);
    if (validator === undefined) {
      validator = new Validator(schema, "2020-12");
      validators.set(schema, validator);
    }
    result = validator.validate(JSON.parse(text));
  } catch (cause) {
    // A pattern that is no regular expression, or a reference that leads nowhere.
    const message = `the schema of '${type}' cannot be used`;
    throw new PostbellError("invalid_argument", message, { field: "type", cause });
  }
  const { valid, errors } = result;
  if (valid) return;
  // The last one is about the value itself, the ones before about what contains it.
  const { instanceLocation = "#", keyword = "" } = errors.at(-1) ?? {};
  const path = `data${instanceLocation.slice(1).replaceAll("/", ".")}`;
  // Not the text of the error, which quotes the data.
  const message = `${path} does not match '${keyword}' in the schema of '${type}'`;
  throw new PostbellError("invalid_argument", message, { field: path });
}

/**
 * Serialises a plain event.
 *
 * @throws `invalid_argument` with field `data` or `occurredAt`; `event_too_large`.
 */
export function buildPlainPayload(request: PlainEventRequest): BuiltPayload {
  const { eventId, type, isOccurredAtGiven, trace, isTest, maxBytes } = request;
  const timestamp = toInstant(request.occurredAt);
  const read = serialiseData(request.data);
  if ("problem" in read) {
    throw new PostbellError("invalid_argument", `data ${read.problem}`, { field: "data", cause: read.cause });
  }
  const header: PlainHeader = {
    ...{ v: 2, id: eventId, type, timestamp },
    ...(trace !== undefined && { trace }),
    ...(isTest === true && { isTest }),
  };
  checkBytes(plainBodyBytes(header, read.text), maxBytes, "data");
  if (request.schema !== undefined) checkData(read.text, type, request.schema);
  return {
    payload: writePayload(header, [read.text]),
    digest: hash("sha256", `${type}\n${isOccurredAtGiven ? timestamp : ""}\n${read.text}\n`),
  };
}
