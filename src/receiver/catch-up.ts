/** Fetches the events that a receiver missed while it was away, from the feed of its webhook. */

import { createHash } from "node:crypto";
import { type Clock, type Timer, withTimeout } from "../core/clock.js";
import type { Logger } from "../core/logger.js";
import { createOutboundClient } from "../outbound/client.js";
import type { OutboundClient, OutboundResponse } from "../outbound/types.js";
import { isObject, parseBody } from "./notification.js";
import type { ReceivedEvents } from "./received-events.js";
import type { ReceiveResult } from "./receiver.js";

/** The result of {@link Receiver.catchUp}. */
export interface CatchUpResult {
  /** Events that `onEvent` has handled in this run. */
  readonly handled: number;
  /** Events that were handled before, most of them by a delivery. `onEvent` was not called. */
  readonly duplicates: number;
  /** False if the run ended early. It is repeated, and continues where it ended. */
  readonly isComplete: boolean;
}

/** The parts of {@link CatchUp}. */
export interface CatchUpParts<E> {
  url: string;
  apiKey: string;
  everyMs: number;
  /** Parses the body of an event of the feed. May throw, which ends the run. */
  read: (event: { id: string; body: string }) => E | undefined;
  /** Handles an event, unless it was handled before. Never rejects. */
  take: (event: E) => Promise<ReceiveResult<E>>;
  storage: ReceivedEvents;
  clock: Clock;
  logger: Logger;
}

interface FeedItem {
  id: string;
  body: string;
  /** True if a delivery of the event was acknowledged. */
  isDelivered: boolean;
}

interface FeedPage {
  events: FeedItem[];
  next: string;
  hasMore: boolean;
}

/** A page has about 4 MiB of bodies, and JSON can double them. */
const MAX_PAGE_BYTES = 33_554_432;
const MAX_EVENTS = 1_000;
const MAX_CURSOR = 256;
const DEADLINE_MS = 30_000;
/** The pause after a run that ended early; each further one doubles it, up to `everyMs`. */
const FIRST_PAUSE_MS = 5_000;

/** A run that ends early, and the pause that the sender asked for. */
class Interruption extends Error {
  readonly pauseMs: number;

  constructor(message: string, { pauseMs = 0, cause }: { pauseMs?: number; cause?: unknown } = {}) {
    super(message, { cause });
    this.pauseMs = pauseMs;
  }
}

/** A run that ends before an event, because a function of the host failed for it. */
class HookFailure extends Error {
  readonly hook: string;
  readonly eventId: string;

  constructor(hook: string, eventId: string, cause: unknown) {
    super(`${hook} failed`, { cause });
    this.hook = hook;
    this.eventId = eventId;
  }
}

interface Counts {
  handled: number;
  duplicates: number;
}

export class CatchUp<E extends { id: string }> {
  #parts: CatchUpParts<E>;
  /** Names the cursor of this feed in the storage. */
  #feed: string;
  #client: OutboundClient | undefined;
  #running: Promise<CatchUpResult> | undefined;
  #timer: Timer | undefined;
  #isStarted = false;
  #isStopping = false;
  #pauses = 0;

  constructor(parts: CatchUpParts<E>) {
    this.#parts = parts;
    this.#feed = createHash("sha256").update(parts.url).digest("hex").slice(0, 32);
  }

  /** Begins the first run, and repeats it. Does not wait for its end. */
  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#isStopping = false;
    void this.run();
  }

  /** Ends the run after the event that it is handling, and waits for that at most `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    const { clock } = this.#parts;
    this.#isStarted = false;
    this.#isStopping = true;
    clock.clearTimeout(this.#timer);
    const running = this.#running;
    if (running !== undefined)
      await withTimeout(clock, graceMs, running, () => new Error("late")).catch(() => {});
    await this.#closeClient();
  }

  /**
   * Fetches what was missed, also before `start()` and after `stop()`. Calls at the same time share
   * a run. Never rejects.
   */
  run(): Promise<CatchUpResult> {
    if (this.#running !== undefined) return this.#running;
    this.#isStopping = false;
    this.#running = this.#runOnce().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** The next request opens another one. */
  async #closeClient(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.close();
  }

  async #runOnce(): Promise<CatchUpResult> {
    const { clock, everyMs, logger } = this.#parts;
    const counts: Counts = { handled: 0, duplicates: 0 };
    clock.clearTimeout(this.#timer);
    let pauseMs = everyMs;
    let isComplete = false;
    try {
      isComplete = await this.#readFeed(counts);
      this.#pauses = 0;
    } catch (error) {
      const growing = FIRST_PAUSE_MS * 2 ** Math.min(this.#pauses, 20) * (0.5 + clock.random() / 2);
      this.#pauses += 1;
      pauseMs = Math.min(everyMs, Math.max(growing, error instanceof Interruption ? error.pauseMs : 0));
      if (error instanceof HookFailure)
        logger.error(
          { event: error.eventId, error: error.cause, ...counts },
          `${error.hook} failed: the feed waits at this event until it returns, even if only to ignore it`,
        );
      else logger.warn({ error, ...counts }, "catching up ended early; it continues later");
    }
    if (counts.handled > 0) logger.info(counts, "caught up with missed events");
    // Nobody else might close it: a script calls catchUp() alone.
    if (!this.#isStarted) await this.#closeClient();
    if (this.#isStarted) {
      this.#timer = clock.setTimeout(() => void this.run(), pauseMs);
      // A process that has nothing else to do must be able to end.
      (this.#timer as Partial<NodeJS.Timeout>).unref?.();
    }
    return { ...counts, isComplete };
  }

  /**
   * Reads page by page. The cursor moves when all events of a page are handled. A run without a
   * cursor writes it at its end only: until then, each further run begins without one and leaves
   * out what was delivered before the feed was used.
   */
  async #readFeed(counts: Counts): Promise<boolean> {
    const { storage, logger } = this.#parts;
    let stored = await storage.readCursor(this.#feed);
    let page = await this.#fetchPage(stored);
    if (page === undefined) {
      // The service has another storage, or its webhook was registered again.
      logger.warn({}, "the feed does not know the cursor: reading it from its beginning");
      stored = undefined;
      page = await this.#fetchPage(stored);
    }
    const isFirst = stored === undefined;
    while (page !== undefined) {
      for (const item of page.events) {
        if (this.#isStopping) return false;
        if (isFirst && item.isDelivered) counts.duplicates += 1;
        else await this.#takeItem(item, counts);
      }
      const isDone = !page.hasMore;
      const cursor = page.next;
      if (cursor !== stored && (isDone || !isFirst)) await storage.writeCursor({ feed: this.#feed, cursor });
      if (isDone) return true;
      page = await this.#fetchPage(cursor);
    }
    throw new Interruption("the feed does not know the cursor of its page");
  }

  async #takeItem(item: FeedItem, counts: Counts): Promise<void> {
    const { read, take, logger } = this.#parts;
    let event: E | undefined;
    try {
      event = read(item);
    } catch (cause) {
      throw new HookFailure("read() of the scheme", item.id, cause);
    }
    if (event === undefined) {
      logger.error({ event: item.id }, "an event of the feed cannot be read");
      return;
    }
    const result = await take(event);
    if (!result.ok) {
      if (result.code === "handler_failed") throw new HookFailure("onEvent", item.id, result.cause);
      // A delivery of the same event is being handled. If that fails, the event is still missing.
      throw new Interruption(result.message, { cause: result.cause });
    }
    if (result.duplicate) counts.duplicates += 1;
    else counts.handled += 1;
  }

  /** Returns `undefined` if the feed does not know the cursor. */
  async #fetchPage(cursor: string | undefined): Promise<FeedPage | undefined> {
    const response = await this.#request(cursor);
    if (response.status === 400 && cursor !== undefined && isAboutCursor(response)) return undefined;
    if (response.status !== 200) {
      const seconds = Number(/^[0-9]{1,6}$/.exec(response.headers["retry-after"] ?? "")?.[0] ?? 0);
      throw new Interruption(`the feed responded with ${response.status}`, { pauseMs: seconds * 1_000 });
    }
    const page = response.complete ? readPage(response.body) : undefined;
    if (page === undefined) throw new Interruption("the feed did not respond with a page of events");
    return page;
  }

  async #request(cursor: string | undefined): Promise<OutboundResponse> {
    const { url, apiKey, clock } = this.#parts;
    const target = new URL(url);
    target.searchParams.set("limit", "100");
    if (cursor !== undefined) target.searchParams.set("after", cursor);
    // The host itself has chosen the address, so a private one is as good as any.
    const policy = { allowHttp: target.protocol === "http:", allowPrivateNetworks: true };
    this.#client ??= createOutboundClient({ clock, policy, deadlineMs: DEADLINE_MS });
    const result = await this.#client.send({
      url: target.href,
      method: "GET",
      headers: { authorization: `Bearer ${apiKey}`, accept: "application/json", "user-agent": "Postbell" },
      body: null,
      deadlineMs: DEADLINE_MS,
      maxBodyBytes: MAX_PAGE_BYTES,
    });
    if (result.kind === "response") return result;
    throw new Interruption(`the feed could not be reached: ${result.code}`);
  }
}

function isAboutCursor({ body }: OutboundResponse): boolean {
  const parsed = parseBody(body);
  const error = isObject(parsed) ? parsed["error"] : undefined;
  return isObject(error) && error["field"] === "after";
}

function readPage(body: Uint8Array): FeedPage | undefined {
  const parsed = parseBody(body);
  if (!isObject(parsed)) return undefined;
  const { events, next, hasMore } = parsed;
  if (!Array.isArray(events) || events.length > MAX_EVENTS || typeof hasMore !== "boolean") return undefined;
  if (typeof next !== "string" || next.length > MAX_CURSOR) return undefined;
  const items: unknown[] = events;
  const found = items.flatMap((item) =>
    isObject(item) && typeof item["eventId"] === "string" && typeof item["body"] === "string"
      ? [{ id: item["eventId"], body: item["body"], isDelivered: item["state"] === "delivered" }]
      : [],
  );
  return found.length === items.length ? { events: found, next, hasMore } : undefined;
}
