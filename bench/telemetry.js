// `npm run bench`: what telemetry adds to emitting and delivering, as ratios of CPU against the
// same service without it in the same round.
import { context } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { MeterProvider } from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider } from "@opentelemetry/sdk-trace-base";
import { createWebhooks } from "postbell";
import { memoryStorage } from "postbell/memory";
import { openTelemetry } from "postbell/opentelemetry";
import { prometheus } from "postbell/prometheus";
import { CONCURRENCY, cert, ENDPOINTS, median, patient, spread, startReceiver } from "./support.js";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 7);
const DELIVERIES = Number(process.env.BENCH_DELIVERIES ?? 20_000);
/** Events emitted, then delivered, at a time. */
const BATCH = 1_000;

/** An SDK that samples everything and exports nothing: what an exporter costs is its own affair. */
function sdk() {
  const spanProcessor = {
    onStart() {},
    onEnd() {},
    forceFlush: async () => {},
    shutdown: async () => {},
  };
  return openTelemetry({
    tracerProvider: new BasicTracerProvider({ spanProcessors: [spanProcessor] }),
    meterProvider: new MeterProvider(),
  });
}

/** Microseconds of CPU, and deliveries per second of the wall clock. */
async function deliver(origin, count, telemetry) {
  const webhooks = createWebhooks({
    storage: memoryStorage(),
    access: { authenticate: () => null, canRead: () => true },
    destinations: { allowHttp: true, allowPrivateNetworks: true, ca: cert },
    delivery: { concurrency: CONCURRENCY, slowConcurrency: CONCURRENCY, perEndpoint: CONCURRENCY },
    telemetry,
  });
  for (let index = 0; index < ENDPOINTS; index++) {
    const subscriber = { id: "key", account: `a${index}` };
    await webhooks.registrations.create({ subscriber, url: `${origin}/endpoint-${index}` });
  }
  await webhooks.start();
  const cpu = process.cpuUsage();
  const start = performance.now();
  for (let done = 0; done < count; done += BATCH) {
    for (let index = done; index < done + BATCH; index++) {
      const account = `a${index % ENDPOINTS}`;
      await webhooks.emit({ type: "patient.updated", account, resource: patient(index) });
    }
    await webhooks.idle();
  }
  const perSecond = (count / (performance.now() - start)) * 1_000;
  const { user, system } = process.cpuUsage(cpu);
  await webhooks.stop();
  return { perSecond, micros: (user + system) / count };
}

const rows = [
  ["no telemetry", () => undefined],
  ["OpenTelemetry's API, no SDK", () => openTelemetry()],
  ["Prometheus", () => prometheus().telemetry],
  ["OpenTelemetry's SDK in memory", sdk],
];

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const results = new Map(rows.map(([name]) => [name, []]));
// The first round only warms up.
for (let round = 0; round <= ROUNDS; round++) {
  const receiver = await startReceiver();
  for (const [name, telemetry] of round % 2 === 0 ? rows : [...rows].reverse()) {
    const count = round === 0 ? Math.max(BATCH, DELIVERIES / 4) : DELIVERIES;
    const result = await deliver(receiver.plain, count, telemetry());
    if (round > 0) results.get(name).push(result);
  }
  receiver.stop();
}

console.log(
  `Node ${process.version}, ${ROUNDS} rounds of ${DELIVERIES} events emitted and delivered, plain HTTP, memory storage.`,
);
const base = results.get(rows[0][0]);
console.table(
  Object.fromEntries(
    rows.map(([name]) => {
      const own = results.get(name);
      const cpu = own.map(({ micros }, round) => micros / base[round].micros);
      const rate = own.map(({ perSecond }, round) => perSecond / base[round].perSecond);
      return [
        name,
        {
          "CPU µs": Math.round(median(own.map(({ micros }) => micros))),
          "CPU ratio": median(cpu).toFixed(2),
          "CPU spread": spread(cpu),
          throughput: median(rate).toFixed(2),
          spread: spread(rate),
        },
      ];
    }),
  ),
);
