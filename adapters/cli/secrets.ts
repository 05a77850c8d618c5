/** Finds the secrets that a command verifies and signs with. */

import { readFile } from "node:fs/promises";
import { isSecret } from "../../src/signature/signature.js";
import { type CliIo, printable } from "./command.js";
import { readAll } from "./http-message.js";

export const secretOptions = {
  secret: { type: "string", multiple: true, default: [] as string[] },
  "secret-file": { type: "string", multiple: true, default: [] as string[] },
  header: { type: "string", default: "X-Service-Signature" },
} as const;

export const secretDetails = `  --secret-file FILE  file with the webhook's secrets, one per line, or with the response of its registration;
                      can be repeated; - is the standard input
  --secret SECRET     the secret itself; other users of this machine can read it in the list of processes
                      Without either, the environment variable POSTBELL_SECRET is used.
  --header NAME       header of the signature; default X-Service-Signature`;

export interface SecretSource {
  texts: string[];
  files: string[];
}

/** @throws `Error` whose message is for the user. */
export function readSecretSource(values: { secret: string[]; "secret-file": string[] }): SecretSource {
  if (!values.secret.every(isSecret)) throw new Error("--secret is empty, or a public key.");
  return { texts: values.secret, files: values["secret-file"] };
}

export interface FoundSecrets {
  secrets: string[];
  /** The URL of the webhook, if a file is the response of its registration. */
  url?: string | undefined;
}

/**
 * Reads the secrets from their files, or else from the environment.
 *
 * @throws `Error` whose message is for the user, if a file cannot be read or has no secret.
 */
export async function findSecrets(
  { texts, files }: SecretSource,
  { env, stdin }: CliIo,
): Promise<FoundSecrets> {
  const secrets = [...texts];
  let url: string | undefined;
  for (const file of files) {
    const [text, name] =
      file === "-" ? [await readText(stdin), "the standard input"] : [await readFile(file, "utf8"), file];
    const found = parseSecrets(text, name);
    secrets.push(...found.secrets);
    url ??= found.url;
  }
  const fromEnvironment = env["POSTBELL_SECRET"];
  if (secrets.length === 0 && isSecret(fromEnvironment)) secrets.push(fromEnvironment);
  return { secrets, url };
}

async function readText(stdin: CliIo["stdin"]): Promise<string> {
  const bytes = await readAll(stdin);
  if (bytes === undefined) throw new Error("The standard input is too large to hold secrets.");
  return bytes.toString("utf8");
}

/** The response of a registration starts with a brace, which no secret does. */
function parseSecrets(text: string, name: string): FoundSecrets {
  if (text.trimStart().startsWith("{")) return readResponse(text, name);
  const secrets = text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter(isSecret);
  if (secrets.length > 0) return { secrets };
  throw new Error(`There is no secret in ${name}.`);
}

interface Registered {
  webhook?: { url?: unknown } | null;
  secret?: unknown;
  error?: { message?: unknown } | null;
}

function readResponse(text: string, name: string): FoundSecrets {
  let response: Registered;
  try {
    response = JSON.parse(text) as Registered;
  } catch {
    throw new Error(`The JSON in ${name} cannot be parsed.`);
  }
  const { webhook, secret, error } = response;
  const url = webhook?.url;
  if (isSecret(secret)) return { secrets: [secret], url: typeof url === "string" ? url : undefined };
  const cause = error == null ? "" : ` It is an error: ${printable(String(error.message))}`;
  throw new Error(`The response in ${name} has no secret.${cause}`);
}
