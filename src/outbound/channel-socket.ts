/**
 * The socket of a channel: opened when it is needed, replaced when it was lost, closed when idle.
 */

import type { Socket } from "node:net";
import type { AllowedTarget } from "./address-policy.js";
import { type ConnectionSettings, type Opening, openConnection } from "./connection.js";
import type { Phase } from "./failure.js";
import type { OutboundFailure } from "./types.js";

/**
 * Less than the five seconds after which Node's servers close, so that requests seldom meet a
 * closing connection.
 */
const KEEP_ALIVE_MS = 4_000;

export interface ChannelSocketEvents {
  readonly onOpen: () => void;
  readonly onOpenFailed: (failure: OutboundFailure) => void;
  readonly onData: (chunk: Buffer) => void;
  /** The connection has ended, with an error or without. */
  readonly onLost: (error: Error | undefined) => void;
  /** The socket was silent for the keep-alive time. */
  readonly onSilent: () => void;
}

export interface ChannelSocket {
  readonly isOpen: () => boolean;
  readonly open: () => void;
  /** The phase of the exchange: `http` once the connection is open. */
  readonly phase: () => Phase;
  /** Writes to the open socket, which then keeps the process alive. */
  readonly write: (bytes: Buffer) => void;
  /** True if the endpoint has not read all that was written. */
  readonly needsDrain: () => boolean;
  readonly pause: () => void;
  readonly resume: () => void;
  /** Prepares the socket for its idle time. */
  readonly rest: (idleMs: number) => void;
  /** Lets the process exit while the socket is idle. */
  readonly unref: () => void;
  /** Forgets the socket and destroys it: the next exchange opens another. */
  readonly discard: () => void;
  /** Destroys the socket or its opening. Resolves when it is closed. */
  readonly close: () => Promise<void>;
}

const waitForClose = (socket: Socket | undefined): Promise<void> =>
  new Promise((resolve) => {
    if (socket === undefined || socket.closed) resolve();
    else socket.once("close", () => resolve()).destroy();
  });

export function createChannelSocket(
  target: AllowedTarget,
  settings: ConnectionSettings,
  events: ChannelSocketEvents,
): ChannelSocket {
  let opening: Opening | undefined;
  let socket: Socket | undefined;
  let idleMs = KEEP_ALIVE_MS;
  /** True while the socket keeps the process alive. */
  let isReferenced = true;

  const adopt = (own: Socket): void => {
    socket = own;
    isReferenced = true;
    const lose = (error: Error | undefined): void => {
      if (own === socket) events.onLost(error);
    };
    // Node's timer, not the injected clock: each read and write restarts it at no cost here.
    own.setTimeout(idleMs);
    // Not the callback of `setTimeout`: it is called once, and a slow exchange would use it up.
    own.on("timeout", () => {
      if (own === socket) events.onSilent();
    });
    own.on("data", (chunk: Buffer) => {
      if (own === socket) events.onData(chunk);
    });
    own.on("end", () => lose(undefined));
    own.on("error", lose);
    own.on("close", () => lose(undefined));
  };

  return Object.freeze<ChannelSocket>({
    isOpen: () => socket !== undefined,
    open() {
      opening = openConnection(target, settings, (opened) => {
        opening = undefined;
        if ("failure" in opened) events.onOpenFailed(opened.failure);
        else {
          adopt(opened.socket);
          events.onOpen();
        }
      });
    },
    phase: () => opening?.phase() ?? "http",
    write(bytes) {
      if (!isReferenced) socket?.ref();
      isReferenced = true;
      socket?.write(bytes);
    },
    // Not `writableLength`: TLS sockets count bytes as unsent for one more turn of the event loop,
    // in which a near endpoint may have responded.
    needsDrain: () => socket?.writableNeedDrain === true,
    pause: () => void socket?.pause(),
    resume: () => void socket?.resume(),
    rest(nextIdleMs) {
      if (socket === undefined) return;
      if (nextIdleMs !== idleMs) {
        idleMs = nextIdleMs;
        socket.setTimeout(idleMs);
      }
      if (socket.isPaused()) socket.resume();
    },
    unref() {
      socket?.unref();
      isReferenced = false;
    },
    discard() {
      const gone = socket;
      socket = undefined;
      gone?.destroy();
    },
    close() {
      const gone = socket;
      socket = undefined;
      opening?.cancel();
      return waitForClose(gone);
    },
  });
}

const MAX_KEEP_ALIVE_MS = 30_000;
/** An idle connection is closed this long before the time that the endpoint announces. */
const KEEP_ALIVE_MARGIN_MS = 1_000;

/** Returns how long a connection may be idle, by the endpoint's `Keep-Alive` if it sends one. */
export const toIdleMs = (keepAliveSeconds: number | undefined): number =>
  keepAliveSeconds === undefined
    ? KEEP_ALIVE_MS
    : Math.min(keepAliveSeconds * 1_000 - KEEP_ALIVE_MARGIN_MS, MAX_KEEP_ALIVE_MS);
