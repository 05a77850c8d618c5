/** Event types with a retry schedule of their own. */

import { describe, expect, it } from "vitest";
import type { EventCatalogue } from "../../../src/index.js";
import { createWebhooks } from "../../../src/index.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { HOUR, MINUTE, response, SECOND, START } from "../../support/webhook-harness.js";

const SUBSCRIBER = { id: "key-1", account: "shop" };

/** Emits one event of each type to an endpoint that fails, and lists when each was attempted. */
async function listAttempts(events: EventCatalogue, forMs: number, test = false) {
  const clock = manualClock(START);
  const attempts: Record<string, number[]> = {};
  const webhooks = createWebhooks({
    storage: memoryStorage(),
    access: { authenticate: () => null, canRead: () => true },
    events,
    retry: { jitter: 0 },
    clock,
    logger: false,
    delivery: {
      send: async ({ body }) => {
        const { type } = JSON.parse(Buffer.from(body ?? "").toString()) as { type: string };
        attempts[type] = [...(attempts[type] ?? []), clock.now() - START];
        return response(500);
      },
    },
  });
  await webhooks.start();
  const { webhook } = await webhooks.registrations.create({
    subscriber: SUBSCRIBER,
    url: "https://example.com/",
  });
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  for (const type of Object.keys(events)) await webhooks.emit({ type, account: "shop", data: {} } as never);
  if (test) await webhooks.deliveries.test({ webhookId: webhook.id });
  for (let ms = 0; ms < forMs; ms += SECOND) {
    await settle();
    await clock.advance(SECOND);
  }
  await settle();
  const { items } = await webhooks.deliveries.list({ webhookId: webhook.id });
  const stopped = webhooks.stop();
  await clock.advance(MINUTE);
  await stopped;
  return { attempts, ended: items.filter(({ state }) => state === "failed").map(({ type }) => type) };
}

describe("an event type with a retry schedule", () => {
  it("is attempted by it, and others by that of all", async () => {
    const { attempts, ended } = await listAttempts(
      {
        "price.changed": {
          retry: { intervalsMs: [5 * SECOND, 10 * SECOND], everyMs: HOUR, windowMs: MINUTE },
        },
        "order.paid": {},
      },
      2 * MINUTE,
    );
    expect(attempts).toEqual({ "price.changed": [0, 5 * SECOND, 15 * SECOND], "order.paid": [0] });
    expect(ended).toEqual(["price.changed"]);
  });

  it("takes from the option what it leaves out, and a test is attempted once", async () => {
    const { attempts, ended } = await listAttempts(
      { "price.changed": { retry: { intervalsMs: [5 * SECOND] } } },
      20 * SECOND,
      true,
    );
    expect(attempts).toEqual({ "price.changed": [0, 5 * SECOND], "webhook.test": [0] });
    expect(ended).toEqual(["webhook.test"]);
  });

  it.each<[retry: unknown, field: string, message: RegExp]>([
    [7, "", /must be an object with intervalsMs, everyMs or windowMs/],
    [[], "", /must be an object/],
    [null, "", /must be an object/],
    [{ windowsMs: 1 }, "", /no option 'windowsMs'.*windowMs/],
    [{ intervalsMs: 5 }, ".intervalsMs", /a list of at most 100 whole numbers/],
    [{ intervalsMs: [0] }, ".intervalsMs", /above 0/],
    [{ intervalsMs: Array(101).fill(1) }, ".intervalsMs", /at most 100/],
    [{ everyMs: 0.5 }, ".everyMs", /a whole number of ms above 0/],
    [{ windowMs: -1 }, ".windowMs", /a whole number of ms above 0/],
    [
      { everyMs: 1, windowMs: 1001 },
      ".everyMs",
      /must be at least .*windowMs \/ 1000, 1.001 ms \(got 1 ms\)/,
    ],
    [{ windowMs: SECOND }, ".windowMs", /must leave time for at least one retry \(got 1000 ms\)/],
  ])("is refused with %j", (retry, field, message) => {
    const create = () =>
      createWebhooks({
        storage: memoryStorage(),
        access: { authenticate: () => null, canRead: () => true },
        events: { "price.changed": { retry } } as never,
      });
    expect(create).toThrow(message);
    const name = "events['price.changed']";
    expect(create).toThrow(
      expect.objectContaining({ code: "invalid_option", field: `${name}.retry${field}` }),
    );
  });
});
