/** `postbell listen`: receives notifications on this machine and shows them. */

import { mkdir, readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { parseUrl } from "../../src/core/parse-url.js";
import {
  type CliIo,
  defineCommand,
  readUrl,
  readWholeNumber,
  refuseOperands,
  toMessage,
  waitForEnd,
} from "./command.js";
import { createListener } from "./listener.js";
import { findSecrets, readSecretSource, secretDetails, secretOptions } from "./secrets.js";

/** Each connection may hold a request of 17 MiB in memory. */
const MAX_CONNECTIONS = 64;

export const listen = defineCommand({
  usage: "listen [options]",
  summary: "receive notifications on this machine, verify them and show them",
  details: `Runs until it is interrupted. An invalid request gets the response 400, a method other than POST 405.

  --port PORT         default: the port of the webhook's URL, if --secret-file has the response of its registration
                      and the URL is on this machine and names a port; otherwise 8484. 0 selects any free port
  --host HOST         default 127.0.0.1
  --tls-cert FILE     receive over HTTPS; needs --tls-key; both files are PEM
  --tls-key FILE
${secretDetails}
                      Without a secret, nothing is verified.
  --tolerance SECONDS maximum age of a signature, past or future; default 300
  --status LIST       status codes of the responses, in turn; the last one repeats: 500,500,200. Default 204
  --forward URL       forward each request, and respond with the status of URL
  --save DIR          save each request to a file for verify and replay; the files hold complete records
  --body              show complete records
  --json              print one line of JSON per request`,
  options: {
    ...secretOptions,
    port: { type: "string" },
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
    refuseOperands(operands);
    const { host, header, forward, save, body, json } = values;
    return {
      host,
      header,
      save,
      body,
      json,
      tls: readTls(values["tls-cert"], values["tls-key"]),
      port:
        values.port === undefined
          ? undefined
          : readWholeNumber(values.port, "--port", { min: 0, max: 65_535 }),
      toleranceMs: 1_000 * readWholeNumber(values.tolerance, "--tolerance", { min: 0, max: 1e12 }),
      statuses: values.status
        .split(",")
        .map((one) => readWholeNumber(one.trim(), "--status", { min: 200, max: 599 })),
      forward: forward === undefined ? undefined : readUrl(forward, "--forward"),
      source: readSecretSource(values),
    };
  },
  async run({ source, tls, port, host, ...settings }, io) {
    const { secrets, url } = await findSecrets(source, io);
    if (settings.save !== undefined) await mkdir(settings.save, { recursive: true });
    const server = await openServer(tls, createListener({ ...settings, secrets }, io), io);
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port ?? toLocalPort(url) ?? DEFAULT_PORT, host, resolve);
    });
    const { port: listeningPort } = server.address() as AddressInfo;
    const scheme = tls === undefined ? "http" : "https";
    const warning =
      secrets.length === 0 ? " Nothing is verified: give the webhook's secret with --secret-file." : "";
    io.stderr.write(
      `Listening on ${scheme}://${host.includes(":") ? `[${host}]` : host}:${listeningPort}/.${warning}\n`,
    );
    const code = await waitForEnd(io);
    server.close();
    server.closeAllConnections();
    return code;
  },
});

const DEFAULT_PORT = 8484;

/** Returns the port that a URL of this machine names. A tunnel may change that of another name. */
export function toLocalPort(url: string | undefined): number | undefined {
  const { hostname = "", port = "" } = parseUrl(url ?? "") ?? {};
  if (!/^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)) return undefined;
  return port === "" ? undefined : Number(port);
}

interface TlsFiles {
  cert: string;
  key: string;
}

function readTls(cert: string | undefined, key: string | undefined): TlsFiles | undefined {
  if ((cert === undefined) !== (key === undefined))
    throw new Error("--tls-cert and --tls-key go together: give both or neither.");
  return cert === undefined || key === undefined ? undefined : { cert, key };
}

async function openServer(
  tls: TlsFiles | undefined,
  listener: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
  { stderr }: CliIo,
): Promise<Server> {
  const handler = (request: IncomingMessage, response: ServerResponse): void => {
    listener(request, response).catch((error: unknown) => {
      stderr.write(`postbell: ${toMessage(error)}\n`);
      if (!response.headersSent) response.writeHead(500);
      response.end();
    });
  };
  const server =
    tls === undefined
      ? createServer(handler)
      : createSecureServer({ cert: await readFile(tls.cert), key: await readFile(tls.key) }, handler);
  server.maxConnections = MAX_CONNECTIONS;
  return server;
}
