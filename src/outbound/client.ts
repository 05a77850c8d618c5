/** The guarded HTTP client: sends to public hosts only, within one deadline, over kept-alive connections it has vetted itself. */

import tls from "node:tls";
import { LRUCache } from "lru-cache";
import type { Clock } from "../core/clock.js";
import { createDeadlines } from "../core/deadlines.js";
import { type AddressPolicy, type AllowedTarget, checkUrl, type UrlCheck } from "./address-policy.js";
import { type Channel, openChannel } from "./channel.js";
import { clientClosed, refusalFailure } from "./failure.js";
import { createNextPoll } from "./next-poll.js";
import { createResolver, type Resolve } from "./resolver.js";
import type { OutboundClient } from "./types.js";

export interface OutboundClientOptions {
  readonly clock: Clock;
  readonly policy?: AddressPolicy | undefined;
  /** PEM certificates trusted beside Node's built-in roots. Default: the built-in roots alone. */
  readonly ca?: string | Buffer | undefined;
  /** Default: {@link createResolver}, which asks the system's DNS servers. */
  readonly resolve?: Resolve | undefined;
  /** Origins (scheme, host and port) to keep idle connections for, 1 or more; the least recently used is dropped. Default 1000. */
  readonly maxOrigins?: number | undefined;
}

/** The idle connections of one origin, the one used last on top. */
interface Origin {
  readonly idle: Channel[];
  isDropped: boolean;
}

/**
 * A client for hosts that strangers name.
 *
 * Each URL is judged by its text, each connection by every address its name resolves to and by the peer it reached, before a byte
 * is sent ({@link checkUrl}, {@link judgeAddress}). TLS 1.2 or newer, always verified. Redirects and proxy variables are not
 * followed, nothing is decompressed, a head may have 16 KiB, and a request is never repeated.
 * Opens as many connections as sends are in flight: the caller bounds those. Idle ones close after four seconds, or as long as
 * the endpoint's `Keep-Alive` allows, up to thirty; they do not keep the process alive.
 */
export function createOutboundClient({
  clock,
  policy = {},
  ca,
  resolve = createResolver(),
  maxOrigins = 1000,
}: OutboundClientOptions): OutboundClient {
  const channels = new Set<Channel>();
  const verdicts = new LRUCache<string, UrlCheck>({ max: maxOrigins });
  const origins = new LRUCache<string, Origin>({
    max: maxOrigins,
    dispose: (origin) => {
      origin.isDropped = true;
      for (const channel of [...origin.idle]) void channel.end(clientClosed);
    },
  });
  let closing: Promise<void> | undefined;

  let sharedContext: tls.SecureContext | undefined;
  /** One for all connections: reading the roots costs more than a handshake. */
  const secureContext = (): tls.SecureContext => {
    sharedContext ??= tls.createSecureContext({
      minVersion: "TLSv1.2",
      ...(ca === undefined ? {} : { ca: [...tls.rootCertificates, ca] }),
    });
    return sharedContext;
  };
  const settings = {
    clock,
    deadlines: createDeadlines(clock),
    nextPoll: createNextPoll(),
    policy,
    resolve,
    secureContext,
  };

  /** Refusals are not kept: a stranger could fill the cache with them. */
  const judge = (url: string): UrlCheck => {
    const known = verdicts.get(url);
    if (known !== undefined) return known;
    const verdict = checkUrl(url, policy);
    if (verdict.ok) verdicts.set(url, verdict);
    return verdict;
  };

  const originOf = (target: AllowedTarget): Origin => {
    const known = origins.get(target.origin);
    if (known !== undefined) return known;
    const origin: Origin = { idle: [], isDropped: false };
    origins.set(target.origin, origin);
    return origin;
  };

  const addChannel = (target: AllowedTarget, origin: Origin): Channel => {
    const channel = openChannel(target, settings, {
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
    const verdict = judge(request.url);
    if (!verdict.ok) return Promise.resolve(refusalFailure(verdict));
    const origin = originOf(verdict.target);
    const channel = origin.idle.pop() ?? addChannel(verdict.target, origin);
    return channel.exchange(request, verdict.target.path, receiver);
  };

  const close = (): Promise<void> => {
    closing ??= Promise.all([...channels].map((channel) => channel.end(clientClosed))).then(() =>
      origins.clear(),
    );
    return closing;
  };

  return Object.freeze({ send, close });
}
