/** Deliveries during an outage of the DNS servers, and with a dead zone of one endpoint. */

import { describe, expect, it } from "vitest";
import type { OutboundResult } from "../../../src/ports.js";
import { DAY, HOUR, MINUTE, response, SECOND, startHarness } from "../../support/webhook-harness.js";

const outage: OutboundResult = { kind: "dns", code: "RESOLVER_UNAVAILABLE", message: "" };

describe("while the DNS servers do not respond", () => {
  it("no attempt counts and no endpoint fails, for five days; then the delivery is made", async () => {
    let isDown = true;
    const harness = await startHarness({ answer: () => (isDown ? outage : response(204)) });
    const { id } = await harness.register();
    const eventId = await harness.emit();
    await harness.run(5 * DAY);
    expect(await harness.webhooks.deliveries.get(`${id}.${eventId}`)).toMatchObject({
      state: "pending",
      attempts: [],
    });
    const { status, failingSince } = await harness.record(id);
    expect({ status, failingSince }).toEqual({ status: "ENABLED", failingSince: null });
    isDown = false;
    await harness.run(15 * MINUTE);
    expect(await harness.webhooks.deliveries.get(`${id}.${eventId}`)).toMatchObject({
      state: "delivered",
      attempts: [{ kind: "delivered", step: 0 }],
    });
    await harness.stop(0);
  });

  it("a delivery keeps its step and its place in the schedule", async () => {
    const answers: (number | OutboundResult)[] = [503, outage, outage, 503];
    const harness = await startHarness({
      answer: () => answers.shift() ?? 204,
      options: { retry: { jitter: 0 } },
    });
    await harness.register();
    await harness.emit();
    await harness.run(HOUR);
    expect(harness.times()).toEqual(["0:00", "0:15", "0:15:05", "0:15:15", "0:45"]);
    await harness.stop(0);
  });

  it("the log has one error a minute", async () => {
    const harness = await startHarness({ answer: () => outage });
    await harness.register();
    for (let sent = 0; sent < 20; sent++) await harness.emit();
    await harness.run(50 * SECOND);
    const errors = harness.log.filter((line) => line.startsWith("error"));
    expect(errors).toEqual([
      "error no host name can be resolved: deliveries wait until the DNS servers respond",
    ]);
    await harness.stop(0);
  });

  it("a test fails at once, because its sender waits for it", async () => {
    const harness = await startHarness({ answer: () => outage });
    const { id } = await harness.register();
    await harness.webhooks.deliveries.test({ webhookId: id });
    await harness.webhooks.idle();
    const { deliveries } = await harness.webhooks.deliveries.list({ webhookId: id });
    expect(deliveries).toMatchObject([{ state: "failed", attempts: [{ code: "NO_USABLE_ADDRESS" }] }]);
    await harness.stop(0);
  });
});

it("a dead zone uses up steps of its own endpoints, and an outage of the resolver those of none", async () => {
  const dead = new Set(["hooks.dead.test"]);
  const harness = await startHarness({
    options: {
      retry: { jitter: 0 },
      delivery: { send: undefined },
      destinations: {
        allowPrivateNetworks: true,
        async resolve(hostname) {
          if (dead.has(hostname)) throw Object.assign(new Error("timeout"), { code: "ETIMEOUT" });
          return [];
        },
      },
    },
  });
  const ids = [
    (await harness.register("https://hooks.dead.test/")).id,
    (await harness.register("https://hooks.alive.test/")).id,
  ];
  const attemptsOf = async (eventId: string): Promise<number[]> => {
    const deliveries = await Promise.all(
      ids.map((id) => harness.webhooks.deliveries.get(`${id}.${eventId}`)),
    );
    return deliveries.map(({ attempts }) => attempts.length);
  };
  const first = await harness.emit();
  await harness.run(20 * MINUTE);
  expect(await attemptsOf(first)).toEqual([2, 2]);
  dead.add("hooks.alive.test");
  const second = await harness.emit();
  await harness.run(20 * MINUTE);
  expect([await attemptsOf(first), await attemptsOf(second)]).toEqual([
    [2, 2],
    [0, 0],
  ]);
  await harness.stop(0);
});
