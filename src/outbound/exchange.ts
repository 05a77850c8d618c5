/** One exchange of a channel, from its request to its result: its state and the response so far. */

import type { Deadline } from "../core/deadlines.js";
import { parseHeaders, type ResponseHead } from "./response-head.js";
import type { OutboundRequest, OutboundResponse, OutboundResult, ResponseReceiver } from "./types.js";

export interface HttpExchange {
  /** The request up to its body, one byte per character. */
  readonly requestHead: string;
  readonly request: OutboundRequest;
  readonly receiver: ResponseReceiver | undefined;
  readonly resolve: (result: OutboundResult) => void;
  deadline: Deadline | undefined;
  /** True if the request was written: then it is never repeated. */
  isWritten: boolean;
  response: ResponseHead | undefined;
  /**
   * The first `receivedLength` bytes are the body of the response. Empty if a receiver takes it.
   */
  received: Buffer;
  receivedLength: number;
}

const NO_BODY = Buffer.alloc(0);

export const createHttpExchange = (
  given: Pick<HttpExchange, "requestHead" | "request" | "receiver" | "resolve">,
): HttpExchange => ({
  requestHead: given.requestHead,
  request: given.request,
  receiver: given.receiver,
  resolve: given.resolve,
  deadline: undefined,
  isWritten: false,
  response: undefined,
  received: NO_BODY,
  receivedLength: 0,
});

/** Appends a part of the body. */
export function keepPart(exchange: HttpExchange, part: Buffer): void {
  const { received, receivedLength } = exchange;
  const length = receivedLength + part.length;
  if (receivedLength === 0) exchange.received = part;
  else if (length <= received.length) part.copy(received, receivedLength);
  else {
    const grown = Buffer.allocUnsafe(Math.max(2 * received.length, length));
    received.copy(grown, 0, 0, receivedLength);
    part.copy(grown, receivedLength);
    exchange.received = grown;
  }
}

/**
 * A class, because an accessor in an object literal costs microseconds of garbage collection each
 * time.
 */
class Response implements OutboundResponse {
  readonly kind = "response";
  readonly status: number;
  readonly body: Uint8Array;
  readonly complete: boolean;
  readonly #headerLines: string;

  constructor({ status, headerLines }: ResponseHead, body: Uint8Array, complete: boolean) {
    this.status = status;
    this.body = body;
    this.complete = complete;
    this.#headerLines = headerLines;
  }

  /** Parsed only when they are read: the status alone decides about most responses. */
  get headers(): Record<string, string> {
    return parseHeaders(this.#headerLines);
  }
}

/** Returns the received part of the response. `complete`: it was received to its end. */
export function toResponse(
  { received, receivedLength }: HttpExchange,
  head: ResponseHead,
  complete: boolean,
): OutboundResponse {
  const body = receivedLength === received.length ? received : received.subarray(0, receivedLength);
  return new Response(head, body, complete);
}
