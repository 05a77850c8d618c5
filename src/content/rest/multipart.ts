/**
 * Reads a `multipart/form-data` body: text fields as the parameters they are, and one file as a
 * stream. Knows nothing of media.
 */

import type { Readable } from "node:stream";
import { Busboy, type BusboyInstance } from "@fastify/busboy";
import { type BodyRequest, readBytes } from "../../http/body.js";
import { type BodyPace, chunksUntilLeft } from "../../http/body-chunks.js";
import { readParameters } from "../../http/content-disposition.js";
import { HttpError } from "../../http/errors.js";
import type { HttpRequest, ReadableBody } from "../../http/types.js";
import { nestParameters } from "../../schema/query-string.js";
import type { JsonObject } from "../../schema/types.js";
import { RestError } from "./error.js";

/** Of all text fields together, and of the headers of the parts. */
const TEXT_BYTES = 1_048_576;
const MAX_PARTS = 1_100;
const HEADER_BYTES = 16_384;
/**
 * Given to the parser at a time, and less than a part of the body buffers: a part that it reads
 * over, because its headers cannot be read, would otherwise stop it for good where it fills that
 * buffer and ends with the same bytes.
 */
const PIECE_BYTES = 65_536;
const BUFFER_BYTES = 4 * PIECE_BYTES;

/** RFC 2046 §5.1.1. */
const BOUNDARY = /^[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]$/;

export const isMultipart = (contentType: string | undefined): boolean =>
  /^\s*multipart\/form-data\s*(?:;|$)/i.test(contentType ?? "");

/** The consumer's result for the file, which it builds while the file arrives. */
interface Taken {
  discard: () => Promise<void>;
}

/**
 * The fields, nested by PHP's rules, and what `take` made of the file. Fields may stand before and
 * behind it.
 *
 * Guarantee: what `take` made is discarded where the rest of the body cannot be read. Errors: what
 * `take` throws; RestError 400 `rest_invalid_multipart` for a body that is cut off or none of this
 * form, 400 `rest_invalid_query` for too many fields, 413 `rest_body_too_large` for too long ones;
 * the errors of {@link readUploadBytes}.
 */
export async function readMultipart<T extends Taken>(
  request: BodyRequest,
  {
    fileField,
    limit,
    textLimit = TEXT_BYTES,
    pace,
    take,
  }: {
    /**
     * The name of the field that holds the file. Files in other fields are read over, as are a
     * second one and one without a name. `undefined`: a file is refused with 400
     * `rest_invalid_multipart`.
     */
    fileField: string | undefined;
    /** Of the file. */
    limit: number;
    /** Of all text fields together. */
    textLimit?: number;
    pace?: BodyPace | undefined;
    /** Reads the file to its end, or throws. `fileName` is not empty, and is the client's. */
    take: (fileName: string, bytes: ReadableBody) => Promise<T>;
  },
): Promise<{ fields: JsonObject; file: T | undefined }> {
  const parser = createParser(request.headers["content-type"] ?? "", { limit, textLimit });
  const fields: [name: string, value: string][] = [];
  let textBytes = 0;
  let stream: Readable | undefined;
  let taking: Promise<T> | undefined;

  const parsed = new Promise<void>((resolve, reject) => {
    parser.on("field", (name, value, _, isCut) => {
      textBytes += value.length;
      if (isCut || textBytes > textLimit) reject(textTooLong(textLimit));
      // Its type does not say so, but a part may have no name.
      else if ((name as string | undefined) !== undefined) fields.push([unquoted(name), value]);
    });
    parser.on("file", (name, file, fileName) => {
      // An error of the stream is one of the parser.
      file.on("error", () => {});
      if (fileField === undefined && fileName !== "") {
        file.resume();
        reject(noFileTaken(name));
        return;
      }
      if (taking !== undefined || name !== fileField || fileName === "") {
        file.resume();
        return;
      }
      file.on("limit", () => reject(uploadTooLarge(limit)));
      stream = file;
      taking = take(unquoted(fileName), file);
      taking.catch(reject);
    });
    parser.on("partsLimit", () => reject(malformed("It has too many parts.")));
    parser.on("error", () => reject(malformed("It is cut off or malformed.")));
    parser.on("finish", resolve);
  });
  // Ends the write in progress, which a paused parser would not. A race with `parsed` would add a
  // reaction to that promise for every chunk.
  let isSettled = false;
  let goOn = (): void => {};
  const settle = (): void => {
    isSettled = true;
    goOn();
  };
  parsed.then(settle, settle);

  try {
    for await (const chunk of readUploadBytes(request, limit + textLimit, pace)) {
      for (let start = 0; start < chunk.length; start += PIECE_BYTES) {
        // Bytes after the closing boundary are read and ignored.
        if (isSettled) await parsed;
        else {
          await new Promise<void>((resolve) => {
            goOn = resolve;
            parser.write(chunk.subarray(start, start + PIECE_BYTES), () => resolve());
          });
        }
      }
    }
    parser.end();
    await parsed;
    const file = await taking;
    return { fields: parameters(fields), file };
  } catch (error) {
    stream?.destroy(error as Error);
    const file = await (taking as Promise<T> | undefined)?.catch(() => undefined);
    await file?.discard();
    throw error;
  }
}

function createParser(
  contentType: string,
  { limit, textLimit }: { limit: number; textLimit: number },
): BusboyInstance {
  const boundary = readParameters(contentType)?.get("boundary");
  if (boundary === undefined || !BOUNDARY.test(boundary))
    throw malformed("Its boundary is missing or malformed.");
  return new Busboy({
    headers: { "content-type": `multipart/form-data; boundary="${boundary}"` },
    fileHwm: BUFFER_BYTES,
    isPartAFile: (_, __, fileName) => fileName !== undefined,
    limits: {
      fileSize: limit,
      fieldSize: textLimit,
      parts: MAX_PARTS,
      headerPairs: 32,
      headerSize: HEADER_BYTES,
    },
  });
}

/** Decodes the escapes that browsers use in a quoted name: `%22`, `%0D` and `%0A`. */
const unquoted = (name: string): string => name.replace(/%22/g, '"').replace(/%0[da]/gi, " ");

function parameters(fields: [string, string][]): JsonObject {
  const result = nestParameters(fields);
  if (result.ok) return result.values;
  throw new RestError(400, "rest_invalid_query", result.problem.message);
}

const malformed = (why: string): RestError =>
  new RestError(400, "rest_invalid_multipart", `The body is not multipart form data. ${why}`);

const noFileTaken = (field: string): RestError =>
  new RestError(
    400,
    "rest_invalid_multipart",
    `Only uploads of media take a file; the field "${field.slice(0, 100)}" has one.`,
  );

const textTooLong = (max: number): RestError =>
  new RestError(413, "rest_body_too_large", `The fields are longer than ${max} bytes.`);

/**
 * Returns the fields of a body that may have no file, nested by PHP's rules.
 *
 * @throws the errors of {@link readMultipart}
 */
export async function readFields(headers: HttpRequest["headers"], body: Uint8Array): Promise<JsonObject> {
  const { fields } = await readMultipart(
    { body, headers },
    {
      fileField: undefined,
      limit: 0,
      textLimit: body.length,
      take: () => Promise.reject(new Error("No file was asked for.")),
    },
  );
  return fields;
}

// The bytes of a request body as they arrive, under a bound. Knows no form of body.

const uploadTooLarge = (limit: number): RestError =>
  new RestError(
    413,
    "rest_upload_file_too_big",
    `The file is too large: at most ${limit} bytes are accepted.`,
  );

const tooSlow = ({ message }: HttpError): RestError => new RestError(408, "rest_request_timeout", message);

const cutOff = (): RestError =>
  new RestError(400, "rest_request_aborted", "The body ended before it was complete.");

/**
 * The chunks of the body. Ends without an error only where the body is complete: as long as
 * announced, if it was.
 *
 * Errors: RestError 413 `rest_upload_file_too_big` beyond `limit` bytes, before anything is read
 * where more was announced; 400 `rest_request_aborted` when the client leaves or the length is
 * another; 408 `rest_request_timeout` for a body slower than `pace`; PostbellError
 * `raw_body_unavailable` when a body parser of the host has consumed the bytes.
 */
export async function* readUploadBytes(
  request: BodyRequest,
  limit: number,
  pace?: BodyPace,
): AsyncGenerator<Uint8Array> {
  const announced = request.headers["content-length"];
  if (Number(announced) > limit) throw uploadTooLarge(limit);
  let received = 0;
  for await (const chunk of chunksOf(request, limit, pace)) {
    received += chunk.length;
    if (received > limit) throw uploadTooLarge(limit);
    yield chunk;
  }
  if (announced !== undefined && Number(announced) !== received) throw cutOff();
}

async function* chunksOf(
  { body, headers, signal }: BodyRequest,
  limit: number,
  pace: BodyPace | undefined,
): AsyncGenerator<Uint8Array> {
  if (body === null || body instanceof Uint8Array || "parsed" in body) {
    try {
      yield await readBytes({ body, headers }, { limit });
    } catch (error) {
      throw error instanceof HttpError ? uploadTooLarge(limit) : error;
    }
    return;
  }
  try {
    yield* chunksUntilLeft(body, signal, pace);
  } catch (error) {
    throw error instanceof HttpError ? tooSlow(error) : cutOff();
  }
}
