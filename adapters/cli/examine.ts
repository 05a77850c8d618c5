/** `postbell examine`: sends good and bad test notifications to an endpoint, and reports. */

import { randomUUID } from "node:crypto";
import { lookup } from "node:dns/promises";
import { systemClock } from "../../src/core/clock.js";
import { parseUrl } from "../../src/core/parse-url.js";
import { createOutboundClient } from "../../src/outbound/client.js";
import { createAddressPolicy } from "../../src/outbound/destination-options.js";
import type { ExaminationCheck } from "../../src/webhooks/delivery/examination.js";
import { type ExaminedEndpoint, examineEndpoint } from "../../src/webhooks/delivery/examine.js";
import {
  type CliIo,
  createPainter,
  defineCommand,
  EXIT,
  printable,
  readUrl,
  refuseOperands,
  wrongUsage,
} from "./command.js";
import { findSecrets, readSecretSource, secretDetails, secretOptions } from "./secrets.js";

/** The hosts of development machines. */
const LOCAL_HOST = /^(?:localhost|127\.[\d.]+|\[::1\]|.+\.(?:localhost|test))$/;

const STANDARD_SECRET = /^whsec_[A-Za-z0-9+/]+={0,2}$/;

/** As `createWebhooks` has them by default. */
const DEADLINE_MS = 15_000;
const MAX_RESPONSE_BYTES = 16_384;
const NOTIFICATION_BYTES = 262_144;

export const examine = defineCommand({
  usage: "examine URL --secret-file FILE [options]",
  summary:
    "send good and bad test notifications to an endpoint; report what it does wrong and how to repair it",
  details: `Sends a correct notification, wrong and old signatures, a repetition, an unknown type, a slow and a large body.
All are marked as tests. Exits with 3 if a check fails or cannot be decided. The endpoint may be in any network that this machine reaches.

${secretDetails}
  --plain             send plain events, as with the option body: "plain"; default: notifications with FHIR
  --live              confirms that an endpoint on another machine, which may be in production, is examined
  --json              print the report as JSON`,
  options: {
    ...secretOptions,
    plain: { type: "boolean", default: false },
    live: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
  read({ plain, live, json, header, ...options }, [address, ...more]) {
    refuseOperands(more);
    if (address === undefined) throw new Error("The URL of the endpoint is missing.");
    const url = readUrl(address, "URL");
    const host = parseUrl(url)?.hostname ?? "";
    if (!live && !LOCAL_HOST.test(host))
      throw new Error(
        `${printable(host)} is not this machine, and its endpoint may be in production: confirm with --live.`,
      );
    return { url, host, isPlain: plain, json, header, source: readSecretSource(options) };
  },
  async run({ url, host, isPlain, json, header, source }, io) {
    const [secret] = (await findSecrets(source, io)).secrets;
    if (secret === undefined)
      throw wrongUsage("There is no secret: give --secret-file, --secret or POSTBELL_SECRET.");
    const client = createOutboundClient({
      clock: systemClock,
      // The user names the host, and could reach it without this command.
      policy: createAddressPolicy({ allowHttp: true, allow: [host.replace(/^\[|\]$/g, "")] }),
      resolve: async (name) => (await lookup(name, { all: true })).map(({ address }) => address),
    });
    const stop = (): void => void client.close();
    io.signal.addEventListener("abort", stop, { once: true });
    try {
      const endpoint = describeEndpoint({ url, secret, isPlain, header });
      const at = new Date(systemClock.now());
      const bounds = { clock: systemClock, startedAt: systemClock.monotonic(), signal: io.signal };
      const report = { at, ...(await examineEndpoint(endpoint, client.send, bounds)) };
      if (json) io.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
      else printReport(report.checks, io);
      return report.isPassed ? EXIT.done : EXIT.invalid;
    } finally {
      io.signal.removeEventListener("abort", stop);
      await client.close();
    }
  },
});

interface ExamineSettings {
  url: string;
  secret: string;
  isPlain: boolean;
  header: string;
}

const describeEndpoint = ({ url, secret, isPlain, header }: ExamineSettings): ExaminedEndpoint => ({
  url,
  id: randomUUID(),
  account: "",
  secrets: [secret],
  signature: { header, standardWebhooks: STANDARD_SECRET.test(secret), ed25519: [] },
  body: isPlain ? "plain" : "notification",
  eventIdField: false,
  deadlineMs: DEADLINE_MS,
  maxResponseBytes: MAX_RESPONSE_BYTES,
  notificationBytes: NOTIFICATION_BYTES,
  canSendSlowly: true,
  catalogue: { types: new Map(), names: [], prefixes: new Set() },
  isOwnNetwork: true,
  addHeaders: (request) => request,
});

const MARKS = { passed: ["green", "pass"], failed: ["red", "FAIL"], skipped: ["dim", "skip"] } as const;

/** Says what the endpoint did. */
function describeResponse({ status, code, durationMs }: ExaminationCheck): string {
  if (durationMs === null) return "not checked";
  const response = status === null ? `no response: ${printable(code ?? "")}` : `status ${status}`;
  return `${response}, ${durationMs} ms`;
}

function printReport(checks: readonly ExaminationCheck[], io: CliIo): void {
  const paint = createPainter(io);
  const width = Math.max(...checks.map(({ title }) => title.length));
  for (const check of checks) {
    const [colour, mark] = MARKS[check.result];
    const { title, expected, fix } = check;
    io.stdout.write(`${paint(colour, mark)}  ${title.padEnd(width)}  ${describeResponse(check)}\n`);
    if (fix !== null) io.stdout.write(`      Expected ${expected}. ${fix}\n`);
  }
}
