/** Where a command finds the secrets it verifies and signs with. */

import { readFile } from "node:fs/promises";
import { isSecret } from "../src/signature/signature.js";
import type { CliIo } from "./command.js";

export const secretOptions = {
  secret: { type: "string", multiple: true, default: [] as string[] },
  "secret-file": { type: "string", multiple: true, default: [] as string[] },
  header: { type: "string", default: "X-Service-Signature" },
} as const;

export const secretDetails = `  --secret-file FILE  the webhook's secret, one a line; may be repeated
  --secret SECRET     the same in the open: others on this machine can read it in the list of processes
                      Without either, the environment variable POSTBELL_SECRET is taken.
  --header NAME       of the signature; default X-Service-Signature`;

export interface SecretSource {
  readonly given: readonly string[];
  readonly files: readonly string[];
}

/** Errors: Error with a sentence for whoever typed it. */
export function readSecretSource(values: {
  readonly secret: readonly string[];
  readonly "secret-file": readonly string[];
}): SecretSource {
  if (!values.secret.every(isSecret)) throw new Error("--secret is empty.");
  return { given: values.secret, files: values["secret-file"] };
}

/** Errors: Error with a sentence, where a file cannot be read or is empty. */
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
