/**
 * A process with an OpenTelemetry SDK of its own: `emit` stores an event and says which span did
 * it, `deliver` delivers it and says what its attempts link to.
 */

import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { createWebhooks } from "postbell";
import { openTelemetry } from "postbell/opentelemetry";
import { redisStorage } from "postbell/redis";

const [, , part, url, prefix] = process.argv;
const spans = new InMemorySpanExporter();
const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
const storage = redisStorage({ url, prefix });
const webhooks = createWebhooks({
  storage,
  telemetry: openTelemetry({ tracerProvider }),
  access: { authenticate: () => null, canRead: () => true },
  delivery: {
    send: async () => ({
      kind: "response",
      status: 200,
      headers: {},
      body: new Uint8Array(0),
      complete: true,
    }),
  },
});
const nameOf = ({ traceId, spanId }) => `${traceId} ${spanId}`;

/**
 * Calls again where the storage did not answer in time, as a host does: on a busy machine it may
 * not.
 */
async function patiently(call) {
  for (let tries = 1; ; tries++) {
    try {
      return await call();
    } catch (error) {
      if (error.code !== "storage_unavailable" || tries === 20) throw error;
    }
  }
}

if (part === "emit") {
  const event = {
    id: "1c2e3e4a-4d5b-4f0a-9a51-6b2f7d0c8e11",
    type: "patient.updated",
    account: "a",
    resource: { resourceType: "Patient" },
  };
  const registration = { url: "https://example.com/", idempotencyKey: "once" };
  await patiently(() =>
    webhooks.registrations.create({ subscriber: { id: "k", account: "a" }, ...registration }),
  );
  await patiently(() => webhooks.emit(event));
  const emit = spans.getFinishedSpans().findLast(({ name }) => name === "emit");
  console.log(JSON.stringify({ emit: nameOf(emit.spanContext()) }));
} else {
  await webhooks.start();
  await patiently(() => webhooks.idle());
  await webhooks.stop();
  const attempts = spans.getFinishedSpans().filter(({ name }) => name === "attempt");
  const links = attempts.flatMap((span) => span.links.map(({ context }) => nameOf(context)));
  console.log(JSON.stringify({ links }));
}
await storage.close();
