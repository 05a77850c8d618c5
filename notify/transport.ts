/** Makes the one connection to the mail server, or takes the host's own transporter. */

import { PostbellError } from "../src/core/errors.js";
import type { SmtpNotifierOptions, Transporter } from "./options.js";

interface OpenTransport {
  readonly transporter: Transporter;
  readonly close: () => void;
}

/** How long a connection without mail is kept: for the other endpoints that fail with this one. */
const IDLE_MS = 10_000;

/** Errors: `invalid_option` where `nodemailer` is not installed. */
export async function openTransport(
  transport: SmtpNotifierOptions["transport"],
  timeoutMs: number,
): Promise<OpenTransport> {
  if (isTransporter(transport)) return { transporter: transport, close: () => {} };
  const nodemailer = await loadNodemailer();
  const preset = {
    ...{ pool: true, maxConnections: 1, idleTimeout: IDLE_MS },
    ...{ connectionTimeout: timeoutMs, greetingTimeout: timeoutMs, socketTimeout: timeoutMs },
  };
  const made = nodemailer.createTransport(
    typeof transport === "string" ? withPreset(transport, preset) : optionsWithPreset(transport, preset),
  );
  // Each failure is told by the mail that met it; an event without a listener would end the process.
  made.on("error", () => {});
  return { transporter: made, close: () => made.close() };
}

const isTransporter = (given: string | object): given is Transporter =>
  typeof given === "object" && "sendMail" in given && typeof given.sendMail === "function";

type Preset = Readonly<Record<string, string | number | boolean>>;

/** In the query of the URL, where every version of nodemailer reads it. What the host set there stays. */
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
  // Credentials are not sent in the clear because somebody on the way took STARTTLS out.
  return { ...preset, ...("auth" in given ? { requireTLS: true } : {}), ...given };
}

interface Nodemailer {
  createTransport(options: string | object): Transporter & {
    on(event: "error", listener: () => void): unknown;
    close(): void;
  };
}

async function loadNodemailer(): Promise<Nodemailer> {
  try {
    // Its default export is there in every version: before 10 it was CommonJS.
    return (await import("nodemailer")).default as Nodemailer;
  } catch (cause) {
    throw new PostbellError(
      "invalid_option",
      "smtpNotifier: install the package `nodemailer` beside postbell.",
      { field: "transport", cause },
    );
  }
}
