/**
 * Fetches pages and files at untrusted URLs. Checks every redirect, with one deadline and one
 * size limit. Knows no media type.
 */

import { pipeline, Readable, Transform } from "node:stream";
import { createGunzip } from "node:zlib";
import type { Clock } from "../core/clock.js";
import { parseUrl } from "../core/parse-url.js";
import { classifyError, deadlineFailure } from "./failure.js";
import type { OutboundClient, OutboundFailure, OutboundResponse } from "./types.js";

export interface GetRequest {
  url: string;
  /** The `accept` header: `application/json`. Default: anything. */
  accept?: string | undefined;
  /** The maximum size of the body, before and after it is decompressed. */
  maxBytes: number;
  /** A longer body fails, or ends at the limit as if it were complete. Default: `fail`. */
  beyond?: "fail" | "end" | undefined;
  /** Milliseconds for the whole call: all redirects, from the first DNS query to the last byte. */
  deadlineMs: number;
  /** Default 3; 0 follows none, and the response is then the redirect itself. */
  maxRedirects?: number | undefined;
}

export interface GetResponse {
  kind: "response";
  /** The status of the last hop; a redirect only if it was one too many, or led nowhere. */
  status: number;
  /** The URL of the last hop. */
  url: string;
  headers: OutboundResponse["headers"];
  /**
   * Decompressed. Fails with a {@link BodyError} if it is cut off, and with zlib's error if it
   * cannot be decompressed. Read it to its end or destroy it, which drops the connection; until
   * then the connection stays open, up to the deadline.
   */
  body: Readable;
}

/** Never rejects. */
export type GuardedGet = (request: GetRequest) => Promise<GetResponse | OutboundFailure>;

export class BodyError extends Error {
  override readonly name = "BodyError";
  /**
   * `BODY_TOO_LARGE`: more than `maxBytes`. `BODY_CUT_OFF`: cut off by the deadline or the other
   * side.
   */
  readonly code: "BODY_TOO_LARGE" | "BODY_CUT_OFF";

  constructor(code: BodyError["code"]) {
    super(`The response has no whole body within its limits (${code}).`);
    this.code = code;
  }
}

export interface GuardedGetOptions {
  client: OutboundClient;
  clock: Clock;
  /** Allows other ports than 443 and 80. Default false. */
  anyPort?: boolean | undefined;
}

const REDIRECTS: Set<number> = new Set([301, 302, 303, 307, 308]);
const DEFAULT_REDIRECTS = 3;

const badPort: OutboundFailure = Object.freeze({
  kind: "refused",
  code: "R8",
  message: "The URL names a port: use the one of its scheme.",
});

/**
 * Creates a function that sends GET requests to hosts that strangers name, over a client that
 * checks every URL and every address.
 *
 * Sends no cookie, no credentials and no referrer. Requests the bytes without encoding, but accepts
 * gzip; another encoding is a failure (`CONTENT_ENCODING`). The caller limits concurrent calls.
 */
export function createGuardedGet({ client, clock, anyPort = false }: GuardedGetOptions): GuardedGet {
  return async ({
    url: first,
    accept = "*/*",
    maxBytes,
    beyond = "fail",
    deadlineMs,
    maxRedirects = DEFAULT_REDIRECTS,
  }) => {
    const startedAt = clock.monotonic();
    let url = first;
    for (let hop = 0; ; hop += 1) {
      const leftMs = deadlineMs - (clock.monotonic() - startedAt);
      if (leftMs <= 0) return deadlineFailure("http", deadlineMs);
      if (!anyPort && (parseUrl(url)?.port ?? "") !== "") return badPort;
      const opened = await openHop(client, { url, accept, maxBytes, deadlineMs: leftMs });
      if (opened.kind !== "response") return opened;
      const next = hop < maxRedirects ? findRedirect(opened, url) : undefined;
      if (next === undefined) return finished(opened, url, { maxBytes, beyond });
      opened.source.destroy();
      url = next;
    }
  };
}

interface OpenRequest {
  url: string;
  accept: string;
  maxBytes: number;
  deadlineMs: number;
}

interface Opened {
  kind: "response";
  status: number;
  headers: OutboundResponse["headers"];
  /** The body as it arrives. */
  source: Readable;
}

/** Settles when the head of the response was read. */
function openHop(
  client: OutboundClient,
  { url, accept, maxBytes, deadlineMs }: OpenRequest,
): Promise<Opened | OutboundFailure> {
  return new Promise((resolve) => {
    let source: Readable | undefined;
    let bytes = 0;
    const request = {
      url,
      method: "GET",
      headers: { accept, "user-agent": "Postbell" },
      body: null,
      deadlineMs,
      // One byte more, to distinguish a body of exactly `maxBytes` from a longer one.
      maxBodyBytes: maxBytes + 1,
    } as const;
    const exchange = client.send(request, {
      onHead({ status, headers, resume, stop }) {
        source = createSource(resume, stop);
        // The reader of the stream receives the error; without a reader, it must not crash the
        // process.
        source.on("error", () => {});
        resolve({ kind: "response", status, headers, source });
      },
      onData(chunk) {
        bytes += chunk.length;
        return source?.push(chunk) ?? true;
      },
    });
    void exchange.then((result) => {
      if (result.kind !== "response") resolve(result);
      // If the limit has cut the body off, pass on the bytes: the limit is applied again after
      // them.
      else if (result.complete || bytes > maxBytes) source?.push(null);
      else source?.destroy(new BodyError("BODY_CUT_OFF"));
    });
  });
}

const createSource = (resume: () => void, stop: () => void): Readable =>
  new Readable({
    read: resume,
    destroy(error, done) {
      stop();
      done(error);
    },
  });

function findRedirect({ status, headers }: Opened, from: string): string | undefined {
  const location = headers["location"];
  if (!REDIRECTS.has(status) || location === undefined) return undefined;
  return parseUrl(location, from)?.href;
}

function finished({ status, headers, source }: Opened, url: string, cap: Cap): GetResponse | OutboundFailure {
  const encoding = (headers["content-encoding"] ?? "identity").trim().toLowerCase();
  const isGzip = encoding === "gzip" || encoding === "x-gzip";
  if (!(isGzip || encoding === "identity" || encoding === "")) {
    source.destroy();
    return classifyError({ code: "CONTENT_ENCODING" }, "http");
  }
  const stages = isGzip ? [createGunzip(), capped(cap)] : [capped(cap)];
  const body = pipeline([source, ...stages], () => {}) as unknown as Readable;
  body.on("error", () => {});
  return { kind: "response", status, url, headers, body };
}

interface Cap {
  maxBytes: number;
  beyond: "fail" | "end";
}

function capped({ maxBytes, beyond }: Cap): Transform {
  let room = maxBytes;
  return new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      const isOver = chunk.length > room;
      if (isOver && beyond === "fail") return done(new BodyError("BODY_TOO_LARGE"));
      this.push(chunk.subarray(0, room));
      room -= Math.min(chunk.length, room);
      if (isOver) this.push(null);
      done();
    },
  });
}
