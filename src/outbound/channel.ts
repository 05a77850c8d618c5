/** One vetted connection to an origin, which carries one exchange at a time. */

import type { Clock } from "../core/clock.js";
import type { Deadlines } from "../core/deadlines.js";
import type { AllowedTarget } from "./address-policy.js";
import { createChannelSocket, toIdleMs } from "./channel-socket.js";
import type { ConnectionSettings } from "./connection.js";
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
  /** The exchange ended cleanly, and the connection can carry another. */
  readonly onIdle: (channel: Channel) => void;
  /** The connection is gone and must not be used again. */
  readonly onGone: (channel: Channel) => void;
}

export interface Channel {
  /**
   * Sends one request; only one at a time. Never rejects. The body goes to `receiver` if there is
   * one.
   */
  readonly exchange: (
    request: OutboundRequest,
    path: string,
    receiver?: ResponseReceiver,
  ) => Promise<OutboundResult>;
  /**
   * Ends the exchange with this failure, or with the response if its head was read, and drops the
   * connection. Resolves when it is closed.
   */
  readonly end: (failure: OutboundFailure) => Promise<void>;
}

/**
 * Creates a channel. The first exchange opens its connection. An idle connection that was closed is
 * reopened if no request was written to it yet; a request that was written is never repeated. Any
 * anomaly drops the connection: an error, the deadline, the size limit, unexpected bytes, or a
 * response that arrives before the whole request was sent.
 */
export function createChannel(
  target: AllowedTarget,
  settings: ChannelSettings,
  events: ChannelEvents,
): Channel {
  const { clock, deadlines, nextPoll } = settings;
  const common = commonHeaders(target);
  let current: HttpExchange | undefined;
  /**
   * True after a response until the event loop has polled for new bytes: an endpoint that closes
   * the connection all the same has done so by then.
   */
  let isResting = false;

  const finish = (exchange: HttpExchange, result: OutboundResult): void => {
    current = undefined;
    reader.stop();
    deadlines.remove(exchange.deadline);
    exchange.resolve(result);
  };

  const drop = (): Promise<void> => {
    events.onGone(channel);
    return socket.close();
  };

  /** If a status was received, it decides, whatever happened to the rest of the response. */
  const end = (failure: OutboundFailure): Promise<void> => {
    if (current !== undefined) {
      const { response } = current;
      finish(current, response === undefined ? failure : toResponse(current, response, false));
    }
    return drop();
  };

  const endWith = (code: string): void => void end(classifyError({ code }, "http"));

  const reader = createResponseReader({
    onHead(head) {
      const exchange = current;
      if (exchange === undefined) return;
      exchange.response = head;
      // The callbacks of one exchange must not affect the next.
      exchange.receiver?.onHead({
        status: head.status,
        headers: parseHeaders(head.headerLines),
        resume: () => {
          if (current === exchange) socket.resume();
        },
        stop: () => {
          if (current === exchange) endWith("STOPPED");
        },
      });
    },
    onBody(bytes) {
      const exchange = current;
      if (exchange === undefined) return;
      const room = exchange.request.maxBodyBytes - exchange.receivedLength;
      const part = bytes.length > room ? bytes.subarray(0, room) : bytes;
      if (exchange.receiver === undefined) keepPart(exchange, part);
      else if (!exchange.receiver.onData(part)) socket.pause();
      exchange.receivedLength += part.length;
      if (part !== bytes && current === exchange) endWith("BODY_TOO_LARGE");
    },
  });

  const complete = (exchange: HttpExchange, head: ResponseHead, isReusable: boolean): void => {
    finish(exchange, toResponse(exchange, head, true));
    const idleMs = toIdleMs(head.keepAliveSeconds);
    // An endpoint that responds before it reads the request would take the rest for the next
    // request.
    if (!isReusable || !head.isKeptAlive || idleMs <= 0 || socket.needsDrain()) return void drop();
    socket.rest(idleMs);
    isResting = true;
    nextPoll.add(endRest);
    events.onIdle(channel);
  };

  const endRest = (): void => {
    isResting = false;
    if (current !== undefined) begin(current);
    else if (socket.isOpen()) socket.unref();
  };

  const onData = (chunk: Buffer): void => {
    const exchange = current;
    if (exchange?.isWritten !== true) {
      onLost(undefined);
      return;
    }
    const state = reader.read(chunk);
    // A receiver, or the size limit, may have ended the exchange.
    if (state === "open" || current !== exchange) return;
    const { response } = exchange;
    if (state === "broken" || response === undefined) endWith(reader.problem());
    else complete(exchange, response, state === "complete");
  };

  /** The connection has ended, or must not be used any more. */
  const onLost = (error: Error | undefined): void => {
    const exchange = current;
    if (exchange === undefined) return void drop();
    // Reopened after the rest.
    if (!exchange.isWritten) {
      socket.discard();
      return;
    }
    const { response } = exchange;
    if (error === undefined && response !== undefined && reader.end() === "complete")
      complete(exchange, response, false);
    else void end(classifyError(error ?? { code: "CONNECTION_CLOSED" }, "http"));
  };

  const socket = createChannelSocket(target, settings, {
    onOpen() {
      if (current !== undefined) begin(current);
    },
    onOpenFailed: (failure) => void end(failure),
    onData,
    onLost,
    onSilent() {
      if (current === undefined) void drop();
    },
  });

  /** Writes the request, or opens the connection for it. */
  const begin = (exchange: HttpExchange): void => {
    if (!socket.isOpen()) {
      socket.open();
      return;
    }
    exchange.isWritten = true;
    reader.start();
    socket.write(requestBytes(exchange.requestHead, exchange.request.body));
  };

  const onDeadline = (): void => {
    if (current !== undefined) void end(deadlineFailure(socket.phase(), current.request.deadlineMs));
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
