/** Requests to S3: signed, aborted if they make no progress, and refused with a reason. */

import type { AwsV4Signer } from "aws4fetch";
import type { Clock, Timer } from "../src/core/clock.js";
import { isPostbellError, PostbellError } from "../src/core/errors.js";
import { importFromPackage } from "../src/core/import-package.js";
import type { ReadableBody } from "../src/http/types.js";

/** The options of requests, after their check. */
export interface S3Config {
  endpoint: string;
  bucket: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string | undefined;
  timeoutMs: number;
  clock: Clock;
}

export const unavailable = (what: string, reason = what, isPermanent = false): PostbellError =>
  new PostbellError("storage_unavailable", `s3Files: ${what}.`, { reason, isPermanent });

export interface S3Request {
  method: "GET" | "HEAD" | "PUT" | "DELETE";
  /** Empty for the bucket. */
  key: string;
  query?: Record<string, string>;
  headers?: Record<string, string> | undefined;
  upload?: { bytes: number; type: string; read: () => ReadableBody };
  /** The statuses that the caller handles; any other one is an error. */
  accept: number[];
}

export interface S3Response {
  status: number;
  headers: Headers;
  body: AsyncGenerator<Uint8Array>;
}

const MAX_ERROR_BYTES = 16_384;
/** Encodings that `fetch` undoes. Stores also keep others, such as `aws-chunked`. */
const COMPRESSED = /gzip|compress|deflate|br|zstd/i;

/** Returns a function that sends a request and resolves with an accepted response. */
export function createS3Sender(config: S3Config): (request: S3Request) => Promise<S3Response> {
  const { endpoint, bucket, region, accessKeyId, secretAccessKey, sessionToken, timeoutMs, clock } = config;
  const cache = new Map<string, ArrayBuffer>();
  const credentials = { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) };

  async function sign({ method, key, query = {}, headers = {} }: S3Request) {
    const Signer = await loadSigner();
    const url = new URL(
      `/${[bucket, ...(key === "" ? [] : key.split("/"))].map(encodeURIComponent).join("/")}`,
      endpoint,
    );
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const datetime = new Date(clock.now()).toISOString().replace(/[:-]|\.\d{3}/g, "");
    const signed = { method, url: url.href, headers: { ...headers }, service: "s3", region, datetime, cache };
    return new Signer({ ...signed, ...credentials }).sign();
  }

  return async (request) => {
    const { method, upload, accept } = request;
    const watch = createWatch(clock, timeoutMs);
    let response: Response;
    try {
      const { url, headers } = await sign(request);
      // Not signed, since proxies change it.
      headers.set("accept-encoding", "identity");
      if (upload !== undefined) headers.set("content-type", upload.type);
      if (upload !== undefined) headers.set("content-length", String(upload.bytes));
      const body = upload === undefined || upload.bytes === 0 ? null : watch.each(upload.read());
      const init = { method, headers, body, duplex: "half", redirect: "manual", signal: watch.signal };
      response = await fetch(url, init as unknown as RequestInit);
    } catch (error) {
      watch.stop();
      throw toConnectionError(error, watch.signal, config);
    }
    const body = readBody(response, watch, config);
    const { status, headers } = response;
    const isAccepted = accept.includes(status);
    if (isAccepted) refuseCompressed(headers, watch, config);
    if (method === "GET" && isAccepted && status !== 404) return { status, headers, body };
    const code = await readCode(body);
    if (!isAccepted || code === "NoSuchBucket") throw toRefusal(status, code, config);
    return { status, headers, body };
  };
}

const loadSigner = (): Promise<typeof AwsV4Signer> =>
  importFromPackage(() => import("aws4fetch"), "AwsV4Signer", {
    message: "s3Files: the package aws4fetch is missing; run npm install aws4fetch.",
    field: "endpoint",
  });

/** Aborts its signal once there was no progress for some time. */
function createWatch(clock: Clock, ms: number) {
  const controller = new AbortController();
  let timer: Timer | undefined;
  const stop = (): void => clock.clearTimeout(timer);
  const touch = (): void => {
    stop();
    timer = clock.setTimeout(() => controller.abort(), ms);
  };
  async function* each(body: AsyncIterable<Uint8Array>) {
    for await (const chunk of body) {
      // The reader may take its time: only the store is watched.
      stop();
      yield chunk;
      touch();
    }
  }
  touch();
  return { signal: controller.signal, abort: () => controller.abort(), stop, touch, each };
}

/** Reads the body of a response; its end or its reader ends the connection's watch. */
async function* readBody({ body }: Response, watch: ReturnType<typeof createWatch>, config: S3Config) {
  let isWhole = false;
  try {
    if (body !== null) yield* watch.each(body);
    isWhole = true;
  } catch (error) {
    throw toConnectionError(error, watch.signal, config);
  } finally {
    watch.stop();
    if (!isWhole) watch.abort();
  }
}

export async function readText(body: ReadableBody, max: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > max) throw unavailable(`a response has more than ${max} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

const readCode = async (body: ReadableBody): Promise<string> =>
  readElement(await readText(body, MAX_ERROR_BYTES).catch(() => ""), /<Code>([A-Za-z0-9.]{1,100})</) ?? "";

/** Reads the text of an element from XML without namespaces. */
export const readElement = (xml: string, pattern: RegExp): string | undefined => pattern.exec(xml)?.[1];

/** Errors of `fetch` hold the request, and so its signature: only their code is passed on. */
function toConnectionError(error: unknown, signal: AbortSignal, { endpoint, timeoutMs }: S3Config): unknown {
  if (isPostbellError(error, "invalid_option")) return error;
  if (signal.aborted) return unavailable(`${endpoint} made no progress for ${timeoutMs} ms`, "timeout");
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
  const found = [cause?.code, code].find((value) => typeof value === "string");
  const reason = `${typeof found === "string" ? found : "connection error"} ${endpoint}`;
  return unavailable(`the connection to ${endpoint} failed (${reason})`, reason);
}

const REMEDIES: { [status: number]: string } = {
  301: "the bucket is in another region; check endpoint and region",
  307: "the bucket is at another address; check endpoint and region",
  400: "check region and the credentials",
  401: "check accessKeyId and secretAccessKey",
  403: "check accessKeyId, secretAccessKey and the permissions of the key",
  404: "check endpoint and bucket",
};

/** `fetch` decompresses: the bytes are then not those of the file, and their number is another. */
function refuseCompressed(
  headers: Headers,
  watch: ReturnType<typeof createWatch>,
  { bucket, endpoint }: S3Config,
): void {
  const encoding = headers.get("content-encoding") ?? "";
  if (!COMPRESSED.test(encoding)) return;
  watch.stop();
  watch.abort();
  throw unavailable(
    `the bucket ${bucket} at ${endpoint} answers with compressed bytes: keep it, and proxies before it, from doing so`,
    `Content-Encoding ${encoding.slice(0, 40)}`,
    true,
  );
}

function toRefusal(status: number, code: string, { endpoint, bucket }: S3Config): PostbellError {
  const reason = `${status} ${code}`.trim();
  const remedy = REMEDIES[status];
  const advice = remedy === undefined ? "" : `: ${remedy}`;
  return unavailable(
    `the bucket ${bucket} at ${endpoint} refused a request (${reason})${advice}`,
    reason,
    status < 500 && status !== 409 && status !== 429 && status !== 408,
  );
}
