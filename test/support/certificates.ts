/** Certificates made on the spot, so that TLS is tested with verification on. */

import { generate } from "selfsigned";

export interface Certificate {
  /** PEM. */
  readonly cert: string;
  /** PEM of the private key. */
  readonly key: string;
}

const DAY_MS = 24 * 60 * 60 * 1000;
const EXPIRED = {
  notBeforeDate: new Date(Date.now() - 10 * DAY_MS),
  notAfterDate: new Date(Date.now() - DAY_MS),
};

/** A test CA; give its `cert` to the sender as `ca`. */
export async function makeAuthority(name = "Postbell test CA"): Promise<Certificate> {
  const made = await generate([{ name: "commonName", value: name }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  return { cert: made.cert, key: made.private };
}

export interface Issue {
  /** Signs itself where it is left out. */
  readonly authority?: Certificate | undefined;
  /** DNS names and IPv4 addresses the certificate is for. */
  readonly names: readonly string[];
  readonly expired?: boolean | undefined;
  /** For the client's side of TLS. */
  readonly forClients?: boolean | undefined;
}

/** A server certificate, or one of a client. */
export async function issue({
  authority,
  names,
  expired = false,
  forClients = false,
}: Issue): Promise<Certificate> {
  const made = await generate([{ name: "commonName", value: names[0] ?? "unnamed" }], {
    keyType: "ec",
    algorithm: "sha256",
    ...(authority ? { ca: authority } : {}),
    ...(expired ? EXPIRED : {}),
    extensions: [
      { name: "basicConstraints", cA: false },
      { name: "keyUsage", digitalSignature: true },
      { name: "extKeyUsage", ...(forClients ? { clientAuth: true } : { serverAuth: true }) },
      {
        name: "subjectAltName",
        altNames: names.map((name) =>
          /^[\d.]+$/.test(name) ? { type: 7, ip: name } : { type: 2, value: name },
        ),
      },
    ],
  });
  return { cert: made.cert, key: made.private };
}
