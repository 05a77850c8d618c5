/** `postbell verify`: says of a saved request whether a receiver may trust it. */

import { readFile } from "node:fs/promises";
import { systemClock } from "../src/core/clock.js";
import {
  type CliIo,
  command,
  EXIT,
  NO_ARGUMENTS,
  painter,
  printable,
  readWholeNumber,
  wrongUsage,
} from "./command.js";
import { readMessage } from "./http-message.js";
import { readAll, TOO_LARGE } from "./read-all.js";
import { findSecrets, readSecretSource, secretDetails, secretOptions } from "./secrets.js";
import { checkSignature, type SignatureReport } from "./signature-report.js";

export const verify = command({
  usage: "verify FILE --secret-file FILE [options]",
  summary: "say whether a saved notification is valid; if not, which check failed and what to change",
  details: `FILE is a request as 'postbell listen --save' writes it (request line, headers, an empty line, the body), or the
output of 'curl -v' with the body below it; - is standard input.

${secretDetails}
  --tolerance SECONDS how old the signature may be, or from the future; default 300
  --at TIME           verify as if it were this time: ISO 8601, such as 2026-11-20T09:30:00Z
  --json              print the result as JSON`,
  options: {
    ...secretOptions,
    tolerance: { type: "string", default: "300" },
    at: { type: "string" },
    json: { type: "boolean", default: false },
  },
  read({ tolerance, at, header, json, ...given }, [file, ...more]) {
    NO_ARGUMENTS(more);
    if (file === undefined) throw new Error("The file to verify is missing.");
    const toleranceSeconds = readWholeNumber(tolerance, "--tolerance", { min: 0, max: 1e12 });
    const time = at === undefined ? undefined : readTimeOption(at, "--at");
    return { file, header, json, toleranceSeconds, time, source: readSecretSource(given) };
  },
  async run({ file, header, json, toleranceSeconds, time, source }, io) {
    const secrets = await findSecrets(source, io);
    if (secrets.length === 0)
      throw wrongUsage("There is no secret: give --secret-file, --secret or POSTBELL_SECRET.");
    const bytes = file === "-" ? await readAll(io.stdin) : await readFile(file);
    if (bytes === undefined) throw new Error(TOO_LARGE);
    const message = readMessage(bytes);
    const now = time ?? systemClock.now();
    const verdict = checkSignature(message, { secrets, toleranceSeconds, signatureHeader: header, now });
    if (json) io.stdout.write(`${JSON.stringify(resultOf(verdict, message.notes))}\n`);
    else tell(verdict, message.notes, io);
    return verdict.code === "valid" ? EXIT.done : EXIT.invalid;
  },
});

export function readTimeOption(text: string, name: string): number {
  const time = /^\d{4}-\d\d-\d\d(?:T|$)/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time)) throw new Error(`${name} must be a time such as 2026-11-20T09:30:00Z.`);
  return time;
}

function resultOf(
  { code, message, ageSeconds, notification }: SignatureReport,
  notes: readonly string[],
): object {
  const { id = null, timestamp = null } = notification ?? {};
  const type = notification?.event["hub.event"] ?? null;
  return { valid: code === "valid", code, message, ageSeconds, id, type, timestamp, notes };
}

function tell(
  { code, message, ageSeconds, notification }: SignatureReport,
  notes: readonly string[],
  io: CliIo,
): void {
  const paint = painter(io);
  const say = (line: string): void => void io.stdout.write(`${line}\n`);
  say(
    code === "valid"
      ? `${paint("green", "valid")}: signed ${ageSeconds} s before.`
      : `${paint("red", "not valid")}: ${code}\n${message}`,
  );
  if (notification)
    say(printable(`${notification.event["hub.event"]} ${notification.id}, of ${notification.timestamp}`));
  for (const note of notes) say(`Note: ${note}`);
}
