/** Tests of the spans and metrics that reach an OpenTelemetry SDK. */

import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { context, SpanKind, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openTelemetry, readTraceparent } from "../../adapters/opentelemetry.js";
import { createContent } from "../../src/content/index.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { redisStorage } from "../../storage/redis/index.js";
import { freshPrefix, redisUrl } from "../support/redis.js";
import {
  HOUR,
  holdingEndpoint,
  openHarness,
  response,
  START,
  startHarness,
  unreachable,
} from "../support/webhook-harness.js";

const contexts = new AsyncLocalStorageContextManager();
beforeAll(() => {
  context.setGlobalContextManager(contexts.enable());
});
afterAll(() => context.disable());

/** SDKs that keep what they are given, and the telemetry on them. */
function sdk() {
  const spans = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
  const exported = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter: exported, exportIntervalMillis: 2 ** 30 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  /** All points, as `name{attributes}` and its value, of a histogram its count. */
  const points = async (): Promise<Record<string, number>> => {
    exported.reset();
    await reader.forceFlush();
    const all = exported
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
      .flatMap(({ descriptor, dataPoints }) =>
        dataPoints.map(({ attributes, value }) => [
          `${descriptor.name} ${descriptor.unit} ${JSON.stringify(attributes)}`,
          typeof value === "number" ? value : value.count,
        ]),
      );
    return Object.fromEntries(all) as Record<string, number>;
  };
  return {
    telemetry: openTelemetry({ tracerProvider, meterProvider }),
    tracer: tracerProvider.getTracer("host"),
    named: (name: string): ReadableSpan[] => spans.getFinishedSpans().filter((span) => span.name === name),
    points,
  };
}

const only = <T>(list: readonly T[]): T => {
  expect(list).toHaveLength(1);
  return list[0] as T;
};

const epochMs = ([seconds, nanos]: readonly [number, number]): number => seconds * 1_000 + nanos / 1e6;

describe("spans", () => {
  it("follow an event from the caller over the claim to each attempt, by links", async () => {
    const { telemetry, tracer, named } = sdk();
    const harness = await startHarness({ answer: () => 500, options: { telemetry } });
    const { id: webhookId } = await harness.register(
      "https://hooks.example.com:8443/path-s3cret?key=q-s3cret",
    );
    const request = tracer.startSpan("request");
    const eventId = await context.with(trace.setSpan(context.active(), request), () => harness.emit());
    request.end();
    await harness.quiet();
    harness.respond(() => response(200));
    await harness.run(HOUR);

    const emit = only(named("emit"));
    expect(emit.kind).toBe(SpanKind.PRODUCER);
    expect(emit.parentSpanContext?.spanId).toBe(request.spanContext().spanId);
    expect(emit.attributes).toEqual({
      "messaging.system": "postbell",
      "messaging.operation.name": "emit",
      "messaging.operation.type": "send",
      "messaging.destination.name": "patient.updated",
      "messaging.message.id": eventId,
      "postbell.outcome": "stored",
      "postbell.deliveries": 1,
    });

    const [failed, delivered] = named("attempt");
    expect(named("attempt")).toHaveLength(2);
    for (const span of [failed, delivered]) {
      expect(span?.kind).toBe(SpanKind.CLIENT);
      expect(span?.parentSpanContext).toBeUndefined();
      expect(span?.spanContext().traceId).not.toBe(emit.spanContext().traceId);
      expect(only(span?.links ?? []).context).toMatchObject({
        traceId: emit.spanContext().traceId,
        spanId: emit.spanContext().spanId,
      });
    }
    expect(failed?.attributes).toEqual({
      "messaging.system": "postbell",
      "messaging.operation.name": "attempt",
      "messaging.operation.type": "send",
      "messaging.destination.name": "patient.updated",
      "messaging.message.id": eventId,
      "http.request.method": "POST",
      "http.response.status_code": 500,
      "error.type": "500",
      "server.address": "hooks.example.com",
      "server.port": 8443,
      "url.scheme": "https",
      "postbell.delivery.id": `${webhookId}.${eventId}`,
      "postbell.lane": "slow",
      "postbell.step": 0,
      "postbell.extra": false,
      "postbell.outcome": "http",
    });
    expect(delivered?.attributes).toMatchObject({ "postbell.step": 1, "postbell.outcome": "delivered" });
    expect(delivered?.attributes["error.type"]).toBeUndefined();
    // Times are those of the service's clock.
    expect(epochMs(emit.startTime)).toBe(START);
    expect(epochMs(delivered?.startTime ?? [0, 0])).toBeGreaterThanOrEqual(START + HOUR / 4);
    await harness.stop(0);
  });

  it("call an attempt cancelled that the end of the process cuts off, and count it as nothing", async () => {
    const { telemetry, named, points } = sdk();
    const { open, answer, release } = holdingEndpoint();
    const harness = await startHarness({ answer, options: { telemetry } });
    await harness.register();
    await harness.emit();
    await harness.quiet();
    expect(open).toHaveLength(1);
    await harness.stop(0);
    release(unreachable);
    await harness.quiet();
    expect(only(named("attempt")).attributes["error.type"]).toBe("cancelled");
    expect(Object.keys(await points()).join()).not.toContain("postbell.attempt");
  });

  it("have none for a claim that found nothing, and one for a claim that gave something", async () => {
    const { telemetry, named } = sdk();
    const harness = openHarness({ options: { telemetry } });
    await harness.register();
    await harness.emit();
    await harness.emit();
    await harness.webhooks.start();
    await harness.run(5 * HOUR);
    const claim = only(named("claim"));
    expect(claim.kind).toBe(SpanKind.CONSUMER);
    expect(claim.attributes["messaging.batch.message_count"]).toBe(2);
    await harness.stop(0);
  });

  it("keep the link to the first emit where an event is emitted again", async () => {
    const { telemetry, named } = sdk();
    const harness = openHarness({ options: { telemetry } });
    await harness.register();
    const id = await harness.emit();
    await harness.emit({ id });
    await harness.webhooks.start();
    await harness.quiet();
    const [first, second] = named("emit");
    expect(second?.attributes["postbell.outcome"]).toBe("duplicate");
    expect(only(only(named("attempt")).links).context.spanId).toBe(first?.spanContext().spanId);
    await harness.stop(0);
  });

  it("are the current ones while their work is done, so that the host's own spans lie below them", async () => {
    const { telemetry, tracer, named } = sdk();
    const answer = () => {
      tracer.startSpan("http").end();
      return 200;
    };
    const harness = await startHarness({ answer, options: { telemetry } });
    await harness.register();
    await harness.emit();
    await harness.quiet();
    expect(only(named("http")).parentSpanContext?.spanId).toBe(only(named("attempt")).spanContext().spanId);
    await harness.stop(0);
  });

  it("name the error of an emit, and no text of it", async () => {
    const { telemetry, named } = sdk();
    const harness = openHarness({ options: { telemetry } });
    await expect(harness.emit({ type: "patient.wintermute" })).rejects.toThrow(/event type/);
    expect(only(named("emit")).attributes["error.type"]).toBe("unknown_event_type");
    expect(JSON.stringify(only(named("emit")).attributes)).not.toContain("wintermute");
  });

  it("change nothing of what a subscriber gets", async () => {
    const bodies = await Promise.all(
      [sdk().telemetry, undefined].map(async (telemetry) => {
        const harness = await startHarness({ options: { telemetry } });
        await harness.register();
        const id = "0f8fad5b-d9cb-469f-a165-70867728950e";
        await harness.emit({ id });
        await harness.quiet();
        await harness.stop(0);
        const [sent] = harness.sent;
        const text = Buffer.from(sent?.body ?? "").toString();
        return [Object.keys(sent?.headers ?? {}), text.replace(sent?.webhookId ?? "", "")];
      }),
    );
    expect(bodies[0]).toEqual(bodies[1]);
  });

  it("link across processes, on Redis", async () => {
    const run = promisify(execFile);
    const script = resolve(import.meta.dirname, "../support/traced-process.js");
    const prefix = freshPrefix();
    const settle = async (part: string): Promise<{ emit?: string; links?: string[] }> => {
      const { stdout } = await run(process.execPath, [script, part, redisUrl(), prefix]);
      return JSON.parse(stdout) as { emit?: string; links?: string[] };
    };
    const { emit } = await settle("emit");
    const { links } = await settle("deliver");
    expect(emit).toMatch(/^[0-9a-f]{32} [0-9a-f]{16}$/);
    expect(links).toEqual([emit]);
  });
});

describe("a traceparent", () => {
  it.each([
    undefined,
    "",
    "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
    "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
    "4bf92f3577b34da6a3ce929d0e0e4736",
  ])("that is malformed makes no link: %s", (text) => {
    expect(readTraceparent(text)).toBeUndefined();
  });

  it("says whose span it is, and whether it was sampled", () => {
    expect(readTraceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")).toEqual({
      traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
      spanId: "00f067aa0ba902b7",
      traceFlags: 1,
      isRemote: true,
    });
  });
});

describe.each([
  ["memory", () => memoryStorage()],
  ["Redis", () => redisStorage({ url: redisUrl(), prefix: freshPrefix() })],
] as const)("metrics over %s", (_, storageOf) => {
  it("count emits, attempts and ends, and show what the storage holds", async () => {
    const { telemetry, points } = sdk();
    const storage = storageOf();
    const { createWebhooks } = await import("../../src/index.js");
    let status = 200;
    const webhooks = createWebhooks({
      storage,
      telemetry,
      access: { authenticate: () => null, canRead: () => true },
      delivery: { send: async () => ({ ...response(status), kind: "response" }) as never },
    });
    const { registrations } = webhooks;
    const subscriber = { id: "k", account: "clinic" };
    const event = {
      type: "patient.updated",
      account: "clinic",
      resource: { resourceType: "Patient" },
    } as const;
    await registrations.create({ subscriber, url: "https://hooks.example.com/a" });
    const off = await registrations.create({ subscriber, url: "https://hooks.example.com/b" });
    await registrations.update({
      id: off.webhook.id,
      url: "https://hooks.example.com/b",
      status: "DISABLED",
    });
    await webhooks.start();
    const { id } = await webhooks.emit(event);
    await webhooks.emit({ ...event, id });
    await expect(webhooks.emit({ ...event, type: "no.such" as never })).rejects.toThrow(/event type/);
    await webhooks.idle();
    status = 500;
    await webhooks.emit(event);
    await webhooks.idle();

    const seen = await points();
    expect(seen).toMatchObject({
      'postbell.emit.duration s {"postbell.outcome":"stored"}': 2,
      'postbell.emit.duration s {"postbell.outcome":"duplicate"}': 1,
      'postbell.emit.duration s {"postbell.outcome":"unknown_event_type"}': 1,
      'postbell.attempt.duration s {"postbell.outcome":"delivered","postbell.lane":"slow"}': 1,
      'postbell.attempt.duration s {"postbell.outcome":"http","postbell.lane":"fast"}': 1,
      'postbell.attempt.lag s {"postbell.lane":"slow"}': 1,
      'postbell.deliveries.ended {delivery} {"postbell.state":"delivered"}': 1,
      "postbell.deliveries.in_flight {delivery} {}": 0,
      "postbell.deliveries.pending {delivery} {}": 1,
      "postbell.deliveries.due {delivery} {}": 0,
      'postbell.endpoints {endpoint} {"postbell.health":"ok"}': 0,
      'postbell.endpoints {endpoint} {"postbell.health":"failing"}': 1,
      'postbell.endpoints {endpoint} {"postbell.health":"warned"}': 0,
      'postbell.endpoints {endpoint} {"postbell.health":"disabled"}': 1,
    });
    await webhooks.stop();
    await storage.close();
  });
});

describe("metrics", () => {
  it("count the calls of a storage that failed", async () => {
    const { telemetry, points } = sdk();
    const harness = openHarness({
      options: { telemetry },
      change: () => ({ append: () => Promise.reject(new Error("away")) }),
    });
    await expect(harness.emit()).rejects.toThrow("away");
    expect(await points()).toMatchObject({
      'postbell.storage.errors {call} {"postbell.service":"webhooks","postbell.operation":"append","error.type":"unexpected"}': 1,
    });
  });

  it("time content requests by the pattern of their route, and count the caches", async () => {
    const { telemetry, points } = sdk();
    const content = createContent({
      storage: memoryStorage(),
      site: { url: "https://www.example.org", name: "Example" },
      authenticate: () => null,
      users: [],
      telemetry,
    });
    await content.start();
    const requestOf = (path: string, method = "GET") => ({
      method,
      path,
      query: "",
      headers: {},
      body: null,
      baseUrl: "https://www.example.org",
    });
    const ask = (path: string, method?: string) => content.handle(requestOf(path, method));
    /** As the portal does, for somebody whom the host knows. */
    const askAs = (path: string) => content.handleAs({ request: requestOf(path), as: 1 });
    await ask("/core/v2/posts");
    await ask("/core/v2/posts");
    await ask("/core/v2/posts/4711");
    await askAs("/core/v2/posts/4711");
    await ask("/core/v2/no-such-s3cret");
    await ask("/core/v2/posts", "BREW");
    expect(await ask("/elsewhere")).toBeUndefined();
    const seen = await points();
    const at = (method: string, route: string, status: string): string =>
      `postbell.content.request.duration s {"http.request.method":"${method}","http.route":"${route}","postbell.status_class":"${status}"}`;
    expect(seen).toMatchObject({
      [at("GET", "/core/v2/posts", "2xx")]: 2,
      [at("GET", "/core/v2/posts/:id", "4xx")]: 2,
      [at("GET", "none", "4xx")]: 1,
      [at("_OTHER", "/core/v2/posts", "4xx")]: 1,
      'postbell.content.cache.lookups {lookup} {"postbell.cache":"answers","postbell.result":"hit"}': 1,
      'postbell.content.records {record} {"postbell.held":"columns"}': 0,
    });
    expect(Object.keys(seen).join()).not.toContain("s3cret");
    await content.stop();
  });
});

describe("telemetry that is broken", () => {
  const broken = (): never => {
    throw new Error("exporter");
  };
  it.each([
    ["in every call", { record: broken, observe: broken, begin: broken }],
    [
      "in its spans",
      {
        record: broken,
        observe: () => broken,
        begin: () => ({ traceparent: undefined, run: broken, end: broken }),
      },
    ],
  ])("%s fails nothing", async (_, telemetry) => {
    const harness = await startHarness({ answer: () => unreachable, options: { telemetry } });
    await harness.register();
    await harness.emit();
    await harness.quiet();
    expect(harness.sent).toHaveLength(1);
    harness.respond(() => 200);
    await harness.run(HOUR);
    expect(harness.sent).toHaveLength(2);
    await harness.stop(0);
  });
});
