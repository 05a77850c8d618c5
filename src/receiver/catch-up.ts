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
  /** Events that were handled before, most of them by a delivery. */
  readonly duplicates: number;
  /** False if the run ended early. It is repeated, and continues where it ended. */
  readonly isComplete: boolean;
}

/** The parts of {@link CatchUp}. */
export interface CatchUpParts<E> {
  url: string;
  apiKey: string;
  everyMs: number;
  /** Parses the body of an event of the feed. */
  read: (event: { id: string; body: string }) => E | undefined;
  /** Handles an event, unless it was handled before. Never rejects. */
  take: (event: E) => Promise<ReceiveResult<E>>;
  storage: ReceivedEvents;
  clock: Clock;
  logger: Logger;
}

interface FeedPage {
  events: { id: string; body: string }[];
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
/** An event whose handler fails this often is left out, so that it does not hold up all others. */
const MAX_FAILURES = 10;

/** A run that ends early, and the pause that the sender asked for. */
class Interruption extends Error {
  readonly pauseMs: number;

  constructor(message: string, { pauseMs = 0, cause }: { pauseMs?: number; cause?: unknown } = {}) {
    super(message, { cause });
    this.pauseMs = pauseMs;
  }
}

export class CatchUp<E extends { readonly id: string }> {
  #parts: CatchUpParts<E>;
  /** Names the cursor of this feed in the storage. */
  #feed: string;
  #client: OutboundClient | undefined;
  #running: Promise<CatchUpResult> | undefined;
  #timer: Timer | undefined;
  #isStarted = false;
  #isStopping = false;
  #pauses = 0;
  /** How often the event at which the last runs ended has failed. */
  #failing = { id: "", times: 0 };

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
    await this.#client?.close();
    this.#client = undefined;
  }

  /** Fetches what was missed. Calls at the same time share a run. Never rejects. */
  run(): Promise<CatchUpResult> {
    this.#running ??= this.#runOnce().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #runOnce(): Promise<CatchUpResult> {
    const { clock, everyMs, logger } = this.#parts;
    const counts = { handled: 0, duplicates: 0 };
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
      logger.warn({ error, ...counts }, "catching up ended early; it continues later");
    }
    if (counts.handled > 0) logger.info(counts, "caught up with missed events");
    if (this.#isStarted) {
      this.#timer = clock.setTimeout(() => void this.run(), pauseMs);
      // A process that has nothing else to do must be able to end.
      (this.#timer as Partial<NodeJS.Timeout>).unref?.();
    }
    return { ...counts, isComplete };
  }

  /** Reads page by page. The cursor moves when all events of a page are handled. */
  async #readFeed(counts: { handled: number; duplicates: number }): Promise<boolean> {
    const { storage, read, logger } = this.#parts;
    let cursor = await storage.readCursor(this.#feed);
    for (;;) {
      const page = await this.#fetchPage(cursor);
      for (const item of page.events) {
        if (this.#isStopping) return false;
        const event = read(item);
        if (event === undefined) logger.error({ event: item.id }, "an event of the feed cannot be read");
        else await this.#takeEvent(event, counts);
      }
      if (page.next !== cursor) await storage.writeCursor({ feed: this.#feed, cursor: page.next });
      cursor = page.next;
      if (!page.hasMore) return true;
    }
  }

  async #takeEvent(event: E, counts: { handled: number; duplicates: number }): Promise<void> {
    const result = await this.#parts.take(event);
    if (result.ok) {
      if (result.duplicate) counts.duplicates += 1;
      else counts.handled += 1;
      return;
    }
    // A delivery of the same event is being handled. If that fails, the event is still missing.
    if (result.code === "event_underway" || result.code === "storage_failed")
      throw new Interruption(result.message, { cause: result.cause });
    this.#failing = { id: event.id, times: this.#failing.id === event.id ? this.#failing.times + 1 : 1 };
    if (this.#failing.times < MAX_FAILURES) throw new Interruption("onEvent failed", { cause: result.cause });
    const { logger } = this.#parts;
    logger.error({ event: event.id, error: result.cause }, "onEvent failed ten times: the event is left out");
  }

  async #fetchPage(cursor: string | undefined): Promise<FeedPage> {
    const response = await this.#request(cursor);
    // The service has another storage, or its webhook was registered again.
    if (response.status === 400 && cursor !== undefined && isAboutCursor(response)) {
      this.#parts.logger.warn({}, "the feed does not know the cursor: reading it from its beginning");
      return this.#fetchPage(undefined);
    }
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
      ? [{ id: item["eventId"], body: item["body"] }]
      : [],
  );
  return found.length === items.length ? { events: found, next, hasMore } : undefined;
}
