/** Builds the stored form of an event without a FHIR resource. */

import { hash } from "node:crypto";
import { PostbellError } from "../../core/errors.js";
import { Budget, TooComplexError } from "../../json-schema/budget.js";
import type { DataMistake, DataSchema } from "../../json-schema/data-schema.js";
import type { Json } from "../../schema/types.js";
import { type BuiltPayload, checkBytes, toInstant } from "./bundle.js";
import { type PlainHeader, plainBodyBytes, writePayload } from "./notification.js";
import { serialiseData } from "./resource-text.js";

export interface PlainEventRequest {
  /** A UUID. */
  eventId: string;
  type: string;
  /** Epoch milliseconds, within the years 0 to 9999. */
  occurredAt: number;
  /** True if the host gave that time. Only then is it part of the digest. */
  isOccurredAtGiven: boolean;
  data: unknown;
  /** The schema of `data`, if it is to be checked. */
  schema?: DataSchema | undefined;
  /** The `traceparent` of the span that emits the event: stored, not sent. */
  trace?: string | undefined;
  isTest?: boolean | undefined;
  /** UTF-8 bytes of the largest body. */
  maxBytes: number;
}

/** Checks the data as it is sent. */
function checkData(text: string, type: string, schema: DataSchema): void {
  let mistake: DataMistake | undefined;
  try {
    mistake = schema.findMistake(JSON.parse(text) as Json, new Budget(text.length));
  } catch (cause) {
    if (!(cause instanceof TooComplexError)) throw cause;
    const message = `data is too complex to check against the schema of '${type}': make it smaller, or give the schema narrower bounds`;
    throw new PostbellError("invalid_argument", message, { field: "data" });
  }
  if (mistake === undefined) return;
  const path = `data${mistake.path}`;
  const message = `${path} does not match '${mistake.keyword}' in the schema of '${type}'`;
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
    v: 2,
    id: eventId,
    type,
    timestamp,
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
