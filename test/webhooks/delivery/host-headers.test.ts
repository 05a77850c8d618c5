import { afterEach, describe, expect, it } from "vitest";
import type { Webhook, WebhooksOptions } from "../../../src/index.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { issue, makeAuthority } from "../../support/certificates.js";
import { startProxy } from "../../support/connect-proxy.js";
import { reply, startEndpoint, until } from "../../support/https-endpoint.js";
import { recordingLogger, registrationApi } from "../../support/registration-api.js";
import { forever, HOUR, MINUTE, response, SECOND, startHarness } from "../../support/webhook-harness.js";

const TOKEN = "Bearer s3cr3t-t0ken";

type Hook = NonNullable<NonNullable<WebhooksOptions["delivery"]>["headers"]>;

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(cleanUps.splice(0).map((cleanUp) => cleanUp()));
});

const startWith = (headers: Hook, options: Partial<WebhooksOptions> = {}) => {
  const { logger, log } = recordingLogger();
  return startHarness({ options: { ...options, logger, delivery: { headers } } }).then((harness) => ({
    ...harness,
    entries: log,
  }));
};

/** Everything that was logged, errors with their messages. */
const textOf = (log: readonly object[]): string =>
  JSON.stringify(log, (_, value: unknown) => (value instanceof Error ? String(value) : value));

describe("delivery.headers", () => {
  it.each<[string, (headers: Record<string, string>) => ReturnType<Hook>]>([
    ["sync", (headers) => headers],
    ["async", async (headers) => headers],
  ])("adds headers to each attempt, retries and tests included: %s", async (_, answer) => {
    const asked: Webhook[] = [];
    const harness = await startWith((webhook) => {
      asked.push(webhook);
      return answer({ authorization: TOKEN, "X-Attempt": String(asked.length) });
    });
    const { id } = await harness.register();
    harness.respond(() => 500);
    await harness.emit();
    await harness.run(20 * MINUTE);
    await harness.webhooks.deliveries.test({ webhookId: id });
    await harness.quiet();
    const sent = harness.sent.map(({ headers }) => [headers["authorization"], headers["X-Attempt"]]);
    expect(sent).toEqual([
      [TOKEN, "1"],
      [TOKEN, "2"],
      [TOKEN, "3"],
    ]);
    const { secret, account, url } = await harness.record(id);
    expect(asked[0]).toEqual({ ...(await harness.webhooks.registrations.get(id)), failingSince: null });
    expect(asked[0]).toMatchObject({ id, account, url });
    expect(JSON.stringify(asked)).not.toContain(secret);
    expect(harness.sent[0]?.headers).toMatchObject({ "content-type": "application/json" });
  });

  it("is in no log, no delivery, no request that subscribers see, and no span", async () => {
    const spans: unknown[] = [];
    const telemetry: WebhooksOptions["telemetry"] = {
      record: (...args) => void spans.push(args),
      observe: () => () => {},
      begin: (span) => {
        spans.push(span);
        return { traceparent: "", run: (work) => work(), end: (end) => void spans.push(end) };
      },
    };
    const sent: string[] = [];
    const { webhooks, create, call, log } = registrationApi({
      telemetry,
      delivery: {
        headers: () => ({ authorization: TOKEN }),
        send: async ({ headers }) => {
          sent.push(headers["authorization"] ?? "");
          return response(500, {}, "no");
        },
      },
    });
    const { webhook } = await create();
    await webhooks.start();
    await webhooks.emit({
      type: "patient.created",
      account: "acme",
      resource: { resourceType: "Patient", id: "1" },
    });
    await webhooks.idle();
    const list = await call("GET", `/v1/webhooks/${webhook.id}/deliveries`, { query: "include=attempts" });
    const [{ id } = { id: "" }] = (list.json as { deliveries: { id: string }[] }).deliveries;
    const request = await call("GET", `/v1/webhooks/${webhook.id}/deliveries/${id}/request`);
    await webhooks.stop();
    expect(sent).toEqual([TOKEN]);
    expect(list.text).toContain("HTTP_500");
    expect(request.text).toContain("X-Service-Signature");
    expect(spans.length).toBeGreaterThan(0);
    expect([list.text, request.text, textOf(log), JSON.stringify(spans)].join()).not.toMatch(
      /s3cr3t|authorization/i,
    );
  });

  const long = (length: number) => "v".repeat(length);

  it.each<[string, unknown, named: string]>([
    ["a line break", { "x-key": `${TOKEN}\r\nx-evil: 1` }, "x-key"],
    ["a line feed", { "x-key": `${TOKEN}\n` }, "x-key"],
    ["NUL", { "x-key": `${TOKEN}\0` }, "x-key"],
    ["a space at its end", { "x-key": `${TOKEN} ` }, "x-key"],
    ["a character beyond ASCII", { "x-key": `${TOKEN}é` }, "x-key"],
    ["a character beyond Latin-1", { "x-key": `${TOKEN}\u010d\u010a` }, "x-key"],
    ["no character", { "x-key": "" }, "x-key"],
    ["no text", { "x-key": { toString: () => TOKEN } }, "x-key"],
    ["a list", { "x-key": [TOKEN] }, "x-key"],
    ["8 193 bytes", { "x-key": TOKEN + long(8_193 - TOKEN.length) }, "x-key"],
    ["16 385 bytes with the others", { a: long(8_190), b: long(8_190), c: "12" }, "16384 bytes"],
    [
      "32 others",
      Object.fromEntries(Array.from({ length: 33 }, (_, at) => [`x-${at}`, TOKEN])),
      "more than 32",
    ],
    ["another by case", { "X-Key": TOKEN, "x-key": TOKEN }, "x-key"],
    ["a name with a line break", { "x\r\ny": TOKEN }, "RFC 9110"],
    ["a name with a space", { "x y": TOKEN }, "RFC 9110"],
    ["an empty name", { "": TOKEN }, "RFC 9110"],
    ["a name of 129 characters", { [long(129)]: TOKEN }, "RFC 9110"],
    ...[
      ...[
        "Host",
        "Content-Length",
        "transfer-encoding",
        "CONNECTION",
        "te",
        "Trailer",
        "upgrade",
        "keep-alive",
      ],
      ...[
        "Expect",
        "Proxy-Authorization",
        "proxy-connection",
        "Content-Type",
        "User-Agent",
        "accept-encoding",
      ],
      ...["webhook-id", "Webhook-Signature", "X-CLINIC-signature"],
    ].map((name): [string, unknown, string] => [`the name ${name}`, { [name]: TOKEN }, name]),
    ["nothing", undefined, "an object"],
    ["null", null, "an object"],
    ["a text", TOKEN, "an object"],
    ["pairs", [["authorization", TOKEN]], "an object"],
    ["a Headers object", new Headers({ authorization: TOKEN }), "an object"],
    ["a Map", new Map([["authorization", TOKEN]]), "an object"],
  ])("that returns %s sends nothing, and says so without the value", async (_, headers, named) => {
    let isBroken = true;
    const harness = await startWith((() => (isBroken ? headers : { authorization: TOKEN })) as Hook, {
      signature: { header: "X-Clinic-Signature" },
    });
    const { id } = await harness.register();
    const eventId = await harness.emit();
    await harness.quiet();
    expect(harness.sent).toEqual([]);
    expect(harness.entries).toHaveLength(1);
    expect(harness.entries[0]).toMatchObject({ level: "warn", fields: { webhook: id } });
    expect(textOf(harness.entries)).toContain(named);
    expect(textOf(harness.entries)).not.toMatch(/s3cr3t|vvvv/);
    expect(await harness.webhooks.deliveries.get(`${id}.${eventId}`)).toMatchObject({
      state: "pending",
      attempts: [],
    });
    isBroken = false;
    await harness.run(HOUR);
    expect(harness.sent.map((sent) => sent.headers["authorization"])).toEqual([TOKEN]);
    expect((await harness.webhooks.deliveries.get(`${id}.${eventId}`)).attempts).toMatchObject([{ step: 0 }]);
  });

  it("accepts the largest headers", async () => {
    const headers = {
      ...{ a: "v".repeat(8_192), b: "v".repeat(7_800) },
      ...Object.fromEntries(Array.from({ length: 29 }, (_, at) => [`x-${at}`, "!\t ~"])),
      ["n".repeat(20)]: "v",
    };
    const harness = await startWith(() => headers);
    await harness.register();
    await harness.emit();
    await harness.quiet();
    expect(harness.sent[0]?.headers).toMatchObject(headers);
  });

  it.each<[string, () => unknown]>([
    [
      "throws",
      () => {
        throw new Error("no token");
      },
    ],
    ["rejects", () => Promise.reject(new Error("no token"))],
    ["hangs", () => forever()],
  ])("that %s makes the delivery wait, and fails it when its time is over", async (_, hook) => {
    const harness = await startWith(hook as Hook);
    const { id } = await harness.register();
    const eventId = await harness.emit();
    await harness.webhooks.deliveries.test({ webhookId: id });
    await harness.run(5 * SECOND);
    expect(new Set(harness.entries.map(({ message }) => message))).toEqual(
      new Set(["delivery.headers failed or returned an invalid value; the delivery waits"]),
    );
    expect((await harness.record(id)).failingSince).toBeNull();
    await harness.run(80 * HOUR);
    expect(harness.sent).toEqual([]);
    const { items: deliveries } = await harness.webhooks.deliveries.list({ webhookId: id });
    expect(deliveries.find((one) => one.eventId === eventId)).toMatchObject({
      state: "failed",
      reason: "access_unknown",
    });
    expect(deliveries.find((one) => one.eventId !== eventId)).toMatchObject({
      state: "failed",
      reason: "test_failed",
    });
  });

  it("is not called for a record that the subscriber may not read", async () => {
    let calls = 0;
    const harness = await startWith(() => ({ "x-calls": String(++calls) }), {
      access: { authenticate: () => null, canRead: () => false },
    });
    await harness.register();
    await harness.emit();
    await harness.quiet();
    expect(calls).toBe(0);
  });

  it("goes with a client certificate through a proxy to an endpoint, and to nobody after it", async () => {
    const authority = await makeAuthority();
    const certificate = await issue({ authority, names: ["hooks.example.com", "127.0.0.1"] });
    const client = await issue({ authority, names: ["sender"], forClients: true });
    const elsewhere = await startEndpoint();
    const endpoint = await startEndpoint({
      certificate,
      tlsOptions: { requestCert: true, rejectUnauthorized: true, ca: authority.cert },
      respond: (socket) => socket.write(reply(302, "", { location: `http://127.0.0.1:${elsewhere.port}/` })),
    });
    const proxy = await startProxy();
    const { webhooks, create, call, log } = registrationApi({
      destinations: {
        allowPrivateNetworks: true,
        ca: authority.cert,
        resolve: async () => ["127.0.0.1"],
        proxy: `http://user:pr0xy-pass@127.0.0.1:${proxy.port}`,
        clientCertificate: client,
      },
      delivery: { headers: async () => ({ Authorization: TOKEN }) },
    });
    cleanUps.push(() => webhooks.stop({ graceMs: 0 }), endpoint.close, elsewhere.close, proxy.close);
    const { webhook } = await create({ json: { url: `https://hooks.example.com:${endpoint.port}/in` } });
    await webhooks.start();
    await webhooks.emit({
      type: "patient.created",
      account: "acme",
      resource: { resourceType: "Patient", id: "1" },
    });
    await until(() => endpoint.requests.length === 1);
    await webhooks.idle();
    expect(endpoint.requests[0]?.head).toContain(`\r\nAuthorization: ${TOKEN}\r\n`);
    expect(elsewhere.connections()).toBe(0);
    const { text } = await call("GET", `/v1/webhooks/${webhook.id}/deliveries`, {
      query: "include=attempts",
    });
    expect(text).toContain("HTTP_302");
    expect(`${text}${textOf(log)}`).not.toMatch(/s3cr3t|pr0xy-pass/);
  });

  it("shows subscribers the code of a proxy that refuses, but not its password", async () => {
    const proxy = await startProxy({ answer: (socket) => socket.end("HTTP/1.1 407 No\r\n\r\n") });
    const { webhooks, create, call, log } = registrationApi({
      clock: manualClock(Date.UTC(2026, 0, 1)),
      destinations: {
        resolve: async () => ["93.184.216.34"],
        proxy: `http://user:pr0xy-pass@127.0.0.1:${proxy.port}`,
      },
    });
    cleanUps.push(() => webhooks.stop({ graceMs: 0 }), proxy.close);
    const { webhook } = await create();
    await webhooks.start();
    await webhooks.emit({
      type: "patient.created",
      account: "acme",
      resource: { resourceType: "Patient", id: "1" },
    });
    await webhooks.idle();
    const { text } = await call("GET", `/v1/webhooks/${webhook.id}/deliveries`, {
      query: "include=attempts",
    });
    expect(text).toContain('"kind":"connect","status":null,"code":"PROXY_407"');
    expect(`${text}${textOf(log)}`).not.toContain("pr0xy-pass");
  });
});
