/** `postbell/opentelemetry`: spans and metrics through the OpenTelemetry API, so that the host's SDK decides what becomes of them. */

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
import { createReaders } from "./readers.js";

/** What `openTelemetry` takes. Default: the providers that the host has registered. */
export interface OpenTelemetryOptions {
  /** Default: the one registered with the API when the first span begins. */
  readonly tracerProvider?: TracerProvider | undefined;
  /** Default: the one registered with the API when this is called. */
  readonly meterProvider?: MeterProvider | undefined;
}

const provider = <T>(method: string) =>
  value<T | undefined>(
    `a provider with ${method}`,
    (given) =>
      typeof given === "object" &&
      given !== null &&
      typeof (given as Record<string, unknown>)[method] === "function",
    undefined,
  );

/** The options by name, with their defaults and what they may be. */
export const openTelemetryOptions = {
  tracerProvider: provider<TracerProvider>("getTracer"),
  meterProvider: provider<MeterProvider>("getMeter"),
};

const SCOPE = "postbell";

const KINDS = { producer: SpanKind.PRODUCER, consumer: SpanKind.CONSUMER, client: SpanKind.CLIENT } as const;

/** Labels that the semantic conventions have a name for. */
const KNOWN: Readonly<Record<string, string>> = {
  error: "error.type",
  method: "http.request.method",
  route: "http.route",
};

const attributesOf = (labels: Labels): Attributes =>
  Object.fromEntries(
    Object.entries(labels)
      // What is not there is no attribute.
      .filter(([, text]) => text !== "")
      .map(([name, text]) => [KNOWN[name] ?? `postbell.${name}`, text]),
  );

const ZEROS = /^0+$/;
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

const writeTraceparent = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-${(traceFlags & TraceFlags.SAMPLED).toString(16).padStart(2, "0")}`;

/** `undefined` for what is none: then a span has no link, which is better than a wrong one. Source: W3C Trace Context, §3.2. */
export function readTraceparent(text: string | undefined): SpanContext | undefined {
  const [, traceId = "0", spanId = "0", flags = "0"] = TRACEPARENT.exec(text ?? "") ?? [];
  if (ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true };
}

/** Only spans that somebody records are named to later ones. */
const nameOf = (span: OtelSpan): string | undefined =>
  trace.isSpanContextValid(span.spanContext()) ? writeTraceparent(span.spanContext()) : undefined;

/**
 * What `createWebhooks` and `createContent` take as `telemetry`; both may have the same one. Needs `@opentelemetry/api`, and does nothing until an SDK is registered with it or given here.
 *
 * Spans: `emit` in the caller's trace; `claim`, and `attempt` with a link to the `emit` of its event, each in a trace of its own. Metrics: those of `metrics`, labels as attributes
 * with `postbell.` in front or by the name of the semantic conventions.
 * Guarantee: no key, secret, body, id of a resource, or path of a URL is in any of them.
 * Errors: `invalid_option`.
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
          if (gauge) result.observe(gauge, now, attributesOf(labels));
        }
      },
      [...gauges.values()],
    );
  };

  return Object.freeze<Telemetry>({
    record(metric: MetricName, amount: number, labels: Labels) {
      const instrument = instruments.get(metric);
      if (instrument === undefined) return;
      if ("add" in instrument) instrument.add(amount, attributesOf(labels));
      else instrument.record(amount, attributesOf(labels));
    },
    observe(read: () => Promise<readonly Reading[]>) {
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
        traceparent: nameOf(span),
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
