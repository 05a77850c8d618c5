/** `postbell/prometheus`: the metrics as Prometheus reads them, without its client library. */

import { PostbellError } from "../src/core/errors.js";
import { hook, readOptions } from "../src/core/options.js";
import { type Labels, type Metric, type MetricName, metrics, type Telemetry } from "../src/core/telemetry.js";
import { HttpError } from "../src/http/errors.js";
import { createRouter } from "../src/http/router.js";
import type { HttpRequest, Service } from "../src/http/types.js";
import { createReaders } from "./readers.js";

type Awaitable<T> = T | PromiseLike<T>;

/** What `prometheus` takes. */
export interface PrometheusOptions {
  /** Whether this request may read the metrics; anything but `true` is answered with 401. Default: everybody may. */
  readonly authorize?: ((request: HttpRequest) => Awaitable<boolean>) | undefined;
}

/** What gathers the metrics, and the service that shows them. */
export interface Prometheus {
  /** For `createWebhooks` and `createContent`; both may have the same one. */
  readonly telemetry: Telemetry;
  /** `GET /metrics` in the text format 0.0.4, for an adapter to mount. */
  readonly service: Service;
}

/** The options by name, with their defaults and what they may be. */
export const prometheusOptions = {
  /** Who may read the metrics. */
  authorize: hook<(request: HttpRequest) => Awaitable<boolean>>(),
};

/** Label sets of one metric. There are far fewer; should a defect make more, those beyond are dropped rather than kept for ever. */
const MOST_SERIES = 2_000;

/** `postbell.emit.duration` in `s` is `postbell_emit_duration_seconds`, a counter ends in `_total`. Source: Prometheus, "Metric and label naming". */
const nameOf = ({ name, unit, kind }: Metric): string =>
  name.replaceAll(".", "_") + (unit === "s" ? "_seconds" : "") + (kind === "counter" ? "_total" : "");

const escaped = (text: string): string =>
  text.replace(/[\\"\n]/g, (character) => (character === "\n" ? "\\n" : `\\${character}`));

/** Source: Prometheus, "Exposition formats", text format 0.0.4. */
const line = (name: string, labels: readonly (readonly [string, string])[], value: number): string => {
  const inner = labels.map(([label, text]) => `${label}="${escaped(text)}"`).join(",");
  return `${name}${inner && `{${inner}}`} ${value === Number.POSITIVE_INFINITY ? "+Inf" : value}\n`;
};

interface Series {
  readonly labels: readonly (readonly [string, string])[];
  sum: number;
  count: number;
  /** How many values fell into each bucket of a histogram, not cumulated. */
  readonly buckets: number[];
}

interface Family {
  readonly metric: Metric;
  readonly series: Map<string, Series>;
}

function add({ metric, series }: Family, value: number, labels: Labels): void {
  const key = metric.labels.map((name) => labels[name] ?? "").join("\u0000");
  let one = series.get(key);
  if (one === undefined) {
    if (series.size === MOST_SERIES) return;
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

function shown(metric: Metric, series: Iterable<Series>): string {
  const name = nameOf(metric);
  let text = `# HELP ${name} ${metric.description}\n# TYPE ${name} ${metric.kind}\n`;
  for (const { labels, sum, count, buckets } of series) {
    if (metric.kind !== "histogram") {
      text += line(name, labels, sum);
      continue;
    }
    let upTo = 0;
    for (const [index, bound] of (metric.bounds ?? []).entries()) {
      upTo += buckets[index] ?? 0;
      text += line(`${name}_bucket`, [...labels, ["le", String(bound)]], upTo);
    }
    text += line(`${name}_bucket`, [...labels, ["le", "+Inf"]], count);
    text += line(`${name}_sum`, labels, sum) + line(`${name}_count`, labels, count);
  }
  return text;
}

/**
 * Counts in this process, and shows it to whoever scrapes. Gauges of the storage are asked for at each scrape.
 *
 * Guarantee: the labels are those of `metrics`, with few values each; no id, account, address or text that somebody sent is among them.
 * Errors: `invalid_option`.
 */
export function prometheus(options: PrometheusOptions = {}): Prometheus {
  const { authorize } = readOptions("prometheus", prometheusOptions, options);
  const families = new Map<string, Family>(
    Object.entries(metrics).map(([key, metric]) => [key, { metric, series: new Map() }]),
  );
  const readers = createReaders();

  const familyOf = (name: MetricName): Family => {
    const family = families.get(name);
    if (family === undefined) throw new PostbellError("invalid_argument", `There is no metric '${name}'.`);
    return family;
  };

  const render = async (): Promise<string> => {
    const gauges = new Map<string, Family>();
    for (const { metric: name, labels, value } of await readers.read()) {
      const family = gauges.get(name) ?? { metric: familyOf(name).metric, series: new Map() };
      gauges.set(name, family);
      add(family, value, labels);
    }
    return [...families]
      .map(([name, family]) => gauges.get(name) ?? family)
      .map(({ metric, series }) => shown(metric, series.values()))
      .join("");
  };

  const handle = createRouter(
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
          throw new HttpError(401, "unauthorized", "These metrics are not for everybody.");
      },
      onError: (error) =>
        error instanceof HttpError
          ? { status: error.status, headers: error.headers, body: null }
          : { status: 503, headers: {}, body: null },
    },
  );

  return Object.freeze<Prometheus>({
    telemetry: Object.freeze<Telemetry>({
      record: (metric, value, labels) => add(familyOf(metric), value, labels),
      observe: (read) => readers.add(read),
    }),
    service: Object.freeze<Service>({ handle }),
  });
}
