/** One vetted connection to an origin, carrying one exchange at a time. */

import type { Socket } from "node:net";
import type { Clock } from "../core/clock.js";
import type { Deadlines } from "../core/deadlines.js";
import type { AllowedTarget } from "./address-policy.js";
import { type ConnectionSettings, type Opening, openConnection } from "./connection.js";
import { createHttpExchange, type HttpExchange, keepPart, toResponse } from "./exchange.js";
import { classifyError, deadlineFailure, unsendableHeader } from "./failure.js";
import type { NextPoll } from "./next-poll.js";
import { commonHeaders, requestBytes, requestHead } from "./request-bytes.js";
import { parseHeaders, type ResponseHead } from "./response-head.js";
import { createResponseReader } from "./response-reader.js";
import type { OutboundFailure, OutboundRequest, OutboundResult, ResponseReceiver } from "./types.js";

export interface ChannelSettings extends ConnectionSettings {
  readonly clock: Clock;
  /** Shared by all channels of a client. */
  readonly deadlines: Deadlines;
  readonly nextPoll: NextPoll;
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
  /** Ends the exchange with this failure (or with the response whose head was read) and drops the connection. Resolves when it is closed. */
  readonly end: (failure: OutboundFailure) => Promise<void>;
}

/** Shorter than the five seconds after which Node's own servers close, so that a request seldom meets a closing connection. */
const KEEP_ALIVE_MS = 4_000;
const MAX_KEEP_ALIVE_MS = 30_000;
/** An idle connection is given up this long before the endpoint says it will. */
const KEEP_ALIVE_MARGIN_MS = 1_000;

const keepAliveMs = ({ keepAliveSeconds }: ResponseHead): number =>
  keepAliveSeconds === undefined
    ? KEEP_ALIVE_MS
    : Math.min(keepAliveSeconds * 1_000 - KEEP_ALIVE_MARGIN_MS, MAX_KEEP_ALIVE_MS);

/**
 * Makes a channel. Its connection is opened by the first exchange, and reopened where an idle one was closed before a request
 * was written to it. A request that was written is never repeated. Any anomaly drops the connection: an error, the deadline,
 * the byte cap, bytes that nobody asked for, or a response that came before the whole request was sent.
 */
export function openChannel(
  target: AllowedTarget,
  settings: ChannelSettings,
  events: ChannelEvents,
): Channel {
  const { clock, deadlines, nextPoll } = settings;
  const common = commonHeaders(target);
  let opening: Opening | undefined;
  let socket: Socket | undefined;
  let idleMs = KEEP_ALIVE_MS;
  /**
   * Until the event loop has looked for new bytes after a response: an endpoint that closes the connection all the same has done
   * so by then.
   */
  let isResting = false;
  /** Whether the socket keeps the process alive. */
  let isReferenced = true;
  let current: HttpExchange | undefined;

  const finish = (exchange: HttpExchange, result: OutboundResult): void => {
    current = undefined;
    reader.stop();
    deadlines.remove(exchange.deadline);
    exchange.resolve(result);
  };

  const closed = (gone: Socket | undefined): Promise<void> =>
    new Promise((resolve) => {
      if (gone === undefined || gone.closed) resolve();
      else gone.once("close", () => resolve()).destroy();
    });

  const drop = (): Promise<void> => {
    const gone = socket;
    socket = undefined;
    events.onGone(channel);
    opening?.cancel();
    return closed(gone);
  };

  /** A status that was read decides, whatever became of the rest. */
  const end = (failure: OutboundFailure): Promise<void> => {
    if (current !== undefined) {
      const { response } = current;
      finish(current, response === undefined ? failure : toResponse(current, response, false));
    }
    return drop();
  };

  /** What the receiver was given for one exchange must not reach into the next. */
  const tellHead = (exchange: HttpExchange, { status, headerLines }: ResponseHead): void =>
    exchange.receiver?.onHead({
      status,
      headers: parseHeaders(headerLines),
      resume: () => {
        if (current === exchange) socket?.resume();
      },
      stop: () => {
        if (current === exchange) void end(classifyError({ code: "STOPPED" }, "http"));
      },
    });

  const reader = createResponseReader({
    onHead(head) {
      if (current === undefined) return;
      current.response = head;
      tellHead(current, head);
    },
    onBody(bytes) {
      const exchange = current;
      if (exchange === undefined) return;
      const room = exchange.request.maxBodyBytes - exchange.receivedLength;
      const part = bytes.length > room ? bytes.subarray(0, room) : bytes;
      if (exchange.receiver === undefined) keepPart(exchange, part);
      else if (!exchange.receiver.onData(part)) socket?.pause();
      exchange.receivedLength += part.length;
      if (part !== bytes && current === exchange) void end(classifyError({ code: "BODY_TOO_LARGE" }, "http"));
    },
  });

  const complete = (exchange: HttpExchange, head: ResponseHead, own: Socket, isReusable: boolean): void => {
    finish(exchange, toResponse(exchange, head, true));
    const nextIdleMs = keepAliveMs(head);
    // The endpoint has answered without reading the request, and would take the rest for the next one. Not `writableLength`:
    // TLS sockets count bytes as unsent for one more turn of the event loop, in which a near endpoint may have answered.
    if (!isReusable || !head.isKeptAlive || nextIdleMs <= 0 || own.writableNeedDrain) return void drop();
    if (nextIdleMs !== idleMs) {
      idleMs = nextIdleMs;
      own.setTimeout(idleMs);
    }
    if (own.isPaused()) own.resume();
    isResting = true;
    nextPoll.add(rest);
    events.onIdle(channel);
  };

  const rest = (): void => {
    isResting = false;
    if (current !== undefined) begin(current);
    else if (socket !== undefined) {
      socket.unref();
      isReferenced = false;
    }
  };

  const onData = (own: Socket, chunk: Buffer): void => {
    if (own !== socket) return;
    const exchange = current;
    if (exchange?.isWritten !== true) {
      lose(own, undefined);
      return;
    }
    const state = reader.read(chunk);
    // A receiver, or the cap, may have ended it.
    if (state === "open" || current !== exchange) return;
    const { response } = exchange;
    if (state === "broken" || response === undefined)
      void end(classifyError({ code: reader.problem() }, "http"));
    else complete(exchange, response, own, state === "complete");
  };

  /** The connection has ended, or must not be used any more. */
  const lose = (own: Socket, error: Error | undefined): void => {
    if (own !== socket) return;
    const exchange = current;
    if (exchange?.isWritten) {
      const { response } = exchange;
      if (error === undefined && response !== undefined && reader.end() === "complete")
        complete(exchange, response, own, false);
      else void end(classifyError(error ?? { code: "CONNECTION_CLOSED" }, "http"));
    } else if (exchange === undefined) void drop();
    else {
      // Reopened once it has rested.
      socket = undefined;
      own.destroy();
    }
  };

  const adopt = (own: Socket): void => {
    socket = own;
    isReferenced = true;
    // By Node's time, not the injected clock: each read and write starts it again at no cost here.
    own.setTimeout(idleMs);
    // Not the callback of `setTimeout`: it is called once, and a slow exchange would use it up.
    own.on("timeout", () => {
      if (current === undefined && own === socket) void drop();
    });
    own.on("data", (chunk: Buffer) => onData(own, chunk));
    own.on("end", () => lose(own, undefined));
    own.on("error", (error) => lose(own, error));
    own.on("close", () => lose(own, undefined));
  };

  const open = (): void => {
    opening = openConnection(target, settings, (opened) => {
      opening = undefined;
      if ("failure" in opened) return void end(opened.failure);
      adopt(opened.socket);
      if (current !== undefined) begin(current);
    });
  };

  /** Writes the request, or opens the connection for it. */
  const begin = (exchange: HttpExchange): void => {
    if (socket === undefined) {
      open();
      return;
    }
    exchange.isWritten = true;
    reader.start();
    if (!isReferenced) socket.ref();
    isReferenced = true;
    socket.write(requestBytes(exchange.requestHead, exchange.request.body));
  };

  const onDeadline = (): void => {
    if (current !== undefined)
      void end(deadlineFailure(opening?.phase() ?? "http", current.request.deadlineMs));
  };

  const exchange: Channel["exchange"] = (request, path, receiver) =>
    new Promise((resolve) => {
      const head = requestHead(request, path, common);
      if (head === undefined) {
        resolve(unsendableHeader);
        void drop();
        return;
      }
      const begun = createHttpExchange({ requestHead: head, request, receiver, resolve });
      begun.deadline = deadlines.add(clock.monotonic() + request.deadlineMs, onDeadline);
      current = begun;
      if (!isResting) begin(begun);
    });

  const channel: Channel = Object.freeze({ exchange, end });
  return channel;
}
