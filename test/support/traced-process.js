/** A process with an OpenTelemetry SDK of its own: `emit` stores an event and says which span did it, `deliver` delivers it and says what its attempts link to. */

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

if (part === "emit") {
  await webhooks.registrations.create({ id: "k", account: "a" }, { url: "https://example.com/" });
  await webhooks.emit({ type: "patient.updated", account: "a", resource: { resourceType: "Patient" } });
  const [emit] = spans.getFinishedSpans();
  console.log(JSON.stringify({ emit: nameOf(emit.spanContext()) }));
} else {
  await webhooks.start();
  await webhooks.idle();
  await webhooks.stop();
  const attempts = spans.getFinishedSpans().filter(({ name }) => name === "attempt");
  const links = attempts.flatMap((span) => span.links.map(({ context }) => nameOf(context)));
  console.log(JSON.stringify({ links }));
}
await storage.close();
