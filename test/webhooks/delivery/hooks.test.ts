import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Send } from "../../../src/index.js";
import type { OutboundRequest, OutboundResult } from "../../../src/ports.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { guardSend } from "../../../src/webhooks/sender.js";
import {
  clockTime,
  DAY,
  forever,
  HOUR,
  held,
  MINUTE,
  response,
  SECOND,
  START,
  startHarness,
} from "../../support/webhook-harness.js";

describe("delivery.send of the host", () => {
  it.each([
    [
      "throws",
      () => {
        throw new Error("no");
      },
      "connect",
      "SEND_THREW",
    ],
    ["rejects", () => Promise.reject(new Error("no")), "connect", "SEND_THREW"],
    [
      "rejects with what is no error",
      () => Promise.reject("no" as unknown as Error),
      "connect",
      "SEND_THREW",
    ],
    ["hangs", () => forever(), "timeout", "DEADLINE"],
    ["returns nothing", () => undefined, "http", "SEND_NONSENSE"],
    ["returns a status alone", () => 200, "http", "SEND_NONSENSE"],
    ["returns a response of fetch", () => new Response(null, { status: 200 }), "http", "SEND_NONSENSE"],
    ["returns an unknown kind", () => ({ kind: "ok", status: 200 }), "http", "SEND_NONSENSE"],
    ["returns an invalid status", () => ({ kind: "response", status: "200" }), "http", "SEND_NONSENSE"],
    ["returns a failure without a code", () => ({ kind: "tls" }), "tls", "undefined"],
  ])("that %s makes a failed attempt, which is retried", async (_, send, kind, code) => {
    let isBroken = true;
    const harness = await startHarness({
      options: {
        retry: { jitter: 0 },
        delivery: { send: () => (isBroken ? send() : response(200)) as Promise<OutboundResult> },
      },
    });
    const { id } = await harness.register();
    const eventId = await harness.emit();
    await harness.run(MINUTE);
    isBroken = false;
    await harness.run(HOUR);
    const { state, attempts } = await harness.webhooks.deliveries.get(`${id}.${eventId}`);
    expect(state).toBe("delivered");
    expect(attempts).toMatchObject([
      { step: 0, kind, code, status: null },
      { step: 1, status: 200 },
    ]);
    expect(clockTime((attempts[1]?.at.getTime() ?? 0) - START).slice(0, 4)).toBe("0:15");
  });

  it("gets a second beyond the deadline to notice it, and not more", async () => {
    const answer = held<OutboundResult>();
    const { register, emit, run, webhooks } = await startHarness({ answer: () => answer.promise });
    const { id } = await register();
    const eventId = await emit();
    const attempts = async (): Promise<number> =>
      (await webhooks.deliveries.get(`${id}.${eventId}`)).attempts.length;
    await run(16 * SECOND - 1);
    expect(await attempts()).toBe(0);
    await run(1);
    expect(await attempts()).toBe(1);
    answer.resolve(response(200));
    await run(SECOND);
    expect((await webhooks.deliveries.get(`${id}.${eventId}`)).state).toBe("pending");
  });

  it("is only ever heard as what it may say, whatever it gives", async () => {
    const request: OutboundRequest = {
      url: "https://hooks.example.com/a",
      method: "POST",
      headers: {},
      body: null,
      deadlineMs: 1_000,
      maxBodyBytes: 0,
    };
    const field = fc.anything({ withNullPrototype: true });
    const given = fc.oneof(
      fc.anything(),
      fc.record(
        {
          kind: fc.oneof(fc.constantFrom("response", "dns", "tls", "timeout"), field),
          status: fc.oneof(fc.integer(), field),
          headers: field,
          body: field,
          code: field,
          message: field,
          complete: field,
        },
        { requiredKeys: [] },
      ),
    );
    await fc.assert(
      fc.asyncProperty(given, async (value) => {
        const result = await guardSend((async () => value) as Send, manualClock(START))(request);
        const isFailure =
          /^(?:refused|dns|connect|tls|timeout|http)$/.test(result.kind) &&
          "code" in result &&
          typeof result.code === "string";
        const isResponse =
          result.kind === "response" &&
          (value as { kind: unknown }).kind === "response" &&
          (value as { status: unknown }).status === result.status &&
          Number.isInteger(result.status) &&
          result.body instanceof Uint8Array &&
          typeof result.headers === "object";
        expect(isFailure || isResponse).toBe(true);
      }),
    );
  });

  it("counts as one that threw if its error has the text of a time-out", async () => {
    const send: Send = () => Promise.reject(new Error("deadline"));
    const request = { url: "https://example.org", method: "POST", headers: {}, body: null } as const;
    const limits = { deadlineMs: 1_000, maxBodyBytes: 0 };
    const result = await guardSend(send, manualClock(START))({ ...request, ...limits });
    expect(result).toMatchObject({ kind: "connect", code: "SEND_THREW" });
  });
});

describe("a logger of the host that throws", () => {
  it("stops no delivery, no health step and no stop", async () => {
    const no = (): never => {
      throw new Error("disk full");
    };
    const told: string[] = [];
    let asked = 0;
    const { register, emit, run, sent, stop, clock } = await startHarness({
      answer: () => 500,
      options: {
        access: {
          authenticate: () => null,
          canRead: () => ++asked > 1 || no(),
        },
        logger: { debug: no, info: no, warn: no, error: no },
        notify: {
          warning: () => told.push("warning") > 1 || no(),
          disabled: () => told.push("disabled"),
        },
      },
    });
    await register();
    await emit();
    await run(5 * DAY);
    expect(sent).toHaveLength(14);
    expect(told).toEqual(["warning", "warning", "disabled"]);
    await stop(0);
    expect(clock.nextTimerAt()).toBeUndefined();
  });
});
