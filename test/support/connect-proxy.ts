/** An HTTP proxy on loopback that tunnels by CONNECT, or lies as a test tells it to. */

import net from "node:net";
import tls from "node:tls";
import type { Certificate } from "./certificates.js";

export interface ProxyOptions {
  /** TLS to the proxy itself where it is given. */
  readonly certificate?: Certificate | undefined;
  readonly tlsOptions?: tls.TlsOptions | undefined;
  /** Answers a CONNECT in place of the proxy. Default: opens the tunnel. */
  readonly answer?: ((socket: net.Socket) => void) | undefined;
  /** Opens the tunnel to this port of loopback, whatever was requested. */
  readonly misleadTo?: number | undefined;
}

export interface ConnectProxy {
  readonly port: number;
  /** The heads of all requests, as they came. */
  readonly heads: readonly string[];
  /** Everything that was received in the clear, tunnels included. */
  readonly received: () => string;
  readonly connections: () => number;
  /** The names in the certificates of its clients. */
  readonly clients: readonly (string | undefined)[];
  readonly close: () => Promise<void>;
}

export const ESTABLISHED = "HTTP/1.1 200 Connection established\r\n\r\n";

export async function startProxy({
  certificate,
  tlsOptions = {},
  answer,
  misleadTo,
}: ProxyOptions = {}): Promise<ConnectProxy> {
  const heads: string[] = [];
  const sockets = new Set<net.Socket>();
  const clients: (string | undefined)[] = [];
  let received = "";
  let connections = 0;

  const keep = (socket: net.Socket): void => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  };

  const tunnel = (socket: net.Socket, head: string): void => {
    const [, host = "", port = ""] = /^CONNECT \[?([^\]\s]+?)\]?:(\d+) HTTP/.exec(head) ?? [];
    const far = net.connect({ host: misleadTo ? "127.0.0.1" : host, port: misleadTo ?? Number(port) }, () => {
      socket.write(ESTABLISHED);
      socket.pipe(far).pipe(socket);
    });
    keep(far);
    far.on("error", () => socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n"));
    far.on("close", () => socket.destroy());
    socket.on("close", () => far.destroy());
  };

  const accept = (socket: net.Socket): void => {
    keep(socket);
    if (socket instanceof tls.TLSSocket) clients.push(socket.getPeerX509Certificate()?.subject);
    let unread = "";
    let isOpen = false;
    socket.on("data", (chunk: Buffer) => {
      received += chunk.toString("latin1");
      if (isOpen) return;
      unread += chunk.toString("latin1");
      if (!unread.includes("\r\n\r\n")) return;
      isOpen = true;
      heads.push(unread);
      if (answer) answer(socket);
      else tunnel(socket, unread);
    });
  };

  const server: net.Server = certificate
    ? tls.createServer({ noDelay: true, ...certificate, ...tlsOptions }, accept)
    : net.createServer({ noDelay: true }, accept);
  server.on("tlsClientError", () => {});
  server.on("connection", (socket: net.Socket) => {
    connections++;
    keep(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

  return {
    port: (server.address() as net.AddressInfo).port,
    heads,
    clients,
    received: () => received,
    connections: () => connections,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
