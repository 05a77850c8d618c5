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
  readonly addresses: readonly string[];
  /**
   * The addresses of the family that was not answered in time, if there is one. Never rejects.
   */
  readonly late?: Promise<readonly string[]> | undefined;
}

/** Finds the addresses of a name as {@link Resolve} does. */
export type FindAddresses = (hostname: string) => Promise<FoundAddresses>;

export interface ResolverOptions {
  readonly clock: Clock;
  /** Returns DNS servers as `address` or `address:port`. Default: those of the system. */
  readonly servers?: (() => readonly string[]) | undefined;
  /** Milliseconds that a lookup takes if no server responds. Default 6000. */
  readonly limitMs?: number | undefined;
}

/** Less than half of an attempt, so that the name of another endpoint can be tried after it. */
const LOOKUP_MS = 6_000;
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

/** Nobody has answered, or a server could not find out. */
const UNANSWERED: ReadonlySet<unknown> = new Set([
  "EAI_AGAIN",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EREFUSED",
  "ESERVFAIL",
  "ETIMEDOUT",
  "ETIMEOUT",
]);
/** The answer is that there is no address. */
const NEGATIVE: ReadonlySet<unknown> = new Set(["ENODATA", "ENOTFOUND"]);

const codeOf = (error: unknown): unknown =>
  typeof error === "object" && error !== null && "code" in error ? error.code : undefined;

interface Answer {
  readonly addresses: readonly string[];
  readonly error?: unknown;
}

const toAnswer = (query: Promise<readonly string[]>): Promise<Answer> =>
  query.then(
    (addresses) => ({ addresses: addresses.slice(0, MAX_ADDRESSES) }),
    (error: unknown) => ({ addresses: [], error }),
  );

/** Asks for both families. Waits for the second one only shortly if the first has addresses. */
function findBoth(resolver: Resolver, hostname: string, clock: Clock): Promise<FoundAddresses> {
  const ipv4 = toAnswer(resolver.resolve4(hostname));
  const ipv6 = toAnswer(resolver.resolve6(hostname));
  return new Promise((resolve, reject) => {
    const wait = async (first: Promise<Answer>, second: Promise<Answer>): Promise<void> => {
      const { addresses } = await first;
      if (addresses.length === 0) return;
      const late = second.then((answer) => answer.addresses);
      const timer = clock.setTimeout(() => resolve({ addresses, late }), RESOLUTION_DELAY_MS);
      void late.then(() => clock.clearTimeout(timer));
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
 * A family that is not answered 50 ms after the other one comes late. One family without records
 * is fine. The hosts file and search domains are not consulted. `localhost` and names under it are
 * 127.0.0.1 and ::1 without a query. Rejects with the error of the A query if neither family has an
 * address.
 *
 * After a lookup that nobody answered, the configuration of the system is read again. If other
 * servers are in it, they are asked at once.
 */
export function createResolver({ clock, servers, limitMs = LOOKUP_MS }: ResolverOptions): FindAddresses {
  let shared: Resolver | undefined;

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
    if (shared === failed) shared = create();
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
      const renewed = UNANSWERED.has(codeOf(error)) ? renew(used) : undefined;
      if (renewed === undefined) throw error;
      return query(renewed, hostname);
    }
  };
}

/** The domain that somebody has registered, more or less: endpoints in it fail together. */
const toZone = (hostname: string): string => hostname.split(".").slice(-2).join(".");

interface KnownName {
  readonly zone: string;
  readonly hostname: string;
}

/** The names of one client. */
export class Names {
  readonly #clock: Clock;
  readonly #find: FindAddresses;
  /** The name to ask for if no other name is known. */
  readonly #fallback: string | undefined;
  /** The two zones that were answered last. */
  #answered: readonly KnownName[] = [];
  /** The zone that failed last, if no name was answered since. */
  #failedZone: string | undefined;
  #isDown = false;
  #probe: Promise<boolean> | undefined;

  /** @param resolve the host's. Default: {@link createResolver}. */
  constructor(clock: Clock, resolve?: Resolve, find: FindAddresses = createResolver({ clock })) {
    this.#clock = clock;
    this.#find = resolve ? async (hostname) => ({ addresses: await resolve(hostname) }) : find;
    this.#fallback = resolve ? undefined : ROOT;
  }

  /**
   * Finds the addresses of a name. If nobody answers, the name of an endpoint in another zone is
   * tried: if that fails too, it is an outage of the resolver and says nothing about the endpoint.
   * Then it rejects with the code `RESOLVER_UNAVAILABLE`, otherwise with the error of the resolver.
   */
  async find(hostname: string): Promise<FoundAddresses> {
    try {
      const found = await this.#find(hostname);
      if (!LOCALHOST.test(hostname)) this.#noteAnswer(hostname);
      return found;
    } catch (error) {
      if (NEGATIVE.has(codeOf(error))) this.#noteAnswer();
      if (UNANSWERED.has(codeOf(error)) && (await this.#isOutage(toZone(hostname))))
        throw Object.assign(new Error("The resolver is unavailable."), { code: RESOLVER_UNAVAILABLE });
      throw error;
    }
  }

  /** Returns true if a lookup that takes too long is part of an outage of the resolver. */
  giveUp(hostname: string): boolean {
    const zone = toZone(hostname);
    if (this.#failedZone !== undefined && this.#failedZone !== zone) this.#isDown = true;
    this.#failedZone = zone;
    return this.#isDown;
  }

  #noteAnswer(hostname?: string): void {
    this.#failedZone = undefined;
    this.#isDown = false;
    if (hostname === undefined) return;
    const zone = toZone(hostname);
    const [last, other] = this.#answered;
    if (last?.hostname === hostname) return;
    const second = last?.zone === zone ? other : last;
    this.#answered = second ? [{ zone, hostname }, second] : [{ zone, hostname }];
  }

  async #isOutage(zone: string): Promise<boolean> {
    const isSecond = this.#failedZone !== undefined && this.#failedZone !== zone;
    this.#failedZone = zone;
    const known = this.#answered.find((name) => name.zone !== zone)?.hostname ?? this.#fallback;
    if (known === undefined) this.#isDown ||= isSecond;
    else if (!(await this.#probeOnce(known)) && this.#failedZone !== undefined) this.#isDown = true;
    return this.#isDown;
  }

  /** True if the name was answered. Concurrent lookups that fail share one probe. */
  #probeOnce(hostname: string): Promise<boolean> {
    const probe = async (): Promise<boolean> => {
      try {
        const late = (): Error => Object.assign(new Error("late"), { code: "ETIMEOUT" });
        await withTimeout(this.#clock, LOOKUP_MS, this.#find(hostname), late);
        this.#noteAnswer();
        return true;
      } catch (error) {
        const isAnswered = !UNANSWERED.has(codeOf(error));
        if (isAnswered) this.#noteAnswer();
        return isAnswered;
      } finally {
        this.#probe = undefined;
      }
    };
    this.#probe ??= probe();
    return this.#probe;
  }
}
