/** The options that define which hosts may be reached and how, for deliveries and embeds. */

import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { BlockList, isIP } from "node:net";
import { createSecureContext } from "node:tls";
import { flag, hook, listOf, type Option, type OptionValues } from "../core/options.js";
import { parseUrl } from "../core/parse-url.js";
import { type AddressPolicy, type Family, isHostName } from "./address-policy.js";
import { parseProxy } from "./proxy.js";
import type { Resolve } from "./resolver.js";

/**
 * Which hosts may be reached. By default only public hosts, over HTTPS.
 *
 * No option opens link-local addresses, metadata and other services of cloud platforms
 * (169.254.169.254, fd00:ec2::254, 168.63.129.16 …), unspecified, multicast and broadcast
 * addresses, or the ports of other protocols.
 *
 * @example
 * // In production: subscribers in one subnet, and one host by its name.
 * destinations: { allow: ["10.20.0.0/16", "hooks.internal"] }
 * @example
 * // In development and tests, the endpoint is a server on this machine.
 * destinations: { allowHttp: true, allowPrivateNetworks: true }
 */
export interface DestinationOptions {
  /**
   * Allows `http:` URLs, for development and tests. Default false. Without TLS, everybody on the
   * way can read what is delivered.
   */
  allowHttp?: boolean | undefined;
  /**
   * Allows all hosts that are not public, for development and tests; in production, use `allow`.
   * Default false. Everybody who may register a URL can then reach your whole network.
   */
  allowPrivateNetworks?: boolean | undefined;
  /**
   * Hosts that may be reached although they are not public, but never cloud metadata services: at
   * most 256 CIDR blocks and host names, such as `10.20.0.0/16`, `hooks.internal` and
   * `*.svc.cluster.local`. Default: none. An entry is one of these:
   *
   * - a CIDR block, `10.20.0.0/16` or `fd12:3456::/48`: allows the addresses in it. A single
   *   address is the block of that address. An IPv4 block does not allow IPv6 addresses that embed
   *   its addresses.
   * - a host name, `hooks.internal`: allows this name, and every private address that it resolves
   *   to. Case and a trailing dot do not matter. List only names whose DNS you control.
   * - `*.` and a name, `*.svc.cluster.local`: the same for all names below it.
   *
   * It is checked when a webhook is registered, and at each connection for every address of the
   * name and for the connected peer. It does not allow `http:` URLs: see `allowHttp`.
   */
  allow?: readonly string[] | undefined;
  /**
   * Certificates in PEM that are trusted in addition to Node's built-in roots;
   * `NODE_EXTRA_CA_CERTS` is then ignored. Set it for endpoints with certificates of your own
   * authority. Text that is not a list of certificates is refused.
   */
  ca?: string | Uint8Array | undefined;
  /**
   * Replaces the lookup of host names with the system's DNS servers, which ignores hosts files and
   * search domains.
   */
  resolve?: Resolve | undefined;
  /**
   * URL of an HTTP proxy that connections are opened through: `http://user:password@host:port`, or
   * `https:` for TLS to the proxy. Default: none; environment variables are not read.
   *
   * Names are resolved and addresses checked here as without a proxy. The proxy is asked to
   * `CONNECT` to the first checked address; no other one is tried in the same attempt. TLS ends at
   * the endpoint, so only what goes to `http:` URLs (`allowHttp`) can be read by the proxy. A
   * failure of the proxy is a failed attempt with a code such as `PROXY_407` or `PROXY_RESPONSE`.
   * The proxy itself may be in a private network.
   */
  proxy?: string | undefined;
  /**
   * The certificate that endpoints get if they ask for one (mutual TLS). Default: none. One for the
   * service; the proxy never gets it. For deliveries only.
   *
   * @example
   * clientCertificate: { cert: readFileSync("client.pem"), key: readFileSync("client.key") }
   */
  clientCertificate?:
    | {
        /** The certificate in PEM, at most 1 MiB. Those of intermediate authorities may follow. */
        cert: string | Uint8Array;
        /** Its private key in PEM, at most 1 MiB. */
        key: string | Uint8Array;
        /** Decrypts the key, at most 1 024 characters. Leave it out if the key is not encrypted. */
        passphrase?: string | undefined;
      }
    | undefined;
}

/** The most entries of `destinations.allow`: each may be compared for each connection. */
const MAX_ALLOWED_HOSTS = 256;
/** A wildcard and the longest name with a trailing dot. */
const MAX_ENTRY_LENGTH = 256;
const CIDR_BLOCK = /^(?<address>[0-9a-f.:]{2,45})\/(?<length>[0-9]{1,3})$/i;

/** An entry of `destinations.allow`: a block of addresses, or a name as `AllowedHosts` has it. */
type AllowEntry = { family: Family; address: string; length: number } | { name: string };

/** Parses a CIDR block, or an address as the block of that address. */
function parseBlock(entry: string): AllowEntry | undefined {
  const block = CIDR_BLOCK.exec(entry)?.groups;
  const address = block?.["address"] ?? entry;
  const version = address.includes("%") ? 0 : isIP(address);
  if (version === 0) return undefined;
  const bits = version === 4 ? 32 : 128;
  const length = Number(block?.["length"] ?? bits);
  return length <= bits ? { family: version === 4 ? "ipv4" : "ipv6", address, length } : undefined;
}

/** Parses a host name, or `*.` and a name. */
function parseName(entry: string): AllowEntry | undefined {
  const isWildcard = entry.startsWith("*.");
  const written = isWildcard ? entry.slice(2) : entry;
  if (/[^\p{L}\p{N}\p{M}._-]/u.test(written)) return undefined;
  const name = parseUrl(`https://${written}`)?.hostname.replace(/\.$/, "") ?? "";
  // The parser turns `127.1` and `0x7f.1` into addresses.
  if (!isHostName(name) || isIP(name) !== 0) return undefined;
  return { name: isWildcard ? `.${name}` : name };
}

const parseAllowEntry = (entry: unknown): AllowEntry | undefined =>
  typeof entry === "string" && entry.length <= MAX_ENTRY_LENGTH
    ? (parseBlock(entry) ?? parseName(entry))
    : undefined;

/** Checks an entry of `destinations.allow`: returns the end of "must be …", or `undefined`. */
const checkAllowEntry = (entry: unknown): string | undefined =>
  parseAllowEntry(entry) === undefined ? "a CIDR block or a host name" : undefined;

/** Returns the policy of checked options. Copies the list, so later changes have no effect. */
export function createAddressPolicy({
  allowHttp,
  allowPrivateNetworks,
  allow = [],
}: DestinationOptions): AddressPolicy {
  const blocks = { ipv4: new BlockList(), ipv6: new BlockList() };
  const names = new Set<string>();
  for (const entry of allow.map(parseAllowEntry)) {
    if (entry === undefined) continue;
    if ("name" in entry) names.add(entry.name);
    else blocks[entry.family].addSubnet(entry.address, entry.length, entry.family);
  }
  return Object.freeze({ allowHttp, allowPrivateNetworks, allow: Object.freeze({ blocks, names }) });
}

/** About four times what the roots of Node take. */
const MAX_CERTIFICATE_BYTES = 1_048_576;
const BEGIN = "-----BEGIN CERTIFICATE-----";
const END = "-----END CERTIFICATE-----";

/**
 * Returns `undefined` if `input` is one or more certificates in PEM, else the end of the sentence
 * "must be …". Text between the certificates is ignored, as in a bundle with comments.
 *
 * Node's TLS ignores what it cannot read, so that a wrong file would show up only as a failure of
 * every delivery.
 */
function checkCertificates(input: unknown): string | undefined {
  if (typeof input !== "string" && !(input instanceof Uint8Array)) return "certificates in PEM";
  if (input.length > MAX_CERTIFICATE_BYTES)
    return `certificates in PEM of at most ${MAX_CERTIFICATE_BYTES} bytes`;
  const [, ...blocks] = Buffer.from(input as Uint8Array)
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

const certificates: Option<string | Uint8Array | undefined> = {
  default: undefined,
  unit: "certificates in PEM",
  expected: checkCertificates,
};

const proxy: Option<string | undefined> = {
  default: undefined,
  unit: "a URL",
  isSecret: true,
  expected: (input) =>
    parseProxy(input) === undefined
      ? "the URL of an HTTP proxy, such as 'http://user:password@proxy.internal:3128'"
      : undefined,
};

const MAX_KEY_BYTES = 1_048_576;
const MAX_PASSPHRASE_LENGTH = 1_024;

/** For deliveries only: other sites must not learn who the service is. */
export const clientCertificateOptions = {
  cert: { ...certificates, isSecret: true } satisfies Option<unknown>,
  key: {
    default: undefined,
    unit: "a private key in PEM",
    expected: (input: unknown) =>
      (typeof input === "string" || input instanceof Uint8Array) && input.length <= MAX_KEY_BYTES
        ? undefined
        : `a private key in PEM of at most ${MAX_KEY_BYTES} bytes`,
  } as Option<string | Uint8Array | undefined>,
  passphrase: {
    default: undefined,
    unit: "text",
    expected: (input: unknown) =>
      typeof input === "string" && input.length <= MAX_PASSPHRASE_LENGTH
        ? undefined
        : `a text of at most ${MAX_PASSPHRASE_LENGTH} characters`,
  } as Option<string | undefined>,
};

/** A checked certificate and its key. */
export interface ClientCertificate {
  cert: Buffer;
  key: Buffer;
  passphrase: string | undefined;
}

/** A certificate and its key, copied, or the option at fault and the sentence after its path. */
type ClientCertificateCheck = ClientCertificate | { fault: "cert" | "key" | "passphrase"; message: string };

/**
 * Checks the options of a client certificate against each other, so that a wrong file does not
 * become a failure of every delivery. Returns `undefined` if none of them is set.
 */
export function readClientCertificate({
  cert,
  key,
  passphrase,
}: OptionValues<typeof clientCertificateOptions>): ClientCertificateCheck | undefined {
  if (cert === undefined && key === undefined && passphrase === undefined) return undefined;
  if (cert === undefined) return { fault: "cert", message: "is missing: pass the certificate in PEM." };
  if (key === undefined) return { fault: "key", message: "is missing: pass the private key in PEM." };
  const pair = { cert: Buffer.from(cert as Uint8Array), key: Buffer.from(key as Uint8Array), passphrase };
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey({ key: pair.key, format: "pem", ...(passphrase && { passphrase }) });
  } catch {
    return describeKeyFault(pair.key, passphrase);
  }
  try {
    if (!new X509Certificate(pair.cert).checkPrivateKey(privateKey)) {
      const message = "must be the key of the first certificate of destinations.clientCertificate.cert.";
      return { fault: "key", message };
    }
    // Without roots, which take long to read. Finds what OpenSSL refuses, such as a short key.
    createSecureContext({ ...pair, ca: [] });
    return pair;
  } catch {
    const message = "must be certificates that OpenSSL accepts: each on lines of its own, with a long key.";
    return { fault: "cert", message };
  }
}

function describeKeyFault(key: Buffer, passphrase: string | undefined): ClientCertificateCheck {
  if (!key.includes("ENCRYPTED")) return { fault: "key", message: "must be a private key in PEM." };
  return passphrase === undefined
    ? { fault: "passphrase", message: "is missing: the key is encrypted." }
    : { fault: "passphrase", message: "does not decrypt the key." };
}

export const destinationOptions = {
  allowHttp: flag(false),
  allowPrivateNetworks: flag(false),
  allow: listOf("CIDR blocks and host names", MAX_ALLOWED_HOSTS, checkAllowEntry),
  ca: certificates,
  resolve: hook<Resolve>(),
  proxy,
};
