/** Translates Node's HTTP messages to the values of the core and back; the Express, Koa, Fastify and node adapters share it. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { isPromiseLike } from "../src/core/promise-like.js";
import type { HttpRequest, HttpResponse, ReadableBody, RequestBody, Service } from "../src/http/types.js";
import type { Mount } from "./mount.js";

/** What a host knows of a request beside its message. */
export interface AdapterContext {
  readonly mount: Mount;
  /** `http` or `https`, as the host's proxy settings make it. */
  readonly protocol: string;
  /** Name and port by which the client addressed the host. */
  readonly host: string | undefined;
  /** The stream that holds the body, where it is not the message itself. */
  readonly stream?: Readable | undefined;
  /** What a body parser of the host has made of the body. */
  readonly body: unknown;
  /** The bytes that a body parser of the host has kept. */
  readonly rawBody: unknown;
}

/** Plain data but for the signal: most requests are answered without a look at it, and it costs more than all the rest. */
class IncomingRequest implements HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: HttpRequest["headers"];
  readonly body: RequestBody;
  readonly baseUrl: string;
  readonly #res: ServerResponse;
  #signal: AbortSignal | undefined;

  constructor(req: IncomingMessage, res: ServerResponse, view: AdapterContext) {
    this.method = req.method ?? "GET";
    this.path = view.mount.path;
    this.query = view.mount.query;
    this.headers = headersOf(req);
    this.body = bodyOf(req, view);
    this.baseUrl = originOf(view) + view.mount.basePath;
    this.#res = res;
  }

  get signal(): AbortSignal {
    this.#signal ??= departureOf(this.#res);
    return this.#signal;
  }
}

type Answered = HttpResponse | undefined;

/** The service's response, without a promise where it gives none. Throws or rejects only where the service breaks its word and does. */
export function sendResponse(
  service: Service,
  req: IncomingMessage,
  res: ServerResponse,
  view: AdapterContext,
): Answered | PromiseLike<Answered> {
  const request = new IncomingRequest(req, res, view);
  const response = service.handle(request);
  // A request without a body is complete, although Node says so only after the turn in which it came.
  return request.body === null ? response : closeIfUnread(req, response);
}

/** What is left of an unread body would be taken for the next request, and a client need not stop sending it. */
async function closeIfUnread(
  req: IncomingMessage,
  answered: Answered | PromiseLike<Answered>,
): Promise<Answered> {
  const response = await answered;
  if (response === undefined || req.complete !== false || req.httpVersionMajor !== 1) return response;
  return { ...response, headers: { ...response.headers, connection: "close" } };
}

/** Lets the service answer over `res`, or calls `next`: with nothing where the path is not the service's, else with the error. */
export function serve(
  service: Service,
  req: IncomingMessage,
  res: ServerResponse,
  view: AdapterContext,
  next: (error?: unknown) => void,
): void {
  let answered: Answered | PromiseLike<Answered>;
  try {
    answered = sendResponse(service, req, res, view);
    if (answered !== undefined && !isPromiseLike(answered) && isWhole(answered.body)) {
      setHead(res, answered);
      res.end(answered.body ?? "");
      return;
    }
  } catch (error) {
    next(error);
    return;
  }
  if (answered === undefined) next();
  else void serveLater(res, answered, next);
}

async function serveLater(
  res: ServerResponse,
  answered: Answered | PromiseLike<Answered>,
  next: (error?: unknown) => void,
): Promise<void> {
  let response: Answered;
  try {
    response = await answered;
    if (response !== undefined) await send(res, response);
  } catch (error) {
    next(error);
    return;
  }
  if (response === undefined) next();
}

/** A response's stream as hosts take it: destroying it ends the iteration. */
export const readable = (body: ReadableBody): Readable =>
  body instanceof Readable ? body : Readable.from(body, { objectMode: false });

/** A response's bytes as hosts take them, not copied. */
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
    // The client has left; the pipeline has destroyed the body, and there is nobody to tell.
    if ((error as NodeJS.ErrnoException).code !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
  }
}

function headersOf(req: IncomingMessage): HttpRequest["headers"] {
  const { headers } = req;
  const names = Object.keys(headers);
  const hasRepeated = req.rawHeaders.length > 2 * names.length;
  const isText = (name: string): boolean => typeof headers[name] === "string" && !name.startsWith(":");
  // As most are: then they are what they have to be already.
  if (!hasRepeated && names.every(isText)) return headers as Record<string, string>;
  const joined: Record<string, string> = Object.create(null);
  // Absent under HTTP/2 and in the requests that Fastify's `inject` makes.
  const distinct: IncomingMessage["headersDistinct"] | undefined = req.headersDistinct;
  for (const name of names) {
    const value = headers[name];
    if (value === undefined || name.startsWith(":")) continue;
    // Node drops the second value of some names, authorization among them; `headers` is still what the host may have changed.
    const values = distinct?.[name];
    joined[name] = values?.[0] === value ? values.join(", ") : String(value);
  }
  return joined;
}

function bodyOf(req: IncomingMessage, { stream = req, body, rawBody }: AdapterContext): RequestBody {
  if (!stream.readableDidRead) {
    const { "content-length": length, "transfer-encoding": coding } = req.headers;
    const hasBody = length !== undefined || coding !== undefined || req.httpVersionMajor > 1;
    return hasBody ? detached(stream) : null;
  }
  if (rawBody instanceof Uint8Array) return rawBody;
  if (typeof rawBody === "string") return Buffer.from(rawBody);
  return body instanceof Uint8Array ? body : { parsed: body };
}

/** The stream for reading only: ending the iteration half-way must not destroy it, nor take its socket from the host's logs. */
const detached = (stream: Readable): ReadableBody => ({
  [Symbol.asyncIterator]: () => stream.iterator({ destroyOnReturn: false }),
});

function originOf({ protocol, host = "" }: AdapterContext): string {
  const isHost = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/i.test(host);
  return `${protocol}://${isHost ? host : "localhost"}`;
}

function departureOf(res: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const leave = (): void => {
    if (!res.writableFinished) controller.abort();
  };
  if (res.closed) leave();
  else res.once("close", leave);
  return controller.signal;
}
