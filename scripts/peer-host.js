// A host that does one short job with each peer that it is told to use, and prints what came of
// it: `node peer-host.js '{"redis":"redis://…","smtp":"smtp://…","images":true}'`.
// test/package/bundlers.thorough.test.ts bundles it, and scripts/peer-versions.js runs it with the
// oldest versions of the peers.
import { randomUUID } from "node:crypto";
import { createWebhooks } from "postbell";
import { sharpImages } from "postbell/images";
import { postgresStorage } from "postbell/postgres";
import { redisStorage } from "postbell/redis";
import { smtpNotifier } from "postbell/smtp";

const access = { authenticate: () => null, canRead: () => true };
const send = async () => ({
  kind: "response",
  status: 200,
  headers: {},
  body: new Uint8Array(0),
  complete: true,
});

/** Resolves to the state in which a delivery ended. */
async function deliver(storage) {
  const account = `account-${randomUUID()}`;
  const webhooks = createWebhooks({ storage, access, delivery: { send }, logger: false });
  const { webhook } = await webhooks.registrations.create({
    subscriber: { id: "key-1", account },
    url: "https://hooks.example.com/in",
  });
  await webhooks.start();
  await webhooks.emit({ type: "patient.created", account, resource: { resourceType: "Patient" } });
  await webhooks.idle();
  const { items: deliveries } = await webhooks.deliveries.list({ webhookId: webhook.id });
  await webhooks.stop();
  await storage.close();
  return deliveries.map(({ state }) => state).join();
}

/** One red pixel. */
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==",
  "base64",
);

const JOBS = {
  redis: (url) => deliver(redisStorage({ url, prefix: `host-${randomUUID()}` })),
  async postgres(url) {
    const storage = postgresStorage({ url });
    await storage.migrate();
    return deliver(storage);
  },
  async images() {
    const source = { mimeType: "image/png", read: async () => PNG };
    const made = await sharpImages().resize(source, [{ width: 1, height: 1 }]);
    return Array.isArray(made) ? `${made[0].width} × ${made[0].height}` : made;
  },
  async smtp(transport) {
    const notifier = smtpNotifier({ transport, from: "hooks@clinic.example", to: "ops@clinic.example" });
    const at = new Date();
    const webhook = {
      ...{ id: randomUUID(), subscriberId: "key-1", account: "clinic", url: "https://hooks.example.com/in" },
      ...{ status: "ENABLED", eventTypes: null, failingSince: at },
      ...{ createdAt: at, updatedAt: at },
    };
    await notifier.warning({
      ...{ webhook, failingSince: at, lastFailure: null, pending: 1, disableAt: at, retriedUntil: at },
    });
    await notifier.close();
    return "sent";
  },
};

async function main() {
  for (const [job, given] of Object.entries(JSON.parse(process.argv[2] ?? "{}"))) {
    try {
      console.log(`${job}: ${await JOBS[job](given)}`);
    } catch (error) {
      console.log(`${job}: ${error.code} ${error.message}`);
      process.exitCode = 1;
    }
  }
}

// CommonJS bundles have no `await` at the top.
void main();
