/** A secret that another sender made: it verifies before and after the move to Postbell. */

import { randomBytes } from "node:crypto";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { registrationApi, URL_1 } from "../../support/registration-api.js";
import {
  HOUR,
  isSignedBy,
  type Sent,
  START,
  SUBSCRIBER,
  startHarness,
} from "../../support/webhook-harness.js";

const ACME = { id: "first", account: "acme" };
const REGISTRATION = { url: "https://hooks.example.com/in" };
const newKey = (bytes: number): string => `whsec_${randomBytes(bytes).toString("base64")}`;

// The libraries compare with the system's time.
beforeEach(() => {
  vi.useFakeTimers({ now: START, toFake: ["Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const startSender = () => startHarness({ options: { signature: { standardWebhooks: true } } });

const LIBRARIES = { standardwebhooks: StandardWebhook, svix: SvixWebhook };

/** Verifies a delivery as a receiver of the other sender does. */
const verifyWith = (library: keyof typeof LIBRARIES, secret: string, { headers, body }: Sent): unknown =>
  new LIBRARIES[library](secret).verify(Buffer.from(body).toString(), headers as Record<string, string>);

describe("create with the secret of another sender", () => {
  for (const library of ["svix", "standardwebhooks"] as const) {
    it.each([24, 32, 64])(`signs as before for receivers with ${library}, %i bytes`, async (bytes) => {
      const secret = newKey(bytes);
      // Before: a message that the other sender's library signed.
      const receiver = new LIBRARIES[library](secret);
      const at = new Date();
      const signature = receiver.sign("msg_1", at, "{}");
      const timestamp = String(Math.floor(at.getTime() / 1000));
      const names = { "webhook-id": "msg_1", "webhook-timestamp": timestamp, "webhook-signature": signature };
      expect(receiver.verify("{}", names)).toEqual({});
      // After: a delivery of this service.
      const { webhooks, emit, quiet, sent } = await startSender();
      const created = await webhooks.registrations.create({
        subscriber: SUBSCRIBER,
        ...REGISTRATION,
        secret,
      });
      expect(created.secret).toBe(secret);
      const id = await emit();
      await quiet();
      const [delivery] = sent;
      if (delivery === undefined) throw new Error("Nothing was sent.");
      expect(verifyWith(library, secret, delivery)).toMatchObject({ id });
      expect(() => verifyWith(library, newKey(bytes), delivery)).toThrow("No matching signature found");
      expect(isSignedBy(delivery, secret)).toBe(true);
    });
  }

  it("is part of what an idempotency key repeats", async () => {
    const { registrations } = registrationApi().webhooks;
    const secret = newKey(24);
    const request = { url: URL_1, idempotencyKey: "k1", secret };
    const first = await registrations.create({ subscriber: ACME, ...request });
    expect(await registrations.create({ subscriber: ACME, ...request })).toEqual(first);
    const reused = expect.objectContaining({ code: "idempotency_key_reused" });
    await expect(registrations.create({ subscriber: ACME, ...request, secret: newKey(24) })).rejects.toEqual(
      reused,
    );
    await expect(
      registrations.create({ subscriber: ACME, url: URL_1, idempotencyKey: "k1" }),
    ).rejects.toEqual(reused);
    expect((await registrations.list({ account: "acme" })).items).toHaveLength(1);
  });
});

describe("rotateSecret with a secret of another sender", () => {
  it("signs with both until the cut-over, then with the given one", async () => {
    const { webhooks, register, emit, quiet, run, sent } = await startSender();
    const { id, secret: old } = await register();
    const secret = newKey(24);
    const rotated = await webhooks.registrations.rotateSecret({ id, secret, overlapMs: HOUR });
    expect(rotated.secret).toBe(secret);
    await emit();
    await quiet();
    await run(HOUR);
    await emit();
    await quiet();
    const [during, after] = sent;
    if (during === undefined || after === undefined) throw new Error("Two deliveries were expected.");
    for (const known of [old, secret]) expect(verifyWith("svix", known, during)).toBeDefined();
    expect(isSignedBy(during, old)).toBe(true);
    expect(isSignedBy(after, secret)).toBe(true);
    expect(after.headers["webhook-signature"]).not.toContain(" ");
  });

  it("is not taken over REST", async () => {
    const { call, create } = registrationApi();
    const { webhook } = await create();
    const json = { secret: newKey(24) };
    expect(await call("POST", `/v1/webhooks/${webhook.id}/rotate`, { json })).toMatchObject({
      status: 400,
      json: { error: { code: "invalid_request", field: "secret" } },
    });
  });
});

describe("a secret in another form", () => {
  const KEY = randomBytes(32);
  const TEXT = KEY.toString("base64");
  /** The last character before the padding has bits that no byte needs. */
  const sloppy = `${TEXT.slice(0, -2)}${TEXT.at(-2) === "B" ? "C" : "B"}=`;
  const WRONG: readonly (readonly [string, unknown])[] = [
    ["without its prefix", TEXT],
    ["with another prefix", `whsk_${TEXT}`],
    ["of 23 bytes", newKey(23)],
    ["of 65 bytes", newKey(65)],
    ["without padding", `whsec_${TEXT.replace("=", "")}`],
    ["with too much padding", `whsec_${TEXT}=`],
    ["in the alphabet for URLs", `whsec_${Buffer.alloc(24, 0xfb).toString("base64url")}`],
    ["with bits that no byte needs", `whsec_${sloppy}`],
    ["with a line feed", `whsec_${TEXT}\n`],
    ["with a blank inside", `whsec_${TEXT.slice(0, 8)} ${TEXT.slice(8)}`],
    ["of a million characters", `whsec_${"A".repeat(1_000_000)}`],
    ["that is only the prefix", "whsec_"],
    ["that is empty", ""],
    ["with lone surrogates", `whsec_${"\ud800".repeat(32)}`],
    ["as bytes", KEY],
    ["as a list", [`whsec_${TEXT}`]],
    ["as an object that becomes one", { toString: () => `whsec_${TEXT}`, length: 50 }],
    ["that is null", null],
  ];

  it.each(WRONG)("is refused, never quoted and stores nothing: %s", async (_, secret) => {
    const { webhooks, log } = registrationApi();
    const { registrations } = webhooks;
    const { webhook, secret: known } = await registrations.create({ subscriber: ACME, url: URL_1 });
    const calls = [
      registrations.create({ subscriber: ACME, url: URL_1, secret: secret as string }),
      registrations.rotateSecret({ id: webhook.id, secret: secret as string }),
    ];
    for (const result of await Promise.allSettled(calls)) {
      if (result.status === "fulfilled") throw new Error("It was accepted.");
      const { code, field, message, cause } = result.reason as Record<string, unknown>;
      expect([code, field, cause]).toEqual(["invalid_request", "secret", undefined]);
      expect(message).toBe("secret must be whsec_ and 24 to 64 bytes in standard Base64 with its padding.");
    }
    expect(log).toEqual([]);
    expect((await registrations.list({ account: "acme" })).items).toEqual([webhook]);
    const again = await registrations.rotateSecret({ id: webhook.id, overlapMs: 0 });
    expect(again.secret).not.toBe(known);
  });
});
