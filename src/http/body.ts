/** Reads a request body: as bytes under a limit, or as JSON under the rules of RFC 8259. */

import { createByteBuffer } from "../core/bytes.js";
import { PostbellError } from "../core/errors.js";
import { hasMoreValues, MAX_JSON_VALUES, tooManyValues } from "../schema/json-limits.js";
import { type BodyPace, chunksUntilLeft } from "./body-chunks.js";
import { HttpError } from "./errors.js";
import type { HttpRequest, ParsedBody, ReadableBody, RequestBody } from "./types.js";

export type BodyRequest = Pick<HttpRequest, "body" | "headers" | "signal">;

export interface ReadOptions {
  /** Bytes; a longer body is refused. */
  limit: number;
  /** By default there is no time limit. */
  pace?: BodyPace | undefined;
}

/**
 * Returns the bytes of the body; an empty array if the request has no body.
 *
 * A body whose announced length exceeds `limit` is not read. Of any other body, at most one chunk
 * beyond the limit is read.
 *
 * @throws HttpError 413 `body_too_large`, 408 `request_timeout` for a body slower than `pace`, 400
 * `request_aborted` if the client leaves or the stream fails, and PostbellError
 * `raw_body_unavailable` if a body parser of the host has consumed the bytes.
 */
export async function readBytes(request: BodyRequest, { limit, pace }: ReadOptions): Promise<Uint8Array> {
  const { body } = request;
  if (body === null) return new Uint8Array(0);
  if (isParsed(body)) throw rawBodyUnavailable();
  if (body instanceof Uint8Array) {
    if (body.length > limit) throw tooLarge(limit);
    return body;
  }
  checkAnnouncedLength(request.headers, limit);
  return collect(body, { limit, pace }, request.signal);
}

/**
 * Returns the JSON value of the body. If a body parser of the host has parsed JSON already, returns
 * its value; the limit of that parser then applies too.
 *
 * If names repeat within an object, the last one wins. A byte order mark is ignored (RFC 8259
 * §8.1). Values are counted before the body is parsed. No error message quotes the body.
 *
 * @throws the errors of {@link readBytes}; HttpError 415 `unsupported_media_type` unless the
 * content type is JSON in UTF-8 without a content encoding; HttpError 400 `invalid_json` if the
 * body is empty, not UTF-8, not JSON or has more than {@link MAX_JSON_VALUES} values.
 */
export async function readJson(request: BodyRequest, options: ReadOptions): Promise<unknown> {
  const { body } = request;
  if (body === null) throw invalidJson("The request has no body; a JSON value is expected.");
  // Checked before a parsed value is used: parsers turn forms into objects too.
  requireJsonType(request.headers);
  if (isParsed(body)) {
    checkAnnouncedLength(request.headers, options.limit);
    if (body.parsed === undefined) throw rawBodyUnavailable();
    return body.parsed;
  }
  const bytes = await readBytes(request, options);
  if (bytes.length === 0) throw invalidJson("The body is empty; a JSON value is expected.");
  return parseJson(bytes);
}

const isParsed = (body: Exclude<RequestBody, null>): body is ParsedBody => "parsed" in body;

function checkAnnouncedLength(headers: HttpRequest["headers"], limit: number): void {
  if (Number(headers["content-length"]) > limit) throw tooLarge(limit);
}

function requireJsonType(headers: HttpRequest["headers"]): void {
  const [type = "", ...parameters] = (headers["content-type"] ?? "").split(";").map(trimLower);
  if (!/^application\/(?:[^\s/,+]+\+)*json$/.test(type)) {
    throw unsupported("The content type must be application/json.");
  }
  const isOtherCharset = (parameter: string): boolean =>
    parameter.startsWith("charset=") && !/^charset=(?:utf-?8|"utf-?8")$/.test(parameter);
  if (parameters.some(isOtherCharset)) throw unsupported("The charset must be utf-8.");
  refuseCoded(headers);
}

/**
 * @throws HttpError 415 `unsupported_media_type` for a content encoding: bodies are not
 * decompressed.
 */
export function refuseCoded(headers: HttpRequest["headers"]): void {
  if (!["", "identity"].includes(trimLower(headers["content-encoding"] ?? ""))) {
    throw unsupported("The body must be sent without a content encoding.");
  }
}

const trimLower = (text: string): string => text.trim().toLowerCase();

function parseJson(bytes: Uint8Array): unknown {
  if (hasMoreValues(bytes, MAX_JSON_VALUES)) throw invalidJson(tooManyValues(MAX_JSON_VALUES).message);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw invalidJson("The body is not valid UTF-8.");
  }
  try {
    return JSON.parse(text);
  } catch {
    // The engine's message quotes the body, which can hold a secret: do not pass it on as a cause.
    throw invalidJson("The body is not valid JSON.");
  }
}

async function collect(
  body: ReadableBody,
  { limit, pace }: ReadOptions,
  signal: AbortSignal | undefined,
): Promise<Uint8Array> {
  const bytes = createByteBuffer();
  try {
    for await (const chunk of chunksUntilLeft(body, signal, pace)) {
      if (bytes.length() + chunk.length > limit) throw tooLarge(limit);
      bytes.add(chunk);
    }
    return bytes.whole();
  } catch (error) {
    if (error instanceof HttpError) throw error;
    throw new HttpError(400, "request_aborted", "The body ended before it was complete.", { cause: error });
  }
}

const tooLarge = (limit: number): HttpError =>
  new HttpError(413, "body_too_large", `The body is larger than ${limit} bytes.`);

const invalidJson = (message: string): HttpError => new HttpError(400, "invalid_json", message);

const unsupported = (message: string): HttpError => new HttpError(415, "unsupported_media_type", message);

const rawBodyUnavailable = (): PostbellError =>
  new PostbellError(
    "raw_body_unavailable",
    "A body parser of the host has consumed the request body. Mount Postbell before the body parser, or let the parser keep the raw bytes in `req.rawBody`; a fetch host reads a clone of the request instead.",
  );
