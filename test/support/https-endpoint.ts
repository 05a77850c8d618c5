/**
 * A webhook endpoint on loopback that does, byte for byte, what a test tells it to, and keeps count
 * of what it got.
 */

import net from "node:net";
import tls from "node:tls";
import type { Certificate } from "./certificates.js";

export interface ReceivedRequest {
  /** Request line and headers as they came. */
  readonly head: string;
  readonly body: Buffer;
  /** 1 for the first connection, and so on. */
  readonly connection: number;
}

export interface EndpointOptions {
  /** Plain HTTP where it is left out. */
  readonly certificate?: Certificate | undefined;
  /** Writes the answer to a request that was read to its end. Default: an empty 204. */
  readonly respond?: ((socket: net.Socket, request: ReceivedRequest) => void) | undefined;
  /** Takes a connection before anything is read from it; requests are not parsed then. */
  readonly onConnection?: ((socket: net.Socket) => void) | undefined;
  readonly tlsOptions?: tls.TlsOptions | undefined;
}

export interface Endpoint {
  readonly port: number;
  /** The requests read to their end, in order. */
  readonly requests: readonly ReceivedRequest[];
  /** TCP connections accepted so far. */
  readonly connections: () => number;
  /** TCP connections open now. */
  readonly openConnections: () => number;
  /** Bytes received above TLS. */
  readonly bytes: () => number;
  readonly close: () => Promise<void>;
}

/** A response with its content length. */
export function reply(
  status: number,
  body: string | Buffer = "",
  headers: Record<string, string> = {},
): Buffer {
  const lines = [
    `HTTP/1.1 ${status} Scripted`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  if (status !== 204) lines.push(`content-length: ${Buffer.byteLength(body)}`);
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), Buffer.from(body)]);
}

/** Writes one byte for each turn of the event loop. */
export function drip(socket: net.Socket, text: string, then: () => void = () => {}): void {
  if (socket.destroyed) return;
  if (text === "") {
    then();
    return;
  }
  socket.write(text.slice(0, 1), "latin1");
  setImmediate(() => drip(socket, text.slice(1), then));
}

/** Waits until something that real I/O brings about is true. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

/** Lets the event loop turn, so that what is on its way over loopback arrives. */
export async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}

export async function startEndpoint({
  certificate,
  respond = (socket) => socket.write(reply(204)),
  onConnection,
  tlsOptions = {},
}: EndpointOptions = {}): Promise<Endpoint> {
  const requests: ReceivedRequest[] = [];
  const sockets = new Set<net.Socket>();
  let connections = 0;
  let bytes = 0;

  const readRequests = (socket: net.Socket, connection: number): void => {
    let unread = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      unread = Buffer.concat([unread, chunk]);
      for (;;) {
        const headEnd = unread.indexOf("\r\n\r\n");
        if (headEnd === -1) return;
        const head = unread.toString("latin1", 0, headEnd);
        const bodyStart = headEnd + 4;
        const bodyEnd = bodyStart + Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
        if (unread.length < bodyEnd) return;
        const request = { head, body: unread.subarray(bodyStart, bodyEnd), connection };
        unread = unread.subarray(bodyEnd);
        requests.push(request);
        respond(socket, request);
      }
    });
  };

  const accept = (socket: net.Socket): void => {
    // The sender may break off whenever it likes.
    socket.on("error", () => {});
    if (onConnection) onConnection(socket);
    else readRequests(socket, connections);
  };

  const server: net.Server = certificate
    ? tls.createServer({ noDelay: true, ...certificate, ...tlsOptions }, accept)
    : net.createServer({ noDelay: true }, accept);
  server.on("tlsClientError", () => {});
  // Before `accept`, which is told the number of its connection.
  server.prependListener("connection", (socket: net.Socket) => {
    connections++;
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

  return {
    port: (server.address() as net.AddressInfo).port,
    requests,
    connections: () => connections,
    openConnections: () => sockets.size,
    bytes: () => bytes,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
