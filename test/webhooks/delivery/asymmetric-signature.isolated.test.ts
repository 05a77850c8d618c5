import { createHmac, generateKeyPairSync } from "node:crypto";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { WebhooksOptions } from "../../../src/index.js";
import { createReceiver, type ReceivedRequest, type ReceiverOptions } from "../../../src/receiver/index.js";
import type { JsonObject } from "../../../src/schema/types.js";
import { signatureHeader } from "../../../src/signature/signature.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { describedBy } from "../../support/described-answers.js";
import { objectionsTo } from "../../support/openapi-lint.js";
import { registrationApi, START } from "../../support/registration-api.js";
import { response } from "../../support/webhook-harness.js";

const newKey = (): string =>
  String(generateKeyPairSync("ed25519").privateKey.export({ format: "pem", type: "pkcs8" }));
const [FIRST, SECOND, OTHER] = [newKey(), newKey(), newKey()];
const PATH = "/v1/jwks.json";

const at = (json: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>((value, name) => (value as JsonObject)[name], json);

interface Jwk {
  readonly kid: string;
  readonly x: string;
}

/** A service that keeps what it sends, and the keys that it publishes as a receiver takes them. */
async function serviceWith(keys: readonly string[], signature: WebhooksOptions["signature"] = {}) {
  const sent: { headers: Readonly<Record<string, string>>; body: Buffer }[] = [];
  const api = registrationApi({
    signature: { ...signature, standardWebhooks: true, ed25519: keys },
    delivery: {
      send: async ({ headers, body }) => {
        sent.push({ headers, body: Buffer.from(body as Uint8Array) });
        return response(204);
      },
    },
  });
  const { secret } = await api.create();
  await api.webhooks.start();
  const deliver = async () => {
    const resource = { resourceType: "Patient", id: "1" };
    await api.webhooks.emit({ type: "patient.created", account: "acme", resource });
    await api.webhooks.idle();
    return sent.at(-1) as (typeof sent)[number];
  };
  const { json } = await api.call("GET", PATH, { key: null });
  const published = (json as { keys: Jwk[] }).keys;
  return { ...api, secret, deliver, published, publicKeys: published.map(({ x }) => `whpk_${x}`) };
}

function receiverWith(options: Partial<ReceiverOptions>) {
  const events: unknown[] = [];
  const onEvent = (event: unknown): void => void events.push(event);
  const receiver = createReceiver({ onEvent, clock: manualClock(START), logger: false, ...options });
  return { events, receive: (request: ReceivedRequest) => receiver.receive(request) };
}

afterEach(() => {
  vi.useRealTimers();
});

describe("signature.ed25519", () => {
  it("adds a signature that a receiver verifies with the published key, next to that of the secret", async () => {
    const { deliver, publicKeys, secret } = await serviceWith([FIRST]);
    const { headers, body } = await deliver();
    expect(headers["webhook-signature"]).toMatch(/^v1,[A-Za-z0-9+/]{43}= v1a,[A-Za-z0-9+/]{86}==$/);
    const { receive, events } = receiverWith({ publicKeys });
    expect(await receive({ headers, body })).toMatchObject({ ok: true, duplicate: false });
    expect(events).toHaveLength(1);
    expect(await receive({ headers, body: Buffer.concat([body, Buffer.from(" ")]) })).toMatchObject({
      code: "no_match",
      status: 400,
    });
    expect(await receiverWith({ secrets: secret }).receive({ headers, body })).toMatchObject({ ok: true });
    vi.useFakeTimers({ now: START });
    for (const library of [new StandardWebhook(secret), new SvixWebhook(secret)])
      expect(() => library.verify(body.toString(), { ...headers })).not.toThrow();
  });

  it("signs with the first key and publishes all, so that keys can be rotated", async () => {
    const before = await serviceWith([FIRST, SECOND]);
    const after = await serviceWith([SECOND, FIRST]);
    expect(after.published.map(({ kid }) => kid)).toEqual(before.published.map(({ kid }) => kid).reverse());
    const [first, second] = before.publicKeys;
    for (const [service, key, foreign] of [
      [before, first, second],
      [after, second, first],
    ] as const) {
      const delivery = await service.deliver();
      expect(await receiverWith({ publicKeys: before.publicKeys }).receive(delivery)).toMatchObject({
        ok: true,
      });
      expect(await receiverWith({ publicKeys: key }).receive(delivery)).toMatchObject({ ok: true });
      expect(await receiverWith({ publicKeys: foreign }).receive(delivery)).toMatchObject({
        code: "no_match",
      });
    }
  });

  it("changes nothing where it is not set", async () => {
    const { webhooks, call } = registrationApi({ signature: { standardWebhooks: true } });
    await expect(call("GET", PATH, { key: null })).rejects.toThrow("not the service's");
    expect(JSON.stringify(webhooks.openApi())).not.toMatch(/jwks|v1a/);
  });
});

describe("an attack on receivers with public keys", () => {
  it("that signs by HMAC with the public key is refused", async () => {
    const { deliver, published, publicKeys } = await serviceWith([FIRST]);
    const { headers, body } = await deliver();
    const { receive, events } = receiverWith({ publicKeys });
    const [{ x } = { x: "" }] = published;
    const id = headers["webhook-id"] ?? "";
    const timestamp = Math.floor(START / 1000);
    for (const key of [Buffer.from(x, "base64url"), Buffer.from(x), Buffer.from(`whpk_${x}`)]) {
      const mac = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64");
      for (const forged of [`v1,${mac}`, `v1a,${mac}`, `v1a,${mac.padEnd(86, "A")}==`]) {
        const attack = {
          "webhook-id": id,
          "webhook-timestamp": String(timestamp),
          "webhook-signature": forged,
        };
        expect(await receive({ headers: attack, body })).toMatchObject({ ok: false, code: "no_match" });
      }
    }
    const own = signatureHeader({ secret: x, timestamp, body });
    expect(await receive({ headers: { "x-service-signature": own }, body })).toMatchObject({ ok: false });
    expect(events).toEqual([]);
  });

  it("needs a receiver that takes a public key for a secret, and createReceiver refuses that", async () => {
    const { publicKeys, secret } = await serviceWith([FIRST]);
    const onEvent = (): void => {};
    for (const [options, field] of [
      [{ secrets: publicKeys }, "secrets"],
      [{ secrets: [secret, publicKeys[0] ?? ""] }, "secrets"],
      [{ publicKeys: [secret] }, "publicKeys"],
      [{ publicKeys: [FIRST] }, "publicKeys"],
      [{ publicKeys: [] }, "publicKeys"],
      [{ publicKeys: Array(6).fill(publicKeys[0]) }, "publicKeys"],
      [{ publicKeys, secrets: secret }, "publicKeys"],
      [{ publicKeys, header: "X-Own-Signature" }, "publicKeys"],
      [{}, "secrets"],
    ] as const) {
      expect(() => createReceiver({ ...options, onEvent })).toThrow(
        expect.objectContaining({ code: "invalid_option", field }),
      );
    }
  });

  it("with a malformed time is told which headers are wrong", async () => {
    const { deliver, publicKeys } = await serviceWith([FIRST]);
    const { headers, body } = await deliver();
    const result = await receiverWith({ publicKeys }).receive({
      headers: { ...headers, "webhook-timestamp": "x" },
      body,
    });
    expect(result).toMatchObject({
      code: "malformed_header",
      message: expect.stringContaining("webhook-timestamp"),
    });
  });

  it("by another sender is refused", async () => {
    const { publicKeys } = await serviceWith([FIRST]);
    const foreign = await (await serviceWith([OTHER])).deliver();
    expect(await receiverWith({ publicKeys }).receive(foreign)).toMatchObject({ code: "no_match" });
  });
});

describe(`GET ${PATH}`, () => {
  it("needs no API key, holds no private part, and can be cached", async () => {
    const { call, webhooks, published } = await serviceWith([FIRST, SECOND]);
    const { status, headers, text } = await call("GET", PATH, { key: null });
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      "content-type": expect.stringContaining("application/json"),
      "cache-control": "public, max-age=3600",
      "access-control-allow-origin": "*",
    });
    const members = ["alg", "crv", "kid", "kty", "use", "x"];
    expect(published.map((key) => Object.keys(key).sort())).toEqual([members, members]);
    const etag = String(headers["etag"]);
    expect(await call("GET", PATH, { key: null, headers: { "if-none-match": etag } })).toMatchObject({
      status: 304,
      text: null,
    });
    expect(await call("POST", PATH, { key: null, json: {} })).toMatchObject({ status: 405 });
    const request = {
      method: "GET",
      path: PATH,
      query: "",
      headers: {},
      body: null,
      baseUrl: "https://a.test",
    };
    const session = await webhooks.as({ id: "first", account: "acme" }).handle(request);
    expect(session?.body).toBe(text);
  });

  it("is described, with the header that endpoints receive", async () => {
    const { call, webhooks, deliver } = await serviceWith([FIRST]);
    const document = webhooks.openApi({ baseUrl: "https://api.clinic.test/hooks" });
    expect(await objectionsTo(document)).toEqual([]);
    const { fits } = describedBy(document);
    const operation = at(document, "paths", PATH, "get");
    expect(at(operation, "security")).toEqual([]);
    const { json } = await call("GET", PATH, { key: null });
    const published = at(operation, "responses", "200", "content", "application/json", "schema");
    expect(fits(json, published as JsonObject)).toEqual([]);
    const parameters = at(document, "webhooks", "notification", "post", "parameters") as JsonObject[];
    const schema = parameters.find(({ name }) => name === "webhook-signature")?.["schema"] as JsonObject;
    const { headers } = await deliver();
    expect(fits(headers["webhook-signature"], schema)).toEqual([]);
    expect(fits(headers["webhook-signature"]?.split(" ")[0], schema)).not.toEqual([]);
  });
});
