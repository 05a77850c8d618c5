/**
 * `postbell/prometheus`: serves the metrics in the format of Prometheus, without its client
 * library.
 */

import { PostbellError } from "../src/core/errors.js";
import { hook, readOptions } from "../src/core/options.js";
import { type Labels, type Metric, type MetricName, metrics, type Telemetry } from "../src/core/telemetry.js";
import { HttpError } from "../src/http/errors.js";
import { createRouter } from "../src/http/router.js";
import type { HttpRequest, Service } from "../src/http/types.js";
import { createReaders } from "./telemetry-readers.js";

type Awaitable<T> = T | PromiseLike<T>;

/** Options of `prometheus`. */
export interface PrometheusOptions {
  /**
   * Returns true if this request may read the metrics. For any other value, the response is 401.
   * Default: everybody may read them.
   */
  readonly authorize?: ((request: HttpRequest) => Awaitable<boolean>) | undefined;
}

/** Collects the metrics and serves them. */
export interface Prometheus {
  /** The option `telemetry` of `createWebhooks` and `createContent`, which may share it. */
  readonly telemetry: Telemetry;
  /** `GET /metrics` in the text format 0.0.4, for an adapter to mount. */
  readonly service: Service;
}

/** The table of options with their defaults and ranges. */
export const prometheusOptions = {
  /** Decides who may read the metrics. */
  authorize: hook<(request: HttpRequest) => Awaitable<boolean>>(),
};

/**
 * Limit of label sets per metric. There are far fewer; if a defect creates more, they are dropped.
 */
const MAX_SERIES = 2_000;

/**
 * Converts `postbell.emit.duration` in `s` to `postbell_emit_duration_seconds`. A counter ends in
 * `_total`. Source: Prometheus, "Metric and label naming".
 */
const toMetricName = ({ name, unit, kind }: Metric): string =>
  name.replaceAll(".", "_") + (unit === "s" ? "_seconds" : "") + (kind === "counter" ? "_total" : "");

const escapeLabel = (text: string): string =>
  text.replace(/[\\"\n]/g, (character) => (character === "\n" ? "\\n" : `\\${character}`));

/** Writes one sample. Source: Prometheus, "Exposition formats", text format 0.0.4. */
const writeSample = (name: string, labels: readonly (readonly [string, string])[], value: number): string => {
  const inner = labels.map(([label, text]) => `${label}="${escapeLabel(text)}"`).join(",");
  return `${name}${inner && `{${inner}}`} ${value === Number.POSITIVE_INFINITY ? "+Inf" : value}\n`;
};

interface Series {
  readonly labels: readonly (readonly [string, string])[];
  sum: number;
  count: number;
  /** Number of values in each bucket of a histogram, not cumulative. */
  readonly buckets: number[];
}

interface Family {
  readonly metric: Metric;
  readonly series: Map<string, Series>;
}

function addValue({ metric, series }: Family, value: number, labels: Labels): void {
  const key = metric.labels.map((name) => labels[name] ?? "").join("\u0000");
  let one = series.get(key);
  if (one === undefined) {
    if (series.size === MAX_SERIES) return;
    one = {
      labels: metric.labels.map((name) => [name, labels[name] ?? ""] as const),
      sum: 0,
      count: 0,
      buckets: (metric.bounds ?? []).map(() => 0),
    };
    series.set(key, one);
  }
  one.sum += value;
  one.count += 1;
  const bucket = metric.bounds?.findIndex((bound) => value <= bound) ?? -1;
  if (bucket >= 0) one.buckets[bucket] = (one.buckets[bucket] ?? 0) + 1;
}

function writeFamily(metric: Metric, series: Iterable<Series>): string {
  const name = toMetricName(metric);
  let text = `# HELP ${name} ${metric.description}\n# TYPE ${name} ${metric.kind}\n`;
  for (const { labels, sum, count, buckets } of series) {
    if (metric.kind !== "histogram") {
      text += writeSample(name, labels, sum);
      continue;
    }
    let upTo = 0;
    for (const [index, bound] of (metric.bounds ?? []).entries()) {
      upTo += buckets[index] ?? 0;
      text += writeSample(`${name}_bucket`, [...labels, ["le", String(bound)]], upTo);
    }
    text += writeSample(`${name}_bucket`, [...labels, ["le", "+Inf"]], count);
    text += writeSample(`${name}_sum`, labels, sum) + writeSample(`${name}_count`, labels, count);
  }
  return text;
}

/**
 * Collects metrics in this process, and serves them to Prometheus. Gauges of the storage are read
 * at each scrape.
 *
 * Guarantee: the labels are those of `metrics`, with few values each. They contain no id, account,
 * address or received text.
 *
 * @throws `invalid_option`
 *
 * @example
 * const { telemetry, service } = prometheus({
 *   authorize: ({ headers }) => headers.authorization === `Bearer ${token}`,
 * });
 */
export function prometheus(options: PrometheusOptions = {}): Prometheus {
  const { authorize } = readOptions("prometheus", prometheusOptions, options);
  const families = new Map<string, Family>(
    Object.entries(metrics).map(([key, metric]) => [key, { metric, series: new Map() }]),
  );
  const readers = createReaders();

  const getFamily = (name: MetricName): Family => {
    const family = families.get(name);
    if (family === undefined) throw new PostbellError("invalid_argument", `There is no metric '${name}'.`);
    return family;
  };

  const render = async (): Promise<string> => {
    const gauges = new Map<string, Family>();
    for (const { metric: name, labels, value } of await readers.read()) {
      const family = gauges.get(name) ?? { metric: getFamily(name).metric, series: new Map() };
      gauges.set(name, family);
      addValue(family, value, labels);
    }
    return [...families]
      .map(([name, family]) => gauges.get(name) ?? family)
      .map(({ metric, series }) => writeFamily(metric, series.values()))
      .join("");
  };

  return Object.freeze<Prometheus>({
    telemetry: Object.freeze<Telemetry>({
      record: (metric, value, labels) => addValue(getFamily(metric), value, labels),
      observe: (read) => readers.add(read),
    }),
    service: Object.freeze<Service>({ handle: createMetricsRouter(render, authorize) }),
  });
}

function createMetricsRouter(
  render: () => Promise<string>,
  authorize: PrometheusOptions["authorize"],
): Service["handle"] {
  return createRouter(
    [
      {
        method: "GET",
        path: "/metrics",
        handle: async () => ({
          status: 200,
          headers: {
            "content-type": "text/plain; version=0.0.4; charset=utf-8",
            "cache-control": "no-store",
          },
          body: await render(),
        }),
      },
    ],
    {
      context: async (request) => {
        if (authorize !== undefined && (await authorize(request)) !== true)
          throw new HttpError(401, "unauthorized", "This request may not read the metrics.");
      },
      onError: (error) =>
        error instanceof HttpError
          ? { status: error.status, headers: error.headers, body: null }
          : { status: 503, headers: {}, body: null },
    },
  );
}
