/**
 * Collects the metrics in a registry of prom-client and serves them, with those of the host if the
 * registry is the host's.
 *
 * @module postbell/prometheus
 */

import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { PostbellError } from "../src/core/errors.js";
import { hasMethods } from "../src/core/host-options.js";
import { hook, readOptions, value } from "../src/core/options.js";
import { type Labels, type Metric, type MetricName, metrics, type Telemetry } from "../src/core/telemetry.js";
import { HttpError } from "../src/http/errors.js";
import { createRouter } from "../src/http/router.js";
import type { HttpRequest, Service } from "../src/http/types.js";
import { createReaders, type Readers } from "./telemetry-readers.js";

type Awaitable<T> = T | PromiseLike<T>;

/** Options of `prometheus`. */
export interface PrometheusOptions {
  /**
   * Returns true if this request may read the metrics. For any other value, the response is 401.
   * Default: everybody may read them.
   */
  authorize?: ((request: HttpRequest) => Awaitable<boolean>) | undefined;
  /**
   * The registry of prom-client that gets the metrics, such as its `register`. Whoever serves it
   * serves them too. Default: a separate registry.
   */
  registry?: Registry | undefined;
}

/** Collects the metrics and serves them. */
export interface Prometheus {
  /** The option `telemetry` of `createWebhooks` and `createContent`, which may share it. */
  readonly telemetry: Telemetry;
  /** `GET /metrics` with all metrics of the registry, for an adapter to mount. */
  readonly service: Service;
}

/** The table of options with their defaults and ranges. */
export const prometheusOptions = {
  /** Decides who may read the metrics. */
  authorize: hook<(request: HttpRequest) => Awaitable<boolean>>(),
  /** Gets the metrics. */
  registry: value<Registry | undefined>(
    "a Registry of prom-client",
    hasMethods("registerMetric", "metrics"),
    undefined,
  ),
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

type Add = (labels: Labels, value: number) => void;

/** Registers a metric. Returns a function that adds a value to it. */
function registerMetric(key: string, registry: Registry, readers: Readers): Add {
  const metric: Metric = metrics[key as MetricName];
  const { kind, description: help, labels, bounds = [] } = metric;
  const about = { name: toMetricName(metric), help, labelNames: labels, registers: [registry] };
  if (kind === "counter") {
    const counter = new Counter(about);
    return (labels, added) => counter.inc(labels, added);
  }
  if (kind === "histogram") {
    const histogram = new Histogram({ ...about, buckets: [...bounds] });
    return (labels, added) => histogram.observe(labels, added);
  }
  const gauge = new Gauge({
    ...about,
    async collect() {
      const readings = await readers.read();
      gauge.reset();
      // A gauge without labels is 0 after a reset. It has no value if nobody reports one.
      if (labels.length === 0) gauge.remove({});
      const matching = readings.filter((reading) => reading.metric === key);
      for (const reading of matching.slice(0, MAX_SERIES)) gauge.set(reading.labels, reading.value);
    },
  });
  return (labels, added) => gauge.inc(labels, added);
}

/**
 * Drops values with further labels once there are {@link MAX_SERIES} of them, also if the host has
 * reset the registry since.
 */
function limitSeries(names: readonly string[], add: Add): Add {
  const keys = new Set<string>();
  return (labels, added) => {
    const key = names.map((name) => labels[name]).join("\u0000");
    if (!keys.has(key)) {
      if (keys.size === MAX_SERIES) return;
      keys.add(key);
    }
    add(labels, added);
  };
}

/**
 * Collects metrics in this process with prom-client, and serves them to Prometheus. Gauges of the
 * storage are read at each scrape.
 *
 * Guarantee: the labels are those of `metrics`, with few values each. They contain no id, account,
 * address or received text.
 *
 * @throws `invalid_option`, also if the registry has the metrics of another `prometheus` already
 *
 * @example
 * import { register } from "prom-client";
 *
 * const { telemetry, service } = prometheus({
 *   registry: register,
 *   authorize: ({ headers }) => headers.authorization === `Bearer ${token}`,
 * });
 */
export function prometheus(options: PrometheusOptions = {}): Prometheus {
  const { authorize, registry = new Registry() } = readOptions("prometheus", prometheusOptions, options);
  const readers = createReaders();
  const taken = Object.values(metrics)
    .map(toMetricName)
    .find((name) => registry.getSingleMetric(name));
  if (taken !== undefined) {
    throw new PostbellError(
      "invalid_option",
      `prometheus: registry has the metric ${taken} already. Services share one \`telemetry\`.`,
      { field: "registry" },
    );
  }
  const adds: Map<string, Add> = new Map(
    Object.entries(metrics).map(([key, { labels }]) => [
      key,
      limitSeries(labels, registerMetric(key, registry, readers)),
    ]),
  );

  return Object.freeze<Prometheus>({
    telemetry: Object.freeze<Telemetry>({
      record(metric, added, labels) {
        const add = adds.get(metric);
        if (add === undefined) throw new PostbellError("invalid_argument", `There is no metric '${metric}'.`);
        add(labels, added);
      },
      observe: (read) => readers.add(read),
    }),
    service: Object.freeze<Service>({ handle: createMetricsRouter(registry, authorize) }),
  });
}

function createMetricsRouter(
  registry: Registry,
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
            "content-type": registry.contentType,
            "cache-control": "no-store",
          },
          body: await registry.metrics(),
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
