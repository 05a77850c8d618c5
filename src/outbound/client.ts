/**
 * The guarded HTTP client: sends only to public hosts, within one deadline, over vetted keep-alive
 * connections.
 */

import tls from "node:tls";
import { LRUCache } from "lru-cache";
import type { Clock } from "../core/clock.js";
import { createDeadlines } from "../core/clock.js";
import { type AddressPolicy, type AllowedTarget, checkUrl, type UrlCheck } from "./address-policy.js";
import { type Channel, createChannel } from "./channel.js";
import type { ClientCertificate } from "./destination-options.js";
import { classifyError, clientClosed, isResolverOutage, refusalFailure } from "./failure.js";
import type { OutboundProxy } from "./proxy.js";
import { createResolver, type FindAddresses, Names, type Resolve, toLookupMs } from "./resolver.js";
import type { OutboundClient } from "./types.js";

export interface OutboundClientOptions {
  clock: Clock;
  policy?: AddressPolicy | undefined;
  /**
   * PEM certificates to trust in addition to Node's built-in roots. Default: only the built-in
   * roots.
   */
  ca?: string | Buffer | undefined;
  /** Shown to endpoints that ask for a certificate. Never to the proxy. Default: none. */
  clientCertificate?: ClientCertificate | undefined;
  /** Opens the connections to endpoints. Default: none. */
  proxy?: OutboundProxy | undefined;
  /** Looks names up instead of `find`. */
  resolve?: Resolve | undefined;
  /** Default: `createResolver`, which queries the system's DNS servers. */
  find?: FindAddresses | undefined;
  /** The usual time limit of a request: the lookup of a name gets 40 % of it. Default 15 000. */
  deadlineMs?: number | undefined;
  /**
   * The number of origins (scheme, host and port) to keep idle connections for, 1 or more; the
   * least recently used is dropped. Default 1000.
   */
  maxOrigins?: number | undefined;
  /** Called for each request that is written again over a new connection. Must not throw. */
  onRepeat?: (() => void) | undefined;
}

/** The idle connections of one origin, the most recently used on top. */
interface Origin {
  idle: Channel[];
  isDropped: boolean;
}

/**
 * Creates a client for hosts that strangers name.
 *
 * It checks the text of each URL. For each connection, it checks every address of the name and the
 * peer address before it sends a byte ({@link checkUrl}, {@link checkAddress}). It uses TLS 1.2 or
 * newer and always verifies certificates. It does not follow redirects or proxy variables; a proxy
 * is used only if there is one, after the same checks (`openConnection`). It does not
 * decompress. A head may have 16 KiB. A request is repeated only if a reused connection was lost
 * before any byte of the response ({@link createChannel}).
 *
 * It opens as many connections as there are concurrent sends: the caller limits those. Idle
 * connections close after four seconds, or as late as the endpoint's `Keep-Alive` allows, up to
 * thirty seconds. They do not keep the process alive.
 */
export function createOutboundClient({
  clock,
  policy = {},
  ca,
  clientCertificate,
  proxy,
  resolve,
  find,
  deadlineMs = 15_000,
  maxOrigins = 1000,
  onRepeat,
}: OutboundClientOptions): OutboundClient {
  const channels = new Set<Channel>();
  const checkedUrls = new LRUCache<string, UrlCheck>({ max: maxOrigins });
  const origins = new LRUCache<string, Origin>({
    max: maxOrigins,
    dispose: (origin) => {
      origin.isDropped = true;
      for (const channel of [...origin.idle]) void channel.end(clientClosed);
    },
  });
  let closing: Promise<void> | undefined;

  const limitMs = toLookupMs(deadlineMs);
  const names = new Names(clock, resolve, find ?? createResolver({ clock, limitMs }), limitMs);
  const trusted = ca === undefined ? {} : { ca: [...tls.rootCertificates, ca] };
  const settings = {
    clock,
    deadlines: createDeadlines(clock),
    afterPoll: createAfterPoll(),
    onRepeat,
    policy,
    names,
    secureContext: shareContext({ ...trusted, ...clientCertificate }),
    proxy: proxy && { ...proxy, secureContext: shareContext(trusted) },
  };

  /** Refusals are not cached: a stranger could fill the cache with them. */
  const checkCached = (url: string): UrlCheck => {
    const cached = checkedUrls.get(url);
    if (cached !== undefined) return cached;
    const checked = checkUrl(url, policy);
    if (checked.ok) checkedUrls.set(url, checked);
    return checked;
  };

  const originOf = (target: AllowedTarget): Origin => {
    const existing = origins.get(target.origin);
    if (existing !== undefined) return existing;
    const origin: Origin = { idle: [], isDropped: false };
    origins.set(target.origin, origin);
    return origin;
  };

  const addChannel = (target: AllowedTarget, origin: Origin): Channel => {
    const channel = createChannel(target, settings, {
      onIdle: (idle) => {
        if (origin.isDropped) void idle.end(clientClosed);
        else origin.idle.push(idle);
      },
      onGone: (gone) => {
        channels.delete(gone);
        const at = origin.idle.indexOf(gone);
        if (at !== -1) origin.idle.splice(at, 1);
      },
    });
    channels.add(channel);
    return channel;
  };

  const send: OutboundClient["send"] = (request, receiver) => {
    if (closing !== undefined) return Promise.resolve(clientClosed);
    const checked = checkCached(request.url);
    if (!checked.ok) return Promise.resolve(refusalFailure(checked));
    const origin = originOf(checked.target);
    const channel = origin.idle.pop() ?? addChannel(checked.target, origin);
    return channel.exchange(request, checked.target.path, receiver);
  };

  const isResolverDown: OutboundClient["isResolverDown"] = async (url) => {
    const checked = checkCached(url);
    if (!checked.ok || checked.target.isAddress) return false;
    return names.find(checked.target.hostname).then(
      () => false,
      (error: unknown) => isResolverOutage(classifyError(error, "dns")),
    );
  };

  const close = (): Promise<void> => {
    closing ??= Promise.all([...channels].map((channel) => channel.end(clientClosed))).then(() =>
      origins.clear(),
    );
    return closing;
  };

  return Object.freeze({ send, isResolverDown, close });
}

/** Shared by all connections: reading the roots takes longer than a handshake. */
function shareContext(options: tls.SecureContextOptions): () => tls.SecureContext {
  let shared: tls.SecureContext | undefined;
  return () => (shared ??= tls.createSecureContext({ minVersion: "TLSv1.2", ...options }));
}

/**
 * Creates a function that calls back after the event loop has polled for new bytes. One chain of
 * `setImmediate` serves all callbacks. Each runs in the second one after it was added: the first
 * belongs to the same turn as a read, and the event loop polls for new bytes only after it.
 */
export function createAfterPoll(): (callback: () => void) => void {
  let added: (() => void)[] = [];
  let isScheduled = false;

  const takeTurn = (due: (() => void)[]): void => {
    const next = added;
    added = [];
    isScheduled = next.length > 0;
    if (isScheduled) setImmediate(takeTurn, next);
    for (const callback of due) callback();
  };

  return (callback) => {
    added.push(callback);
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(takeTurn, []);
  };
}
