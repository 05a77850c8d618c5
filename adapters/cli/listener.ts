/** Handles the requests of `postbell listen`: verifies, saves, responds, shows. */

import { writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { LRUCache } from "lru-cache";
import { systemClock } from "../../src/core/clock.js";
import { type CliIo, createPainter, printable, toMessage } from "./command.js";
import { type HttpMessage, readAll, sendRequest, TOO_LARGE, writeMessage } from "./http-message.js";
import { checkSignature, formatAge, type SignatureReport, typeOfNotification } from "./signature-report.js";

const MAX_REMEMBERED = 10_000;

export interface ListenSettings {
  secrets: string[];
  header: string;
  toleranceMs: number;
  /** Statuses of the responses to valid requests, in turn. The last one repeats. */
  statuses: number[];
  forward: string | undefined;
  save: string | undefined;
  body: boolean;
  json: boolean;
}

interface Reply {
  status: number;
  forwardError?: string;
}

export function createListener(settings: ListenSettings, io: CliIo) {
  const { secrets, header: signatureHeader, toleranceMs, statuses, forward, save } = settings;
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
    const report = checkSignature(message, { secrets, toleranceMs, signatureHeader, now });
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

const toPairs = (raw: string[]): HttpMessage["headers"] =>
  raw.flatMap((name, index) => (index % 2 === 0 ? [[name, raw[index + 1] ?? ""] as const] : []));

// Saves received requests to numbered files of a folder.

interface RequestFiles {
  /** Saves a request, and returns the path of its file. `name` becomes part of it. */
  save: (message: HttpMessage, name: string) => Promise<string>;
}

function createRequestFiles(folder: string): RequestFiles {
  let number = 0;
  return {
    async save(message, name) {
      const safeName = name.replace(/[^A-Za-z0-9-]+/g, "-").slice(0, 80);
      for (;;) {
        const file = join(folder, `${String(++number).padStart(4, "0")}-${safeName}.http`);
        try {
          await writeFile(file, writeMessage(message), { flag: "wx", mode: 0o600 });
          return file;
        } catch (error) {
          // An earlier run may have used the number.
          if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
        }
      }
    },
  };
}

/** A line of `--json`. */
interface CapturedRequest {
  at: string;
  method: string;
  path: string;
  type: string | null;
  id: string | null;
  timestamp: string | null;
  /** Type of the focal resource. */
  resourceType: string | null;
  code: SignatureReport["code"] | "method_not_allowed";
  message: string;
  ageSeconds: number | null;
  /** True if the event was received before, since the command started. */
  repeated: boolean;
  bytes: number;
  status: number;
  saved?: string | undefined;
  forwardError?: string | undefined;
  body?: unknown;
}

/** Returns the id and type that the body claims; `null` if it is not an event notification. */
const identify = ({
  notification,
}: SignatureReport): { id: CapturedRequest["id"]; type: CapturedRequest["type"] } => ({
  type: notification === undefined ? null : typeOfNotification(notification),
  id: notification?.id ?? null,
});

function toReceived(
  { method, path, body }: HttpMessage,
  report: SignatureReport,
  now: number,
): Omit<CapturedRequest, "repeated" | "status"> {
  const isPost = method === "POST";
  return {
    at: new Date(now).toISOString(),
    method,
    path,
    ...identify(report),
    timestamp: report.notification?.timestamp ?? null,
    resourceType: getFocalType(report),
    code: isPost ? report.code : "method_not_allowed",
    message: isPost ? report.message : "The method must be POST.",
    ageSeconds: report.ageSeconds,
    bytes: body.length,
  };
}

function getFocalType({ notification }: SignatureReport): string | null {
  if (notification === undefined || "type" in notification) return null;
  const resource: unknown = notification.event.context[0].resource.entry[0]?.resource;
  const type =
    typeof resource === "object" && resource !== null && "resourceType" in resource
      ? resource.resourceType
      : null;
  return typeof type === "string" ? type : null;
}

const COLOURS: { [code in CapturedRequest["code"]]?: "green" | "yellow" } = {
  valid: "green",
  unverified: "yellow",
};

/** Formats a request as one line or a few for a person. */
function formatReceived(received: CapturedRequest, io: CliIo): string {
  const paint = createPainter(io);
  const { code, type, id, resourceType, ageSeconds, repeated, bytes, status } = received;
  const colour = COLOURS[code] ?? "red";
  const facts = [
    type === null ? `${received.method} ${received.path}` : `${type} ${id}`,
    ...(resourceType === null ? [] : [resourceType]),
    ...(ageSeconds === null ? [] : [`signature ${formatAge(ageSeconds)}`]),
    `${bytes} bytes`,
    ...(repeated ? ["repeated"] : []),
    `response ${status}`,
  ];
  const lines = [
    `${paint("dim", received.at.slice(11, 19))} ${paint(colour, code)} ${printable(facts.join(", "))}`,
    ...(colour === "red" ? [`  ${printable(received.message)}`] : []),
    ...listDetails(received),
  ];
  return `${lines.join("\n")}\n`;
}

const listDetails = ({ saved, forwardError, body }: CapturedRequest): string[] => [
  ...(saved === undefined ? [] : [`  saved as ${printable(saved)}`]),
  ...(forwardError === undefined ? [] : [`  not forwarded: ${printable(forwardError)}`]),
  ...(body === undefined ? [] : JSON.stringify(body, null, 2).split("\n").map(printable)),
];
