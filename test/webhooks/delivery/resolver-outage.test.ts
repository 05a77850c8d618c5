/** Deliveries during an outage of the DNS servers, and with a dead zone of one endpoint. */

import { describe, expect, it } from "vitest";
import type { OutboundResult } from "../../../src/ports.js";
import { failing } from "../../support/failing-endpoint.js";
import {
  ATTEMPT_TIMES,
  DAY,
  forever,
  HOUR,
  MINUTE,
  response,
  SECOND,
  START,
  startHarness,
} from "../../support/webhook-harness.js";

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

  it("an endpoint that failed before is neither warned about nor disabled, for nine days", async () => {
    const answers: Record<string, 503 | 204 | OutboundResult> = { now: 503 };
    const { emit, runUntil, told, record, id, webhooks, stop } = await failing({
      answer: () => answers["now"] ?? 204,
      options: { endpoints: { warnAfterMs: 2 * DAY, disableAfterMs: 5 * DAY } },
    });
    const eventId = await emit();
    await runUntil(START + MINUTE);
    answers["now"] = outage;
    await runUntil(START + 9 * DAY);
    expect(await record(id)).toMatchObject({ status: "ENABLED", warnedAt: null });
    answers["now"] = 204;
    await runUntil(START + 9 * DAY + HOUR);
    expect(await webhooks.deliveries.get(`${id}.${eventId}`)).toMatchObject({ state: "delivered" });
    expect(await record(id)).toMatchObject({ status: "ENABLED", failingSince: null });
    expect(told).toEqual([]);
    await stop(0);
  });

  it("no part of the retry window passes: after four days, a delivery has all its attempts left", async () => {
    let isDown = false;
    const harness = await startHarness({
      answer: () => (isDown ? outage : 503),
      options: { retry: { jitter: 0 }, endpoints: { warnAfterMs: 90 * DAY, disableAfterMs: 99 * DAY } },
    });
    const { id } = await harness.register();
    const eventId = await harness.emit();
    await harness.run(MINUTE);
    isDown = true;
    await harness.run(4 * DAY);
    isDown = false;
    await harness.run(4 * DAY);
    const delivery = await harness.webhooks.deliveries.get(`${id}.${eventId}`);
    expect({ reason: delivery.reason, attempts: delivery.attempts.length }).toEqual({
      reason: "exhausted",
      attempts: ATTEMPT_TIMES.length,
    });
    await harness.stop(0);
  });

  it("a delivery keeps its step, and its schedule is moved by the length of the outage", async () => {
    const answers: (number | OutboundResult)[] = [503, outage, outage, 503];
    const harness = await startHarness({
      answer: () => answers.shift() ?? 204,
      options: { retry: { jitter: 0 } },
    });
    await harness.register();
    await harness.emit();
    await harness.run(HOUR);
    expect(harness.times()).toEqual(["0:00", "0:15", "0:15:05", "0:15:15", "0:45:15"]);
    await harness.stop(0);
  });

  it("the log has one error a minute and no other line, and no attempt is measured", async () => {
    const measured: string[] = [];
    const telemetry = { record: (name: string) => void measured.push(name), observe: () => () => {} };
    const harness = await startHarness({ answer: () => outage, options: { telemetry } });
    await harness.register();
    for (let sent = 0; sent < 20; sent++) await harness.emit();
    await harness.run(50 * SECOND);
    expect(measured.filter((name) => name.startsWith("attempt"))).toEqual([]);
    expect(harness.log.filter((line) => !line.startsWith("debug"))).toEqual([
      "error no host name can be resolved: deliveries wait until the DNS servers respond",
    ]);
    await harness.stop(0);
  });

  it("a test fails at once, because its sender waits for it", async () => {
    const harness = await startHarness({ answer: () => outage });
    const { id } = await harness.register();
    await harness.webhooks.deliveries.test({ webhookId: id });
    await harness.webhooks.idle();
    const { items: deliveries } = await harness.webhooks.deliveries.list({ webhookId: id });
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

it("a resolver of the host that hangs is an outage, also with a deadline of two seconds", async () => {
  let isDown = false;
  const harness = await startHarness({
    options: {
      delivery: { send: undefined, deadlineMs: 2 * SECOND },
      destinations: {
        allowPrivateNetworks: true,
        resolve: () => (isDown ? forever<string[]>() : Promise.resolve([])),
      },
    },
  });
  const webhooks = [
    await harness.register("https://hooks.one.test/"),
    await harness.register("https://hooks.two.test/"),
  ];
  await harness.emit();
  await harness.run(MINUTE);
  isDown = true;
  const eventId = await harness.emit();
  await harness.run(5 * MINUTE);
  for (const { id } of webhooks)
    expect(await harness.webhooks.deliveries.get(`${id}.${eventId}`)).toMatchObject({
      state: "pending",
      attempts: [],
    });
  await harness.stop(0);
});
