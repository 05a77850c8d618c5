/** Checks certificates that a host wants to trust, before a connection needs them. */

import { X509Certificate } from "node:crypto";

/** About four times what the roots of Node take. */
const MAX_BYTES = 1_048_576;
const BEGIN = "-----BEGIN CERTIFICATE-----";
const END = "-----END CERTIFICATE-----";

/**
 * Returns `undefined` if `given` is one or more certificates in PEM, else the end of the sentence
 * "must be …". Text between the certificates is ignored, as in a bundle with comments.
 *
 * Node's TLS ignores what it cannot read, so that a wrong file would show up only as a failure of
 * every delivery.
 */
export function checkCertificates(given: unknown): string | undefined {
  if (typeof given !== "string" && !(given instanceof Uint8Array)) return "certificates in PEM";
  if (given.length > MAX_BYTES) return `certificates in PEM of at most ${MAX_BYTES} bytes`;
  const [, ...blocks] = Buffer.from(given as Uint8Array)
    .toString("latin1")
    .split(BEGIN);
  if (blocks.length === 0) return `certificates in PEM, with at least one '${BEGIN}'`;
  const broken = blocks.findIndex((block) => !isCertificate(block));
  return broken === -1
    ? undefined
    : `certificates in PEM, each readable (certificate ${broken + 1} of ${blocks.length} is not)`;
}

/** @param block the text after `BEGIN`. */
function isCertificate(block: string): boolean {
  const end = block.indexOf(END);
  if (end === -1) return false;
  try {
    new X509Certificate(BEGIN + block.slice(0, end) + END);
    return true;
  } catch {
    return false;
  }
}
