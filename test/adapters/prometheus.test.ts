/** The text that Prometheus scrapes, read by a parser that takes nothing but the format. */

import { Counter, Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { prometheus } from "../../adapters/prometheus.js";
import { metrics } from "../../src/core/telemetry.js";
import { HOUR, startHarness } from "../support/webhook-harness.js";

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

interface Exposed {
  readonly type: string;
  readonly help: string;
  readonly samples: Sample[];
}

const UNESCAPED: Readonly<Record<string, string>> = { "\\\\": "\\", '\\"': '"', "\\n": "\n" };

/** Source: Prometheus, "Exposition formats", text format 0.0.4. Throws at whatever is not of it. */
function parse(text: string): Map<string, Exposed> {
  const families = new Map<string, Exposed>();
  let help: readonly [string, string] | undefined;
  let current: { readonly name: string; readonly family: Exposed } | undefined;
  if (!text.endsWith("\n")) throw new Error("The last line has no line feed.");
  for (const row of text.slice(0, -1).split("\n")) {
    if (row === "") continue;
    const [, about, of, rest] = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(row) ?? [];
    if (about === "HELP" && of !== undefined && rest !== undefined) {
      help = [of, rest];
    } else if (about === "TYPE" && of !== undefined && rest !== undefined) {
      if (families.has(of) || help?.[0] !== of) throw new Error(`TYPE at a wrong place: ${row}`);
      current = { name: of, family: { type: rest, help: help[1], samples: [] } };
      families.set(of, current.family);
    } else {
      const sample = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? ([0-9.e+-]+|\+Inf)$/.exec(row);
      const base = sample?.[1]?.replace(
        current?.family.type === "histogram" ? /_(bucket|sum|count)$/ : /$^/,
        "",
      );
      if (!sample || current === undefined || base !== current.name) throw new Error(`No sample: ${row}`);
      const labels: Record<string, string> = {};
      let left = sample[2] ?? "";
      while (left !== "") {
        const [all, label = "", value = ""] =
          /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,(?=.)|$)/.exec(left) ?? [];
        if (all === undefined || label in labels) throw new Error(`No label: ${left}`);
        labels[label] = value.replace(/\\[\\"n]/g, (pair) => UNESCAPED[pair] ?? pair);
        left = left.slice(all.length);
      }
      current.family.samples.push({ name: sample[1] ?? "", labels, value: Number(sample[3]) });
    }
  }
  return families;
}

const ask = (service: ReturnType<typeof prometheus>["service"], method = "GET", path = "/metrics") =>
  service.handle({
    method,
    path,
    query: "",
    headers: {},
    body: null,
    baseUrl: "",
  });

async function scrape(metricsOf: ReturnType<typeof prometheus>): Promise<Map<string, Exposed>> {
  const answer = await ask(metricsOf.service);
  expect(answer?.status).toBe(200);
  expect(answer?.headers["content-type"]).toBe("text/plain; version=0.0.4; charset=utf-8");
  return parse(answer?.body as string);
}

/** Labels have no order. */
const toKey = (labels: Readonly<Record<string, string>>): string =>
  JSON.stringify(Object.entries(labels).sort(([one], [other]) => (one < other ? -1 : 1)));

const sampleOf = (
  family: Exposed | undefined,
  labels: Readonly<Record<string, string>>,
  suffix = "",
): number | undefined =>
  family?.samples.find((sample) => sample.name.endsWith(suffix) && toKey(sample.labels) === toKey(labels))
    ?.value;

describe("the text for Prometheus", () => {
  it("names every metric before anything has happened", async () => {
    const families = await scrape(prometheus());
    expect([...families.keys()]).toEqual([
      "postbell_emit_duration_seconds",
      "postbell_attempt_duration_seconds",
      "postbell_attempt_lag_seconds",
      "postbell_attempt_repeats_total",
      "postbell_deliveries_ended_total",
      "postbell_deliveries_in_flight",
      "postbell_deliveries_pending",
      "postbell_deliveries_due",
      "postbell_endpoints",
      "postbell_storage_errors_total",
      "postbell_content_request_duration_seconds",
      "postbell_content_cache_lookups_total",
      "postbell_content_records",
    ]);
    expect([...families.values()].map(({ type }) => type)).toEqual(
      Object.values(metrics).map(({ kind }) => kind),
    );
  });

  it("tells of a service what happened, and what it has now", async () => {
    const shown = prometheus();
    const harness = await startHarness({ answer: () => 503, options: { telemetry: shown.telemetry } });
    await harness.register();
    await harness.emit();
    await harness.run(HOUR);
    const families = await scrape(shown);
    expect(sampleOf(families.get("postbell_emit_duration_seconds"), { outcome: "stored" }, "_count")).toBe(1);
    const attempts = families.get("postbell_attempt_duration_seconds");
    expect(sampleOf(attempts, { outcome: "http", lane: "slow" }, "_count")).toBe(1);
    expect(sampleOf(attempts, { outcome: "http", lane: "fast" }, "_count")).toBe(2);
    expect(sampleOf(families.get("postbell_endpoints"), { health: "failing" })).toBe(1);
    expect(sampleOf(families.get("postbell_deliveries_pending"), {})).toBe(1);

    await harness.stop(0);
    expect((await scrape(shown)).get("postbell_endpoints")?.samples).toEqual([]);
  });

  it("cumulates the buckets of a histogram up to its count", async () => {
    const shown = prometheus();
    for (const value of [0.001, 0.0011, 0.3, 99])
      shown.telemetry.record("emitDuration", value, { outcome: "stored" });
    const family = (await scrape(shown)).get("postbell_emit_duration_seconds");
    const at = (le: string) => sampleOf(family, { outcome: "stored", le });
    expect([at("0.001"), at("0.005"), at("0.25"), at("0.5"), at("15"), at("+Inf")]).toEqual([
      1, 2, 2, 3, 3, 4,
    ]);
    expect(sampleOf(family, { outcome: "stored" }, "_sum")).toBeCloseTo(99.3021, 6);
    const buckets = family?.samples.filter(({ name }) => name.endsWith("_bucket")) ?? [];
    const sorted = buckets.map(({ value }) => value).sort((a, b) => a - b);
    expect(buckets.map(({ value }) => value)).toEqual(sorted);
  });

  it("escapes labels, so that none can end its line", async () => {
    const shown = prometheus();
    const reason = 'a"b\\c\nd="1"} 2';
    shown.telemetry.record("deliveriesEnded", 2, { state: "failed", reason });
    const family = (await scrape(shown)).get("postbell_deliveries_ended_total");
    expect(family?.samples).toEqual([
      { name: "postbell_deliveries_ended_total", labels: { state: "failed", reason }, value: 2 },
    ]);
  });

  it("keeps a bounded number of label sets", async () => {
    const shown = prometheus();
    for (let index = 0; index < 3_000; index++) {
      shown.telemetry.record("deliveriesEnded", 1, { state: "failed", reason: String(index) });
    }
    expect((await scrape(shown)).get("postbell_deliveries_ended_total")?.samples).toHaveLength(2_000);
  });

  it("sums what several services have, and leaves out one that does not answer", async () => {
    const { telemetry, ...shown } = prometheus();
    const three = async () => [{ metric: "deliveriesInFlight", labels: {}, value: 3 } as const];
    telemetry.observe(three);
    const end = telemetry.observe(three);
    telemetry.observe(() => Promise.reject(new Error("away")));
    const inFlight = async () =>
      sampleOf((await scrape({ telemetry, ...shown })).get("postbell_deliveries_in_flight"), {});
    expect(await inFlight()).toBe(6);
    end();
    expect(await inFlight()).toBe(3);
  });

  it("has no value of a gauge that nobody reports", async () => {
    const families = await scrape(prometheus());
    const gauges = [...families.values()].filter(({ type }) => type === "gauge");
    expect(gauges.length).toBeGreaterThan(0);
    expect(gauges.flatMap(({ samples }) => samples)).toEqual([]);
  });

  it("is one with the metrics of the host's registry", async () => {
    const registry = new Registry();
    const { telemetry, service } = prometheus({ registry });
    telemetry.record("deliveriesEnded", 1, { state: "failed", reason: "gone" });
    new Counter({ name: "visits_total", help: "Visits.", registers: [registry] }).inc(7);
    const answer = await ask(service);
    expect(parse(answer?.body as string).get("visits_total")?.samples[0]?.value).toBe(7);
    expect(await registry.metrics()).toBe(answer?.body);
    expect(answer?.body).toContain("postbell_deliveries_ended_total{");
  });
});

describe("the service for it", () => {
  it("answers its own path and method only", async () => {
    const { service } = prometheus();
    expect(await ask(service, "GET", "/other")).toBeUndefined();
    expect((await ask(service, "POST"))?.status).toBe(405);
    expect(await ask(service, "HEAD")).toMatchObject({ status: 200, body: null });
  });

  it.each([
    ["false", () => false, 401],
    ["no boolean", () => "yes", 401],
    ["true", () => true, 200],
    ["a promise of true", async () => true, 200],
    ["an error", () => Promise.reject(new Error("s3cret")), 503],
  ])("asks the host who may read: %s", async (_, authorize, status) => {
    const { service } = prometheus({ authorize: authorize as () => boolean });
    const answer = await ask(service);
    expect(answer?.status).toBe(status);
    expect(answer?.body === null).toBe(status !== 200);
  });

  it("refuses an option that it does not know", () => {
    expect(() => prometheus({ authorise: () => true } as never)).toThrow(/Did you mean 'authorize'/);
  });

  it("refuses what is no registry, and one that has the metrics already", () => {
    expect(() => prometheus({ registry: {} as never })).toThrow(/a Registry of prom-client/);
    const registry = new Registry();
    prometheus({ registry });
    expect(() => prometheus({ registry })).toThrow(/has the metric postbell_\w+ already/);
    const taken = new Registry();
    new Counter({ name: "postbell_deliveries_ended_total", help: "Of the host.", registers: [taken] });
    expect(() => prometheus({ registry: taken })).toThrow(/has the metric postbell_deliveries_ended_total/);
    // None was registered before the one that is taken.
    expect(taken.getMetricsAsArray()).toHaveLength(1);
  });
});
