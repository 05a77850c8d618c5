/** Builds the stored form of an event without a FHIR resource. */

import { hash } from "node:crypto";
import { type Clock, callHook } from "../../core/clock.js";
import { PostbellError } from "../../core/errors.js";
import { isPromiseLike } from "../../core/next-turn.js";
import { Budget, TooComplexError } from "../../json-schema/budget.js";
import type { DataMistake, DataSchema } from "../../json-schema/data-schema.js";
import { type LibraryMistake, LibrarySchema } from "../../json-schema/library-schema.js";
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
  /** Set if `data` is to be checked. */
  check?: DataCheck | undefined;
  /** The `traceparent` of the span that emits the event: stored, not sent. */
  trace?: string | undefined;
  isTest?: boolean | undefined;
  /** UTF-8 bytes of the largest body. */
  maxBytes: number;
}

export interface DataCheck {
  schema: DataSchema | LibrarySchema;
  clock: Clock;
  /** How long a library may check asynchronously. */
  hookMs: number;
}

/** The characters of a library's error that are quoted. */
const MAX_REASON = 200;

/** Checks the data as it is sent. Returns a promise only if a library does. */
function checkData(text: string, type: string, check: DataCheck): undefined | Promise<undefined> {
  const data = JSON.parse(text) as Json;
  const { schema } = check;
  if (schema instanceof LibrarySchema) return checkByLibrary(data, type, schema, check);
  let mistake: DataMistake | undefined;
  try {
    mistake = schema.findMistake(data, new Budget(text.length));
  } catch (cause) {
    if (!(cause instanceof TooComplexError)) throw cause;
    const message = `data is too complex to check against the schema of '${type}': make it smaller, or give the schema narrower bounds`;
    throw invalidData("", message);
  }
  if (mistake === undefined) return undefined;
  const { path, keyword } = mistake;
  throw invalidData(path, `data${path} does not match '${keyword}' in the schema of '${type}'`);
}

const invalidData = (path: string, message: string): PostbellError =>
  new PostbellError("invalid_argument", message, { field: `data${path}` });

function checkByLibrary(
  data: Json,
  type: string,
  schema: LibrarySchema,
  { clock, hookMs }: DataCheck,
): undefined | Promise<undefined> {
  const refuse = (mistake: LibraryMistake | undefined): undefined => {
    if (mistake === undefined) return undefined;
    throw invalidData(mistake.path, `data does not match the schema of '${type}': ${mistake.message}`);
  };
  const fail = (cause: unknown): never => {
    const reason = cause instanceof Error ? cause.message.slice(0, MAX_REASON) : "it threw";
    const message = `data was not checked, because the schema of '${type}' failed: ${reason}. Nothing was stored.`;
    throw new PostbellError("schema_unavailable", message, { field: "data", cause });
  };
  let found: ReturnType<LibrarySchema["findMistake"]>;
  try {
    found = schema.findMistake(data);
  } catch (cause) {
    return fail(cause);
  }
  return isPromiseLike(found) ? callHook(clock, hookMs, () => found).then(refuse, fail) : refuse(found);
}

/**
 * Serialises a plain event. Returns a promise only if a library checks its data asynchronously.
 *
 * @throws `invalid_argument` with field `data` or `occurredAt`; `event_too_large`;
 * `schema_unavailable`.
 */
export function buildPlainPayload(request: PlainEventRequest): BuiltPayload | Promise<BuiltPayload> {
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
  const checked = request.check && checkData(read.text, type, request.check);
  const built = {
    payload: writePayload(header, [read.text]),
    digest: hash("sha256", `${type}\n${isOccurredAtGiven ? timestamp : ""}\n${read.text}\n`),
  };
  return checked === undefined ? built : checked.then(() => built);
}
