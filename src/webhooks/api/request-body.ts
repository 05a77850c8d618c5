/** Reads the JSON bodies of requests to the registration API, within a limit and a time. */

import { type Clock, withTimeout } from "../../core/clock.js";
import { readBytes, readJson } from "../../http/body.js";
import { BODY_MS } from "../../http/body-chunks.js";
import { HttpError } from "../../http/errors.js";
import type { HttpRequest } from "../../http/types.js";

export interface BodyReader {
  readonly read: (request: HttpRequest) => Promise<unknown>;
  /** A missing body counts as an empty object. */
  readonly readOptional: (request: HttpRequest) => Promise<unknown>;
}

/** @param limit in bytes. */
export function createBodyReader(limit: number, clock: Clock): BodyReader {
  const inTime = <T>(read: Promise<T>): Promise<T> =>
    withTimeout(
      clock,
      BODY_MS,
      read,
      () => new HttpError(408, "request_timeout", "The body did not arrive in time."),
    );

  const read: BodyReader["read"] = (request) => inTime(readJson(request, { limit }));

  return Object.freeze<BodyReader>({
    read,
    async readOptional(request) {
      if (request.body !== null && "parsed" in request.body) return read(request);
      const body = await inTime(readBytes(request, { limit }));
      return body.length === 0 ? {} : readJson({ headers: request.headers, body }, { limit });
    },
  });
}
