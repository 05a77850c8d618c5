/** Looks host names up, and tells an outage of the resolver from a name that cannot be resolved. */

import { Resolver } from "node:dns/promises";
import { type Clock, withTimeout } from "../core/clock.js";
import { RESOLVER_UNAVAILABLE } from "./failure.js";

/**
 * Returns the addresses of a name, an empty list if it has no address. Rejects with an error whose
 * `code` says why (`ENOTFOUND` …).
 */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

export interface FoundAddresses {
  addresses: readonly string[];
  /**
   * The addresses of the family that was not answered in time, if there is one. Never rejects.
   */
  otherFamily?: Promise<readonly string[]> | undefined;
}

/** Finds the addresses of a name as {@link Resolve} does. */
export type FindAddresses = (hostname: string) => Promise<FoundAddresses>;

export interface ResolverOptions {
  clock: Clock;
  /** Returns DNS servers as `address` or `address:port`. Default: those of the system. */
  servers?: (() => readonly string[]) | undefined;
  /** Milliseconds that a lookup takes if no server responds. Default 6000. */
  limitMs?: number | undefined;
}

const LOOKUP_MS = 6_000;
/** Less than half of an attempt, so that names of other endpoints can be looked up after it. */
const LOOKUP_SHARE = 0.4;
/** The configuration is read again this often at most. */
const RENEW_MS = 1_000;
/** The time that the second family has after the first one was answered: RFC 8305 section 3. */
const RESOLUTION_DELAY_MS = 50;
/**
 * The maximum number of addresses per family. A name with more is not a webhook endpoint but an
 * attack.
 */
const MAX_ADDRESSES = 32;
/** Every server is asked twice, and has twice the time at the second try. */
const TRIES = 2;
const TIMEOUTS_OF_SERVER = 3;

/** RFC 6761 section 6.3: these names are loopback and are never queried. */
const LOCALHOST = /(?:^|\.)localhost$/i;
/** Asked for if no other name is known: every resolver can answer for the root of the DNS. */
const ROOT = ".";

/** A DNS server responded that it cannot answer. */
const SERVER_FAILURES: ReadonlySet<unknown> = new Set(["EREFUSED", "ESERVFAIL"]);
/** Codes of lookups without an answer: no DNS server responded, or one could not answer. */
const UNANSWERED: ReadonlySet<unknown> = new Set([
  "EAI_AGAIN",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ETIMEDOUT",
  "ETIMEOUT",
  ...SERVER_FAILURES,
]);
/** Codes of lookups with the answer that the name has no address. */
const NEGATIVE: ReadonlySet<unknown> = new Set(["ENODATA", "ENOTFOUND"]);

const codeOf = (error: unknown): unknown =>
  typeof error === "object" && error !== null && "code" in error ? error.code : undefined;

interface Answer {
  addresses: readonly string[];
  error?: unknown;
}

const toAnswer = (query: Promise<readonly string[]>): Promise<Answer> =>
  query.then(
    (addresses) => ({ addresses: addresses.slice(0, MAX_ADDRESSES) }),
    (error: unknown) => ({ addresses: [], error }),
  );

/**
 * Returns the time limit of a lookup, in milliseconds.
 *
 * @param deadlineMs of the attempt.
 */
export const toLookupMs = (deadlineMs: number): number =>
  Math.max(1, Math.min(LOOKUP_MS, Math.floor(LOOKUP_SHARE * deadlineMs)));

/** Asks for both families. Waits for the second one only shortly if the first has addresses. */
function findBoth(resolver: Resolver, hostname: string, clock: Clock): Promise<FoundAddresses> {
  const ipv4 = toAnswer(resolver.resolve4(hostname));
  const ipv6 = toAnswer(resolver.resolve6(hostname));
  return new Promise((resolve, reject) => {
    const wait = async (first: Promise<Answer>, second: Promise<Answer>): Promise<void> => {
      const { addresses } = await first;
      if (addresses.length === 0) return;
      const otherFamily = second.then((answer) => answer.addresses);
      const timer = clock.setTimeout(() => resolve({ addresses, otherFamily }), RESOLUTION_DELAY_MS);
      void otherFamily.then(() => clock.clearTimeout(timer));
    };
    void wait(ipv4, ipv6);
    void wait(ipv6, ipv4);
    void Promise.all([ipv4, ipv6]).then(([four, six]) => {
      const addresses = [...four.addresses, ...six.addresses];
      if (addresses.length === 0 && four.error !== undefined) reject(four.error as Error);
      else resolve({ addresses });
    });
  });
}

/** Sorted, because c-ares moves servers that failed to the end. */
const listServers = (resolver: Resolver): string => resolver.getServers().sort().join();

/**
 * Creates a resolver that queries A and AAAA records together and returns at most 64 addresses,
 * IPv4 first. It does without the thread pool, which `dns.lookup` would share with the host's file
 * reads.
 *
 * A family that is not answered 50 ms after the other one is {@link FoundAddresses.otherFamily}.
 * One family without records is fine. The hosts file and search domains are not consulted.
 * `localhost` and names under it are 127.0.0.1 and ::1 without a query. Rejects with the error of
 * the A query if neither family has an address.
 *
 * After a lookup to which no server responded, the configuration of the system is read again, at
 * most once a second. If other servers are in it, they are asked at once.
 */
export function createResolver({ clock, servers, limitMs = LOOKUP_MS }: ResolverOptions): FindAddresses {
  let shared: Resolver | undefined;
  let renewedAt = Number.NEGATIVE_INFINITY;

  const create = (): Resolver => {
    const configured = servers?.();
    const { length } = configured ?? new Resolver().getServers();
    const timeout = Math.ceil(limitMs / (TIMEOUTS_OF_SERVER * Math.max(1, length)));
    const resolver = new Resolver({ timeout, tries: TRIES });
    if (configured) resolver.setServers(configured);
    return resolver;
  };

  /** Replaces a resolver that failed. Returns the new one if it asks other servers. */
  const renew = (failed: Resolver): Resolver | undefined => {
    if (shared === failed && clock.monotonic() - renewedAt >= RENEW_MS) {
      renewedAt = clock.monotonic();
      shared = create();
    }
    const isChanged = shared !== undefined && listServers(shared) !== listServers(failed);
    return isChanged ? shared : undefined;
  };

  const query = (resolver: Resolver, hostname: string): Promise<FoundAddresses> =>
    hostname === ROOT
      ? resolver.resolveNs(ROOT).then(() => ({ addresses: [] }))
      : findBoth(resolver, hostname, clock);

  return async (hostname) => {
    if (LOCALHOST.test(hostname)) return { addresses: ["127.0.0.1", "::1"] };
    // Created at the first query, because it reads the system's configuration.
    shared ??= create();
    const used = shared;
    try {
      return await query(used, hostname);
    } catch (error) {
      const code = codeOf(error);
      const isSilent = UNANSWERED.has(code) && !SERVER_FAILURES.has(code);
      const renewed = isSilent ? renew(used) : undefined;
      if (renewed === undefined) throw error;
      return query(renewed, hostname);
    }
  };
}

/** The last two labels of a name: endpoints under them often have the same name servers. */
const toZone = (hostname: string): string => hostname.split(".").slice(-2).join(".");

/** A name that was answered, to be looked up again if another one is not. */
interface AnsweredName {
  zone: string;
  hostname: string;
}

/** The maximum number of zones to remember. */
const MAX_ANSWERED = 8;

const isUnanswered = (error: unknown): boolean => UNANSWERED.has(codeOf(error));

/** The names of one client. */
export class Names {
  #find: FindAddresses;
  /** Looked up with the names of other endpoints. */
  #root: readonly string[];
  /** One name of each zone, the one that was answered last first. */
  #answered: readonly AnsweredName[] = [];
  /** Zones without an answer since the last answer, two at most. */
  #failedZones = new Set<string>();
  /** Lookups of other names in flight, which reject if there is no answer. */
  #probes = new Map<string, Promise<void>>();

  /**
   * @param resolve the host's.
   * @param find without `resolve`. Default: {@link createResolver}.
   * @param limitMs the time limit of `resolve`, not of `find`.
   */
  constructor(
    clock: Clock,
    resolve?: Resolve,
    find: FindAddresses = createResolver({ clock }),
    limitMs = LOOKUP_MS,
  ) {
    const onTimeout = (): Error => Object.assign(new Error("timeout"), { code: "ETIMEOUT" });
    this.#find = resolve
      ? async (hostname) => ({
          addresses: await withTimeout(clock, limitMs, resolve(hostname), onTimeout),
        })
      : find;
    this.#root = resolve ? [] : [ROOT];
  }

  /**
   * Finds the addresses of a name. If there is no answer, names of endpoints in up to two other
   * zones are looked up: if none of them is answered either, it is an outage of the resolver and
   * says nothing about the endpoint. Then it rejects with the code `RESOLVER_UNAVAILABLE`,
   * otherwise with the error of the resolver.
   */
  async find(hostname: string): Promise<FoundAddresses> {
    try {
      const found = await this.#find(hostname);
      if (!LOCALHOST.test(hostname)) this.#noteAnswer(hostname);
      return found;
    } catch (error) {
      if (NEGATIVE.has(codeOf(error))) this.#failedZones.clear();
      if (isUnanswered(error) && (await this.#isOutage(toZone(hostname))))
        throw Object.assign(new Error("The resolver is unavailable."), { code: RESOLVER_UNAVAILABLE });
      throw error;
    }
  }

  #noteAnswer(hostname: string): void {
    this.#failedZones.clear();
    if (this.#answered[0]?.hostname === hostname) return;
    const zone = toZone(hostname);
    const others = this.#answered.filter((name) => name.zone !== zone);
    this.#answered = [{ zone, hostname }, ...others.slice(0, MAX_ANSWERED - 1)];
  }

  async #isOutage(zone: string): Promise<boolean> {
    if (this.#failedZones.size < 2) this.#failedZones.add(zone);
    const others = this.#answered.filter((name) => name.zone !== zone).map((name) => name.hostname);
    // The first and the last: somebody with a few dead zones cannot have both.
    const hostnames = new Set([...others.slice(0, 1), ...others.slice(-1), ...this.#root]);
    if (hostnames.size === 0) return this.#failedZones.size > 1;
    const isAnswered = await Promise.any([...hostnames].map((hostname) => this.#probe(hostname))).then(
      () => true,
      () => false,
    );
    return !isAnswered && this.#failedZones.size > 0;
  }

  /** Concurrent lookups that fail share the probes. */
  #probe(hostname: string): Promise<void> {
    const look = async (): Promise<void> => {
      try {
        await this.#find(hostname);
      } catch (error) {
        if (isUnanswered(error)) throw error;
      } finally {
        this.#probes.delete(hostname);
      }
      this.#failedZones.clear();
    };
    const probe = this.#probes.get(hostname) ?? look();
    this.#probes.set(hostname, probe);
    return probe;
  }
}
