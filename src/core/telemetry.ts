/**
 * The port to metrics and traces: plain calls with plain values, without any library. Without a
 * `telemetry` option nothing here is called.
 */

import { isPostbellError } from "./errors.js";

/** The definition of a metric: each binding derives a name, a unit and labels from it. */
export interface Metric {
  /** Words with dots between them, without the unit. */
  readonly name: string;
  /** A counter only grows, a histogram records each value, a gauge is read on demand. */
  readonly kind: "counter" | "histogram" | "gauge";
  /** Seconds (`s`), or the counted thing in braces (UCUM). */
  readonly unit: string;
  readonly description: string;
  /** Every label has few values: no id, account, address or text from outside. */
  readonly labels: readonly string[];
  /** Upper bounds of a histogram, ascending. */
  readonly bounds?: readonly number[];
}

const CALL_BOUNDS = Object.freeze([0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15]);
/** From a free slot to an outage of a day. */
const LAG_BOUNDS = Object.freeze([0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400]);

const table = {
  emitDuration: {
    name: "postbell.emit.duration",
    kind: "histogram",
    unit: "s",
    description: "Time to store an event; the outcome is stored, duplicate, or the code of the error.",
    labels: ["outcome"],
    bounds: CALL_BOUNDS,
  },
  attemptDuration: {
    name: "postbell.attempt.duration",
    kind: "histogram",
    unit: "s",
    description: "Time of one delivery attempt, DNS to the last byte; the outcome is the kind of attempt.",
    labels: ["outcome", "lane"],
    bounds: CALL_BOUNDS,
  },
  attemptLag: {
    name: "postbell.attempt.lag",
    kind: "histogram",
    unit: "s",
    description: "Time from when an attempt was due to when it was made.",
    labels: ["lane"],
    bounds: LAG_BOUNDS,
  },
  attemptRepeats: {
    name: "postbell.attempt.repeats",
    kind: "counter",
    unit: "{request}",
    description: "Requests written again, because the endpoint had closed the idle connection.",
    labels: [],
  },
  deliveriesEnded: {
    name: "postbell.deliveries.ended",
    kind: "counter",
    unit: "{delivery}",
    description: "Deliveries that this process completed.",
    labels: ["state", "reason"],
  },
  deliveriesInFlight: {
    name: "postbell.deliveries.in_flight",
    kind: "gauge",
    unit: "{delivery}",
    description: "Deliveries in flight in this process.",
    labels: [],
  },
  deliveriesPending: {
    name: "postbell.deliveries.pending",
    kind: "gauge",
    unit: "{delivery}",
    description: "Pending deliveries in the storage.",
    labels: [],
  },
  deliveriesDue: {
    name: "postbell.deliveries.due",
    kind: "gauge",
    unit: "{delivery}",
    description: "Deliveries in the storage that are due and wait for a process with a free slot.",
    labels: [],
  },
  endpoints: {
    name: "postbell.endpoints",
    kind: "gauge",
    unit: "{endpoint}",
    description: "Webhooks in the storage by their health: ok, failing, warned or disabled.",
    labels: ["health"],
  },
  storageErrors: {
    name: "postbell.storage.errors",
    kind: "counter",
    unit: "{call}",
    description: "Calls of the storage that failed, by the service that made them.",
    labels: ["service", "operation", "error"],
  },
  contentRequestDuration: {
    name: "postbell.content.request.duration",
    kind: "histogram",
    unit: "s",
    description: "Time to process a content request, without sending the response.",
    labels: ["method", "route", "status_class"],
    bounds: CALL_BOUNDS,
  },
  contentCacheLookups: {
    name: "postbell.content.cache.lookups",
    kind: "counter",
    unit: "{lookup}",
    description: "Lookups in the caches of responses and of records.",
    labels: ["cache", "result"],
  },
  contentRecords: {
    name: "postbell.content.records",
    kind: "gauge",
    unit: "{record}",
    description: "Content records in this process: those whose columns it holds, and those it holds whole.",
    labels: ["held"],
  },
} satisfies Record<string, Metric>;

/** The name of a metric in the table. */
export type MetricName = keyof typeof table;
/** All metrics of the package. */
export const metrics: Readonly<Record<MetricName, Metric>> = Object.freeze(table);

/** The labels of one measurement: a fixed set of names, each with few values. */
export type Labels = Readonly<Record<string, string>>;

/** The current value of a gauge. */
export interface Reading {
  readonly metric: MetricName;
  readonly labels: Labels;
  readonly value: number;
}

/** The attributes of a span. They contain no key, secret, record, or path of a URL. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

/** The description of an operation when it begins. */
export interface SpanStart {
  /** The operation: `emit`, `claim`, `attempt`. */
  readonly name: string;
  /** `producer` continues the caller's trace; the others begin a new one. */
  readonly kind: "producer" | "consumer" | "client";
  /** Epoch milliseconds. */
  readonly at: number;
  /** Names of the semantic conventions, or names that begin with `postbell.`. */
  readonly attributes: SpanAttributes;
  /** The `traceparent` of the span that caused this one, in any process and at any time. */
  readonly link?: string | undefined;
}

/** A traced operation. */
export interface Span {
  /**
   * Identifies the span to other processes (W3C Trace Context); `undefined` if it is not recorded.
   */
  readonly traceparent: string | undefined;
  /** Calls `work` at once, with this span as the current one, and returns its result. */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** Ends the span. Call it once. `error` is a short stable word if the operation failed. */
  end(outcome: { at: number; attributes?: SpanAttributes | undefined; error?: string | undefined }): void;
}

/**
 * Receives metrics and spans: `openTelemetry()` of `postbell/opentelemetry`,
 * `prometheus().telemetry` of `postbell/prometheus`, or your own. Several services may share one.
 *
 * @example
 * const { telemetry, service } = prometheus();
 * const webhooks = createWebhooks({ storage, access, telemetry });
 * app.use(expressAdapter(service)); // GET /metrics
 */
export interface Telemetry {
  /**
   * Adds `value` to a counter, or records it in a histogram. `labels` are exactly those of the
   * metric.
   */
  record(metric: MetricName, value: number, labels: Labels): void;
  /**
   * Calls `read` whenever the gauges are requested, until the returned function is called. `read`
   * takes a few seconds at most. If it rejects, no values are shown.
   */
  observe(read: () => Promise<readonly Reading[]>): () => void;
  /** Begins a span; `undefined` if it is not wanted. Leave it out to receive metrics only. */
  begin?(span: SpanStart): Span | undefined;
}

/** Converts milliseconds to seconds for a histogram, never below 0. */
export const seconds = (ms: number): number => Math.max(0, ms) / 1_000;

const nothing = (): void => {};

/**
 * Returns the result of `call`, or `fallback` if it throws: broken telemetry must not fail a
 * delivery or fill the log.
 */
function tryCall<T>(call: () => T, fallback: T): T {
  try {
    return call();
  } catch {
    return fallback;
  }
}

const guardedSpan = (span: Span): Span => ({
  traceparent: span.traceparent,
  run(work) {
    let begun: ReturnType<typeof work> | undefined;
    tryCall(
      () =>
        void span.run(() => {
          begun = work();
          return begun;
        }),
      undefined,
    );
    return begun ?? work();
  },
  end: (outcome) => tryCall(() => span.end(outcome), undefined),
});

/** Returns telemetry whose calls never throw. */
export function guardedTelemetry(telemetry: Telemetry | undefined): Telemetry | undefined {
  if (telemetry === undefined) return undefined;
  return Object.freeze<Telemetry>({
    record: (metric, value, labels) => tryCall(() => telemetry.record(metric, value, labels), undefined),
    observe(read) {
      const end = tryCall(() => telemetry.observe(read), nothing);
      return () => tryCall(end, undefined);
    },
    begin(start) {
      const span = tryCall(() => telemetry.begin?.(start), undefined);
      return span && guardedSpan(span);
    },
  });
}

/** Codes that are safe as a label. */
const WORD = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;
/**
 * Returns a code of a host's function if it is a short word that is safe as a label, else
 * `fallback`.
 */
export const toLabel = (text: unknown, fallback: string): string =>
  typeof text === "string" && WORD.test(text) ? text : fallback;

/** Returns the attributes of a destination, without the parts of its URL that may be secret. */
export function getServerAttributes(url: string): SpanAttributes {
  const { hostname, port, protocol } = new URL(url);
  const scheme = protocol.slice(0, -1);
  return {
    "server.address": hostname.replace(/^\[|\]$/g, ""),
    "server.port": port === "" ? (scheme === "http" ? 80 : 443) : Number(port),
    "url.scheme": scheme,
  };
}

type Method = (...args: readonly unknown[]) => unknown;

/**
 * Returns the same store with its failures counted, or the store itself without telemetry. Its
 * methods must not need `this`.
 */
export function countStoreErrors<S extends object>(
  store: S,
  telemetry: Telemetry | undefined,
  service: "webhooks" | "content",
): S {
  if (telemetry === undefined) return store;
  const counted =
    (operation: string, method: Method): Method =>
    (...args) => {
      const result = method(...args);
      if (!(result instanceof Promise)) return result;
      return result.catch((error: unknown) => {
        const code = isPostbellError(error) ? error.code : "unexpected";
        telemetry.record("storageErrors", 1, { service, operation, error: code });
        throw error;
      });
    };
  const members = Object.entries(store).map(([name, member]: [string, unknown]) => [
    name,
    typeof member === "function" ? counted(name, member as Method) : member,
  ]);
  return Object.freeze(Object.fromEntries(members)) as S;
}
