/** Sends a service's responses over Node's HTTP messages, for Express, Koa, Fastify and node. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { isPromiseLike } from "../src/core/next-turn.js";
import type { HttpResponse, ReadableBody, Service } from "../src/http/types.js";
import { type AdapterContext, createRequest } from "./node-request.js";

/** `undefined`: the path is not the service's. */
type OptionalResponse = HttpResponse | undefined;
type MaybeResponse = OptionalResponse | PromiseLike<OptionalResponse>;

/** Returns the service's response, without a promise where the service needs none. */
export function callService(
  service: Service,
  req: IncomingMessage,
  res: ServerResponse,
  context: AdapterContext,
): MaybeResponse {
  const request = createRequest(req, res, context);
  const response = service.handle(request);
  // Without a body the request is complete, although Node sets `complete` only in a later turn.
  return request.body === null ? response : closeIfUnread(req, response);
}

/** Closes the connection after an unread body, whose rest would be taken for the next request. */
async function closeIfUnread(req: IncomingMessage, pending: MaybeResponse): Promise<OptionalResponse> {
  const response = await pending;
  if (response === undefined || req.complete !== false || req.httpVersionMajor !== 1) return response;
  return { ...response, headers: { ...response.headers, connection: "close" } };
}

/** Node's messages, and the host's way on. */
export interface NodeExchange {
  req: IncomingMessage;
  res: ServerResponse;
  next: (error?: unknown) => void;
}

/**
 * Sends the service's response, or calls `next`: without an error if the path is not the service's.
 */
export function serve(service: Service, { req, res, next }: NodeExchange, context: AdapterContext): void {
  let pending: MaybeResponse;
  try {
    pending = callService(service, req, res, context);
    if (pending !== undefined && !isPromiseLike(pending) && isWhole(pending.body)) {
      setHead(res, pending);
      res.end(pending.body ?? "");
      return;
    }
  } catch (error) {
    next(error);
    return;
  }
  if (pending === undefined) next();
  else void serveLater(res, pending, next);
}

async function serveLater(
  res: ServerResponse,
  pending: MaybeResponse,
  next: (error?: unknown) => void,
): Promise<void> {
  let response: OptionalResponse;
  try {
    response = await pending;
    if (response !== undefined) await send(res, response);
  } catch (error) {
    next(error);
    return;
  }
  if (response === undefined) next();
}

/** Returns a response's body as a Node stream. Destroying the stream ends the iteration. */
export const readable = (body: ReadableBody): Readable =>
  body instanceof Readable ? body : Readable.from(body, { objectMode: false });

/** Returns a response's bytes as a Buffer, without copying a `Uint8Array`. */
export const toBuffer = (body: string | Uint8Array): Buffer =>
  typeof body === "string"
    ? Buffer.from(body)
    : Buffer.isBuffer(body)
      ? body
      : Buffer.from(body.buffer, body.byteOffset, body.byteLength);

type WholeBody = Exclude<HttpResponse["body"], ReadableBody>;

const isWhole = (body: HttpResponse["body"]): body is WholeBody =>
  body === null || typeof body === "string" || body instanceof Uint8Array;

function setHead(res: ServerResponse, { status, headers }: HttpResponse): void {
  res.statusCode = status;
  for (const name of Object.keys(headers)) res.setHeader(name, headers[name] ?? "");
}

async function send(res: ServerResponse, response: HttpResponse): Promise<void> {
  const { body } = response;
  setHead(res, response);
  if (isWhole(body)) {
    res.end(body ?? "");
    return;
  }
  try {
    await pipeline(readable(body), res);
  } catch (error) {
    // The client left, and the pipeline destroyed the body.
    if ((error as NodeJS.ErrnoException).code !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
  }
}
