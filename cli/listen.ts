/** `postbell listen`: a receiver on this machine that shows what comes in. */

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { LRUCache } from "lru-cache";
import { systemClock } from "../src/core/clock.js";
import {
  type CliIo,
  command,
  EXIT,
  NO_ARGUMENTS,
  painter,
  printable,
  readUrl,
  readWholeNumber,
  toMessage,
} from "./command.js";
import { type HttpMessage, writeMessage } from "./http-message.js";
import { readAll, TOO_LARGE } from "./read-all.js";
import { findSecrets, readSecretSource, secretDetails, secretOptions } from "./secrets.js";
import { send } from "./send-request.js";
import { checkSignature, type SignatureReport } from "./signature-report.js";

const MAX_REMEMBERED = 10_000;
/** Each may bring a request of 17 MiB, which is held in memory. */
const MAX_CONNECTIONS = 64;

export const listen = command({
  usage: "listen [options]",
  summary: "receive notifications on this machine, verify them and show them",
  details: `Ends when it is interrupted. What is not valid is answered 400, other methods than POST 405.

  --port PORT         default 8484; 0 takes any that is free
  --host HOST         default 127.0.0.1
  --tls-cert FILE     with --tls-key: receives over HTTPS; both in PEM
  --tls-key FILE
${secretDetails}
                      Without a secret nothing is verified.
  --tolerance SECONDS how old a signature may be, or from the future; default 300
  --status LIST       what is answered, in turn; the last one stays: 500,500,200. Default 204
  --forward URL       hands each request on, and answers as URL does
  --save DIR          keeps each request as a file, for verify and replay; they hold the records in full
  --body              shows the records in full
  --json              print a line of JSON for each request`,
  options: {
    ...secretOptions,
    port: { type: "string", default: "8484" },
    host: { type: "string", default: "127.0.0.1" },
    "tls-cert": { type: "string" },
    "tls-key": { type: "string" },
    tolerance: { type: "string", default: "300" },
    status: { type: "string", default: "204" },
    forward: { type: "string" },
    save: { type: "string" },
    body: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
  read(values, operands) {
    NO_ARGUMENTS(operands);
    const { host, header, forward, save, body, json, "tls-cert": cert, "tls-key": key } = values;
    if ((cert === undefined) !== (key === undefined))
      throw new Error("--tls-cert and --tls-key go together.");
    return {
      ...{ host, header, save, body, json },
      tls: cert === undefined || key === undefined ? undefined : { cert, key },
      port: readWholeNumber(values.port, "--port", { min: 0, max: 65_535 }),
      toleranceSeconds: readWholeNumber(values.tolerance, "--tolerance", { min: 0, max: 1e12 }),
      statuses: values.status
        .split(",")
        .map((one) => readWholeNumber(one.trim(), "--status", { min: 200, max: 599 })),
      forward: forward === undefined ? undefined : readUrl(forward, "--forward"),
      source: readSecretSource(values),
    };
  },
  async run({ source, tls, ...settings }, io) {
    const secrets = await findSecrets(source, io);
    if (settings.save !== undefined) await mkdir(settings.save, { recursive: true });
    const answer = answering({ ...settings, secrets }, io);
    const handler = (request: IncomingMessage, response: ServerResponse): void => {
      answer(request, response).catch((error: unknown) => {
        io.stderr.write(`postbell: ${toMessage(error)}\n`);
        if (!response.headersSent) response.writeHead(500);
        response.end();
      });
    };
    const server =
      tls === undefined
        ? createServer(handler)
        : createSecureServer({ cert: await readFile(tls.cert), key: await readFile(tls.key) }, handler);
    server.maxConnections = MAX_CONNECTIONS;
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(settings.port, settings.host, resolve);
    });
    const { port } = server.address() as AddressInfo;
    const host = settings.host.includes(":") ? `[${settings.host}]` : settings.host;
    const verified = secrets.length === 0 ? " Nothing is verified: there is no secret." : "";
    io.stderr.write(`Listening on ${tls === undefined ? "http" : "https"}://${host}:${port}/.${verified}\n`);
    const code = await ended(io);
    server.close();
    server.closeAllConnections();
    return code;
  },
});

/** Until the user interrupts, or nobody reads any more, as after `| head`. */
const ended = ({ signal, stdout }: CliIo): Promise<typeof EXIT.interrupted | typeof EXIT.done> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(EXIT.interrupted);
    signal.addEventListener("abort", () => resolve(EXIT.interrupted), { once: true });
    stdout.once("error", () => resolve(EXIT.done));
  });

interface ListenSettings {
  readonly secrets: readonly string[];
  readonly header: string;
  readonly toleranceSeconds: number;
  readonly statuses: readonly number[];
  readonly forward: string | undefined;
  readonly save: string | undefined;
  readonly body: boolean;
  readonly json: boolean;
}

interface Shown {
  readonly at: string;
  readonly method: string;
  readonly path: string;
  readonly type: string | null;
  readonly id: string | null;
  readonly timestamp: string | null;
  /** Of the focal resource. */
  readonly resourceType: string | null;
  readonly code: SignatureReport["code"] | "method_not_allowed";
  readonly message: string;
  readonly ageSeconds: number | null;
  /** Whether the event came before, since the command runs. */
  readonly repeated: boolean;
  readonly bytes: number;
  readonly status: number;
  readonly saved?: string | undefined;
  readonly forwardError?: string | undefined;
  readonly body?: unknown;
}

function answering(settings: ListenSettings, io: CliIo) {
  const { secrets, header, toleranceSeconds, statuses, forward, save } = settings;
  const seen = new LRUCache<string, true>({ max: MAX_REMEMBERED });
  let count = 0;
  let files = 0;

  const saved = async (message: HttpMessage, name: string): Promise<string | undefined> => {
    if (save === undefined) return undefined;
    for (;;) {
      const file = join(save, `${String(++files).padStart(4, "0")}-${name}.http`);
      try {
        await writeFile(file, writeMessage(message), { flag: "wx", mode: 0o600 });
        return file;
      } catch (error) {
        if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
      }
    }
  };

  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    // Not destroyed where it is too large: the answer goes over the same connection.
    const body = await readAll(request.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>);
    if (body === undefined) {
      io.stderr.write(`postbell: ${TOO_LARGE} It was answered 413.\n`);
      response.writeHead(413, { Connection: "close" }).end();
      return;
    }
    const message: HttpMessage = {
      method: request.method ?? "",
      path: request.url ?? "/",
      headers: pairs(request.rawHeaders),
      body,
    };
    const now = systemClock.now();
    const verdict = checkSignature(message, { secrets, toleranceSeconds, signatureHeader: header, now });
    const { notification } = verdict;
    const type = notification?.event["hub.event"] ?? null;
    const id = notification?.id ?? null;
    const isPost = message.method === "POST";
    const isTrusted = isPost && (verdict.code === "valid" || verdict.code === "unverified");
    const repeated = isTrusted && id !== null && seen.has(id);
    const name = `${type ?? "unknown"}-${id?.slice(0, 8) ?? "none"}`
      .replace(/[^A-Za-z0-9-]+/g, "-")
      .slice(0, 80);
    const file = await saved(message, name);

    let status = isPost ? 400 : 405;
    let forwardError: string | undefined;
    if (isPost && forward !== undefined) {
      const result = await send(message, forward, io.signal).catch(toMessage);
      if (typeof result === "number") status = result;
      else [status, forwardError] = [502, result];
    } else if (isTrusted) {
      status = statuses[Math.min(count++, statuses.length - 1)] ?? 204;
    }
    response.writeHead(status, isPost ? {} : { Allow: "POST" }).end();
    if (isTrusted && id !== null && status < 300) seen.set(id, true);

    const shown: Shown = {
      at: new Date(now).toISOString(),
      ...{ method: message.method, path: message.path, type, id },
      timestamp: notification?.timestamp ?? null,
      resourceType: focalTypeOf(verdict),
      code: isPost ? verdict.code : "method_not_allowed",
      message: isPost ? verdict.message : "Notifications are POSTed.",
      ageSeconds: verdict.ageSeconds,
      repeated,
      bytes: message.body.length,
      status,
      ...(file === undefined ? {} : { saved: file }),
      ...(forwardError === undefined ? {} : { forwardError }),
      ...(settings.body && notification !== undefined ? { body: notification } : {}),
    };
    io.stdout.write(settings.json ? `${JSON.stringify(shown)}\n` : textOf(shown, io));
  };
}

function focalTypeOf({ notification }: SignatureReport): string | null {
  const resource: unknown = notification?.event.context[0].resource.entry[0]?.resource;
  const type =
    typeof resource === "object" && resource !== null && "resourceType" in resource
      ? resource.resourceType
      : null;
  return typeof type === "string" ? type : null;
}

function pairs(raw: readonly string[]): readonly (readonly [string, string])[] {
  return raw.flatMap((name, index) => (index % 2 === 0 ? [[name, raw[index + 1] ?? ""] as const] : []));
}

/** A line or a few for a person. */
function textOf(shown: Shown, io: CliIo): string {
  const paint = painter(io);
  const { code, type, id, resourceType, ageSeconds, repeated, bytes, status } = shown;
  const colour = code === "valid" ? "green" : code === "unverified" ? "yellow" : "red";
  const facts = [
    type === null ? `${shown.method} ${shown.path}` : `${type} ${id}`,
    ...(resourceType === null ? [] : [resourceType]),
    ...(ageSeconds === null ? [] : [`signed ${ageSeconds} s ago`]),
    `${bytes} bytes`,
    ...(repeated ? ["came before"] : []),
    `answered ${status}`,
  ];
  const lines = [
    `${paint("dim", shown.at.slice(11, 19))} ${paint(colour, code)} ${printable(facts.join(", "))}`,
    ...(colour === "red" ? [`  ${printable(shown.message)}`] : []),
    ...(shown.saved === undefined ? [] : [`  saved as ${printable(shown.saved)}`]),
    ...(shown.forwardError === undefined ? [] : [`  not handed on: ${printable(shown.forwardError)}`]),
    ...(shown.body === undefined ? [] : JSON.stringify(shown.body, null, 2).split("\n").map(printable)),
  ];
  return `${lines.join("\n")}\n`;
}
