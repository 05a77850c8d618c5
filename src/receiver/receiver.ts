/** Receives deliveries: verifies each, drops repetitions, and calls the host's function. */

import type { Clock } from "../core/clock.js";
import type { Logger } from "../core/logger.js";
import { parseUrl } from "../core/parse-url.js";
import { readBytes } from "../http/body.js";
import { BODY_MS } from "../http/body-chunks.js";
import { HttpError } from "../http/errors.js";
import type { HttpRequest, HttpResponse } from "../http/types.js";
import { createDeDuplicator, type DeDuplicator } from "./de-duplicator.js";
import type { ReceivedEvents } from "./received-events.js";
import { failure, problem, type ReceiveFailure, signatureProblem } from "./responses.js";
import {
  hasEventId,
  type ReceivedRequest,
  readHeader,
  toSignedRequest,
  type WebhookScheme,
} from "./scheme.js";

/** The result of a delivery, and how to respond to it. */
export type ReceiveResult<E> =
  /**
   * Respond with a 2xx. `duplicate`: the event was handled before, and `onEvent` was not called
   * again.
   */
  { readonly ok: true; readonly duplicate: boolean; readonly event: E } | ReceiveFailure;

/** The parts that a receiver is made of. */
export interface ReceiverParts<E extends { id: string }> {
  scheme: WebhookScheme<E>;
  onEvent: (event: E) => unknown;
  /** `undefined`: the mount point, and whatever a route of the host matches. */
  path: string | undefined;
  toleranceMs: number;
  limits: { requestBytes: number };
  duplicates: { max: number; ttlMs: number };
  storage: ReceivedEvents | undefined;
  clock: Clock;
  logger: Logger;
}

interface Responded<E> {
  result: ReceiveResult<E>;
  response?: HttpResponse;
}

/** How long a process may take for an event before another one takes it: the process has died. */
const LEASE_MS = 300_000;

export class EventReceiver<E extends { id: string }> {
  #parts: ReceiverParts<E>;
  #path: string | undefined;
  #seen: DeDuplicator;

  constructor(parts: ReceiverParts<E>) {
    this.#parts = parts;
    this.#path = parts.path === undefined ? undefined : trimSlash(parts.path);
    this.#seen = createDeDuplicator({ ...parts.duplicates, clock: parts.clock });
  }

  /** Never rejects. */
  async receive(request: ReceivedRequest): Promise<ReceiveResult<E>> {
    return (await this.#respondTo(request)).result;
  }

  /** Handles a delivery. `response`: that of the scheme, to what is no event. */
  async #respondTo(request: ReceivedRequest): Promise<Responded<E>> {
    const { scheme, toleranceMs, clock, logger } = this.#parts;
    const { body } = request;
    if (typeof body !== "string" && !(body instanceof Uint8Array))
      return { result: problem("raw_body_unavailable") };
    const signed = toSignedRequest(request, { toleranceMs, now: clock.now() });
    let step = "verify";
    let event: E | undefined;
    try {
      const code = scheme.verify(signed);
      if (code !== undefined) return { result: signatureProblem(code, scheme.header) };
      step = "read";
      event = scheme.read(signed);
      if (!hasEventId(event)) return { result: problem("invalid_notification") };
      step = "respond";
      const response = scheme.respond?.(event);
      if (response !== undefined) return { result: { ok: true, duplicate: false, event }, response };
    } catch (error) {
      logger.error({ error }, `${step}() of the scheme threw, so a request was refused: correct it`);
      return { result: problem("invalid_notification", error) };
    }
    return { result: await this.take(event) };
  }

  /**
   * Handles an event that is known to be genuine, unless it was handled before. Never rejects.
   */
  async take(event: E): Promise<ReceiveResult<E>> {
    const claim = this.#seen.claim(event.id);
    if (claim === "done") return { ok: true, duplicate: true, event };
    if (claim === "in_flight") return problem("event_underway");
    const { storage } = this.#parts;
    const result = storage === undefined ? await this.#call(event) : await this.#takeShared(event, storage);
    if (result.ok) this.#seen.confirm(event.id);
    else this.#seen.release(event.id);
    return result;
  }

  async #call(event: E): Promise<ReceiveResult<E>> {
    try {
      await this.#parts.onEvent(event);
      return { ok: true, duplicate: false, event };
    } catch (cause) {
      return problem("handler_failed", cause);
    }
  }

  /** Takes an event that another process may have handled. */
  async #takeShared(event: E, storage: ReceivedEvents): Promise<ReceiveResult<E>> {
    const { clock, duplicates, logger } = this.#parts;
    const { id } = event;
    const leaseUntil = clock.now() + LEASE_MS;
    try {
      const claim = await storage.claim({ id, now: clock.now(), leaseUntil });
      if (claim === "done") return { ok: true, duplicate: true, event };
      if (claim === "in_flight") return problem("event_underway");
    } catch (cause) {
      return problem("storage_failed", cause);
    }
    const result = await this.#call(event);
    try {
      const now = clock.now();
      if (result.ok) await storage.confirm({ id, now, keepUntil: now + duplicates.ttlMs });
      else await storage.release({ id, leaseUntil });
    } catch (error) {
      // Until the lease ends, other processes refuse a repetition of the event as in flight.
      logger.error({ error }, "the storage of the receiver could not record the result of an event");
    }
    return result;
  }

  async handle(request: HttpRequest): Promise<HttpResponse | undefined> {
    if (!this.#isOurs(request)) return undefined;
    if (request.method !== "POST")
      return failure(405, "method_not_allowed", "Send deliveries with POST.", { allow: "POST" });
    const { limits, clock } = this.#parts;
    let responded: Responded<E>;
    try {
      const body = await readBytes(request, { limit: limits.requestBytes, pace: { clock, ms: BODY_MS } });
      responded = await this.#respondTo({ body, headers: request.headers });
    } catch (error) {
      if (error instanceof HttpError) return failure(error.status, error.code, error.message);
      // Only a delivery, which is signed JSON, shows that the host's body parsers are in the way.
      if (!/^application\/json\b/i.test(request.headers["content-type"] ?? ""))
        return failure(415, "unsupported_media_type", "Deliveries are application/json.");
      const isSigned = this.#isSigned(request);
      responded = { result: isSigned ? problem("raw_body_unavailable", error) : problem("missing_header") };
    }
    const { result, response } = responded;
    if (result.ok) return response ?? { status: 204, headers: {}, body: null };
    this.#report(result);
    return failure(result.status, result.code, result.message);
  }

  /**
   * Without `path`, a route of the host decides. A host that hands over the whole path, such as
   * `node:http`, cannot say that it has a route, so there the signature header tells a delivery
   * from the requests that are not for the receiver.
   */
  #isOurs(request: HttpRequest): boolean {
    const found = trimSlash(request.path);
    if (this.#path !== undefined) return found === this.#path;
    if (found === "" || request.isRouted === true) return true;
    const isAtRoot = parseUrl(request.baseUrl)?.pathname === "/";
    return request.method === "POST" && isAtRoot && this.#isSigned(request);
  }

  #isSigned({ headers }: HttpRequest): boolean {
    return readHeader(headers, this.#parts.scheme.header) !== undefined;
  }

  #report({ status, code, message, cause }: ReceiveFailure): void {
    const { logger } = this.#parts;
    if (status >= 500) logger.error(cause === undefined ? { code } : { code, error: cause }, message);
    else logger.warn({ code }, message);
  }
}

const trimSlash = (path: string): string => (path.endsWith("/") ? path.slice(0, -1) : path);
