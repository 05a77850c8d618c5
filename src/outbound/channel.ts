/** One vetted connection to an origin, which carries one exchange at a time. */

import type { Socket } from "node:net";
import type { Deadlines } from "../core/clock.js";
import type { AllowedTarget } from "./address-policy.js";
import { type ConnectionSettings, type Opening, openConnection } from "./connection.js";
import { classifyError, deadlineFailure, unsendableHeader } from "./failure.js";
import {
  commonHeaders,
  createHttpExchange,
  type HttpExchange,
  keepPart,
  parseHeaders,
  type ResponseHead,
  requestBytes,
  requestHead,
  toResponse,
} from "./http-message.js";
import { createResponseReader } from "./response-reader.js";
import { writeSlowly } from "./slow-body.js";
import type { OutboundFailure, OutboundRequest, OutboundResult, ResponseReceiver } from "./types.js";

export interface ChannelSettings extends ConnectionSettings {
  /** Shared by all channels of a client. */
  deadlines: Deadlines;
  /** Calls back after the event loop has polled for new bytes. */
  afterPoll: (callback: () => void) => void;
  /** Called for each request that is written again, see {@link createChannel}. Must not throw. */
  onRepeat?: (() => void) | undefined;
}

export interface ChannelEvents {
  /** The exchange ended cleanly, and the connection can carry another. */
  onIdle: (channel: Channel) => void;
  /** The connection is gone and must not be used again. */
  onGone: (channel: Channel) => void;
}

export interface Channel {
  /**
   * Sends one request; only one at a time. Never rejects. The body goes to `receiver` if there is
   * one.
   */
  exchange: (request: OutboundRequest, path: string, receiver?: ResponseReceiver) => Promise<OutboundResult>;
  /**
   * Ends the exchange with this failure, or with the response if its head was read, and drops the
   * connection. Resolves when it is closed.
   */
  end: (failure: OutboundFailure) => Promise<void>;
}

/**
 * Less than the five seconds after which Node's servers close, so that requests seldom meet a
 * closing connection.
 */
const KEEP_ALIVE_MS = 4_000;
const MAX_KEEP_ALIVE_MS = 30_000;
/** An idle connection is closed this long before the time that the endpoint announces. */
const KEEP_ALIVE_MARGIN_MS = 1_000;
/**
 * A connection that was opened longer ago is closed after its exchange, because only a new one
 * looks the name up again. With the longest idle time, none is used for more than a minute.
 */
const MAX_AGE_MS = 30_000;

/** Returns how long a connection may be idle, by the endpoint's `Keep-Alive` if it sends one. */
const toIdleMs = (keepAliveSeconds: number | undefined): number =>
  keepAliveSeconds === undefined
    ? KEEP_ALIVE_MS
    : Math.min(keepAliveSeconds * 1_000 - KEEP_ALIVE_MARGIN_MS, MAX_KEEP_ALIVE_MS);

const waitForClose = (socket: Socket | undefined): Promise<void> =>
  new Promise((resolve) => {
    if (socket === undefined || socket.closed) resolve();
    else socket.once("close", () => resolve());
  });

/**
 * Creates a channel. The first exchange opens its connection. An idle connection that was closed is
 * reopened.
 *
 * An endpoint may close an idle connection just when a request is written to it. So a request is
 * written once more, to a new connection, if a connection that has carried an earlier exchange is
 * lost before any byte of the response. On a new connection, a request is never repeated.
 *
 * Any anomaly drops the connection: an error, the deadline, the size limit, unexpected bytes, or a
 * response that arrives before the whole request was sent.
 */
export function createChannel(
  target: AllowedTarget,
  settings: ChannelSettings,
  events: ChannelEvents,
): Channel {
  const { clock, deadlines, afterPoll, onRepeat } = settings;
  const common = commonHeaders(target);
  let current: HttpExchange | undefined;
  let opening: Opening | undefined;
  let socket: Socket | undefined;
  let idleMs = KEEP_ALIVE_MS;
  let openedAt = 0;
  /** True if the connection has carried an exchange to its end. */
  let isReused = false;
  /** True while the socket keeps the process alive. */
  let isReferenced = true;
  /**
   * True after a response until the event loop has polled for new bytes: an endpoint that closes
   * the connection all the same has done so by then.
   */
  let awaitsPoll = false;
  const exchange: Channel["exchange"] = (request, path, receiver) =>
    new Promise((resolve) => {
      const head = requestHead(request, path, common);
      if (head === undefined) {
        resolve(unsendableHeader);
        void drop();
        return;
      }
      const begun = createHttpExchange(head, request, receiver, resolve);
      begun.deadline = deadlines.add(clock.monotonic() + request.deadlineMs, onDeadline);
      current = begun;
      if (!awaitsPoll) begin(begun);
    });

  /** Writes the request, or opens the connection for it. */
  const begin = (begun: HttpExchange): void => {
    if (socket === undefined) {
      open();
      return;
    }
    begun.isWritten = true;
    reader.start();
    if (!isReferenced) socket.ref();
    isReferenced = true;
    const { body, bodyPauseMs } = begun.request;
    if (bodyPauseMs === undefined || body === null) socket.write(requestBytes(begun.requestHead, body));
    else writeSlowly(socket, { head: begun.requestHead, body, pauseMs: bodyPauseMs }, clock);
  };

  const open = (): void => {
    opening = openConnection(target, settings, (opened) => {
      opening = undefined;
      if ("failure" in opened) {
        void end(opened.failure);
        return;
      }
      adopt(opened.socket);
      if (current !== undefined) begin(current);
    });
  };

  const adopt = (opened: Socket): void => {
    socket = opened;
    openedAt = clock.monotonic();
    isReused = false;
    isReferenced = true;
    const lose = (error: Error | undefined): void => {
      if (opened === socket) onLost(error);
    };
    // Node's timer, not the injected clock: each read and write restarts it at no cost here.
    opened.setTimeout(idleMs);
    // Not the callback of `setTimeout`: it is called once, and a slow exchange would use it up.
    opened.on("timeout", () => {
      if (opened === socket && current === undefined) void drop();
    });
    opened.on("data", (chunk: Buffer) => {
      if (opened === socket) onData(chunk);
    });
    opened.on("end", () => lose(undefined));
    opened.on("error", lose);
    opened.on("close", () => lose(undefined));
  };

  const onData = (chunk: Buffer): void => {
    const reading = current;
    if (reading?.isWritten !== true) {
      onLost(undefined);
      return;
    }
    reading.isAnswered = true;
    const state = reader.read(chunk);
    // A receiver, or the size limit, may have ended the exchange.
    if (state === "open" || current !== reading) return;
    const { response } = reading;
    if (state === "broken" || response === undefined) endWith(reader.problem());
    else complete(reading, response, state === "complete");
  };

  const reader = createResponseReader({
    onHead(head) {
      const reading = current;
      if (reading === undefined) return;
      reading.response = head;
      // The callbacks of one exchange must not affect the next.
      reading.receiver?.onHead({
        status: head.status,
        headers: parseHeaders(head.headerLines),
        resume: () => {
          if (current === reading) socket?.resume();
        },
        stop: () => {
          if (current === reading) endWith("STOPPED");
        },
      });
    },
    onBody(bytes) {
      const reading = current;
      if (reading === undefined) return;
      const room = reading.request.maxBodyBytes - reading.receivedLength;
      const part = bytes.length > room ? bytes.subarray(0, room) : bytes;
      if (reading.receiver === undefined) keepPart(reading, part);
      else if (!reading.receiver.onData(part)) socket?.pause();
      reading.receivedLength += part.length;
      if (part !== bytes && current === reading) endWith("BODY_TOO_LARGE");
    },
  });

  const complete = (ended: HttpExchange, head: ResponseHead, isReusable: boolean): void => {
    finish(ended, toResponse(ended, head, true));
    const nextIdleMs = toIdleMs(head.keepAliveSeconds);
    // An endpoint that responds before it reads the request would take the rest for the next
    // request. Not `writableLength`: TLS sockets count bytes as unsent for one more turn of the
    // event loop, in which a near endpoint may have responded.
    const isUnread = socket?.writableNeedDrain === true;
    const isOld = clock.monotonic() - openedAt > MAX_AGE_MS;
    // Parts of its body may still be to come.
    const isSlow = ended.request.bodyPauseMs !== undefined;
    if (!isReusable || !head.isKeptAlive || nextIdleMs <= 0 || isUnread || isOld || isSlow) {
      void drop();
      return;
    }
    if (nextIdleMs !== idleMs) {
      idleMs = nextIdleMs;
      socket?.setTimeout(idleMs);
    }
    if (socket?.isPaused()) socket.resume();
    isReused = true;
    awaitsPoll = true;
    afterPoll(onPolled);
    events.onIdle(channel);
  };

  const onPolled = (): void => {
    awaitsPoll = false;
    if (current !== undefined) begin(current);
    else if (socket !== undefined) {
      // The process may exit while the socket is idle.
      socket.unref();
      isReferenced = false;
    }
  };

  const finish = (ended: HttpExchange, result: OutboundResult): void => {
    current = undefined;
    reader.stop();
    deadlines.remove(ended.deadline);
    ended.resolve(result);
  };

  const onDeadline = (): void => {
    if (current === undefined) return;
    const { deadlineMs } = current.request;
    void end(deadlineFailure(opening?.phase() ?? "http", deadlineMs));
  };

  /** The connection has ended, or must not be used any more. */
  const onLost = (error: Error | undefined): void => {
    const lost = current;
    if (lost === undefined) {
      void drop();
      return;
    }
    if (!lost.isWritten) {
      // Reopened after the rest.
      disconnect();
      return;
    }
    if (isReused && !lost.isAnswered) {
      disconnect();
      lost.isWritten = false;
      onRepeat?.();
      begin(lost);
      return;
    }
    const { response } = lost;
    if (error === undefined && response !== undefined && reader.end() === "complete")
      complete(lost, response, false);
    else void end(classifyError(error ?? { code: "CONNECTION_CLOSED" }, "http"));
  };

  const endWith = (code: string): void => void end(classifyError({ code }, "http"));

  /** If a status was received, it decides, whatever happened to the rest of the response. */
  const end = (failure: OutboundFailure): Promise<void> => {
    if (current !== undefined) {
      const { response } = current;
      finish(current, response === undefined ? failure : toResponse(current, response, false));
    }
    return drop();
  };

  const disconnect = (): Socket | undefined => {
    const gone = socket;
    socket = undefined;
    return gone?.destroy();
  };

  const drop = (): Promise<void> => {
    events.onGone(channel);
    opening?.cancel();
    return waitForClose(disconnect());
  };

  const channel: Channel = Object.freeze({ exchange, end });
  return channel;
}
