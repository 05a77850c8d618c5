/** Opens the connection to the mail server, or uses the host's own transporter. */

import { ignoreErrors } from "../../src/core/error-events.js";
import { importFromPackage } from "../../src/core/import-package.js";
import type { SmtpNotifierOptions, Transporter } from "./options.js";

interface OpenTransport {
  readonly transporter: Transporter;
  readonly close: () => void;
}

/** Time until a connection without mails closes. Endpoints often fail together. */
const IDLE_MS = 10_000;

/** @throws `invalid_option` if `nodemailer` is not installed. */
export async function openTransport(
  transport: SmtpNotifierOptions["transport"],
  timeoutMs: number,
): Promise<OpenTransport> {
  // The mail that met an error reports it. Without a listener, the event would crash the process.
  if (isTransporter(transport)) {
    ignoreErrors(transport);
    return { transporter: transport, close: () => {} };
  }
  const createTransport = await importFromPackage<CreateTransport>(
    () => import("nodemailer"),
    "createTransport",
    { message: "smtpNotifier needs the package nodemailer: npm install nodemailer.", field: "transport" },
  );
  const preset = {
    ...{ pool: true, maxConnections: 1, idleTimeout: IDLE_MS },
    ...{ connectionTimeout: timeoutMs, greetingTimeout: timeoutMs, socketTimeout: timeoutMs },
  };
  const made = createTransport(
    typeof transport === "string" ? withPreset(transport, preset) : optionsWithPreset(transport, preset),
  );
  ignoreErrors(made);
  return { transporter: made, close: () => made.close() };
}

const isTransporter = (given: string | object): given is Transporter =>
  typeof given === "object" && "sendMail" in given && typeof given.sendMail === "function";

type Preset = Readonly<Record<string, string | number | boolean>>;

/**
 * Adds the preset to the query of the URL, where every version of nodemailer reads it. Values of
 * the host stay.
 */
function withPreset(text: string, preset: Preset): string {
  const url = new URL(text);
  const isPrivate = url.username === "" || url.protocol === "smtps:";
  const all: Preset = isPrivate ? preset : { ...preset, requireTLS: true };
  for (const [name, value] of Object.entries(all))
    if (!url.searchParams.has(name)) url.searchParams.set(name, String(value));
  return url.href;
}

function optionsWithPreset(given: object, preset: Preset): object {
  if ("url" in given && typeof given.url === "string")
    return { ...given, url: withPreset(given.url, preset) };
  // Otherwise an attacker who removes STARTTLS could read the credentials.
  return { ...preset, ...("auth" in given ? { requireTLS: true } : {}), ...given };
}

type CreateTransport = (options: string | object) => Transporter & { close(): void };
