/**
 * Resolves host names without the thread pool, which `dns.lookup` would share with the host's file
 * reads.
 */

import { Resolver } from "node:dns/promises";

/**
 * Returns the addresses of a name, an empty list if it has no address. Rejects with an error whose
 * `code` says why (`ENOTFOUND` …).
 */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

export interface ResolverOptions {
  /** DNS servers as `address` or `address:port`. Default: those of the system. */
  readonly servers?: readonly string[] | undefined;
  /** Milliseconds to wait for a server at the first of two tries. Default 2500. */
  readonly timeoutMs?: number | undefined;
}

/**
 * The maximum number of addresses per family. A name with more is not a webhook endpoint but an
 * attack.
 */
const MAX_ADDRESSES = 32;
const TRIES = 2;

/** RFC 6761 section 6.3: these names are loopback and are never queried. */
const LOCALHOST = /(?:^|\.)localhost$/i;

/**
 * Creates a resolver that queries A and AAAA records together and returns at most 64 addresses,
 * IPv4 first.
 *
 * One family without records is fine. The hosts file and search domains are not consulted.
 * `localhost` and names under it are 127.0.0.1 and ::1 without a query. Rejects with the error of
 * the A query if neither family has an address.
 */
export function createResolver({ servers, timeoutMs = 2500 }: ResolverOptions = {}): Resolve {
  let shared: Resolver | undefined;

  /** Created at the first query, because it reads the system's configuration. */
  const resolver = (): Resolver => {
    if (shared === undefined) {
      shared = new Resolver({ timeout: timeoutMs, tries: TRIES });
      if (servers) shared.setServers([...servers]);
    }
    return shared;
  };

  return async (hostname) => {
    if (LOCALHOST.test(hostname)) return ["127.0.0.1", "::1"];
    const answers = await Promise.allSettled([resolver().resolve4(hostname), resolver().resolve6(hostname)]);
    const addresses = answers.flatMap((answer) =>
      answer.status === "fulfilled" ? answer.value.slice(0, MAX_ADDRESSES) : [],
    );
    const [ipv4] = answers;
    if (addresses.length === 0 && ipv4.status === "rejected") throw ipv4.reason;
    return addresses;
  };
}
