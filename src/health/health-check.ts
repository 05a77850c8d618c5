/** `createHealth`: serves the health of the services to a supervisor such as Kubernetes. */

import { type Clock, systemClock } from "../core/clock.js";
import { readOptions, value, wholeNumber } from "../core/options.js";
import { HttpError } from "../http/errors.js";
import { createRouter, type Route } from "../http/router.js";
import type { HttpResponse, Service } from "../http/types.js";
import type { HealthStatus, Problem } from "./health-status.js";

/** A service that reports its health. `createWebhooks` and `createContent` return one. */
export interface Checked {
  /** Returns the current health of the service. Never rejects. */
  status(): Promise<HealthStatus>;
}

/**
 * The options of `createHealth`. Pass at least one service.
 *
 * @example
 * const options: HealthOptions = { webhooks, content, storageAwayMs: 60_000 };
 */
export interface HealthOptions {
  /** The service from `createWebhooks`. */
  webhooks?: Checked | undefined;
  /** The service from `createContent`. */
  content?: Checked | undefined;
  /**
   * Milliseconds for which the storage may be unavailable before the response is 503. Default 30
   * 000. Raise it if a failover of your storage takes longer.
   */
  storageAwayMs?: number | undefined;
  /**
   * Milliseconds by which the event loop may be late before the response is 503. Default 1 000.
   * Raise it if other work in the process blocks it for longer.
   */
  eventLoopDelayMs?: number | undefined;
  /** The source of time. Default: the system's. Tests pass `manualClock()`. */
  clock?: Clock | undefined;
}

const hasMethod = (name: string) => (value: unknown) =>
  typeof value === "object" &&
  value !== null &&
  typeof (value as Record<string, unknown>)[name] === "function";

const checked = value<Checked | undefined>("a service", hasMethod("status"), undefined);

const healthOptions = {
  webhooks: checked,
  content: checked,
  storageAwayMs: wholeNumber("ms", 30_000, { min: 0 }),
  eventLoopDelayMs: wholeNumber("ms", 1_000, { min: 1 }),
  clock: value<Clock>("a clock", hasMethod("monotonic"), systemClock),
};

/** The health of one service in the response of `GET /healthz`. */
export interface PartHealth {
  readonly status: "ok" | "failing";
  readonly started: boolean;
  /** All problems, including those that are not (yet) a reason to fail. */
  readonly problems: readonly Problem[];
}

/** The body of the response of `GET /healthz`. */
export interface Health {
  readonly status: "ok" | "failing";
  readonly webhooks?: PartHealth;
  readonly content?: PartHealth;
  readonly eventLoop: { readonly status: "ok" | "failing"; readonly delayMs: number };
}

interface Measured {
  webhooks?: HealthStatus | undefined;
  content?: HealthStatus | undefined;
  delayMs: number;
}

type Limits = Record<"storageAwayMs" | "eventLoopDelayMs", number>;

const toStatus = (isOk: boolean): "ok" | "failing" => (isOk ? "ok" : "failing");

function evaluatePart({ isStarted, problems }: HealthStatus, { storageAwayMs }: Limits): PartHealth {
  // A process that only emits still works while the one that should deliver is not started.
  const isTolerated = ({ code, forMs }: Problem): boolean =>
    code === "not_started" || (code === "storage_away" && forMs <= storageAwayMs);
  return { status: toStatus(problems.every(isTolerated)), started: isStarted, problems };
}

/** Evaluates what was measured against the limits. Pure. */
function evaluateHealth({ webhooks, content, delayMs }: Measured, limits: Limits): Health {
  const parts = {
    ...(webhooks && { webhooks: evaluatePart(webhooks, limits) }),
    ...(content && { content: evaluatePart(content, limits) }),
    eventLoop: { status: toStatus(delayMs <= limits.eventLoopDelayMs), delayMs },
  };
  return { status: toStatus(Object.values(parts).every(({ status }) => status === "ok")), ...parts };
}

/**
 * Returns the part of the health that a restart would improve. It would not help an unavailable
 * storage, and would abort the deliveries in flight.
 */
function toLiveness({ webhooks, eventLoop }: Health): Health {
  const isStalled = webhooks?.problems.some(({ code }) => code === "loop_stalled") ?? false;
  return { status: toStatus(!isStalled && eventLoop.status === "ok"), eventLoop };
}

/** Long enough to notice a loop that is busy with many short tasks. */
const SAMPLE_MS = 20;

/** Measures how late a timer of this clock fires now. */
const measureDelay = (clock: Clock): Promise<number> =>
  new Promise((resolve) => {
    const startedAt = clock.monotonic();
    clock.setTimeout(
      () => resolve(Math.max(0, Math.round(clock.monotonic() - startedAt - SAMPLE_MS))),
      SAMPLE_MS,
    );
  });

const toResponse = (health: { status: Health["status"] }): HttpResponse => ({
  status: health.status === "ok" ? 200 : 503,
  headers: { "content-type": "application/json; charset=utf-8", "cache-control": "no-store" },
  body: JSON.stringify(health),
});

/**
 * Creates a service that reports health. `GET /healthz` responds with 200 or 503 and a {@link
 * Health}; use it for readiness. `GET /livez` reports only what a restart would improve; use it for
 * liveness.
 *
 * Each request measures again, so the response is 200 as soon as the problem is over. A service
 * that was not started is healthy, unless its storage could not be reached. Responses contain no
 * address, account or count, so no key is needed.
 *
 * @throws `invalid_option`.
 *
 * @example
 * app.use(expressAdapter(createHealth({ webhooks })));
 */
export function createHealth(options: HealthOptions): Service {
  const { webhooks, content, clock, ...limits } = readOptions("createHealth", healthOptions, options);
  const measure = async (services: HealthOptions): Promise<Health> => {
    const [webhooksStatus, contentStatus, delayMs] = await Promise.all([
      services.webhooks?.status(),
      services.content?.status(),
      measureDelay(clock),
    ]);
    return evaluateHealth({ webhooks: webhooksStatus, content: contentStatus, delayMs }, limits);
  };
  const routes: Route<undefined>[] = [
    { method: "GET", path: "/healthz", handle: async () => toResponse(await measure({ webhooks, content })) },
    // Without content: its health needs the storage, and this response must come without it.
    {
      method: "GET",
      path: "/livez",
      handle: async () => toResponse(toLiveness(await measure({ webhooks }))),
    },
  ];
  const handle = createRouter(routes, {
    context: () => undefined,
    onError: (error) =>
      error instanceof HttpError
        ? { status: error.status, headers: error.headers, body: null }
        : toResponse({ status: "failing" }),
  });
  return Object.freeze<Service>({ handle });
}
