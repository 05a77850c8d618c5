/** One vetted connection to an origin, carrying one exchange at a time over undici's HTTP/1.1 parser. */

import type { Socket } from "node:net";
import { Client, type Dispatcher } from "undici";
import type { Clock } from "../clock.js";
import type { Deadline, Deadlines } from "../deadlines.js";
import type { Target } from "./address-policy.js";
import { type ConnectionSettings, type Opening, openConnection } from "./connection.js";
import { classifyError, deadlineFailure } from "./failure.js";
import type {
  OutboundFailure,
  OutboundRequest,
  OutboundResponse,
  OutboundResult,
  ResponseReceiver,
} from "./types.js";

export interface ChannelSettings extends ConnectionSettings {
  readonly clock: Clock;
  /** Shared by all channels of a client. */
  readonly deadlines: Deadlines;
}

export interface ChannelEvents {
  /** The exchange ended cleanly, and the connection may take another. */
  readonly onIdle: (channel: Channel) => void;
  /** The connection is gone and must not be used again. */
  readonly onGone: (channel: Channel) => void;
}

export interface Channel {
  /** Sends one request; only one at a time. Never rejects. The body goes to `receiver` where there is one. */
  readonly exchange: (
    request: OutboundRequest,
    path: string,
    receiver?: ResponseReceiver,
  ) => Promise<OutboundResult>;
  /** Ends the exchange under way with this failure (or with the response whose head was read) and drops the connection. */
  readonly end: (failure: OutboundFailure) => Promise<void>;
}

const MAX_HEAD_BYTES = 16 * 1024;
/** Interim responses are not part of the head; without a bound an endpoint could keep the parser busy until the deadline. */
const MAX_INTERIM_RESPONSES = 32;
/** Shorter than the five seconds after which Node's own servers close, so that a request seldom meets a closing connection. */
const KEEP_ALIVE_MS = 4000;
const MAX_KEEP_ALIVE_MS = 30_000;

const NO_HEADERS: readonly Buffer[] = [];
const NO_BODY = Buffer.alloc(0);

/** The reason is told by the exchange itself, so what undici is given only has to be an error. */
const STOPPED = new Error("The exchange has ended.");

function readHeaders(raw: readonly Buffer[]): Record<string, string> {
  // No prototype: the endpoint chooses the names.
  const headers: Record<string, string> = Object.create(null) as Record<string, string>;
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = (raw[at] as Buffer).toString("latin1").toLowerCase();
    const value = (raw[at + 1] as Buffer).toString("latin1");
    const earlier = headers[name];
    headers[name] = earlier === undefined ? value : `${earlier}, ${value}`;
  }
  return headers;
}

/** A class, because an accessor in an object literal costs microseconds of garbage collection each time. */
class Response implements OutboundResponse {
  readonly kind = "response";
  readonly status: number;
  readonly body: Uint8Array;
  readonly complete: boolean;
  readonly #rawHeaders: readonly Buffer[];

  constructor(status: number, rawHeaders: readonly Buffer[], body: Uint8Array, complete: boolean) {
    this.status = status;
    this.body = body;
    this.complete = complete;
    this.#rawHeaders = rawHeaders;
  }

  /** Most responses are judged by their status alone, so the headers are parsed only when they are read. */
  get headers(): Record<string, string> {
    return readHeaders(this.#rawHeaders);
  }
}

/**
 * Makes a channel; its connection is opened by the first exchange, and opened anew where an idle one was closed before a request
 * was written to it. A request that was written is never repeated. Any anomaly drops the connection: an error, the deadline,
 * the byte cap, or a response that came before the whole request was sent.
 */
export function openChannel(target: Target, settings: ChannelSettings, events: ChannelEvents): Channel {
  const { clock, deadlines } = settings;
  let opening: Opening | undefined;
  let socket: Socket | undefined;
  /** Why the connection could not be opened; undici only carries the error. */
  let openFailure: OutboundFailure | undefined;

  // The exchange under way; `settle` is undefined between exchanges.
  let settle: ((result: OutboundResult) => void) | undefined;
  let receive: ResponseReceiver | undefined;
  let deadline: Deadline | undefined;
  let deadlineMs = 0;
  let maxBodyBytes = 0;
  let interimResponses = 0;
  let status = 0;
  let rawHeaders = NO_HEADERS;
  let body: Buffer = NO_BODY;
  let bodyLength = 0;

  const client = new Client(target.origin, {
    connect: (_options, callback) => {
      openFailure = undefined;
      opening = openConnection(target, settings, (opened) => {
        opening = undefined;
        if ("socket" in opened) {
          socket = opened.socket;
          callback(null, opened.socket);
        } else {
          openFailure = opened.failure;
          callback(STOPPED, null);
        }
      });
    },
    pipelining: 1,
    maxHeaderSize: MAX_HEAD_BYTES,
    // The one deadline is ours.
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: MAX_KEEP_ALIVE_MS,
  });

  const finish = (result: OutboundResult): void => {
    const resolve = settle;
    settle = undefined;
    receive = undefined;
    deadlines.remove(deadline);
    deadline = undefined;
    rawHeaders = NO_HEADERS;
    body = NO_BODY;
    resolve?.(result);
  };

  const drop = async (): Promise<void> => {
    events.onGone(channel);
    opening?.cancel();
    await client.destroy(STOPPED);
  };

  const response = (complete: boolean): OutboundResult => {
    const own = bodyLength >= body.length ? body : body.subarray(0, bodyLength);
    return new Response(status, rawHeaders, own, complete);
  };

  /** A status that was read decides, whatever became of the rest. */
  const end = (failure: OutboundFailure): Promise<void> => {
    if (settle !== undefined) finish(status === 0 ? failure : response(false));
    return drop();
  };

  const onDeadline = (): void => void end(deadlineFailure(opening?.phase() ?? "http", deadlineMs));

  /** What the receiver was given for one exchange must not reach into the next. */
  const tellHead = (receiver: ResponseReceiver, resume: () => void): void => {
    const own = settle;
    receiver.onHead({
      status,
      headers: readHeaders(rawHeaders),
      resume: () => {
        if (settle === own) resume();
      },
      stop: () => {
        if (settle === own) void end(classifyError({ code: "STOPPED" }, "http"));
      },
    });
  };

  const handler: Dispatcher.DispatchHandler = {
    onConnect() {},
    onHeaders(statusCode, received, resume) {
      if (settle === undefined) return true;
      if (statusCode >= 200) {
        status = statusCode;
        rawHeaders = received;
        if (receive !== undefined) tellHead(receive, resume);
      } else if (++interimResponses > MAX_INTERIM_RESPONSES) {
        void end(classifyError({ code: "TOO_MANY_INTERIM_RESPONSES" }, "http"));
      }
      return true;
    },
    onData(chunk) {
      if (settle === undefined) return true;
      const isOver = bodyLength + chunk.length > maxBodyBytes;
      const taken = isOver ? chunk.subarray(0, maxBodyBytes - bodyLength) : chunk;
      let isWanted = true;
      if (receive !== undefined) {
        isWanted = receive.onData(taken);
      } else if (bodyLength === 0) {
        body = taken;
      } else {
        if (bodyLength + taken.length > body.length) {
          const grown = Buffer.allocUnsafe(Math.max(2 * body.length, bodyLength + taken.length));
          body.copy(grown, 0, 0, bodyLength);
          body = grown;
        }
        taken.copy(body, bodyLength);
      }
      bodyLength += taken.length;
      if (isOver) void end(classifyError({ code: "BODY_TOO_LARGE" }, "http"));
      return isWanted;
    },
    onComplete() {
      if (settle === undefined) return;
      finish(response(true));
      // The endpoint has answered without reading the request, and would take the rest for the next one. Not `writableLength`:
      // TLS sockets count bytes as unsent for one more turn of the event loop, in which a near endpoint may have answered.
      if (socket === undefined || socket.writableNeedDrain) void drop();
      else events.onIdle(channel);
    },
    onError(error) {
      if (settle !== undefined) void end(openFailure ?? classifyError(error, "http"));
    },
  };

  // An idle connection that the endpoint closes, or sends unasked bytes on. During an exchange undici tells the handler, or opens anew.
  client.on("disconnect", () => {
    if (settle === undefined) void drop();
  });

  const exchange: Channel["exchange"] = (request, path, receiver) =>
    new Promise((resolve) => {
      settle = resolve;
      receive = receiver;
      deadlineMs = request.deadlineMs;
      maxBodyBytes = request.maxBodyBytes;
      interimResponses = 0;
      status = 0;
      bodyLength = 0;
      deadline = deadlines.add(clock.monotonic() + deadlineMs, onDeadline);
      const requestHeaders = ["accept-encoding", "identity"];
      for (const name in request.headers) requestHeaders.push(name, request.headers[name] as string);
      client.dispatch({ path, method: request.method, headers: requestHeaders, body: request.body }, handler);
    });

  const channel: Channel = Object.freeze({ exchange, end });
  return channel;
}
