/**
 * Opens one vetted connection: resolve, check every address, connect, check the peer, then TLS.
 * Through a proxy, the tunnel leads to a checked address. Knows nothing of HTTP.
 */

import net from "node:net";
import tls from "node:tls";
import type { Clock, Timer } from "../core/clock.js";
import { type AddressPolicy, type AllowedTarget, checkAddress } from "./address-policy.js";
import { classifyError, type Phase, refusalFailure, toProxyFailure } from "./failure.js";
import { connectToProxy, type ProxySettings, requestTunnel } from "./proxy.js";
import type { Names } from "./resolver.js";
import type { OutboundFailure } from "./types.js";

export interface ConnectionSettings {
  clock: Clock;
  policy: AddressPolicy;
  names: Names;
  /** Throws if the host's CA cannot be read. */
  secureContext: () => tls.SecureContext;
  /** Default: none, so endpoints are connected to directly. */
  proxy?: ProxySettings | undefined;
}

export interface Opening {
  phase: () => Phase;
  /** Cancels the opening and destroys the socket; the callback is not called any more. */
  cancel: () => void;
}

export type Opened = { socket: net.Socket } | { failure: OutboundFailure };

/**
 * Milliseconds for one address of the proxy before the next is tried. Node's default of 250 is too
 * short for distant hosts; two seconds leave room for one repeated SYN.
 */
const PROXY_ADDRESS_MS = 2_000;
/** Milliseconds after which the next address is tried as well: RFC 8305 section 5. */
const ATTEMPT_DELAY_MS = 250;
/** The maximum number of addresses to try for one connection. All addresses are checked. */
const MAX_TRIED = 8;

/** Alternates the families, so that one that does not work costs little: RFC 8305 section 4. */
function alternateFamilies(addresses: readonly string[]): string[] {
  const isFirst = net.isIP(addresses[0] ?? "");
  const first = addresses.filter((address) => net.isIP(address) === isFirst);
  const second = addresses.filter((address) => net.isIP(address) !== isFirst);
  return Array.from({ length: Math.max(first.length, second.length) }, (_, at) => [first[at], second[at]])
    .flat()
    .filter((address) => address !== undefined);
}

/**
 * Opens a connection to the target and calls back once, with a socket that is ready for the
 * request, or with a failure.
 *
 * A name is resolved for each connection, so a rebinding name is checked each time. One refused
 * address refuses the whole name; one that comes late does so until the connection is open. An
 * address that does not connect at once is not waited for: the next one is tried as well, and the
 * first that connects is used. A socket can only reach a checked address, and its peer is checked
 * again before anything is written, TLS included. A proxy is asked for the first of the
 * checked addresses, IPv4 if there is one, because few proxies have IPv6, and never for a name. It
 * can still connect to another host, but not pass for an `https:` endpoint: TLS ends there.
 *
 * There is no deadline here: call `cancel`.
 */
export function openConnection(
  target: AllowedTarget,
  { clock, policy, names, secureContext, proxy }: ConnectionSettings,
  callback: (opened: Opened) => void,
): Opening {
  let phase: Phase = target.isAddress ? "connect" : "dns";
  /** The connection to the endpoint or the proxy. */
  let socket: net.Socket | undefined;
  let isSettled = false;
  /** Checked addresses that were not tried yet. */
  let untried: string[] = [];
  let triedCount = 0;
  /** Sockets that are not connected yet. */
  const dialled = new Set<net.Socket>();
  let connected: net.Socket | undefined;
  let lastError: Error | undefined;
  /** Tries the next address. */
  let timer: Timer | undefined;
  /** True once no more addresses can be found. */
  let isLookedUp = target.isAddress;

  const stopDialling = (): void => {
    clock.clearTimeout(timer);
    untried = [];
    for (const plain of dialled) plain.destroy();
    dialled.clear();
  };
  const cancel = (): void => {
    isSettled = true;
    stopDialling();
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

  /** Adds checked addresses, and tries the first of them unless another may still connect. */
  const dial = (addresses: readonly string[]): void => {
    if (socket !== undefined) return;
    phase = "connect";
    untried = alternateFamilies([...addresses, ...untried]);
    if (dialled.size === 0) dialNext();
    else timer ??= clock.setTimeout(dialNext, ATTEMPT_DELAY_MS);
  };

  const dialNext = (): void => {
    clock.clearTimeout(timer);
    timer = undefined;
    const address = triedCount < MAX_TRIED ? untried.shift() : undefined;
    if (address !== undefined) {
      triedCount += 1;
      if (untried.length > 0) timer = clock.setTimeout(dialNext, ATTEMPT_DELAY_MS);
      attempt(() => dialOne(address));
    } else if (dialled.size === 0 && isLookedUp) fail(classifyError(lastError, phase));
  };

  const dialOne = (address: string): void => {
    const plain = net.connect({
      host: target.hostname,
      port: target.port,
      noDelay: true,
      autoSelectFamily: false,
      // Called only for names, and returns only an address that was just checked.
      lookup: (_hostname, _options, answer) => answer(null, address, net.isIP(address)),
    });
    dialled.add(plain);
    plain.on("error", (error) => {
      if (plain === connected) onError(error);
      else if (dialled.delete(plain)) {
        lastError = error;
        dialNext();
      }
    });
    plain.once("connect", () => {
      if (!dialled.delete(plain)) return;
      connected = plain;
      socket = plain;
      stopDialling();
      const peer = checkAddress(plain.remoteAddress ?? "", policy, target.hostname);
      if (!peer.ok) fail(refusalFailure(peer));
      else secureOrSucceed(plain);
    });
  };

  const dialThroughProxy = (through: ProxySettings, address: string): void => {
    const checked = checkAddress(address, policy, target.hostname);
    if (!checked.ok) {
      fail(refusalFailure(checked));
      return;
    }
    phase = "proxy";
    const plain = connectToProxy(through, PROXY_ADDRESS_MS, () => {
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

  const areAllowed = (addresses: readonly string[]): boolean => {
    for (const address of addresses) {
      const checked = checkAddress(address, policy, target.hostname);
      if (checked.ok) continue;
      fail(refusalFailure(checked));
      return false;
    }
    return true;
  };

  /** Waits for an IPv4 address until all families are looked up. */
  const askProxy = (through: ProxySettings, addresses: readonly string[]): void => {
    const ipv4 = addresses.find(net.isIPv4);
    const address = ipv4 ?? (isLookedUp ? addresses[0] : undefined);
    if (address !== undefined && socket === undefined) dialThroughProxy(through, address);
  };

  const resolveAndDial = async (): Promise<void> => {
    const { addresses, otherFamily } = await names.find(target.hostname);
    if (isSettled) return;
    if (addresses.length === 0) return fail(classifyError({ code: "ENODATA" }, "dns"));
    if (!areAllowed(addresses)) return;
    isLookedUp = otherFamily === undefined;
    if (proxy === undefined) dial(addresses);
    else askProxy(proxy, addresses);
    if (otherFamily === undefined) return;
    const more = await otherFamily;
    isLookedUp = true;
    if (isSettled || !areAllowed(more)) return;
    if (proxy === undefined) dial(more);
    else askProxy(proxy, [...addresses, ...more]);
  };

  const attempt = (step: () => void): void => {
    try {
      step();
    } catch (error) {
      fail(classifyError(error, phase));
    }
  };

  const dialAddress = (): void => {
    if (proxy === undefined) dial([target.hostname]);
    else dialThroughProxy(proxy, target.hostname);
  };

  if (target.isAddress) attempt(dialAddress);
  else resolveAndDial().catch((error: unknown) => fail(classifyError(error, phase)));
  return { phase: () => phase, cancel };
}
