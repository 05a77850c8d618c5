/** Finds the secrets that a command verifies and signs with. */

import { readFile } from "node:fs/promises";
import { isSecret } from "../src/signature/signature.js";
import type { CliIo } from "./command.js";

export const secretOptions = {
  secret: { type: "string", multiple: true, default: [] as string[] },
  "secret-file": { type: "string", multiple: true, default: [] as string[] },
  header: { type: "string", default: "X-Service-Signature" },
} as const;

export const secretDetails = `  --secret-file FILE  file with the webhook's secrets, one per line; can be repeated
  --secret SECRET     the secret itself; other users of this machine can read it in the list of processes
                      Without either, the environment variable POSTBELL_SECRET is used.
  --header NAME       header of the signature; default X-Service-Signature`;

export interface SecretSource {
  readonly given: readonly string[];
  readonly files: readonly string[];
}

/** @throws `Error` whose message is for the user. */
export function readSecretSource(values: {
  readonly secret: readonly string[];
  readonly "secret-file": readonly string[];
}): SecretSource {
  if (!values.secret.every(isSecret)) throw new Error("--secret is empty.");
  return { given: values.secret, files: values["secret-file"] };
}

/** @throws `Error` whose message is for the user, if a file cannot be read or is empty. */
export async function findSecrets(
  { given, files }: SecretSource,
  { env }: CliIo,
): Promise<readonly string[]> {
  const read = await Promise.all(
    files.map(async (file) => {
      const lines = (await readFile(file, "utf8")).split(/\r?\n/).map((line) => line.trim());
      const secrets = lines.filter(isSecret);
      if (secrets.length === 0) throw new Error(`There is no secret in ${file}.`);
      return secrets;
    }),
  );
  const found = [...given, ...read.flat()];
  const fromEnvironment = env["POSTBELL_SECRET"];
  return found.length === 0 && isSecret(fromEnvironment) ? [fromEnvironment] : found;
}
