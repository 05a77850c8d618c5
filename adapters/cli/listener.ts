/** Handles the requests of `postbell listen`: verifies, saves, responds, shows. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { LRUCache } from "lru-cache";
import { systemClock } from "../../src/core/clock.js";
import { type CliIo, toMessage } from "./command.js";
import type { HttpMessage } from "./http-message.js";
import { readAll, TOO_LARGE } from "./read-all.js";
import { type CapturedRequest, formatReceived, identify, toReceived } from "./received-request.js";
import { createRequestFiles } from "./request-files.js";
import { sendRequest } from "./send-request.js";
import { checkSignature, type SignatureReport } from "./signature-report.js";

const MAX_REMEMBERED = 10_000;

export interface ListenSettings {
  readonly secrets: readonly string[];
  readonly header: string;
  readonly toleranceSeconds: number;
  /** Statuses of the responses to valid requests, in turn. The last one repeats. */
  readonly statuses: readonly number[];
  readonly forward: string | undefined;
  readonly save: string | undefined;
  readonly body: boolean;
  readonly json: boolean;
}

interface Reply {
  readonly status: number;
  readonly forwardError?: string;
}

export function createListener(settings: ListenSettings, io: CliIo) {
  const { secrets, header: signatureHeader, toleranceSeconds, statuses, forward, save } = settings;
  const seen = new LRUCache<string, true>({ max: MAX_REMEMBERED });
  const files = save === undefined ? undefined : createRequestFiles(save);
  let count = 0;

  async function decideReply(message: HttpMessage, isTrusted: boolean): Promise<Reply> {
    if (message.method !== "POST") return { status: 405 };
    if (forward !== undefined) {
      const result = await sendRequest(message, forward, io.signal).catch(toMessage);
      return typeof result === "number" ? { status: result } : { status: 502, forwardError: result };
    }
    return { status: isTrusted ? (statuses[Math.min(count++, statuses.length - 1)] ?? 204) : 400 };
  }

  const show = (received: CapturedRequest): void =>
    void io.stdout.write(settings.json ? `${JSON.stringify(received)}\n` : formatReceived(received, io));

  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const message = await readRequest(request);
    if (message === undefined) {
      io.stderr.write(`postbell: ${TOO_LARGE} The response was 413.\n`);
      response.writeHead(413, { Connection: "close" }).end();
      return;
    }
    const now = systemClock.now();
    const report = checkSignature(message, { secrets, toleranceSeconds, signatureHeader, now });
    const { id, type } = identify(report);
    const trustedId = isTrusted(message, report) ? id : null;
    const repeated = trustedId !== null && seen.has(trustedId);
    const saved = await files?.save(message, `${type ?? "unknown"}-${id?.slice(0, 8) ?? "none"}`);
    const { status, forwardError } = await decideReply(message, isTrusted(message, report));
    response.writeHead(status, message.method === "POST" ? {} : { Allow: "POST" }).end();
    if (trustedId !== null && status < 300) seen.set(trustedId, true);
    // JSON leaves out what is undefined.
    const body = settings.body ? report.notification : undefined;
    show({ ...toReceived(message, report, now), repeated, status, saved, forwardError, body });
  };
}

const isTrusted = ({ method }: HttpMessage, { code }: SignatureReport): boolean =>
  method === "POST" && (code === "valid" || code === "unverified");

/** Returns `undefined` for a request that is too large. */
async function readRequest(request: IncomingMessage): Promise<HttpMessage | undefined> {
  // Not destroyed if it is too large, because the response uses the same connection.
  const body = await readAll(request.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>);
  if (body === undefined) return undefined;
  const { method = "", url: path = "/", rawHeaders } = request;
  return { method, path, headers: toPairs(rawHeaders), body };
}

const toPairs = (raw: readonly string[]): HttpMessage["headers"] =>
  raw.flatMap((name, index) => (index % 2 === 0 ? [[name, raw[index + 1] ?? ""] as const] : []));
