/** What the services report of their work, as plain calls with plain values. Knows no tracing or metrics library; without a `telemetry` option none of it is called. */

/** What a metric is: the name, unit and labels that every binding derives its own from. */
export interface Metric {
  /** With dots, without the unit. */
  readonly name: string;
  /** A counter only grows; a histogram notes each value; a gauge is read when it is looked at. */
  readonly kind: "counter" | "histogram" | "gauge";
  /** Seconds (`s`), or what is counted, in braces (UCUM). */
  readonly unit: string;
  readonly description: string;
  /** Every label has few values: no id, account, address or text that somebody sent. */
  readonly labels: readonly string[];
  /** Upper bounds of a histogram, ascending. */
  readonly bounds?: readonly number[];
}

const CALL_BOUNDS = Object.freeze([0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15]);
/** From a free slot to an outage of days. */
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
  deliveriesEnded: {
    name: "postbell.deliveries.ended",
    kind: "counter",
    unit: "{delivery}",
    description: "Deliveries that this process ended.",
    labels: ["state", "reason"],
  },
  deliveriesInFlight: {
    name: "postbell.deliveries.in_flight",
    kind: "gauge",
    unit: "{delivery}",
    description: "Deliveries that this process has under way.",
    labels: [],
  },
  deliveriesPending: {
    name: "postbell.deliveries.pending",
    kind: "gauge",
    unit: "{delivery}",
    description: "Deliveries in the storage that have not ended.",
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
    description: "Time to answer a content request, without sending the answer.",
    labels: ["method", "route", "status_class"],
    bounds: CALL_BOUNDS,
  },
  contentCacheLookups: {
    name: "postbell.content.cache.lookups",
    kind: "counter",
    unit: "{lookup}",
    description: "Look-ups in the caches of whole answers and of whole records.",
    labels: ["cache", "result"],
  },
  contentRecords: {
    name: "postbell.content.records",
    kind: "gauge",
    unit: "{record}",
    description: "Content records of which this process holds the columns, and those that it holds whole.",
    labels: ["held"],
  },
} satisfies Record<string, Metric>;

/** The name of a metric in the table. */
export type MetricName = keyof typeof table;
/** Every metric there is. */
export const metrics: Readonly<Record<MetricName, Metric>> = Object.freeze(table);

/** What tells the series of one metric apart: a fixed set of names and few values. */
export type Labels = Readonly<Record<string, string>>;

/** A gauge as it is now. */
export interface Reading {
  readonly metric: MetricName;
  readonly labels: Labels;
  readonly value: number;
}

/** What a span says of its operation. No key, secret, record, or path of a URL. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

/** What is known of an operation when it begins. */
export interface SpanStart {
  /** What is done: `emit`, `claim`, `attempt`. */
  readonly name: string;
  /** `producer` continues the caller's trace; the others begin one of their own. */
  readonly kind: "producer" | "consumer" | "client";
  /** Epoch milliseconds. */
  readonly at: number;
  /** Names of the semantic conventions, or with `postbell.` in front. */
  readonly attributes: SpanAttributes;
  /** The `traceparent` of a span that led to this one, in whatever process and however long ago. */
  readonly link?: string | undefined;
}

/** An operation that is being traced. */
export interface Span {
  /** Names the span to other processes, in the form of W3C Trace Context; `undefined` where nobody records it. */
  readonly traceparent: string | undefined;
  /** Calls `work` at once, with the span as the current one, and returns what it returns. */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** To be called once. `error`: a short stable word where it failed. */
  end(outcome: {
    readonly at: number;
    readonly attributes?: SpanAttributes | undefined;
    readonly error?: string | undefined;
  }): void;
}

/** What takes the reports: `openTelemetry()` of `postbell/opentelemetry`, `prometheus().telemetry` of `postbell/prometheus`, or the host's own. Several services may share one. */
export interface Telemetry {
  /** Adds `value` to a counter, or notes it in a histogram. `labels` holds all labels of the metric and no others. */
  record(metric: MetricName, value: number, labels: Labels): void;
  /**
   * Calls `read` whenever the gauges are looked at, until the function that it returns is called. `read` takes a few seconds at most; where it rejects there is nothing to show.
   */
  observe(read: () => Promise<readonly Reading[]>): () => void;
  /** Begins a span; `undefined` where none is wanted. Absent: only metrics are. */
  begin?(span: SpanStart): Span | undefined;
}

/** A span of time for a histogram, never below 0. */
export const seconds = (ms: number): number => Math.max(0, ms) / 1_000;

const nothing = (): void => {};

/** What `call` gives; `fallback` where it throws: telemetry that is broken must not fail a delivery, and the log would fill with it. */
function tried<T>(call: () => T, fallback: T): T {
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
    tried(
      () =>
        void span.run(() => {
          begun = work();
          return begun;
        }),
      undefined,
    );
    return begun ?? work();
  },
  end: (outcome) => tried(() => span.end(outcome), undefined),
});

/** The same telemetry, except that nothing it throws can reach the code that reports. */
export function guardedTelemetry(telemetry: Telemetry | undefined): Telemetry | undefined {
  if (telemetry === undefined) return undefined;
  return Object.freeze<Telemetry>({
    record: (metric, value, labels) => tried(() => telemetry.record(metric, value, labels), undefined),
    observe(read) {
      const end = tried(() => telemetry.observe(read), nothing);
      return () => tried(end, undefined);
    },
    begin(start) {
      const span = tried(() => telemetry.begin?.(start), undefined);
      return span && guardedSpan(span);
    },
  });
}

/** What may stand in a label or an attribute for a code that a host's function made up. */
const WORD = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;
export const toLabel = (text: unknown, fallback: string): string =>
  typeof text === "string" && WORD.test(text) ? text : fallback;

/** Where a request goes, without what may be secret in its URL. */
export function getServerAttributes(url: string): SpanAttributes {
  const { hostname, port, protocol } = new URL(url);
  const scheme = protocol.slice(0, -1);
  return {
    "server.address": hostname.replace(/^\[|\]$/g, ""),
    "server.port": port === "" ? (scheme === "http" ? 80 : 443) : Number(port),
    "url.scheme": scheme,
  };
}
