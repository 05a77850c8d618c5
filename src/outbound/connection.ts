/**
 * Opens one vetted connection: resolve, check every address, connect, check the peer, then TLS.
 * Through a proxy, the tunnel leads to a checked address. Knows nothing of HTTP.
 */

import type { LookupAddress } from "node:dns";
import { Resolver } from "node:dns/promises";
import net from "node:net";
import tls from "node:tls";
import { type AddressPolicy, type AllowedTarget, checkAddress } from "./address-policy.js";
import { classifyError, type Phase, refusalFailure, toProxyFailure } from "./failure.js";
import { connectToProxy, type ProxySettings, requestTunnel } from "./proxy.js";
import type { OutboundFailure } from "./types.js";

/**
 * Returns the addresses of a name, an empty list if it has no address. Rejects with an error whose
 * `code` says why (`ENOTFOUND` …).
 */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

export interface ConnectionSettings {
  readonly policy: AddressPolicy;
  readonly resolve: Resolve;
  /** Throws if the host's CA cannot be read. */
  readonly secureContext: () => tls.SecureContext;
  /** Default: none, so endpoints are connected to directly. */
  readonly proxy?: ProxySettings | undefined;
}

export interface Opening {
  readonly phase: () => Phase;
  /** Cancels the opening and destroys the socket; the callback is not called any more. */
  readonly cancel: () => void;
}

export type Opened = { readonly socket: net.Socket } | { readonly failure: OutboundFailure };

/**
 * Milliseconds for one address of several before the next is tried. Node's default of 250 is too
 * short for distant hosts; two seconds leave room for one repeated SYN.
 */
const ADDRESS_ATTEMPT_MS = 2000;

/**
 * Opens a connection to the target and calls back once, with a socket that is ready for the
 * request, or with a failure.
 *
 * A name is resolved for each connection, so a rebinding name is checked each time. One refused
 * address refuses the whole name. The socket can only reach a checked address, and its peer is
 * checked again before anything is written, TLS included. A proxy is asked for the first of the
 * checked addresses, and never for a name. It can still connect to another host, but not pass for
 * an `https:` endpoint: TLS ends there.
 *
 * There is no deadline here: call `cancel`.
 */
export function openConnection(
  target: AllowedTarget,
  { policy, resolve, secureContext, proxy }: ConnectionSettings,
  callback: (opened: Opened) => void,
): Opening {
  let phase: Phase = target.isAddress ? "connect" : "dns";
  let socket: net.Socket | undefined;
  let isSettled = false;

  const cancel = (): void => {
    isSettled = true;
    socket?.destroy();
  };
  const fail = (failure: OutboundFailure): void => {
    if (isSettled) return;
    cancel();
    callback({ failure });
  };
  const succeed = (ready: net.Socket): void => {
    if (isSettled) return;
    isSettled = true;
    callback({ socket: ready });
  };
  const onError = (error: Error): void => fail(classifyError(error, phase));

  const shakeHands = (plain: net.Socket): void => {
    phase = "tls";
    const secure = tls.connect({
      socket: plain,
      // The certificate must match this host; SNI accepts only names (RFC 6066 section 3).
      host: target.hostname,
      ...(target.isAddress ? {} : { servername: target.hostname }),
      secureContext: secureContext(),
      // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED cannot disable it.
      rejectUnauthorized: true,
      ALPNProtocols: ["http/1.1"],
    });
    socket = secure;
    secure.on("error", onError);
    secure.once("secureConnect", () => succeed(secure));
  };

  const dial = (addresses: readonly string[]): void => {
    phase = "connect";
    const vetted: LookupAddress[] = addresses.map((address) => ({ address, family: net.isIP(address) }));
    const plain = net.connect({
      host: target.hostname,
      port: target.port,
      noDelay: true,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS,
      // Called only for names, and returns only addresses that were just checked.
      lookup: (_hostname, _options, answer) => answer(null, vetted),
    });
    socket = plain;
    plain.on("error", onError);
    plain.once("connect", () => {
      if (isSettled) return;
      const peer = checkAddress(plain.remoteAddress ?? "", policy, target.hostname);
      if (!peer.ok) fail(refusalFailure(peer));
      else secureOrSucceed(plain);
    });
  };

  const dialThroughProxy = (through: ProxySettings, address: string): void => {
    const verdict = checkAddress(address, policy, target.hostname);
    if (!verdict.ok) {
      fail(refusalFailure(verdict));
      return;
    }
    phase = "proxy";
    const plain = connectToProxy(through, ADDRESS_ATTEMPT_MS, () => {
      if (isSettled) return;
      requestTunnel(plain, { address, port: target.port }, through, (problem) => {
        if (problem === undefined) secureOrSucceed(plain);
        else fail(toProxyFailure(problem));
      });
    });
    socket = plain;
    plain.on("error", onError);
  };

  const secureOrSucceed = (plain: net.Socket): void => {
    if (target.isSecure) attempt(() => shakeHands(plain));
    else succeed(plain);
  };

  const resolveAndDial = async (): Promise<void> => {
    const addresses = await resolve(target.hostname);
    if (isSettled) return;
    if (addresses.length === 0) return fail(classifyError({ code: "ENODATA" }, "dns"));
    for (const address of addresses) {
      const verdict = checkAddress(address, policy, target.hostname);
      if (!verdict.ok) return fail(refusalFailure(verdict));
    }
    if (proxy === undefined) dial(addresses);
    else dialThroughProxy(proxy, addresses[0] as string);
  };

  const attempt = (step: () => void): void => {
    try {
      step();
    } catch (error) {
      fail(classifyError(error, phase));
    }
  };

  const dialAddress = (): void => {
    if (proxy === undefined) dial([]);
    else dialThroughProxy(proxy, target.hostname);
  };

  if (target.isAddress) attempt(dialAddress);
  else resolveAndDial().catch((error: unknown) => fail(classifyError(error, phase)));
  return { phase: () => phase, cancel };
}

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
 * IPv4 first. It does without the thread pool, which `dns.lookup` would share with the host's file
 * reads.
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
