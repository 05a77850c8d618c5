/** `createHealth`: tells a supervisor whether the services do their work, and if not, which part and why. */

import { type Clock, systemClock } from "../core/clock.js";
import { readOptions, value, wholeNumber } from "../core/options.js";
import { HttpError } from "../http/errors.js";
import { createRouter, type Route } from "../http/router.js";
import type { HttpResponse, Service } from "../http/types.js";
import type { HealthStatus, Problem } from "./health-status.js";

/** A service that can be asked how it is: what `createWebhooks` and `createContent` give. */
export interface Checked {
  /** How the service is now. Never rejects. */
  condition(): Promise<HealthStatus>;
}

/** What `createHealth` takes; at least one service. */
export interface HealthOptions {
  readonly webhooks?: Checked | undefined;
  readonly content?: Checked | undefined;
  /** How long the storage may be away before the answer is 503, in ms. Default: 30 000. */
  readonly storageAwayMs?: number | undefined;
  /** How late the event loop may be, in ms. Default: 1 000. */
  readonly eventLoopDelayMs?: number | undefined;
  readonly clock?: Clock | undefined;
}

const hasMethod = (name: string) => (given: unknown) =>
  typeof given === "object" &&
  given !== null &&
  typeof (given as Record<string, unknown>)[name] === "function";

const checked = value<Checked | undefined>("a service", hasMethod("condition"), undefined);

export const healthOptions = {
  webhooks: checked,
  content: checked,
  storageAwayMs: wholeNumber("ms", 30_000, { min: 0 }),
  eventLoopDelayMs: wholeNumber("ms", 1_000, { min: 1 }),
  clock: value<Clock>("a clock", hasMethod("monotonic"), systemClock),
};

/** How one of the services is, in the answer of `GET /healthz`. */
export interface PartHealth {
  readonly status: "ok" | "failing";
  readonly started: boolean;
  /** Why it is failing, and what is wrong without being reason enough. */
  readonly problems: readonly Problem[];
}

/** The body of the answer of `GET /healthz`. */
export interface Health {
  readonly status: "ok" | "failing";
  readonly webhooks?: PartHealth;
  readonly content?: PartHealth;
  readonly eventLoop: { readonly status: "ok" | "failing"; readonly delayMs: number };
}

interface Found {
  readonly webhooks?: HealthStatus | undefined;
  readonly content?: HealthStatus | undefined;
  readonly delayMs: number;
}

type Limits = Readonly<Record<"storageAwayMs" | "eventLoopDelayMs", number>>;

const statusOf = (isOk: boolean): "ok" | "failing" => (isOk ? "ok" : "failing");

function judgePart({ isStarted, problems }: HealthStatus, { storageAwayMs }: Limits): PartHealth {
  const isBorne = ({ code, forMs }: Problem): boolean => code === "storage_away" && forMs <= storageAwayMs;
  return { status: statusOf(problems.every(isBorne)), started: isStarted, problems };
}

/** What was found, against the limits. Pure. */
export function evaluateHealth({ webhooks, content, delayMs }: Found, limits: Limits): Health {
  const parts = {
    ...(webhooks && { webhooks: judgePart(webhooks, limits) }),
    ...(content && { content: judgePart(content, limits) }),
    eventLoop: { status: statusOf(delayMs <= limits.eventLoopDelayMs), delayMs },
  };
  return { status: statusOf(Object.values(parts).every(({ status }) => status === "ok")), ...parts };
}

/** The part of it that a new process would mend: a storage that is away stays away, and what is under way would be cut off. */
export function toLiveness({ webhooks, eventLoop }: Health): Pick<Health, "status" | "eventLoop"> {
  const isStalled = webhooks?.problems.some(({ code }) => code === "loop_stalled") ?? false;
  return { status: statusOf(!isStalled && eventLoop.status === "ok"), eventLoop };
}

/** Long enough for a loop that is busy in pieces to show it. */
const SAMPLE_MS = 20;

/** How much later than it should a timer of this clock fires now. */
const measureDelay = (clock: Clock): Promise<number> =>
  new Promise((resolve) => {
    const began = clock.monotonic();
    clock.setTimeout(
      () => resolve(Math.max(0, Math.round(clock.monotonic() - began - SAMPLE_MS))),
      SAMPLE_MS,
    );
  });

const answer = (health: Pick<Health, "status">): HttpResponse => ({
  status: health.status === "ok" ? 200 : 503,
  headers: { "content-type": "application/json; charset=utf-8", "cache-control": "no-store" },
  body: JSON.stringify(health),
});

/**
 * A service to mount: `GET /healthz` answers 200 or 503 with a {@link Health}, `GET /livez` the same of what only a new process would mend. Each answer is
 * found anew, so that it is green again as soon as the trouble is over. A service that was not started counts as well: it has nothing to do by itself.
 *
 * The answers hold no address, account or count, and nobody is asked for a key.
 * Errors: `invalid_option`.
 */
export function createHealth(options: HealthOptions): Service {
  const { webhooks, content, clock, ...limits } = readOptions("createHealth", healthOptions, options);
  const find = async (asked: Pick<HealthOptions, "webhooks" | "content">): Promise<Health> => {
    const [ofWebhooks, ofContent, delayMs] = await Promise.all([
      asked.webhooks?.condition(),
      asked.content?.condition(),
      measureDelay(clock),
    ]);
    return evaluateHealth({ webhooks: ofWebhooks, content: ofContent, delayMs }, limits);
  };
  const routes: readonly Route<undefined>[] = [
    { method: "GET", path: "/healthz", handle: async () => answer(await find({ webhooks, content })) },
    // Content would ask the storage, and this answer has to come though it is away.
    { method: "GET", path: "/livez", handle: async () => answer(toLiveness(await find({ webhooks }))) },
  ];
  const handle = createRouter(routes, {
    context: () => undefined,
    onError: (error) =>
      error instanceof HttpError
        ? { status: error.status, headers: error.headers, body: null }
        : answer({ status: "failing" }),
  });
  return Object.freeze<Service>({ handle });
}
