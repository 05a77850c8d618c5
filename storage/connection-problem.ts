/**
 * Describes why no connection to a server can be made: in words for an operator, and without
 * secrets. Messages of drivers are not quoted, because they may contain a password or a command.
 */

export interface ConnectionProblem {
  /** Begins with a code: `ECONNREFUSED 127.0.0.1:6379`. */
  reason: string;
  /** Names what to change. Empty if waiting may help. */
  advice: string;
  /** True if trying again cannot help until somebody changes the configuration. */
  isPermanent: boolean;
}

const AUTHORITY =
  "The certificate of the server is not signed by an authority that this process knows. Give the certificate of the authority as `ca` in the TLS options of the connection.";

/** Names what to change about TLS, by the code of Node or OpenSSL. */
const TLS_ADVICE: readonly (readonly [code: RegExp, advice: string])[] = [
  [/^(?:DEPTH_ZERO_)?SELF_SIGNED_CERT|^UNABLE_TO_(?:VERIFY|GET_ISSUER)|^CERT_UNTRUSTED$/, AUTHORITY],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    "The certificate of the server is for another host name. Connect by a name that it contains, or set `servername` in the TLS options of the connection.",
  ],
  [
    /^CERT_(?:HAS_EXPIRED|NOT_YET_VALID)$/,
    "Renew the certificate of the server, or correct the clock of this machine.",
  ],
  [
    /^ERR_SSL_.*CERTIFICATE_REQUIRED$/,
    "The server requires a certificate of the client. Give `cert` and `key` in the TLS options of the connection.",
  ],
  [
    /^CERT_|^ERR_SSL_.*(?:CERTIFICATE|UNKNOWN_CA)/,
    "The server or this process refuses the certificate of the other. Correct the TLS options of the connection.",
  ],
  [
    /^ERR_SSL_|^EPROTO$/,
    "The server does not speak TLS on this port, or no version of it that this process accepts. Connect without TLS, or to the port for TLS.",
  ],
];

const UNREADABLE =
  "A certificate or key of the TLS options cannot be read. Correct its path, or let this process read it.";

interface Failure {
  syscall?: unknown;
  code?: unknown;
  address?: unknown;
  port?: unknown;
  hostname?: unknown;
  errors?: readonly unknown[] | undefined;
}

const isText = (value: unknown): value is string => typeof value === "string";

/** Returns the place that a system error names. It is an address, a host name or a path. */
function toPlace({ address, port, hostname }: Failure): string {
  if (isText(address)) return typeof port === "number" ? `${address}:${port}` : address;
  return isText(hostname) ? hostname : "";
}

/**
 * Returns the problem that an error of the system or of TLS describes; `undefined` for others. Node
 * reports the failures of several addresses of one name in one error: the first is described.
 */
export function describeConnectionProblem(error: unknown): ConnectionProblem | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  const { code, errors } = error as Failure;
  const [first] = Array.isArray(errors) ? (errors as readonly unknown[]) : [];
  if (first !== undefined) return describeConnectionProblem(first);
  if (!isText(code) || !/^[A-Z][A-Z0-9_]{3,60}$/.test(code)) return undefined;
  // Connecting opens no other file.
  const isUnreadable = (error as Failure).syscall === "open";
  const [, advice = ""] = isUnreadable
    ? [code, UNREADABLE]
    : (TLS_ADVICE.find(([known]) => known.test(code)) ?? []);
  if (advice !== "") return { reason: code, advice, isPermanent: true };
  const place = toPlace(error as Failure).slice(0, 300);
  return { reason: place === "" ? code : `${code} ${place}`, advice: "", isPermanent: false };
}
