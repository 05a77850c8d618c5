/**
 * Passes spans and metrics to the OpenTelemetry API, and so to the host's SDK.
 *
 * @module postbell/opentelemetry
 */

import {
  type Attributes,
  type Counter,
  context,
  type Histogram,
  type MeterProvider,
  metrics as metricsApi,
  type ObservableGauge,
  type Span as OtelSpan,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type TracerProvider,
  trace,
} from "@opentelemetry/api";
import { readOptions, value } from "../src/core/options.js";
import {
  type Labels,
  type MetricName,
  metrics,
  type Reading,
  type Telemetry,
} from "../src/core/telemetry.js";
import { createReaders } from "./telemetry-readers.js";

/** Options of `openTelemetry`. Default: the providers that the host has registered. */
export interface OpenTelemetryOptions {
  /** Default: the provider that is registered with the API when the first span begins. */
  tracerProvider?: TracerProvider | undefined;
  /** Default: the provider that is registered with the API at the time of this call. */
  meterProvider?: MeterProvider | undefined;
}

const provider = <T>(method: string) =>
  value<T | undefined>(
    `a provider with ${method}`,
    (value) =>
      typeof value === "object" &&
      value !== null &&
      typeof (value as Record<string, unknown>)[method] === "function",
    undefined,
  );

/** The table of options with their defaults and ranges. */
export const openTelemetryOptions = {
  tracerProvider: provider<TracerProvider>("getTracer"),
  meterProvider: provider<MeterProvider>("getMeter"),
};

const SCOPE = "postbell";

const KINDS = { producer: SpanKind.PRODUCER, consumer: SpanKind.CONSUMER, client: SpanKind.CLIENT } as const;

/** Labels that have a name in the semantic conventions. */
const KNOWN: Record<string, string> = {
  error: "error.type",
  method: "http.request.method",
  route: "http.route",
};

const toAttributes = (labels: Labels): Attributes =>
  Object.fromEntries(
    Object.entries(labels)
      // An empty label becomes no attribute.
      .filter(([, text]) => text !== "")
      .map(([name, text]) => [KNOWN[name] ?? `postbell.${name}`, text]),
  );

const ZEROS = /^0+$/;
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

const writeTraceparent = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-${(traceFlags & TraceFlags.SAMPLED).toString(16).padStart(2, "0")}`;

/**
 * Returns `undefined` for an invalid value: a span without a link is better than one with a wrong
 * link. Source: W3C Trace Context, §3.2.
 */
export function readTraceparent(text: string | undefined): SpanContext | undefined {
  const [, traceId = "0", spanId = "0", flags = "0"] = TRACEPARENT.exec(text ?? "") ?? [];
  if (ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true };
}

/** Returns the traceparent for later spans, or `undefined` if nobody records the span. */
const getTraceparent = (span: OtelSpan): string | undefined =>
  trace.isSpanContextValid(span.spanContext()) ? writeTraceparent(span.spanContext()) : undefined;

/**
 * Creates the option `telemetry` of `createWebhooks` and `createContent`, which may share it. Needs
 * `@opentelemetry/api`, and does nothing until an SDK is registered with it or given here.
 *
 * Spans: `emit` is in the caller's trace. `claim` and `attempt` have separate traces, and
 * `attempt` has a link to the `emit` of its event. Metrics are those of `metrics`. Their labels are
 * attributes with the prefix `postbell.`, or with their name in the semantic conventions.
 *
 * Guarantee: they contain no key, secret, body, id of a resource, or path of a URL.
 *
 * @throws `invalid_option`
 *
 * @example
 * const webhooks = createWebhooks({ ...options, telemetry: openTelemetry() });
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Telemetry {
  const { tracerProvider, meterProvider } = readOptions("openTelemetry", openTelemetryOptions, options);
  const tracer = (tracerProvider ?? trace).getTracer(SCOPE);
  const meter = (meterProvider ?? metricsApi).getMeter(SCOPE);
  const instruments = new Map<string, Counter | Histogram>();
  const gauges = new Map<string, ObservableGauge>();
  for (const [key, { name, kind, ...about }] of Object.entries(metrics)) {
    const { unit, description } = about;
    if (kind === "gauge") gauges.set(key, meter.createObservableGauge(name, { unit, description }));
    else if (kind === "counter") instruments.set(key, meter.createCounter(name, { unit, description }));
    else {
      const advice = { explicitBucketBoundaries: [...(about.bounds ?? [])] };
      instruments.set(key, meter.createHistogram(name, { unit, description, advice }));
    }
  }
  const readers = createReaders();
  let isObserved = false;
  const observe = (): void => {
    if (isObserved) return;
    isObserved = true;
    meter.addBatchObservableCallback(
      async (result) => {
        for (const { metric, labels, value: now } of await readers.read()) {
          const gauge = gauges.get(metric);
          if (gauge) result.observe(gauge, now, toAttributes(labels));
        }
      },
      [...gauges.values()],
    );
  };

  return Object.freeze<Telemetry>({
    record(metric: MetricName, amount: number, labels: Labels) {
      const instrument = instruments.get(metric);
      if (instrument === undefined) return;
      if ("add" in instrument) instrument.add(amount, toAttributes(labels));
      else instrument.record(amount, toAttributes(labels));
    },
    observe(read: () => Promise<Reading[]>) {
      observe();
      return readers.add(read);
    },
    begin({ name, kind, at, attributes, link }) {
      const linked = readTraceparent(link);
      const parent = kind === "producer" ? context.active() : ROOT_CONTEXT;
      const span = tracer.startSpan(
        name,
        {
          kind: KINDS[kind],
          startTime: at,
          attributes: { ...attributes },
          ...(linked && { links: [{ context: linked }] }),
        },
        parent,
      );
      return {
        traceparent: getTraceparent(span),
        run: (work) => context.with(trace.setSpan(parent, span), work),
        end({ at: endTime, attributes: more = {}, error }) {
          span.setAttributes(more);
          if (error !== undefined) {
            span.setAttribute("error.type", error);
            span.setStatus({ code: SpanStatusCode.ERROR });
          }
          span.end(endTime);
        },
      };
    },
  });
}
