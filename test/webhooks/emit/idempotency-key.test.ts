/** Events that a host identifies by a text of its own. */

import { describe, expect, it } from "vitest";
import { isUuid, nameUuid } from "../../../src/core/uuid.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { createWebhooks } from "../../../src/webhooks/service.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { memorySource, outbox } from "../../../storage/outbox/index.js";

const HOUR = 3_600_000;
const ID = "0b9d3a0e-2f4c-4f57-8d0c-6a1f5e7f3c21";
const paid = (fields: object = {}) =>
  ({ type: "order.paid", account: "shop-7", data: { order: "A-1" }, ...fields }) as {
    type: "order.paid";
    account: string;
    data: unknown;
  };

async function open() {
  const clock = manualClock(Date.parse("2026-03-01T12:00:00Z"));
  const ids: unknown[] = [];
  const webhooks = createWebhooks({
    storage: memoryStorage(),
    clock,
    logger: false,
    events: { "order.paid": {}, "order.shipped": {} },
    access: { authenticate: () => null, canRead: () => true },
    delivery: {
      send: async ({ body }) => {
        ids.push((JSON.parse(Buffer.from(body ?? []).toString()) as { id: unknown }).id);
        return { kind: "response", status: 204, headers: {}, body: new Uint8Array(), complete: true };
      },
    },
  });
  for (const account of ["shop-7", "shop-8"])
    await webhooks.registrations.create({
      subscriber: { id: "key-1", account },
      url: "https://hooks.example.com/in",
    });
  const sent = async (): Promise<unknown[]> => {
    await webhooks.start();
    await webhooks.idle();
    await webhooks.stop();
    return ids;
  };
  return { webhooks, clock, sent };
}

describe("idempotencyKey", () => {
  it("makes two calls one event, whose id on the wire is a UUID", async () => {
    const { webhooks, sent } = await open();
    const first = await webhooks.emit(paid({ idempotencyKey: "order-1-paid" }));
    const second = await webhooks.emit(paid({ idempotencyKey: "order-1-paid" }));
    expect([first.duplicate, second.duplicate]).toEqual([false, true]);
    expect(isUuid(first.id)).toBe(true);
    expect(second).toMatchObject({ id: first.id, deliveries: first.deliveries });
    expect(await sent()).toEqual([first.id]);
  });

  it("gives the same UUID in every process and version", async () => {
    const { webhooks } = await open();
    const { id } = await webhooks.emit(paid({ idempotencyKey: "order-1-paid" }));
    expect(id).toBe("7bad7085-ec98-5efd-982a-0c39dbefb97b");
    expect(id).toBe(nameUuid("5b5c1b0e-6e5f-4d0c-9a1f-3b8f6a2c7d41", "shop-7\u0000order-1-paid"));
  });

  it("is a key of its account: the same of another account is another event", async () => {
    const { webhooks, sent } = await open();
    const emit = (account: string, idempotencyKey: string) =>
      webhooks.emit(paid({ account, idempotencyKey }));
    const one = await emit("shop-7", "1");
    const other = await emit("shop-8", "1");
    expect(other.duplicate).toBe(false);
    expect(other.id).not.toBe(one.id);
    // The end of the account is not taken for the beginning of the key.
    expect((await emit("shop-71", "x")).id).not.toBe((await emit("shop-7", "1x")).id);
    expect(await sent()).toHaveLength(3);
  });

  it.each<[string, object]>([
    ["other data", { data: { order: "A-2" } }],
    ["another type", { type: "order.shipped" }],
    ["a time", { occurredAt: "2026-03-01T00:00:00Z" }],
  ])("with %s is a conflict", async (_, fields) => {
    const { webhooks } = await open();
    await webhooks.emit(paid({ idempotencyKey: "1" }));
    await expect(webhooks.emit(paid({ idempotencyKey: "1", ...fields }))).rejects.toMatchObject({
      code: "event_conflict",
      message: expect.stringContaining("idempotencyKey"),
    });
  });

  it("is forgotten after 24 hours", async () => {
    const { webhooks, clock } = await open();
    // Without a webhook, nothing keeps the event longer.
    const event = paid({ account: "shop-9", idempotencyKey: "1" });
    const emit = async () => (await webhooks.emit(event)).duplicate;
    expect(await emit()).toBe(false);
    await clock.advance(24 * HOUR - 1);
    expect(await emit()).toBe(true);
    await clock.advance(1);
    expect(await emit()).toBe(false);
  });

  it.each<[string, unknown, string]>([
    ["an empty text", "", "an empty string"],
    ["257 characters", "x".repeat(257), "257 characters"],
    ["NUL", "a\u0000b", "one with NUL"],
    ["a lone surrogate", "\ud800", "lone surrogate"],
    ["a number", 7, "type number"],
    ["null", null, "null"],
    ["an object", { toString: () => "x" }, "type object"],
  ])("is refused with %s", async (_, idempotencyKey, words) => {
    const { webhooks } = await open();
    await expect(webhooks.emit(paid({ idempotencyKey }) as never)).rejects.toMatchObject({
      code: "invalid_argument",
      field: "idempotencyKey",
      message: expect.stringContaining(words),
    });
  });

  it("may have 256 characters of any kind", async () => {
    const { webhooks } = await open();
    const key = "🧾 /%".padEnd(256, "x");
    expect((await webhooks.emit(paid({ idempotencyKey: key }))).duplicate).toBe(false);
    expect((await webhooks.emit(paid({ idempotencyKey: key }))).duplicate).toBe(true);
    const other = paid({ idempotencyKey: key.replace("x", "X") });
    expect((await webhooks.emit(other)).duplicate).toBe(false);
  });

  it("is refused together with an id, and an id that is no UUID names it", async () => {
    const { webhooks } = await open();
    const refused = { code: "invalid_argument" };
    await expect(webhooks.emit(paid({ id: ID, idempotencyKey: "1" }))).rejects.toMatchObject({
      ...refused,
      field: "idempotencyKey",
    });
    await expect(webhooks.emit(paid({ id: "order-1-paid" }))).rejects.toMatchObject({
      ...refused,
      field: "id",
      message: expect.stringContaining("use idempotencyKey"),
    });
    expect((await webhooks.emit(paid({ id: ID.toUpperCase(), idempotencyKey: undefined }))).id).toBe(ID);
  });

  it("identifies each event of a list", async () => {
    const { webhooks } = await open();
    const list = ["1", "2", "1"].map((idempotencyKey) => paid({ idempotencyKey }));
    const emitted = await webhooks.emit(list);
    expect(emitted.map(({ duplicate }) => duplicate)).toEqual([false, false, true]);
    expect(emitted[2]?.id).toBe(emitted[0]?.id);
    await expect(webhooks.emit([paid(), paid({ idempotencyKey: "" })])).rejects.toMatchObject({
      field: "[1].idempotencyKey",
    });
    const conflict = [paid({ idempotencyKey: "3" }), paid({ idempotencyKey: "1", data: 1 })];
    await expect(webhooks.emit(conflict)).rejects.toMatchObject({ code: "event_conflict", field: "[1]" });
  });

  it("gives the same event through the outbox", async () => {
    const { webhooks, sent, clock } = await open();
    const { id } = await webhooks.emit(paid({ idempotencyKey: "1", occurredAt: new Date(clock.now()) }));
    const source = memorySource({ clock });
    const box = outbox({ webhooks, source, clock, logger: false });
    expect(await source.add(paid({ idempotencyKey: "1" }))).toBe(id);
    expect(await source.add([paid({ idempotencyKey: "2" }), paid({ idempotencyKey: "2" })])).toHaveLength(2);
    await expect(source.add(paid({ idempotencyKey: "x".repeat(257) }))).rejects.toMatchObject({
      code: "invalid_argument",
      field: "idempotencyKey",
    });
    await box.start();
    await box.idle();
    expect(await box.stats()).toMatchObject({ waiting: 0, parked: 0, emitted: 3, duplicates: 2 });
    await box.stop();
    expect(await sent()).toHaveLength(2);
  });
});
