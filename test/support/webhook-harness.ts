/**
 * A webhook service on a manual clock, a scripted endpoint behind it, and the log of what was sent
 * when. Nothing here waits for real time.
 */

import { createHmac } from "node:crypto";
import { silentLogger } from "../../src/core/logger.js";
import {
  createWebhooks,
  type EventInput,
  type Storage,
  type Webhooks,
  type WebhooksOptions,
} from "../../src/index.js";
import type { OutboundRequest, OutboundResult, WebhookStore } from "../../src/ports.js";
import { type ManualClock, manualClock } from "../../src/testing/manual-clock.js";
import type { WebhookRecord } from "../../src/webhooks/store.js";
import { memoryStorage } from "../../storage/memory/index.js";

export const START = Date.UTC(2026, 0, 1);
export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

export const SUBSCRIBER = { id: "key-1", account: "clinic" };

/** The 14 times of the default schedule, in hours and minutes after the first attempt. */
export const ATTEMPT_TIMES = [
  "0:00",
  "0:15",
  "0:45",
  "1:45",
  "3:45",
  "7:45",
  "15:45",
  "23:45",
  "31:45",
  "39:45",
  "47:45",
  "55:45",
  "63:45",
  "71:45",
];

/** `71:45` for 258 300 000 ms; seconds where there are any. */
export function clockTime(ms: number): string {
  const two = (number: number): string => String(number).padStart(2, "0");
  const seconds = Math.floor(ms / SECOND);
  const text = `${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60) % 60)}`;
  return seconds % 60 === 0 ? text : `${text}:${two(seconds % 60)}`;
}

export const eventLoopTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A request as it came out. */
export interface Sent extends OutboundRequest {
  readonly at: number;
  readonly body: Uint8Array;
  /** `id` of the notification. */
  readonly eventId: string;
  /** Its `hub.topic`. */
  readonly webhookId: string;
  readonly resourceTypes: readonly string[];
}

export const response = (
  status: number,
  headers: Record<string, string> = {},
  body = "",
): OutboundResult => ({
  kind: "response",
  status,
  headers,
  body: Buffer.from(body),
  complete: true,
});

export const unreachable: OutboundResult = { kind: "connect", code: "ECONNREFUSED", message: "refused" };

/** A promise that a test settles when it likes. */
export interface Held<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
}

export function held<T>(): Held<T> {
  let settle: (value: T) => void = () => {};
  const promise = new Promise<T>((resolve) => {
    settle = resolve;
  });
  return { promise, resolve: (value) => settle(value) };
}

/** Never settles: an endpoint, or a hook, that hangs. */
export const forever = <T>(): Promise<T> => new Promise(() => {});

/**
 * An endpoint that holds every request until it is told to answer, and notes how many it held at
 * once.
 */
export interface HoldingEndpoint {
  readonly answer: (sent: Sent) => Promise<OutboundResult>;
  readonly open: { readonly sent: Sent; readonly hold: Held<OutboundResult> }[];
  readonly most: () => number;
  /** Answers all requests that are open; 200 unless told otherwise. */
  readonly release: (result?: OutboundResult) => void;
}

export function holdingEndpoint(): HoldingEndpoint {
  const open: { sent: Sent; hold: Held<OutboundResult> }[] = [];
  let most = 0;
  return {
    open,
    most: () => most,
    answer(sent) {
      const hold = held<OutboundResult>();
      open.push({ sent, hold });
      most = Math.max(most, open.length);
      return hold.promise;
    },
    release(result = response(200)) {
      for (const { hold } of open.splice(0)) hold.resolve(result);
    },
  };
}

export type Answer = number | OutboundResult | Promise<OutboundResult>;

/**
 * Lets a test change the store, as a function of the real one. If it changes `claim`, nothing is
 * claimed with an event.
 */
export type StoreChange = (store: WebhookStore) => Partial<WebhookStore>;

/** True if `secret` made the signature, checked without the code that signs. */
export function isSignedBy({ headers, body }: Sent, secret: string): boolean {
  const [, timestamp, signature] =
    /^t=([0-9]+), s=([0-9a-f]{64})$/.exec(headers["X-Service-Signature"] ?? "") ?? [];
  return (
    signature ===
    createHmac("sha256", secret)
      .update(`${String(timestamp)}.`)
      .update(body)
      .digest("hex")
  );
}

export interface HarnessOptions {
  /** The response of the endpoint; a number is a status. Default: 200. */
  readonly answer?: ((sent: Sent) => Answer) | undefined;
  readonly options?: Partial<Omit<WebhooksOptions, "storage" | "clock">> | undefined;
  /** Share them to have two services on one storage. */
  readonly storage?: Storage | undefined;
  readonly clock?: ManualClock | undefined;
  readonly change?: StoreChange | undefined;
}

export interface Harness {
  readonly clock: ManualClock;
  readonly storage: Storage;
  readonly webhooks: Webhooks;
  /** The store itself, past what `change` puts in its way. */
  readonly store: WebhookStore;
  readonly sent: Sent[];
  /** The log, as lines of `level message`. */
  readonly log: string[];
  /** Replaces what the endpoint answers from now on. */
  readonly respond: (answer: (sent: Sent) => Answer) => void;
  /** Registers an endpoint of the clinic; its id, and what it signs with. */
  readonly register: (url?: string, account?: string) => Promise<{ id: string; secret: string }>;
  /** Emits an event about a patient; the id of the event. */
  readonly emit: (event?: Partial<EventInput>) => Promise<string>;
  /** Lets everything run that needs no time. */
  readonly quiet: () => Promise<void>;
  /** Moves time on by `ms`, timer by timer, letting everything run in between. */
  readonly run: (ms: number) => Promise<void>;
  readonly runUntil: (time: number) => Promise<void>;
  /** Stops the service, moving time on by the grace. */
  readonly stop: (graceMs: number) => Promise<void>;
  /** Ends the service as a killed process does: nothing is settled or given back any more. */
  readonly die: () => Promise<void>;
  /** The times of the attempts, counted from `from`. */
  readonly times: (from?: number) => string[];
  readonly record: (id: string) => Promise<WebhookRecord>;
}

/**
 * Counts what happens, to notice when nothing does; for all harnesses, since two may share a clock.
 */
let activity = 0;

export function openHarness({
  answer = () => 200,
  options = {},
  storage = memoryStorage(),
  clock = manualClock(START),
  change = () => ({}),
}: HarnessOptions = {}): Harness {
  const sent: Sent[] = [];
  const log: string[] = [];
  let reply = answer;
  let isDead = false;

  const counted = (store: WebhookStore): WebhookStore =>
    new Proxy(store, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== "function" || name === "now") return member;
        return (...args: unknown[]): unknown => {
          activity += 1;
          return Reflect.apply(member, target, args);
        };
      },
    });

  const send = async (request: OutboundRequest): Promise<OutboundResult> => {
    const body = request.body ?? new Uint8Array(0);
    const { id, event } = JSON.parse(Buffer.from(body).toString()) as {
      id: string;
      // A plain event has none.
      event?: {
        "hub.topic": string;
        context: { resource: { entry: { resource: { resourceType: string } }[] } }[];
      };
    };
    const resourceTypes = (event?.context ?? []).flatMap(({ resource }) =>
      resource.entry.map((entry) => entry.resource.resourceType),
    );
    const one: Sent = {
      ...request,
      body,
      at: clock.now(),
      eventId: id,
      webhookId: event?.["hub.topic"] ?? "",
      resourceTypes,
    };
    sent.push(one);
    activity += 1;
    const given = await reply(one);
    activity += 1;
    return typeof given === "number" ? response(given) : given;
  };

  const level = (name: string) => (_: object, message: string) => {
    log.push(`${name} ${message}`);
  };
  const levels = {
    debug: level("debug"),
    info: level("info"),
    warn: level("warn"),
    error: level("error"),
    isLevelEnabled: (name: string) => name !== "debug",
  };
  const webhooks: Webhooks = createWebhooks({
    access: { authenticate: () => SUBSCRIBER, canRead: () => true },
    logger: levels,
    ...options,
    delivery: { send, ...options.delivery },
    clock,
    storage: {
      webhooks: (context) => {
        const store = storage.webhooks(context);
        const changes = change(store);
        const append: WebhookStore["append"] = (request) => store.append({ ...request, claim: undefined });
        const settle: WebhookStore["settle"] = (settlements) =>
          isDead
            ? Promise.reject(new Error("dead"))
            : (changes.settle?.(settlements) ?? store.settle(settlements));
        return counted({ ...store, ...(changes.claim && { append }), ...changes, settle });
      },
      close: async () => storage.close(),
    },
  });
  // A look from outside: it only reads.
  const store = storage.webhooks({
    clock,
    logger: silentLogger,
    perEndpoint: Number.MAX_SAFE_INTEGER,
    retention: { keepMs: Number.MAX_SAFE_INTEGER, events: Number.MAX_SAFE_INTEGER },
  });

  const quiet = async (): Promise<void> => {
    for (let calm = 0, seen = activity; calm < 4; calm++) {
      await eventLoopTurn();
      if (activity !== seen) {
        seen = activity;
        calm = -1;
      }
    }
  };

  const stop = async (graceMs: number): Promise<void> => {
    const stopped = webhooks.stop({ graceMs });
    await quiet();
    await clock.advance(graceMs);
    await stopped;
  };

  const runUntil = async (time: number): Promise<void> => {
    await quiet();
    for (let at = clock.nextTimerAt(); at !== undefined && at <= time; at = clock.nextTimerAt()) {
      await clock.advance(at - clock.now());
      await quiet();
    }
    await clock.advance(time - clock.now());
    await quiet();
  };

  return {
    clock,
    storage,
    webhooks,
    store,
    sent,
    log,
    respond(next) {
      reply = next;
    },
    async register(url = "https://hooks.example.com/a", account = SUBSCRIBER.account) {
      const { webhook, secret } = await webhooks.registrations.create({
        subscriber: { ...SUBSCRIBER, account },
        url,
      });
      return { id: webhook.id, secret };
    },
    async emit(event = {}) {
      const emitted = await webhooks.emit({
        type: "patient.updated",
        account: SUBSCRIBER.account,
        resource: { resourceType: "Patient", id: "1" },
        ...event,
      });
      return emitted.id;
    },
    quiet,
    run: (ms) => runUntil(clock.now() + ms),
    runUntil,
    stop,
    die: () => {
      isDead = true;
      return stop(0);
    },
    times: (from = START) => sent.map(({ at }) => clockTime(at - from)),
    async record(id) {
      const record = await store.getWebhook(id);
      if (!record) throw new Error(`there is no webhook ${id}`);
      return record;
    },
  };
}

/** The same, started. */
export async function startHarness(options?: HarnessOptions): Promise<Harness> {
  const harness = openHarness(options);
  await harness.webhooks.start();
  await harness.quiet();
  return harness;
}
