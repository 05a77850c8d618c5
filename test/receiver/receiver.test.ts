import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { expressAdapter } from "../../adapters/express.js";
import { nodeAdapter } from "../../adapters/node.js";
import type { HttpRequest, HttpResponse } from "../../src/http/types.js";
import {
  createReceiver,
  type EventNotification,
  type ReceiverOptions,
  verifySignature,
} from "../../src/receiver/index.js";
import { newSecret, signatureHeader } from "../../src/signature/signature.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { type BodyForm, readPayload } from "../../src/webhooks/events/notification.js";
import { build, EVENT_ID, OCCURRED_AT, TOPIC } from "../support/clinic.js";

const secret = newSecret();
const OTHER_ID = "c56a4180-65aa-42ec-a945-5fd21dec0538";

async function bodyOf(form: BodyForm = "notification", eventId = EVENT_ID): Promise<Buffer> {
  const { payload } = await build({ eventId });
  return readPayload(payload).body({ form, topic: TOPIC, allowed: null, eventIdField: false });
}
const notification = await bodyOf();

/** A receiver that remembers what it was given, at a time that stands still. */
function receiverOf(changes: Partial<ReceiverOptions> = {}) {
  const clock = manualClock(OCCURRED_AT);
  const events: EventNotification[] = [];
  const logged: { level: string; fields: object; message: string }[] = [];
  const log = (level: string) => (fields: object, message: string) =>
    void logged.push({ level, fields, message });
  const receiver = createReceiver({
    secrets: secret,
    onEvent: (event) => void events.push(event),
    clock,
    logger: { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") },
    ...changes,
  });
  const sign = (body: Uint8Array, key = secret) =>
    signatureHeader({ secret: key, timestamp: Math.floor(clock.now() / 1000), body });
  const request = (body: HttpRequest["body"], changed: Partial<HttpRequest> = {}): HttpRequest => ({
    method: "POST",
    path: "/",
    query: "",
    headers: { "x-service-signature": body instanceof Uint8Array ? sign(body) : "" },
    body,
    baseUrl: "http://localhost",
    ...changed,
  });
  const post = async (
    body: HttpRequest["body"],
    changed: Partial<HttpRequest> = {},
  ): Promise<HttpResponse> => {
    const response = await receiver.handle(request(body, changed));
    if (response === undefined) throw new Error("not its path");
    return response;
  };
  return { receiver, clock, events, logged, sign, request, post };
}

const codeOf = ({ body }: HttpResponse): unknown =>
  JSON.parse(typeof body === "string" ? body : "null")?.error.code;

describe("a receiver", () => {
  it("hands a verified notification on and answers with 204 only then", async () => {
    let finish = (): void => {};
    const handled = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const { post } = receiverOf({ onEvent: () => handled });
    let isAnswered = false;
    const answer = post(notification).finally(() => {
      isAnswered = true;
    });
    await new Promise(setImmediate);
    expect(isAnswered).toBe(false);
    finish();
    expect(await answer).toEqual({ status: 204, headers: {}, body: null });
  });

  it.each(["notification", "envelope"] as const)(
    "gives the same event for the %s form of the body",
    async (form) => {
      const { post, events } = receiverOf();
      await post(await bodyOf(form));
      expect(events).toEqual([JSON.parse(notification.toString())]);
      expect(events[0]?.event.context[0].resource.entry[0]?.resource.resourceType).toBe("Patient");
    },
  );

  it("accepts a body that comes in pieces", async () => {
    const { post, events, sign } = receiverOf();
    async function* pieces() {
      for (const byte of notification) yield Uint8Array.of(byte);
    }
    expect(await post(pieces(), { headers: { "x-service-signature": sign(notification) } })).toMatchObject({
      status: 204,
    });
    expect(events).toHaveLength(1);
  });

  it("accepts any of several secrets, and keeps to those it was made with", async () => {
    const old = newSecret();
    const secrets = [secret, old];
    const { post, sign } = receiverOf({ secrets });
    secrets.length = 0;
    expect(
      await post(notification, { headers: { "x-service-signature": sign(notification, old) } }),
    ).toMatchObject({ status: 204 });
  });

  it("reads the signature from another header by option", async () => {
    const { post, sign } = receiverOf({ header: "X-Clinic-Signature" });
    const headers = { "x-clinic-signature": sign(notification) };
    expect(await post(notification, { headers })).toMatchObject({ status: 204 });
    expect(codeOf(await post(notification))).toBe("missing_header");
  });
});

describe("a repetition", () => {
  it("is acknowledged without a second call, for six days", async () => {
    const { post, events, clock } = receiverOf();
    await post(notification);
    expect(await post(notification)).toMatchObject({ status: 204 });
    expect(await post(await bodyOf("envelope"))).toMatchObject({ status: 204 });
    await clock.advance(6 * 86_400_000);
    expect(await post(notification)).toMatchObject({ status: 204 });
    expect(events).toHaveLength(1);
    await clock.advance(1);
    await post(notification);
    expect(events).toHaveLength(2);
  });

  it("of another event is not a repetition", async () => {
    const { post, events } = receiverOf();
    await post(notification);
    await post(await bodyOf("notification", OTHER_ID));
    expect(events.map(({ id }) => id)).toEqual([EVENT_ID, OTHER_ID]);
  });

  it("is not acknowledged while the first is being handled, and handled if that fails", async () => {
    const waiting: { resolve: () => void; reject: (error: Error) => void }[] = [];
    const onEvent = () => new Promise<void>((resolve, reject) => void waiting.push({ resolve, reject }));
    const { post } = receiverOf({ onEvent });
    const first = post(notification);
    await new Promise(setImmediate);
    const meanwhile = await post(notification);
    expect(meanwhile).toMatchObject({ status: 409 });
    expect(codeOf(meanwhile)).toBe("event_underway");
    waiting[0]?.reject(new Error("database away"));
    expect(await first).toMatchObject({ status: 500 });
    const second = post(notification);
    await new Promise(setImmediate);
    waiting[1]?.resolve();
    expect(await second).toMatchObject({ status: 204 });
    expect(await post(notification)).toMatchObject({ status: 204 });
    expect(waiting).toHaveLength(2);
  });

  it("is remembered for as many events, and as long, as the options say", async () => {
    const { post, events, clock } = receiverOf({ duplicates: { max: 1, ttlMs: 1000 } });
    await post(notification);
    await post(await bodyOf("notification", OTHER_ID));
    await post(notification);
    expect(events).toHaveLength(3);
    await clock.advance(1001);
    await post(notification);
    expect(events).toHaveLength(4);
  });

  it("of a forgery does not use up the id", async () => {
    const { post, events } = receiverOf();
    await post(notification, { headers: { "x-service-signature": `t=1, s=${"0".repeat(64)}` } });
    expect(await post(notification)).toMatchObject({ status: 204 });
    expect(events).toHaveLength(1);
  });
});

describe("a delivery that is refused", () => {
  it("carries no signature, a malformed one, a wrong one or an old one", async () => {
    const { post, events, sign, clock, logged } = receiverOf();
    const signed = sign(notification);
    const codes = [];
    for (const header of ["", "t=1", sign(notification, "another"), signed]) {
      if (header === signed) await clock.advance(301_000);
      const response = await post(notification, { headers: { "x-service-signature": header } });
      expect(response.status).toBe(400);
      codes.push(codeOf(response));
    }
    expect(codes).toEqual(["missing_header", "malformed_header", "no_match", "timestamp_out_of_tolerance"]);
    expect(events).toEqual([]);
    expect(logged.map(({ level, fields }) => ({ level, fields }))).toEqual(
      codes.map((code) => ({ level: "warn", fields: { code } })),
    );
  });

  it("is older than the tolerance of the option", async () => {
    const { post, sign, clock } = receiverOf({ toleranceMs: 10_000 });
    const headers = { "x-service-signature": sign(notification) };
    await clock.advance(11_000);
    expect(codeOf(await post(notification, { headers }))).toBe("timestamp_out_of_tolerance");
  });

  it("was altered on the way, by one byte or by parsing and writing it again", async () => {
    const { post, sign } = receiverOf();
    const headers = { "x-service-signature": sign(notification) };
    const altered = Buffer.from(JSON.stringify(JSON.parse(notification.toString()), null, 1));
    expect(codeOf(await post(altered, { headers }))).toBe("no_match");
  });

  it.each([
    ["no body", ""],
    ["no JSON", "{"],
    ["no object", "null"],
    ["a list", "[]"],
    ["an empty object", "{}"],
    ["no id", '{"timestamp":"t","event":{}}'],
    ["an invalid event", '{"id":"1","timestamp":"t","event":[]}'],
    [
      "an empty id",
      '{"id":"","timestamp":"t","event":{"hub.topic":"a","hub.event":"b","context":[{"key":"k","resource":{"resourceType":"Bundle","entry":[]}}]}}',
    ],
    [
      "an id that is a number",
      '{"id":1,"timestamp":"t","event":{"hub.topic":"a","hub.event":"b","context":[{"key":"k","resource":{"resourceType":"Bundle","entry":[]}}]}}',
    ],
    ["no context", '{"id":"1","timestamp":"t","event":{"hub.topic":"a","hub.event":"b","context":[]}}'],
    [
      "no list of contexts",
      '{"id":"1","timestamp":"t","event":{"hub.topic":"a","hub.event":"b","context":{}}}',
    ],
    [
      "a context without a key",
      '{"id":"1","timestamp":"t","event":{"hub.topic":"a","hub.event":"b","context":[{"resource":{"resourceType":"Bundle","entry":[]}}]}}',
    ],
    [
      "two contexts",
      '{"id":"1","timestamp":"t","event":{"hub.topic":"a","hub.event":"b","context":[{"key":"k","resource":{"resourceType":"Bundle","entry":[]}},{}]}}',
    ],
    [
      "no bundle",
      '{"id":"1","timestamp":"t","event":{"hub.topic":"a","hub.event":"b","context":[{"key":"k","resource":{"resourceType":"Patient"}}]}}',
    ],
    [
      "a bundle without entries",
      '{"id":"1","timestamp":"t","event":{"hub.topic":"a","hub.event":"b","context":[{"key":"k","resource":{"resourceType":"Bundle"}}]}}',
    ],
    ["an empty envelope", '{"payload":{}}'],
    ["a million levels", "[".repeat(500_000) + "]".repeat(500_000)],
  ])("is signed, but no notification: %s", async (_, text) => {
    const { post, events } = receiverOf();
    const response = await post(Buffer.from(text));
    expect(response.status).toBe(400);
    expect(codeOf(response)).toBe("invalid_notification");
    expect(events).toEqual([]);
  });

  it("is signed, but not UTF-8", async () => {
    const { post } = receiverOf();
    const bytes = Buffer.from(notification);
    bytes[bytes.indexOf("Zoë") + 2] = 0xff;
    expect(codeOf(await post(bytes))).toBe("invalid_notification");
  });

  it("is larger than the limit", async () => {
    const { post, events } = receiverOf({ limits: { requestBytes: notification.length - 1 } });
    const response = await post(notification);
    expect(response).toMatchObject({ status: 413 });
    expect(codeOf(response)).toBe("body_too_large");
    expect(events).toEqual([]);
  });

  it("breaks off in the middle", async () => {
    const { post } = receiverOf();
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield notification.subarray(0, 10);
      throw new Error("ECONNRESET");
    }
    expect(await post(broken())).toMatchObject({ status: 400 });
  });

  it("fails in onEvent, at once or later: the sender is told nothing of the error, the log what it was and where", async () => {
    const failure = new TypeError("patient Zoë is not in the database");
    for (const onEvent of [
      () => {
        throw failure;
      },
      () => Promise.reject(failure),
    ]) {
      const { post, logged } = receiverOf({ onEvent });
      const response = await post(notification);
      expect(response.status).toBe(500);
      expect(codeOf(response)).toBe("handler_failed");
      expect(response.body).toBeTypeOf("string");
      expect(response.body).not.toContain("Zoë");
      expect(logged).toMatchObject([
        {
          level: "error",
          fields: {
            code: "handler_failed",
            error: {
              name: "TypeError",
              stack: expect.arrayContaining([expect.stringMatching(/receiver\.test/)]),
            },
          },
        },
      ]);
      expect(JSON.stringify(logged)).not.toContain("Zoë");
    }
  });

  it("fails in onEvent with nothing to say: the log has the code alone", async () => {
    const { post, logged } = receiverOf({ onEvent: () => Promise.reject() });
    expect(await post(notification)).toMatchObject({ status: 500 });
    expect(logged).toMatchObject([{ level: "error", fields: { code: "handler_failed" } }]);
    expect(logged[0]?.fields).not.toHaveProperty("error");
  });

  it("does no harm where the logger throws", async () => {
    const broken = (): never => {
      throw new Error("disk full");
    };
    const { post } = receiverOf({ logger: { debug: broken, info: broken, warn: broken, error: broken } });
    expect(await post(Buffer.from("{}"))).toMatchObject({ status: 400 });
  });
});

describe("the path of a receiver", () => {
  it("is the mount point itself, or the one of the option, with or without a slash at its end", async () => {
    const atRoot = receiverOf();
    const elsewhere = { path: "/other", baseUrl: "http://localhost/hooks" };
    expect(await atRoot.receiver.handle(atRoot.request(notification, elsewhere))).toBeUndefined();
    expect(await atRoot.receiver.handle(atRoot.request(notification, { path: "" }))).toMatchObject({
      status: 204,
    });
    const below = receiverOf({ path: "/hooks/clinic" });
    expect(await below.receiver.handle(below.request(notification))).toBeUndefined();
    expect(await below.post(notification, { path: "/hooks/clinic/" })).toMatchObject({ status: 204 });
    expect(
      await below.receiver.handle(below.request(notification, { path: "/hooks/clinic/x" })),
    ).toBeUndefined();
  });

  it("answers other methods with 405", async () => {
    const { post } = receiverOf();
    for (const method of ["GET", "HEAD", "PUT", "OPTIONS"]) {
      expect(await post(null, { method })).toMatchObject({ status: 405, headers: { allow: "POST" } });
    }
  });
});

describe("receive, for hosts that read the body themselves", () => {
  it("takes bytes or text, and headers in either case", async () => {
    const { receiver, sign } = receiverOf();
    const signature = sign(notification);
    const event = JSON.parse(notification.toString());
    const headers = { "X-Service-Signature": [signature], host: undefined };
    expect(await receiver.receive({ body: notification, headers })).toEqual({
      ok: true,
      duplicate: false,
      event,
    });
    const again = { body: notification.toString(), headers: { "x-service-signature": signature } };
    expect(await receiver.receive(again)).toEqual({ ok: true, duplicate: true, event });
  });

  it("refuses two signature headers", async () => {
    const { receiver, sign } = receiverOf();
    const headers = { "x-service-signature": [sign(notification), sign(notification)] };
    expect(await receiver.receive({ body: notification, headers })).toMatchObject({
      ok: false,
      code: "malformed_header",
    });
  });

  it("gives the status to answer with, and what onEvent threw", async () => {
    const failure = new Error("away");
    const { receiver, sign } = receiverOf({ onEvent: () => Promise.reject(failure) });
    const headers = { "x-service-signature": sign(notification) };
    expect(await receiver.receive({ body: notification, headers })).toMatchObject({
      ok: false,
      code: "handler_failed",
      status: 500,
      cause: failure,
    });
  });

  it("says what to change when the body was parsed", async () => {
    const { receiver } = receiverOf();
    const request = { body: JSON.parse(notification.toString()), headers: {} };
    const result = await receiver.receive(request);
    expect(result).toMatchObject({ ok: false, code: "raw_body_unavailable", status: 500 });
    expect(result).toHaveProperty("message", expect.stringContaining("before any body parser"));
  });

  it("never rejects, whatever comes", async () => {
    const { receiver, sign } = receiverOf();
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.json(), fc.string()), fc.boolean(), async (text, isSigned) => {
        const headers = isSigned ? { "x-service-signature": sign(Buffer.from(text)) } : {};
        expect(await receiver.receive({ body: text, headers })).toMatchObject({ ok: false });
      }),
    );
  });
});

describe("createReceiver", () => {
  it.each([
    ["no options", undefined, "secrets"],
    ["no secrets", { onEvent: () => {} }, "secrets"],
    ["an empty secret", { secrets: "", onEvent: () => {} }, "secrets"],
    ["an empty list", { secrets: [], onEvent: () => {} }, "secrets"],
    ["a prefix without a secret", { secrets: [secret, "whsec_"], onEvent: () => {} }, "secrets"],
    ["no onEvent", { secrets: secret }, "onEvent"],
    ["an onEvent that is no function", { secrets: secret, onEvent: 1 }, "onEvent"],
    ["an unknown option", { secrets: secret, onEvent: () => {}, tolerance: 1 }, "tolerance"],
    [
      "an unknown option within",
      { secrets: secret, onEvent: () => {}, duplicates: { ttl: 1 } },
      "duplicates.ttl",
    ],
    ["a path without its slash", { secrets: secret, onEvent: () => {}, path: "hooks" }, "path"],
    ["an empty header name", { secrets: secret, onEvent: () => {}, header: "" }, "header"],
    [
      "a tolerance that is no number",
      { secrets: secret, onEvent: () => {}, toleranceMs: Number.NaN },
      "toleranceMs",
    ],
    [
      "no room for duplicates",
      { secrets: secret, onEvent: () => {}, duplicates: { max: 0 } },
      "duplicates.max",
    ],
    [
      "no room for a body",
      { secrets: secret, onEvent: () => {}, limits: { requestBytes: 0 } },
      "limits.requestBytes",
    ],
  ])("refuses %s", (_, options, field) => {
    const call = () => createReceiver(options as unknown as ReceiverOptions);
    expect(call).toThrow(expect.objectContaining({ name: "PostbellError", code: "invalid_option", field }));
  });

  it("gives a frozen service, and never shows a secret in its refusals", () => {
    expect(Object.isFrozen(receiverOf().receiver)).toBe(true);
    const call = () => createReceiver({ secrets: [secret, ""], onEvent: () => {} });
    expect(call).toThrow(expect.objectContaining({ message: expect.not.stringContaining(secret) }));
  });

  it("comes with verifySignature in the same entry", () => {
    const { sign, clock } = receiverOf();
    const result = verifySignature({
      body: notification,
      header: sign(notification),
      secrets: secret,
      now: clock.now(),
    });
    expect(result).toMatchObject({ ok: true });
  });
});

describe("on a real socket", () => {
  const servers: Server[] = [];
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => new Promise((closed) => void server.close(closed))));
  });
  const listen = async (server: Server): Promise<string> => {
    servers.push(server);
    await new Promise<void>((listening) => void server.listen(0, "127.0.0.1", listening));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  const deliver = (url: string, signature: string) =>
    fetch(url, {
      method: "POST",
      body: notification,
      headers: { "content-type": "application/json", "x-service-signature": signature, connection: "close" },
    });

  it("receives in plain node:http, and refuses a forgery", async () => {
    const { receiver, events, sign } = receiverOf();
    const url = await listen(createServer(nodeAdapter(receiver, { prefix: "/hooks" })));
    expect((await deliver(`${url}/hooks`, sign(notification))).status).toBe(204);
    expect((await deliver(`${url}/hooks`, sign(notification, "another"))).status).toBe(400);
    expect((await deliver(`${url}/other`, sign(notification))).status).toBe(404);
    expect(events).toHaveLength(1);
  });

  it("says in the log and the answer what to change after a JSON parser, and works with the raw bytes kept", async () => {
    const { receiver, events, sign, logged } = receiverOf();
    const parsed = await listen(
      createServer(express().use(express.json()).use("/hooks", expressAdapter(receiver))),
    );
    const refused = await deliver(`${parsed}/hooks`, sign(notification));
    expect(refused.status).toBe(500);
    expect(await refused.json()).toMatchObject({
      error: { code: "raw_body_unavailable", message: expect.stringContaining("body parser") },
    });
    expect(logged).toMatchObject([{ level: "error", fields: { code: "raw_body_unavailable" } }]);

    const verify = (request: object, _: unknown, rawBody: Buffer) => void Object.assign(request, { rawBody });
    const kept = await listen(
      createServer(express().use(express.json({ verify })).use("/hooks", expressAdapter(receiver))),
    );
    expect((await deliver(`${kept}/hooks`, sign(notification))).status).toBe(204);
    expect(events).toHaveLength(1);
  });

  it("answers a stranger's form or unsigned JSON that a body parser took with 4xx, and logs no error", async () => {
    const { receiver, sign, logged } = receiverOf();
    const parsers = express().use(express.json(), express.urlencoded(), express.text());
    const url = await listen(createServer(parsers.use("/hooks", expressAdapter(receiver))));
    const post = async (type: string, body: string, headers = {}) => {
      const sent = { "content-type": type, connection: "close", ...headers };
      return (await fetch(`${url}/hooks`, { method: "POST", body, headers: sent })).status;
    };
    expect(await post("application/json", "{}")).toBe(400);
    const forged = { "x-service-signature": sign(notification, "another") };
    expect(await post("application/x-www-form-urlencoded", "a=1", forged)).toBe(415);
    expect(await post("text/plain", "{}", forged)).toBe(415);
    expect(logged.filter(({ level }) => level === "error")).toEqual([]);
  });
});
