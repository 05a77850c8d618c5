/**
 * Decides which URLs and addresses Postbell may send to, by their text. Resolves no name and opens
 * no socket.
 */

import { BlockList, isIP } from "node:net";
import { MAX_URL_LENGTH, parseUrl } from "../core/parse-url.js";

export type Family = "ipv4" | "ipv6";

export interface AddressPolicy {
  /** Allows `http:` as well as `https:` (R3). Default false. */
  allowHttp?: boolean | undefined;
  /**
   * Allows all hosts that are not on the public internet: private, loopback and reserved addresses
   * (R5), and names such as `localhost` or `intranet` (part of R6). Default false.
   *
   * No policy allows the unspecified addresses (0.0.0.0/8, `::`), multicast, the broadcast address,
   * malformed names, link-local and cloud-platform addresses (R7), or blocked ports (R8).
   */
  allowPrivateNetworks?: boolean | undefined;
  /** Allows some of these hosts. Default: none. */
  allow?: AllowedHosts | undefined;
}

/** The parsed list of `destinations.allow`. */
export interface AllowedHosts {
  /** An address in one of these is allowed. */
  blocks: Record<Family, BlockList>;
  /** A name is allowed, with its private addresses. `.example.org` stands for all names below. */
  names: Set<string>;
}

/**
 * R1 forbidden characters, length or slashes. R2 no URL. R3 the scheme. R4 user information. R5 an
 * address that is not public. R6 a name that is not public, or malformed. R7 an address of a cloud
 * platform. R8 the port.
 */
export type AddressRule = "R1" | "R2" | "R3" | "R4" | "R5" | "R6" | "R7" | "R8";

export interface AddressRefusal {
  ok: false;
  rule: AddressRule;
  /** One sentence that says what to change. It does not repeat the URL or the address. */
  message: string;
  /** The option of the host that would allow it. */
  allowedBy?: "allow" | "allowHttp" | undefined;
}

/** The target of an allowed URL. */
export interface AllowedTarget {
  /** Scheme, host and port, as the WHATWG parser writes them. */
  origin: string;
  /** Path and query, encoded; the fragment is never sent. */
  path: string;
  /** A name in lower case without its trailing dot, or an address without brackets. */
  hostname: string;
  /** True if `hostname` is an address. */
  isAddress: boolean;
  port: number;
  isSecure: boolean;
}

export type UrlCheck = { ok: true; target: AllowedTarget } | AddressRefusal;
export type AddressCheck = { ok: true } | AddressRefusal;

/**
 * Control characters, all kinds of white space, lone surrogates, and the backslash, which parsers
 * interpret differently.
 */
const FORBIDDEN_CHARACTER = /[\p{Cc}\p{Z}\p{Cs}\\]/u;
const WEB_URL = /^https?:\/\/(?<authority>[^/?#]+)/i;

const PRIVATE_NAME = /(?:^|\.)(?:localhost|local|internal|onion|home\.arpa)$/;
const MAX_NAME_LENGTH = 253;
const MAX_LABEL_LENGTH = 63;

/**
 * The "bad ports" of the Fetch standard (https://fetch.spec.whatwg.org/#port-blocking), including
 * port 0.
 */
const BLOCKED_PORTS: Set<number> = new Set([
  0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
  109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515,
  526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049,
  3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
]);

/** One list per family: in a shared list, an IPv4-mapped rule would match every IPv4 address. */
function networks(family: Family, prefixes: string[]): BlockList {
  const list = new BlockList();
  for (const prefix of prefixes) {
    const slash = prefix.indexOf("/");
    list.addSubnet(prefix.slice(0, slash), Number(prefix.slice(slash + 1)), family);
  }
  return list;
}

/** Prefixes of 96 bits before an IPv4 address: IPv4-mapped, IPv4-translated (SIIT), NAT64. */
const IPV4_FOLLOWS = ["::ffff:", "::ffff:0:", "64:ff9b::"];

/** Returns the IPv6 blocks that lead to IPv4 blocks, 6to4 (RFC 3056) included. */
function embed(blocks: string[], prefixes: string[] = IPV4_FOLLOWS): string[] {
  return blocks.flatMap((block) => {
    const [address = "", length = ""] = block.split("/");
    const hex = Buffer.from(address.split(".").map(Number)).toString("hex");
    const sixToFour = `2002:${hex.slice(0, 4)}:${hex.slice(4)}::/${16 + Number(length)}`;
    return [...prefixes.map((prefix) => `${prefix}${address}/${96 + Number(length)}`), sixToFour];
  });
}

const NO_HOST_IPV4 = ["0.0.0.0/8", "224.0.0.0/4", "255.255.255.255/32"];

/** The unspecified addresses, multicast and broadcast: never a host to connect to. */
const NO_HOST: Record<Family, BlockList> = {
  ipv4: networks("ipv4", NO_HOST_IPV4),
  ipv6: networks("ipv6", ["::/128", "ff00::/8", ...embed(NO_HOST_IPV4)]),
};

/**
 * IANA IPv4 special-purpose registry (RFC 6890): blocks that are not globally reachable, or
 * deprecated.
 */
const NOT_PUBLIC_IPV4 = networks("ipv4", [
  "10.0.0.0/8", // RFC 1918
  "100.64.0.0/10", // shared address space, RFC 6598
  "127.0.0.0/8", // loopback
  "169.254.0.0/16", // link-local, instance metadata
  "172.16.0.0/12", // RFC 1918
  "192.0.0.0/24", // IETF protocol assignments
  "192.0.2.0/24", // TEST-NET-1
  "192.88.99.0/24", // 6to4 relay anycast, deprecated
  "192.168.0.0/16", // RFC 1918
  "198.18.0.0/15", // benchmarking
  "198.51.100.0/24", // TEST-NET-2
  "203.0.113.0/24", // TEST-NET-3
  "240.0.0.0/4", // reserved
]);

const GLOBAL_UNICAST_IPV6 = networks("ipv6", ["2000::/3"]);
/**
 * IANA IPv6 special-purpose registry: the part of 2000::/3 that is not globally reachable, or
 * embeds IPv4 addresses.
 */
const NOT_PUBLIC_IPV6 = networks("ipv6", [
  "2001::/23", // IETF protocol assignments, with Teredo, benchmarking and ORCHID
  "2001:db8::/32", // documentation
  "2002::/16", // 6to4
  "3fff::/20", // documentation, RFC 9637
]);

const PLATFORM_IPV4 = [
  "100.100.100.200/32", // Alibaba Cloud
  "168.63.129.16/32", // Azure, a public address
  "169.254.0.0/16", // link-local: metadata of most clouds, credentials of ECS and EKS
  "192.0.0.192/32", // Oracle Cloud Classic
];

/**
 * Services that a cloud offers to its machines, such as metadata and credentials, and all
 * link-local addresses, where most of them are. No option allows them.
 */
const PLATFORM: Record<Family, BlockList> = {
  ipv4: networks("ipv4", PLATFORM_IPV4),
  ipv6: networks("ipv6", [
    "fe80::/10", // link-local
    "fd00:ec2::/32", // AWS
    "fd20:ce::254/128", // Google Cloud
    "fd00:c1::a9fe:a9fe/128", // Oracle Cloud
    "fd00:100::100:200/128", // Alibaba Cloud
    "fd00:a9fe:a9fe::1/128", // Akamai
    "fd00:42::42/128", // Scaleway
    ...embed(PLATFORM_IPV4, [...IPV4_FOLLOWS, "::"]),
    // An IPv4 address is embedded somewhere in these, where no rule of text finds it.
    "64:ff9b:1::/48", // NAT64 of a local network, RFC 8215
    "2001::/32", // Teredo
  ]),
};

const ALLOWED: AddressCheck = Object.freeze({ ok: true });

function refuse(rule: AddressRule, message: string, allowedBy?: AddressRefusal["allowedBy"]): AddressRefusal {
  return Object.freeze({ ok: false, rule, message, allowedBy });
}

function isPublic(address: string, family: Family): boolean {
  return family === "ipv4"
    ? !NOT_PUBLIC_IPV4.check(address, family)
    : GLOBAL_UNICAST_IPV6.check(address, family) && !NOT_PUBLIC_IPV6.check(address, family);
}

/** True if the list has the name, or `*.` and a domain above it. */
function isListed(name: string, { allow }: AddressPolicy): boolean {
  if (allow === undefined || allow.names.size === 0) return false;
  const { names } = allow;
  return names.has(name) || [...name.matchAll(/\./g)].some(({ index }) => names.has(name.slice(index)));
}

/**
 * Checks whether a connection to this IP address is allowed (R5, R7). A text that is not an
 * address, or has a zone, is refused. IPv6 addresses that embed an IPv4 address are refused unless
 * private networks are allowed, or the IPv6 address itself.
 *
 * @param hostname the name that has the address, as in {@link AllowedTarget}: a name that the
 * policy allows may have private addresses.
 */
export function checkAddress(address: string, policy: AddressPolicy = {}, hostname = ""): AddressCheck {
  const version = address.includes("%") ? 0 : isIP(address);
  if (version === 0) return refuse("R5", "The host has no usable IP address: use a host with a public one.");
  const family = version === 4 ? "ipv4" : "ipv6";
  if (NO_HOST[family].check(address, family)) {
    return refuse("R5", "The address is unspecified, multicast or broadcast: use the address of one host.");
  }
  const isPlatform = PLATFORM[family].check(address, family);
  const isOpen =
    policy.allowPrivateNetworks ||
    policy.allow?.blocks[family].check(address, family) ||
    isListed(hostname, policy);
  if (!isOpen && !isPublic(address, family)) {
    const message = "The address is private or reserved: use a host with a public address.";
    return refuse("R5", message, isPlatform ? undefined : "allow");
  }
  return isPlatform
    ? refuse("R7", "The address is link-local or of a cloud platform's own services: use a host of your own.")
    : ALLOWED;
}

/** True for a name with valid lengths, in lower case and without a trailing dot. */
export const isHostName = (name: string): boolean =>
  name.length <= MAX_NAME_LENGTH &&
  name.split(".").every((label) => label !== "" && label.length <= MAX_LABEL_LENGTH);

function checkHostName(name: string, policy: AddressPolicy): AddressCheck {
  if (!isHostName(name)) {
    return refuse("R6", "The host is no valid name: use labels of 1 to 63 characters, 253 in all.");
  }
  if (policy.allowPrivateNetworks || isListed(name, policy)) return ALLOWED;
  if (!name.includes("."))
    return refuse("R6", "The host is a name without a domain: use its full public name.", "allow");
  if (PRIVATE_NAME.test(name)) {
    return refuse("R6", "The host is a name of a private network: use a name in the public DNS.", "allow");
  }
  return ALLOWED;
}

/**
 * Checks whether a URL may be registered and sent to, and returns its target.
 *
 * Checks the text, then the result of the WHATWG parser. Names are not resolved: each address of a
 * name must pass {@link checkAddress} when a connection is opened. Never throws.
 */
export function checkUrl(text: string, policy: AddressPolicy = {}): UrlCheck {
  const url = parseAllowedUrl(text, policy);
  if (url instanceof URL) return checkHost(url, policy);
  return url;
}

/** Checks the rules that depend on the text: R1 to R4. */
function parseAllowedUrl(text: string, policy: AddressPolicy): URL | AddressRefusal {
  if (text.length > MAX_URL_LENGTH)
    return refuse("R1", `The URL is too long: use at most ${MAX_URL_LENGTH} characters.`);
  if (FORBIDDEN_CHARACTER.test(text)) {
    return refuse("R1", "The URL holds a blank, a control character or a backslash: percent-encode it.");
  }
  const url = parseUrl(text);
  if (url === undefined) return refuse("R2", "This is no absolute URL: use the form https://host/path.");
  const isSecure = url.protocol === "https:";
  if (!isSecure && !(policy.allowHttp && url.protocol === "http:")) {
    const allowedBy = url.protocol === "http:" ? "allowHttp" : undefined;
    return refuse("R3", "The URL must begin with https://.", allowedBy);
  }
  const authority = WEB_URL.exec(text)?.groups?.["authority"];
  if (authority === undefined)
    return refuse("R1", "Write exactly two slashes after the scheme: https://host/path.");
  if (authority.includes("@"))
    return refuse("R4", "The URL contains a user name or password: remove the part before the @.");
  return url;
}

/** Checks the rules about host and port: R5 to R8. */
function checkHost(url: URL, policy: AddressPolicy): UrlCheck {
  const isSecure = url.protocol === "https:";
  const isBracketed = url.hostname.startsWith("[");
  const hostname = isBracketed ? url.hostname.slice(1, -1) : url.hostname.replace(/\.$/, "");
  const isAddress = isIP(hostname) !== 0;
  const check = isAddress ? checkAddress(hostname, policy) : checkHostName(hostname, policy);
  if (!check.ok) return check;

  const port = url.port === "" ? (isSecure ? 443 : 80) : Number(url.port);
  if (BLOCKED_PORTS.has(port)) {
    return refuse("R8", "The port is reserved for another protocol: use 443 or another port for HTTPS.");
  }
  const target = { origin: url.origin, path: url.pathname + url.search, hostname, isAddress, port, isSecure };
  return Object.freeze({ ok: true, target: Object.freeze(target) });
}
