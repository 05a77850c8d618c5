/** A TCP proxy on loopback that does to the connections through it what a bad network does. */

import { randomInt } from "node:crypto";
import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export type ProxyMode =
  | "pass"
  /** New connections are refused; open ones go on. */
  | "refuse"
  /** Connections are accepted and nothing is forwarded either way, not even their end. */
  | "black-hole"
  /** New connections are accepted and never carry anything, whatever the mode is later. */
  | "accept-only"
  /** Requests are forwarded, replies dropped. */
  | "swallow"
  /** Each direction takes that much longer, so a round trip twice as much. */
  | { readonly delayMs: number }
  /** Each connection is reset after that many more request bytes, which are all forwarded. */
  | { readonly resetAfterBytes: number };

export interface TcpProxy {
  readonly port: number;
  /**
   * Holds from the next byte on. A connection that lost bytes in the mode before is reset, because
   * TCP never delivers what follows a gap.
   */
  readonly mode: (mode: ProxyMode) => Promise<void>;
  /** Resets every open connection on both sides. */
  readonly cutAll: () => void;
  /**
   * Forwards nothing more on the connections that are open, not even their end, as a firewall does
   * that has forgotten them. New ones are not affected.
   */
  readonly freezeAll: () => void;
  /** TCP connections accepted so far. */
  readonly connections: () => number;
  /** TCP connections open now. */
  readonly openConnections: () => number;
  readonly stop: () => Promise<void>;
}

interface Connection {
  readonly client: net.Socket;
  readonly upstream: net.Socket;
  /** Since the mode was set. */
  requestBytes: number;
  hasLostBytes: boolean;
  isFrozen: boolean;
}

/**
 * A port below the ranges systems take for outgoing connections, with 10 000 more still below them.
 * A listener that goes away for a while finds such a port free when it comes back, and a client
 * that dials it meanwhile cannot be connected to itself.
 */
export const randomPort = (): number => randomInt(12_000, 20_000);

async function listen(port: number, accept: (socket: net.Socket) => void): Promise<net.Server> {
  const server = net.createServer({ noDelay: true, allowHalfOpen: true }, accept);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return server;
}

async function listenAnywhere(accept: (socket: net.Socket) => void): Promise<net.Server> {
  for (;;) {
    try {
      return await listen(randomPort(), accept);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    }
  }
}

export interface ProxyTarget {
  readonly host: string;
  readonly port: number;
  /** Waits for `delayMs`. Default: a timer. */
  readonly pause?: ((ms: number) => Promise<void>) | undefined;
}

/**
 * Reads the host and port of `target` at each connection, so that a test can point the proxy
 * elsewhere.
 */
export async function startProxy(target: ProxyTarget): Promise<TcpProxy> {
  const { pause = sleep } = target;
  const open = new Set<Connection>();
  let accepted = 0;
  let mode: ProxyMode = "pass";

  const cut = ({ client, upstream }: Connection): void => {
    client.resetAndDestroy();
    upstream.resetAndDestroy();
  };
  const losesRequests = (): boolean => mode === "black-hole";
  const losesReplies = (): boolean => mode === "black-hole" || mode === "swallow";

  /** Forwards in order, also where the delay became shorter on the way; holds back no sender. */
  const forward = (
    connection: Connection,
    from: net.Socket,
    { loses, send, end }: { loses: () => boolean; send: (chunk: Buffer) => void; end: () => void },
  ): void => {
    let sent = Promise.resolve();
    const pass = (step: () => void): void => {
      if (connection.isFrozen) return;
      if (loses()) {
        connection.hasLostBytes = true;
        return;
      }
      const arrival = typeof mode === "object" && "delayMs" in mode ? pause(mode.delayMs) : undefined;
      sent = sent.then(() => arrival).then(step);
    };
    from.on("data", (chunk: Buffer) => pass(() => send(chunk)));
    from.on("end", () => pass(end));
    from.on("error", () => pass(end));
  };

  const accept = (client: net.Socket): void => {
    accepted++;
    const upstream = net.connect({ ...target, noDelay: true, allowHalfOpen: true });
    const connection: Connection = {
      client,
      upstream,
      requestBytes: 0,
      hasLostBytes: false,
      isFrozen: mode === "accept-only",
    };
    open.add(connection);

    const sendRequest = (chunk: Buffer): void => {
      const limit = typeof mode === "object" && "resetAfterBytes" in mode ? mode.resetAfterBytes : Infinity;
      const room = limit - connection.requestBytes;
      connection.requestBytes += chunk.length;
      if (chunk.length < room) {
        upstream.write(chunk);
        return;
      }
      // A reset could overtake the bytes on their way to the target; an orderly end cannot.
      upstream.end(chunk.subarray(0, Math.max(room, 0)));
      client.resetAndDestroy();
    };
    forward(connection, client, { loses: losesRequests, send: sendRequest, end: () => upstream.end() });
    forward(connection, upstream, {
      loses: losesReplies,
      send: (chunk) => client.write(chunk),
      end: () => (upstream.errored ? client.resetAndDestroy() : client.end()),
    });
    const forget = (): void => {
      if (client.destroyed && upstream.destroyed) open.delete(connection);
    };
    client.on("close", forget);
    upstream.on("close", forget);
  };

  let server = await listenAnywhere(accept);
  const { port } = server.address() as net.AddressInfo;

  return {
    port,
    mode: async (next) => {
      mode = next;
      for (const connection of open) {
        connection.requestBytes = 0;
        if (connection.hasLostBytes) cut(connection);
      }
      if (next === "refuse") server.close();
      else if (!server.listening) server = await listen(port, accept);
    },
    cutAll: () => {
      for (const connection of open) cut(connection);
    },
    connections: () => accepted,
    freezeAll: () => {
      for (const connection of open) connection.isFrozen = true;
    },
    openConnections: () => [...open].filter(({ client }) => !client.destroyed).length,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const connection of open) cut(connection);
      }),
  };
}
