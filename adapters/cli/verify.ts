/** `postbell verify`: reports if a receiver may trust a saved request. */

import { readFile } from "node:fs/promises";
import { systemClock } from "../../src/core/clock.js";
import {
  type CliIo,
  createPainter,
  defineCommand,
  EXIT,
  printable,
  readWholeNumber,
  refuseOperands,
  wrongUsage,
} from "./command.js";
import { readAll, readMessage, TOO_LARGE } from "./http-message.js";
import { findSecrets, readSecretSource, secretDetails, secretOptions } from "./secrets.js";
import { checkSignature, formatAge, type SignatureReport, typeOfNotification } from "./signature-report.js";

export const verify = defineCommand({
  usage: "verify FILE --secret-file FILE [options]",
  summary: "check if a saved notification is valid; if not, report which check failed and what to change",
  details: `FILE is a request that 'postbell listen --save' wrote (request line, headers, an empty line, the body), or the
output of 'curl -v' with the body below it; - is standard input.

${secretDetails}
  --tolerance SECONDS maximum age of the signature, past or future; default 300
  --at TIME           verify as of this time: ISO 8601, such as 2026-11-20T09:30:00Z
  --json              print the result as JSON`,
  options: {
    ...secretOptions,
    tolerance: { type: "string", default: "300" },
    at: { type: "string" },
    json: { type: "boolean", default: false },
  },
  read({ tolerance, at, header, json, ...options }, [file, ...more]) {
    refuseOperands(more);
    if (file === undefined) throw new Error("The file to verify is missing.");
    if (file === "-" && options["secret-file"].includes("-"))
      throw new Error("The standard input cannot be both the request and the secret: save one to a file.");
    const toleranceMs = 1_000 * readWholeNumber(tolerance, "--tolerance", { min: 0, max: 1e12 });
    const time = at === undefined ? undefined : readTimeOption(at, "--at");
    return { file, header, json, toleranceMs, time, source: readSecretSource(options) };
  },
  async run({ file, header, json, toleranceMs, time, source }, io) {
    const { secrets } = await findSecrets(source, io);
    if (secrets.length === 0)
      throw wrongUsage("There is no secret: give --secret-file, --secret or POSTBELL_SECRET.");
    const bytes = file === "-" ? await readAll(io.stdin) : await readFile(file);
    if (bytes === undefined) throw new Error(TOO_LARGE);
    const message = readMessage(bytes);
    const now = time ?? systemClock.now();
    const report = checkSignature(message, { secrets, toleranceMs, signatureHeader: header, now });
    if (json) io.stdout.write(`${JSON.stringify(toJson(report, message.notes))}\n`);
    else printReport(report, message.notes, io);
    return report.code === "valid" ? EXIT.done : EXIT.invalid;
  },
});

export function readTimeOption(text: string, name: string): number {
  const time = /^\d{4}-\d\d-\d\d(?:T|$)/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time))
    throw new Error(`${name} must be a time such as 2026-11-20T09:30:00Z (got ${printable(text)}).`);
  return time;
}

function toJson({ code, message, ageSeconds, notification }: SignatureReport, notes: string[]): object {
  const { id = null, timestamp = null } = notification ?? {};
  const type = notification === undefined ? null : typeOfNotification(notification);
  return { valid: code === "valid", code, message, ageSeconds, id, type, timestamp, notes };
}

function printReport(
  { code, message, ageSeconds, notification }: SignatureReport,
  notes: string[],
  io: CliIo,
): void {
  const paint = createPainter(io);
  const print = (line: string): void => void io.stdout.write(`${line}\n`);
  const age = ageSeconds === null ? "" : ` The signature is ${formatAge(ageSeconds)}.`;
  print(
    code === "valid"
      ? `${paint("green", "valid")}: ${message}${age}`
      : `${paint("red", "not valid")}: ${code}\n${message}`,
  );
  if (notification)
    print(
      printable(`${typeOfNotification(notification)} ${notification.id}, dated ${notification.timestamp}`),
    );
  for (const note of notes) print(`Note: ${note}`);
}
