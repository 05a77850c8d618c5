import { describe, expect, it } from "vitest";
import { createReceiver } from "../../src/receiver/index.js";
import { manualClock, signNotification } from "../../src/testing/index.js";
import { START, startHarness } from "../support/webhook-harness.js";

describe("signNotification", () => {
  it.each([false, true])(
    "gives the headers and bytes that Postbell sends, standardWebhooks: %s",
    async (standardWebhooks) => {
      const { register, emit, run, sent } = await startHarness({
        options: { signature: { standardWebhooks } },
      });
      const { secret } = await register();
      await emit();
      await run(1_000);
      const [delivery] = sent;
      const body = Buffer.from(delivery?.body ?? []);
      expect(signNotification({ body, secret, at: new Date(START), standardWebhooks })).toEqual({
        headers: delivery?.headers,
        body,
      });
    },
  );

  it("gives a receiver what it accepts, and what it refuses for its age or its secret", async () => {
    const secret = "whsec_of_the_endpoint";
    const receiver = createReceiver({
      body: "plain",
      secrets: secret,
      onEvent() {},
      clock: manualClock(START),
      logger: false,
    });
    const event = { id: "e1", type: "order.paid", timestamp: "2026-01-01T00:00:00Z", data: {} };
    const codeOf = async (changes: object): Promise<string> => {
      const result = await receiver.receive(
        signNotification({ body: event, secret, at: new Date(START), ...changes }),
      );
      return result.ok ? "ok" : result.code;
    };
    expect(await codeOf({})).toBe("ok");
    expect(await codeOf({ at: new Date(START - 301_000) })).toBe("timestamp_out_of_tolerance");
    expect(await codeOf({ secret: "whsec_of_another" })).toBe("no_match");
    expect(await codeOf({ header: "X-Other" })).toBe("missing_header");
  });

  it("refuses an empty secret, an invalid time, and a body without an id for Standard Webhooks", () => {
    expect(() => signNotification({ body: {}, secret: "" })).toThrow(/secret must be/);
    expect(() => signNotification({ body: {}, secret: "s", at: new Date(Number.NaN) })).toThrow(/at must be/);
    expect(() => signNotification({ body: {}, secret: "s", standardWebhooks: true })).toThrow(/with an id/);
  });
});
