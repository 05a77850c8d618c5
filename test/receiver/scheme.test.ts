/** Schemes of the host: what they throw or return never becomes more than a refused request. */

import { describe, expect, it } from "vitest";
import { createReceiver, type WebhookScheme } from "../../src/receiver/index.js";
import { recordingLogger } from "../support/registration-api.js";

const boom = (): never => {
  throw new Error("boom");
};

function openReceiver(changes: Partial<WebhookScheme<{ id: string }>>) {
  const { logger, log } = recordingLogger();
  const ids: unknown[] = [];
  const receiver = createReceiver({
    verify: {
      header: "x-acme-key",
      verify: () => undefined,
      read: ({ body }) => JSON.parse(String(body)),
      ...changes,
    },
    onEvent: ({ id }) => ids.push(id),
    logger,
  });
  const headers = { "x-acme-key": "let me in" };
  const receive = (body: string) => receiver.receive({ body, headers });
  const post = (body: string) =>
    receiver.handle({
      method: "POST",
      path: "/",
      query: "",
      headers,
      body: Buffer.from(body),
      baseUrl: "http://localhost",
    });
  return { receive, post, log, ids };
}

describe("a scheme of the host", () => {
  it.each<[string, Partial<WebhookScheme<{ id: string }>>]>([
    ["verify", { verify: boom }],
    ["verify", { verify: (async () => undefined) as never }],
    ["verify", { verify: () => "toString" as never }],
    ["read", { read: boom }],
    ["respond", { respond: boom }],
  ])("whose %s() throws refuses the request with 400, and the log names it (%#)", async (step, changes) => {
    const { receive, post, log, ids } = openReceiver(changes);
    expect(await receive('{"id":"1"}')).toMatchObject({
      ok: false,
      code: "invalid_notification",
      status: 400,
      cause: expect.any(Error),
    });
    expect(await post('{"id":"2"}')).toMatchObject({ status: 400 });
    expect(ids).toEqual([]);
    expect(log.filter(({ level }) => level === "error")).toMatchObject([
      { message: expect.stringContaining(`${step}() of the scheme threw`) },
      { message: expect.stringContaining(`${step}() of the scheme threw`) },
    ]);
  });

  it("responds once to a request, with what its respond() returned first", async () => {
    let calls = 0;
    const respond = () => {
      calls += 1;
      return calls === 1 ? { status: 200, headers: {}, body: "challenge" } : boom();
    };
    expect(await openReceiver({ respond }).post('{"id":"1"}')).toMatchObject({ body: "challenge" });
    expect(calls).toBe(1);
  });

  it("whose events have no id text of 1 to 256 characters is refused, also for the second event", async () => {
    for (const id of [undefined, null, 7, "", "x".repeat(257), ["a"]]) {
      const { receive, ids } = openReceiver({});
      for (let times = 0; times < 2; times += 1)
        expect(await receive(JSON.stringify({ id })), String(id)).toMatchObject({
          code: "invalid_notification",
        });
      expect(ids).toEqual([]);
    }
    const { receive, ids } = openReceiver({});
    expect(await receive(JSON.stringify({ id: "x".repeat(256) }))).toMatchObject({ ok: true });
    expect(await openReceiver({ read: () => null as never }).receive("{}")).toMatchObject({ status: 400 });
    expect(ids).toHaveLength(1);
  });
});
