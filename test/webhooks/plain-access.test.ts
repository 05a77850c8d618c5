/**
 * `access.canRead` left out, which a service of plain events may do. `bearer` for `authenticate`.
 */

import { describe, expect, it } from "vitest";
import type { OutboundRequest } from "../../src/outbound/types.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { bearer } from "../../src/webhooks/access.js";
import { createWebhooks } from "../../src/webhooks/service.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { recordingLogger } from "../support/registration-api.js";

const subscriber = { id: "key-1", account: "shop" };
const authenticate = () => null;
const url = "https://hooks.example.com/in";

function open() {
  const sent: OutboundRequest[] = [];
  const { logger, log } = recordingLogger();
  const shared = {
    storage: memoryStorage(),
    clock: manualClock(0),
    logger,
    delivery: {
      send: async (request: OutboundRequest) => {
        sent.push(request);
        return {
          kind: "response",
          status: 204,
          headers: {},
          body: new Uint8Array(),
          complete: true,
        } as const;
      },
    },
  };
  return { shared, sent, log };
}

describe("a service of plain events without canRead", () => {
  it("delivers them", async () => {
    const { shared, sent } = open();
    const webhooks = createWebhooks({ ...shared, access: { authenticate }, events: { "order.paid": {} } });
    await webhooks.registrations.create({ subscriber, url });
    await webhooks.emit({ type: "order.paid", account: "shop", data: { order: "A-1" } });
    await webhooks.start();
    await webhooks.idle();
    await webhooks.stop();
    expect(sent.map(({ body }) => Buffer.from(body ?? []).toString())).toEqual([
      expect.stringContaining('"data":{"order":"A-1"}'),
    ]);
  });

  it("keeps an event with a resource that was emitted under other options", async () => {
    const { shared, sent, log } = open();
    const before = createWebhooks({ ...shared, access: { authenticate, canRead: () => true } });
    await before.registrations.create({ subscriber, url });
    const resource = { resourceType: "Patient", id: "1" };
    await before.emit({ type: "patient.created", account: "shop", resource });
    const webhooks = createWebhooks({ ...shared, access: { authenticate }, events: { "order.paid": {} } });
    await webhooks.start();
    await webhooks.idle();
    await webhooks.stop();
    expect(sent).toEqual([]);
    expect(log.map(({ message }) => message)).toContainEqual(expect.stringContaining("access.canRead"));
    const { items } = await webhooks.deliveries.list({ account: "shop" });
    expect(items).toMatchObject([{ state: "pending", attempts: [] }]);
  });

  it("is refused if an event type has a resource", () => {
    const refusal = { code: "invalid_option", field: "access.canRead" };
    const refuse = (create: () => unknown) => {
      let error: unknown;
      try {
        create();
      } catch (thrown) {
        error = thrown;
      }
      expect(error).toMatchObject(refusal);
    };
    const { shared } = open();
    // @ts-expect-error The default catalogue has resources.
    refuse(() => createWebhooks({ ...shared, access: { authenticate } }));
    const events = { "order.paid": {}, "order.placed": "ServiceRequest" } as const;
    // @ts-expect-error One of the types has a resource.
    refuse(() => createWebhooks({ ...shared, access: { authenticate }, events }));
  });
});

describe("bearer", () => {
  it.each([
    ["Bearer s3cret", "s3cret"],
    ["bearer  s3cret", "s3cret"],
    [`Bearer ${"k".repeat(4_096)}`, "k".repeat(4_096)],
    [`Bearer ${"k".repeat(4_097)}`, undefined],
    ["Bearer", undefined],
    ["Bearer two words", undefined],
    ["Basic czNjcmV0", undefined],
    ["", undefined],
    [undefined, undefined],
  ])("reads %j", (authorization, expected) => {
    const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
    expect(bearer({ headers })).toBe(expected);
  });
});
