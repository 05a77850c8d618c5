/** Asks an HTTP proxy for a tunnel to a checked address: `CONNECT` of RFC 9110 section 9.3.6. */

import net from "node:net";
import tls from "node:tls";
import { parseUrl } from "../core/parse-url.js";
import { parseHead } from "./http-message.js";

/** A parsed `destinations.proxy`. */
export interface OutboundProxy {
  /** A name, or an address without brackets. */
  hostname: string;
  port: number;
  /** True if the connection to the proxy itself uses TLS. */
  isSecure: boolean;
  /** The value of `proxy-authorization`. Never logged. */
  authorization: string | undefined;
}

/** A proxy, and how to open a TLS connection to it. */
export interface ProxySettings extends OutboundProxy {
  /** Without a client certificate: that is for endpoints. */
  secureContext: () => tls.SecureContext;
}

const toPort = ({ port, protocol }: URL): number => {
  if (port !== "") return Number(port);
  return protocol === "https:" ? 443 : 80;
};

/** Returns `undefined` if there are no credentials. Throws for malformed percent-encoding. */
function toAuthorization({ username, password }: URL): string | undefined {
  if (username === "" && password === "") return undefined;
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Basic ${Buffer.from(credentials).toString("base64")}`;
}

/** Parses `http://user:password@host:port`, also with `https`. Returns `undefined` for other values. */
export function parseProxy(option: unknown): OutboundProxy | undefined {
  const url = typeof option === "string" ? parseUrl(option) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) return undefined;
  if (url.pathname !== "/" || url.search !== "" || url.hash !== "" || url.port === "0") return undefined;
  try {
    return Object.freeze({
      hostname: url.hostname.replace(/^\[|\]$/g, ""),
      port: toPort(url),
      isSecure: url.protocol === "https:",
      authorization: toAuthorization(url),
    });
  } catch {
    return undefined;
  }
}

/**
 * Connects to the proxy and calls back once it can be written to. Its name is looked up by the
 * system and its address is not checked: the host has chosen it.
 *
 * @param attemptMs milliseconds for one address of several before the next is tried.
 */
export function connectToProxy(
  { hostname, port, isSecure, secureContext }: ProxySettings,
  attemptMs: number,
  onReady: () => void,
): net.Socket {
  const address = {
    host: hostname,
    port,
    noDelay: true,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: attemptMs,
  };
  if (!isSecure) return net.connect(address, onReady);
  return tls.connect(
    {
      ...address,
      ...(net.isIP(hostname) === 0 ? { servername: hostname } : {}),
      secureContext: secureContext(),
      rejectUnauthorized: true,
      ALPNProtocols: ["http/1.1"],
    },
    onReady,
  );
}

const MAX_HEAD_BYTES = 16_384;

/** Returns the code of a response that opens no tunnel; `undefined` if it opens one. */
function toProblem(head: string, isFollowed: boolean): string | undefined {
  const status = parseHead(head)?.status;
  if (status === undefined) return "RESPONSE";
  if (status < 200 || status > 299) return String(status);
  // Endpoints do not speak first, so these bytes are the proxy's.
  return isFollowed ? "RESPONSE" : undefined;
}

/**
 * Requests a tunnel over a connection to a proxy, and calls back once: without a problem, the
 * socket is connected to the endpoint. A problem is the status of the proxy's response, `RESPONSE`
 * for any bytes that are no response, or `CLOSED`.
 *
 * @param endpoint the address and port to connect to. An address, so that the proxy cannot be led
 * to another one by the DNS.
 */
export function requestTunnel(
  socket: net.Socket,
  endpoint: { address: string; port: number },
  { authorization }: OutboundProxy,
  callback: (problem: string | undefined) => void,
): void {
  const { address, port } = endpoint;
  const authority = net.isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`;
  const head = Buffer.allocUnsafe(MAX_HEAD_BYTES);
  let length = 0;

  const finish = (problem: string | undefined): void => {
    socket.off("data", onData).off("end", onClose).off("close", onClose);
    callback(problem);
  };
  const onClose = (): void => finish("CLOSED");
  const onData = (chunk: Buffer): void => {
    const searchedTo = Math.max(0, length - 3);
    const copied = chunk.copy(head, length);
    length += copied;
    const end = head.subarray(0, length).indexOf("\r\n\r\n", searchedTo);
    if (end === -1) {
      if (length === MAX_HEAD_BYTES) finish("RESPONSE");
      return;
    }
    const headLength = end + 4;
    const isFollowed = length > headLength || copied < chunk.length;
    finish(toProblem(head.toString("latin1", 0, headLength), isFollowed));
  };

  socket.on("data", onData).on("end", onClose).on("close", onClose);
  const credentials = authorization === undefined ? "" : `proxy-authorization: ${authorization}\r\n`;
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n${credentials}\r\n`, "latin1");
}
