/** Builds the request of a service from Node's HTTP messages. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import type { HttpRequest, ReadableBody, RequestBody } from "../src/http/types.js";
import type { Mount } from "./mount.js";

/** The facts about a request that only the host knows. */
export interface AdapterContext {
  mount: Mount;
  /** `http` or `https`, according to the host's proxy settings. */
  protocol: string;
  /** The name and port by which the client addressed the host. */
  host: string | undefined;
  /** The stream of the body, if it is not the message itself. */
  stream?: Readable | undefined;
  /** The value that a body parser of the host made of the body. */
  body: unknown;
  /** The bytes that a body parser of the host kept. */
  rawBody: unknown;
  /** True if a route of the host has matched the whole path. */
  isRouted?: boolean | undefined;
  /** The request as the host's hooks know it. */
  hostRequest: object;
}

/**
 * All members are properties of the object itself, so that a copy has them too. The signal is
 * created when it is read: most requests never need it, and it costs more than everything else.
 */
export function createRequest(
  req: IncomingMessage,
  res: ServerResponse,
  context: AdapterContext,
): HttpRequest {
  let signal: AbortSignal | undefined;
  return {
    method: req.method ?? "GET",
    path: context.mount.path,
    query: context.mount.query,
    headers: readHeaders(req),
    body: readBody(req, context),
    baseUrl: buildOrigin(context) + context.mount.basePath,
    isRouted: context.isRouted,
    hostRequest: context.hostRequest,
    get signal() {
      signal ??= createDisconnectSignal(res);
      return signal;
    },
  };
}

function readHeaders(req: IncomingMessage): HttpRequest["headers"] {
  const { headers } = req;
  const names = Object.keys(headers);
  const hasRepeated = req.rawHeaders.length > 2 * names.length;
  const isText = (name: string): boolean => typeof headers[name] === "string" && !name.startsWith(":");
  // The usual case: Node's object has the right form already.
  if (!hasRepeated && names.every(isText)) return headers as Record<string, string>;
  const joined: Record<string, string> = Object.create(null);
  // Missing under HTTP/2 and in the requests of Fastify's `inject`.
  const distinct: IncomingMessage["headersDistinct"] | undefined = req.headersDistinct;
  for (const name of names) {
    const value = headers[name];
    if (value === undefined || name.startsWith(":")) continue;
    // Node drops the second value of some names, such as authorization. `headers` also has the
    // host's changes.
    const values = distinct?.[name];
    joined[name] = values?.[0] === value ? values.join(", ") : String(value);
  }
  return joined;
}

function readBody(req: IncomingMessage, { stream = req, body, rawBody }: AdapterContext): RequestBody {
  if (!stream.readableDidRead) {
    const { "content-length": length, "transfer-encoding": coding } = req.headers;
    const hasBody = length !== undefined || coding !== undefined || req.httpVersionMajor > 1;
    return hasBody ? detach(stream) : null;
  }
  if (rawBody instanceof Uint8Array) return rawBody;
  if (typeof rawBody === "string") return Buffer.from(rawBody);
  return body instanceof Uint8Array ? body : { parsed: body };
}

/**
 * Returns the stream for reading only. If a reader stops half-way, the stream is not destroyed, so
 * the host's logs keep its socket.
 */
const detach = (stream: Readable): ReadableBody => ({
  [Symbol.asyncIterator]: () => stream.iterator({ destroyOnReturn: false }),
});

function buildOrigin({ protocol, host = "" }: AdapterContext): string {
  const isHost = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/i.test(host);
  return `${protocol}://${isHost ? host : "localhost"}`;
}

/** Returns a signal that aborts when the client leaves before the response is written. */
function createDisconnectSignal(res: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const leave = (): void => {
    if (!res.writableFinished) controller.abort();
  };
  if (res.closed) leave();
  else res.once("close", leave);
  return controller.signal;
}
