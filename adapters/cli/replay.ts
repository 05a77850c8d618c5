/** `postbell replay`: sends saved requests again. */

import { readFile } from "node:fs/promises";
import { systemClock } from "../../src/core/clock.js";
import { signatureHeader, standardHeaders } from "../../src/signature/signature.js";
import { createPainter, defineCommand, EXIT, printable, readUrl, toMessage } from "./command.js";
import { getHeader, type HttpMessage, readMessage, sendRequest } from "./http-message.js";
import { findSecrets, readSecretSource, secretDetails, secretOptions } from "./secrets.js";

export const replay = defineCommand({
  usage: "replay FILE... --to URL [options]",
  summary: "send saved notifications again, byte for byte, or with a new signature",
  details: `FILE is a request that 'postbell listen --save' wrote. With a secret, it gets a new signature with the current
time; without one, it is sent unchanged. Exits with 1 unless every response is a 2xx.

  --to URL            where to send it; the path in FILE is ignored
${secretDetails}
  --json              print a line of JSON for each file`,
  options: {
    ...secretOptions,
    to: { type: "string", default: "" },
    json: { type: "boolean", default: false },
  },
  read({ to, header, json, ...options }, files) {
    if (files.length === 0) throw new Error("The file to send is missing.");
    if (to === "") throw new Error("--to is missing: give the URL to send to.");
    return { files, to: readUrl(to, "--to"), header, json, source: readSecretSource(options) };
  },
  async run({ files, to, header, json, source }, io) {
    const paint = createPainter(io);
    const { secrets } = await findSecrets(source, io);
    const [secret] = secrets;
    const sendFile = async (file: string): Promise<number> => {
      const message = readMessage(await readFile(file));
      const signed = secret === undefined ? message : signAgain(message, header, secret, systemClock.now());
      return sendRequest(signed, to, io.signal);
    };
    let failures = 0;
    for (const file of files) {
      const startedAt = systemClock.monotonic();
      const result = await sendFile(file).catch((error: unknown) => {
        if (io.signal.aborted) throw error;
        return toMessage(error);
      });
      const ms = Math.round(systemClock.monotonic() - startedAt);
      const isAccepted = typeof result === "number" && result >= 200 && result < 300;
      if (!isAccepted) failures++;
      const line = json
        ? JSON.stringify({
            file,
            ...(typeof result === "number" ? { status: result } : { error: result }),
            durationMs: ms,
            signedAnew: secret !== undefined,
          })
        : printable(`${file}: `) +
          paint(isAccepted ? "green" : "red", printable(String(result))) +
          ` (${ms} ms)`;
      io.stdout.write(`${line}\n`);
    }
    return failures === 0 ? EXIT.done : EXIT.failed;
  },
});

/**
 * Signs a request again with the current time. If it has headers of the Standard Webhooks scheme,
 * these are replaced too. Pure.
 */
function signAgain<M extends HttpMessage>(message: M, header: string, secret: string, now: number): M {
  const timestamp = Math.floor(now / 1000);
  const { body } = message;
  const id = getHeader(message, "webhook-id");
  const made: [string, string][] = [
    [header, signatureHeader({ secret, timestamp, body })],
    ...(id === undefined ? [] : Object.entries(standardHeaders({ secrets: [secret], id, timestamp, body }))),
  ];
  const replaced = new Set(made.map(([name]) => name.toLowerCase()));
  const headers = message.headers.filter(([name]) => !replaced.has(name.toLowerCase()));
  return { ...message, headers: [...headers, ...made] };
}
