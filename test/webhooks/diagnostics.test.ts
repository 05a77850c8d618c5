/** The messages of `node:diagnostics_channel`. */

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { describe, expect, it, onTestFinished } from "vitest";
import { HOUR, SECOND, SUBSCRIBER, startHarness } from "../support/webhook-harness.js";

/** Collects the messages of a channel about the account of this file. */
function collect(name: string): unknown[] {
  const messages: unknown[] = [];
  const listen = (message: unknown): void => {
    messages.push(message);
  };
  subscribe(name, listen);
  onTestFinished(() => {
    unsubscribe(name, listen);
  });
  return messages;
}

describe("the diagnostics channels", () => {
  it("report events, attempts and completed deliveries, without records and URLs", async () => {
    const [events, attempts, deliveries] = ["event", "attempt", "delivery"].map((name) =>
      collect(`postbell:${name}`),
    );
    const s = await startHarness({ options: { retry: { jitter: 0 } } });
    const { id: webhookId } = await s.register("https://hooks.example.com/secret-path");
    s.respond(() => 503);
    const eventId = await s.emit();
    await s.run(SECOND);
    const base = { account: "clinic", webhookId, eventId, type: "patient.updated" };
    const deliveryId = `${webhookId}.${eventId}`;
    expect(events).toEqual([
      { events: [{ id: eventId, account: "clinic", type: "patient.updated", deliveries: 1 }] },
    ]);
    expect(attempts).toMatchObject([{ ...base, deliveryId, kind: "http", status: 503, step: 0 }]);
    expect(deliveries).toEqual([]);
    s.respond(() => 200);
    await s.run(HOUR);
    expect(attempts?.[1]).toMatchObject({ kind: "delivered", status: 200, step: 1 });
    expect(deliveries).toEqual([
      { deliveries: [{ ...base, id: deliveryId, state: "delivered", reason: null }] },
    ]);
    const texts = JSON.stringify([events, attempts, deliveries]);
    expect(texts).not.toMatch(/secret-path|resourceType|Patient/);
  });

  it("report the events of one call in one message, and those of a refused call not at all", async () => {
    const messages = collect("postbell:event") as { events: unknown[] }[];
    const s = await startHarness();
    const event = {
      type: "patient.updated",
      account: "clinic",
      resource: { resourceType: "Patient", id: "1" },
    } as const;
    await s.webhooks.emit([event, event, event]);
    await s.webhooks.emit({ ...event, type: "patient.gone" as never }).catch(() => {});
    expect(messages.map(({ events }) => events.length)).toEqual([3]);
  });

  it("report the entries of the audit log, also if neither a log nor a hook has them", async () => {
    const messages = collect("postbell:audit");
    const s = await startHarness();
    const { id } = await s.register();
    await s.webhooks.as(SUBSCRIBER).registrations.update({ id, status: "DISABLED" });
    expect(messages).toMatchObject([
      { entries: [{ action: "webhook.created", webhookId: id, actor: { type: "host" } }] },
      { entries: [{ action: "webhook.disabled", webhookId: id, actor: { type: "key", id: "key-1" } }] },
    ]);
  });
});
