/** The bytes of a request body as they arrive, under a bound. Knows no form of body. */

import { readBytes } from "../../http/body.js";
import { type BodyPace, chunksUntilLeft } from "../../http/body-chunks.js";
import { HttpError } from "../../http/errors.js";
import type { HttpRequest } from "../../http/types.js";
import { RestError } from "../rest/error.js";

type BodyRequest = Pick<HttpRequest, "body" | "headers" | "signal">;

export const uploadTooLarge = (limit: number): RestError =>
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
