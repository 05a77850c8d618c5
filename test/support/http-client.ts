/**
 * Sends requests to a server on the loopback exactly as written: no normalised path, no header of
 * its own but `host`.
 */

import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect, type Socket } from "node:net";

export interface Reply {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
  readonly text: string;
  readonly json: unknown;
}

export interface Sent {
  readonly method?: string;
  readonly headers?: Record<string, string | string[]>;
  readonly body?: string | Uint8Array;
}

/** Resolves with the whole answer. Each call has a connection of its own. */
export async function send(origin: string, path: string, sent: Sent = {}): Promise<Reply> {
  const response = await begin(origin, path, sent);
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  const text = body.toString();
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    body,
    text,
    get json() {
      return JSON.parse(text) as unknown;
    },
  };
}

/** Resolves with the answer's head; the caller reads or destroys the rest. */
export async function begin(origin: string, path: string, sent: Sent = {}): Promise<IncomingMessage> {
  const { hostname, port } = new URL(origin);
  const { method = "GET", headers = {}, body } = sent;
  const hasLength = body !== undefined && !("transfer-encoding" in headers);
  const length = hasLength ? { "content-length": String(Buffer.byteLength(body)) } : {};
  const req = request({ hostname, port, method, path, headers: { ...length, ...headers }, agent: false });
  req.end(body);
  const [response] = (await once(req, "response")) as [IncomingMessage];
  return response;
}

export const json = (value: unknown): Sent => ({
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(value),
});

/** An open connection on which the caller writes what it likes. */
export async function dial(origin: string): Promise<Socket> {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  // The server may close while the test still writes; what it said before is what counts.
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

/** Everything the server sends until it closes the connection. */
export async function untilClosed(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  if (!socket.closed) await once(socket, "close");
  return Buffer.concat(chunks).toString();
}
