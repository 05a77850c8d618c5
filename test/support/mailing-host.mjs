/** A host on Redis with an endpoint that is down, run at a time of its own: `node mailing-host.mjs REDIS PREFIX SMTP register|look EPOCH_MS`. */

import { createWebhooks } from "postbell";
import { redisStorage } from "postbell/redis";
import { smtpNotifier } from "postbell/smtp";
import { manualClock } from "postbell/testing";

const [url, prefix, transport, part, now] = process.argv.slice(2);
const clock = manualClock(Number(now));
const storage = redisStorage({ url, prefix, time: "clock" });
const webhooks = createWebhooks({
  storage,
  clock,
  access: { authenticate: () => null, canRead: () => true },
  delivery: { send: async () => ({ kind: "connect", code: "ECONNREFUSED", message: "down" }) },
  notify: smtpNotifier({ transport, from: "hooks@clinic.example", to: "ops@clinic.example", clock }),
});
if (part === "register") {
  await webhooks.registrations.create({
    subscriber: { id: "key-1", account: "clinic" },
    url: "https://hooks.example.com/in",
  });
  await webhooks.emit({ type: "patient.created", account: "clinic", resource: { resourceType: "Patient" } });
}
await webhooks.start();
await webhooks.idle();
await webhooks.stop({ graceMs: 0 });
await storage.close();
