/** The schemes of other senders, against their own libraries and the examples of their manuals. */

import { execFileSync } from "node:child_process";
import { createHmac, generateKeyPairSync } from "node:crypto";
import { sign as signForGithub } from "@octokit/webhooks-methods";
import { Webhook as StandardWebhook } from "standardwebhooks";
import Stripe from "stripe";
import { describe, expect, it } from "vitest";
import {
  createReceiver,
  github,
  type ProviderEvent,
  type ReceivedRequest,
  shopify,
  slack,
  standardWebhooks,
  stripe,
  type WebhookScheme,
} from "../../src/receiver/index.js";
import { asymmetricSignature, readSigningKey } from "../../src/signature/asymmetric.js";
import { newSecret } from "../../src/signature/signature.js";
import { manualClock } from "../../src/testing/manual-clock.js";

const NOW = Date.UTC(2026, 10, 28, 12);
const SECONDS = NOW / 1_000;
const SECRET = "a secret of the endpoint";
const OTHER = "another secret";
type Headers = Record<string, string>;
type Sign = (body: string, secret: string, at: number) => Headers | Promise<Headers>;

/** A sender: its scheme, a body, how its own library signs, and the event to read from it. */
interface Sender {
  name: string;
  scheme: (secret: string | readonly string[]) => WebhookScheme<ProviderEvent>;
  secrets: [string, string];
  body: string;
  sign: Sign;
  id: string;
  type: string;
  signature: string;
  /** False if the sender signs no time. */
  isTimed: boolean;
}

const stripeLibrary = new Stripe("sk_test_x");
const hmac = (secret: string, text: string) => createHmac("sha256", secret).update(text);

const SENDERS: Sender[] = [
  {
    name: "Stripe",
    scheme: stripe,
    secrets: ["whsec_stripe", "whsec_rolled"],
    body: JSON.stringify(
      { id: "evt_1", object: "event", type: "invoice.paid", data: { object: { id: "in_1" } } },
      null,
      2,
    ),
    sign: (payload, secret, timestamp) => ({
      "stripe-signature": stripeLibrary.webhooks.generateTestHeaderString({ payload, secret, timestamp }),
    }),
    id: "evt_1",
    type: "invoice.paid",
    signature: "stripe-signature",
    isTimed: true,
  },
  {
    name: "GitHub",
    scheme: github,
    secrets: [SECRET, OTHER],
    body: JSON.stringify({ action: "opened", number: 1 }),
    sign: async (body, secret) => ({
      "x-hub-signature-256": await signForGithub(secret, body),
      "x-github-event": "pull_request",
      "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
    }),
    id: "72d3162e-cc78-11e3-81ab-4c9367dc0958",
    type: "pull_request",
    signature: "x-hub-signature-256",
    isTimed: false,
  },
  {
    name: "Shopify",
    scheme: shopify,
    secrets: [SECRET, OTHER],
    body: JSON.stringify({ id: 820982911946154500 }),
    // openssl stands for a library of Shopify's, which signs nothing.
    sign: (body, secret) => ({
      "x-shopify-hmac-sha256": execFileSync("openssl", ["dgst", "-sha256", "-hmac", secret, "-binary"], {
        input: body,
      }).toString("base64"),
      "x-shopify-topic": "orders/paid",
      "x-shopify-event-id": "98880550-7158-44d4-b7cd-2c97c8a091b5",
      "x-shopify-webhook-id": "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043",
    }),
    id: "orders/paid/98880550-7158-44d4-b7cd-2c97c8a091b5",
    type: "orders/paid",
    signature: "x-shopify-hmac-sha256",
    isTimed: false,
  },
  {
    name: "Slack",
    scheme: slack,
    secrets: [SECRET, OTHER],
    body: JSON.stringify({ type: "event_callback", event_id: "Ev08MFMKH6", event: { type: "app_mention" } }),
    sign: (body, secret, at) => ({
      "x-slack-signature": `v0=${hmac(secret, `v0:${at}:${body}`).digest("hex")}`,
      "x-slack-request-timestamp": String(at),
    }),
    id: "Ev08MFMKH6",
    type: "app_mention",
    signature: "x-slack-signature",
    isTimed: true,
  },
  {
    name: "Standard Webhooks",
    scheme: standardWebhooks,
    secrets: [newSecret(), newSecret()],
    body: JSON.stringify({ type: "user.created", timestamp: "2026-11-28T12:00:00Z", data: { id: 1 } }),
    sign: (body, secret, at) => ({
      "webhook-id": "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W",
      "webhook-timestamp": String(at),
      "webhook-signature": new StandardWebhook(secret).sign(
        "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W",
        new Date(at * 1_000),
        body,
      ),
    }),
    id: "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W",
    type: "user.created",
    signature: "webhook-signature",
    isTimed: true,
  },
];

function receiverOf(verify: WebhookScheme<ProviderEvent>, now = NOW) {
  const events: ProviderEvent[] = [];
  const clock = manualClock(now);
  const onEvent = (event: ProviderEvent): void => void events.push(event);
  const receiver = createReceiver({ verify, onEvent, clock, logger: false });
  const codeOf = async (request: ReceivedRequest): Promise<string> => {
    const result = await receiver.receive(request);
    return result.ok ? (result.duplicate ? "duplicate" : "handled") : result.code;
  };
  return { receiver, events, codeOf };
}

describe.each(SENDERS)("$name", ({ scheme, secrets, body, sign, id, type, signature }) => {
  const [secret, other] = secrets;

  it("accepts what its library signs, with the event's id, type and parsed body, and drops a repetition", async () => {
    const { events, codeOf } = receiverOf(scheme(secret));
    const headers = await sign(body, secret, SECONDS);
    expect(await codeOf({ body, headers })).toBe("handled");
    expect(await codeOf({ body: Buffer.from(body), headers: await sign(body, secret, SECONDS + 1) })).toBe(
      "duplicate",
    );
    expect(events).toEqual([{ id, type, payload: JSON.parse(body) }]);
  });

  it("accepts the old and the new secret during a change, and keeps to those it was made with", async () => {
    const list = [other, secret];
    const { codeOf } = receiverOf(scheme(list));
    list.length = 0;
    expect(await codeOf({ body, headers: await sign(body, secret, SECONDS) })).toBe("handled");
  });

  it("finds its headers in any case, and not on the prototype of the headers", async () => {
    const headers = await sign(body, secret, SECONDS);
    const upper = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]),
    );
    expect(await receiverOf(scheme(secret)).codeOf({ body, headers: upper })).toBe("handled");
    expect(await receiverOf(scheme(secret)).codeOf({ body, headers: Object.create(headers) })).toBe(
      "missing_header",
    );
  });

  it("refuses another secret, another body, and a signature that is cut, too long or doubled", async () => {
    const { events, codeOf } = receiverOf(scheme(secret));
    const headers = await sign(body, secret, SECONDS);
    const value = headers[signature] ?? "";
    const withSignature = (changed: string) => ({ body, headers: { ...headers, [signature]: changed } });
    expect(await codeOf({ body, headers: await sign(body, other, SECONDS) })).toBe("no_match");
    expect(await codeOf({ body: `${body} `, headers })).toBe("no_match");
    const codes = new Set<string>();
    for (const cut of [value.slice(0, -1), `${value.slice(0, -8)}AAAAAAAA`, value.replace("sha256", "sha1")])
      if (cut !== value) codes.add(await codeOf(withSignature(cut)));
    expect([...codes].filter((code) => code !== "malformed_header" && code !== "no_match")).toEqual([]);
    expect(await codeOf(withSignature(value + " ".repeat(5_000)))).toBe("malformed_header");
    expect(await codeOf(withSignature("é".repeat(64)))).toBe("malformed_header");
    expect(await codeOf(withSignature(""))).toBe("missing_header");
    expect(
      await codeOf({ body, headers: { ...headers, [signature]: [value, value] as unknown as string } }),
    ).toMatch(/^(?:malformed_header|handled)$/);
    expect(events.length).toBeLessThanOrEqual(1);
  });

  it("refuses an event without an id, and what is not JSON, before it calls anything", async () => {
    const { events, codeOf } = receiverOf(scheme(secret));
    for (const text of ["[]", "null", "{", "\u0000", '{"__proto__":{"id":"x","type":"y"}}']) {
      const { [signature]: value = "", ...others } = await sign(text, secret, SECONDS);
      const kept = Object.entries(others).filter(
        ([name]) => /timestamp|webhook-id$/.test(name) && !name.includes("shopify"),
      );
      const headers = { ...Object.fromEntries(kept), [signature]: value };
      if (signature === "webhook-signature" && text.startsWith('{"')) continue;
      if (signature === "x-slack-signature" && text.startsWith('{"')) continue;
      expect(await codeOf({ body: text, headers }), text).toBe("invalid_notification");
    }
    expect(events).toEqual([]);
  });

  it("cannot be made without a secret, and its error does not show one", () => {
    for (const wrong of [undefined, "", [], [secret, ""], Array<string>(11).fill(secret), 7, {}])
      expect(() => scheme(wrong as string)).toThrow(
        expect.objectContaining({
          code: "invalid_option",
          field: "secret",
          message: expect.not.stringContaining(secret),
        }),
      );
  });
});

describe.each(SENDERS.filter(({ isTimed }) => isTimed))(
  "$name, which signs the time",
  ({ scheme, secrets: [secret], body, sign }) => {
    it("refuses a signature more than 300 seconds from now, in either direction", async () => {
      for (const [age, expected] of [
        [300, "handled"],
        [301, "timestamp_out_of_tolerance"],
        [-300, "handled"],
        [-301, "timestamp_out_of_tolerance"],
      ] as const) {
        const headers = await sign(body, secret, SECONDS - age);
        expect(await receiverOf(scheme(secret)).codeOf({ body, headers }), `${age} s`).toBe(expected);
      }
    });
  },
);

describe("Stripe", () => {
  const { body, sign } = SENDERS[0] as Sender;

  it("accepts one of several v1, ignores v0, and refuses two times or more than ten signatures", async () => {
    const { "stripe-signature": header = "" } = await sign(body, "whsec_a", SECONDS);
    const [time, v1] = header.split(",");
    const wrong = `v1=${"0".repeat(64)}`;
    const codeOf = (value: string) =>
      receiverOf(stripe("whsec_a")).codeOf({ body, headers: { "stripe-signature": value } });
    expect(await codeOf(`${time},${wrong},${v1},v0=${"1".repeat(64)}`)).toBe("handled");
    expect(await codeOf(`${time},v0=${v1?.slice(3)}`)).toBe("malformed_header");
    expect(await codeOf(`${time},${wrong}`)).toBe("no_match");
    expect(await codeOf(`t=1,${time},${v1}`)).toBe("malformed_header");
    expect(await codeOf([time, ...Array<string>(10).fill(wrong), v1].join(","))).toBe("malformed_header");
  });

  it("agrees with its library about the same requests", async () => {
    for (const secret of ["whsec_a", "whsec_b"]) {
      const { "stripe-signature": header = "" } = await sign(body, secret, SECONDS);
      const isAccepted =
        (await receiverOf(stripe("whsec_a")).codeOf({ body, headers: { "stripe-signature": header } })) ===
        "handled";
      const construct = (): boolean =>
        stripeLibrary.webhooks.constructEvent(body, header, "whsec_a", 1e12).id === "evt_1";
      expect(isAccepted).toBe(secret === "whsec_a" ? construct() : false);
    }
    const { "stripe-signature": forged = "" } = await sign(body, "whsec_b", SECONDS);
    expect(() => stripeLibrary.webhooks.constructEvent(body, forged, "whsec_a", 1e12)).toThrow(/signature/);
  });
});

describe("GitHub", () => {
  it("accepts the example of its manual, and a body as a form", async () => {
    const headers = {
      "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    };
    const { codeOf } = receiverOf(github("It's a Secret to Everybody"));
    // The signature is accepted; "Hello, World!" is no event.
    expect(await codeOf({ body: "Hello, World!", headers })).toBe("invalid_notification");
    expect(await codeOf({ body: "Hello, World?", headers })).toBe("no_match");
    const body = new URLSearchParams({
      payload: JSON.stringify({ zen: "Keep it logically awesome." }),
    }).toString();
    const form = {
      "content-type": "application/x-www-form-urlencoded",
      "x-github-event": "ping",
      "x-github-delivery": "d1",
    };
    const { events, codeOf: codeOfForm } = receiverOf(github(SECRET));
    const signed = { ...form, "x-hub-signature-256": await signForGithub(SECRET, body) };
    expect(await codeOfForm({ body, headers: signed })).toBe("handled");
    expect(events[0]).toMatchObject({ type: "ping", payload: { zen: "Keep it logically awesome." } });
  });
});

describe("Shopify", () => {
  it("accepts a known signature, and takes the same event id of two topics for two events", async () => {
    const body = '{"id":1}';
    const headers = {
      "x-shopify-hmac-sha256": "plW8VGqq0nDMIEhDqaNNW99asdUCy7EIqLZVcQwtAZ0=",
      "x-shopify-event-id": "e1",
    };
    const { events, codeOf } = receiverOf(shopify("shop-secret"));
    for (const topic of ["orders/create", "orders/paid"])
      expect(await codeOf({ body, headers: { ...headers, "x-shopify-topic": topic } })).toBe("handled");
    expect(events.map(({ id }) => id)).toEqual(["orders/create/e1", "orders/paid/e1"]);
  });
});

describe("Slack", () => {
  it("accepts the example of its manual", async () => {
    const body =
      "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    const headers = {
      "x-slack-request-timestamp": "1531420618",
      "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    };
    const verify = slack("8f742231b10e8888abcd99yyyzzz85a5");
    // A slash command is genuine, but no event.
    expect(await receiverOf(verify, 1_531_420_618_000).codeOf({ body, headers })).toBe(
      "invalid_notification",
    );
    expect(await receiverOf(verify, 1_531_420_919_000).codeOf({ body, headers })).toBe(
      "timestamp_out_of_tolerance",
    );
    const later = { ...headers, "x-slack-request-timestamp": "1531420619" };
    expect(await receiverOf(verify, 1_531_420_618_000).codeOf({ body, headers: later })).toBe("no_match");
  });

  it("answers the verification of a URL with its challenge, if that is signed, and calls no onEvent", async () => {
    const body = JSON.stringify({
      type: "url_verification",
      challenge: "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P",
    });
    const { receiver, events } = receiverOf(slack(SECRET));
    const signed = await (SENDERS[3] as Sender).sign(body, SECRET, SECONDS);
    const request = {
      method: "POST",
      path: "/",
      query: "",
      body: Buffer.from(body),
      baseUrl: "http://localhost",
    };
    for (let times = 0; times < 2; times += 1)
      expect(await receiver.handle({ ...request, headers: signed })).toMatchObject({
        status: 200,
        body: "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P",
      });
    expect(await receiver.handle({ ...request, headers: {} })).toMatchObject({ status: 400 });
    expect(events).toEqual([]);
  });
});

describe("Standard Webhooks", () => {
  const { body, sign, secrets } = SENDERS[4] as Sender;

  it("accepts one of several signatures, and refuses more than ten", async () => {
    const headers = await sign(body, secrets[0], SECONDS);
    const value = headers["webhook-signature"] ?? "";
    const wrong = `v1,${Buffer.alloc(32).toString("base64")}`;
    const codeOf = (text: string) =>
      receiverOf(standardWebhooks(secrets[0])).codeOf({
        body,
        headers: { ...headers, "webhook-signature": text },
      });
    expect(await codeOf(`${wrong} v1a,abc ${value}`)).toBe("handled");
    expect(await codeOf([...Array<string>(10).fill(wrong), value].join(" "))).toBe("malformed_header");
  });

  it("verifies v1a with a public key only, so that nobody chooses the scheme for the receiver", async () => {
    const { privateKey } = generateKeyPairSync("ed25519");
    const key = readSigningKey(String(privateKey.export({ format: "pem", type: "pkcs8" })));
    const publicKey = `whpk_${Buffer.from(key.jwk.x, "base64url").toString("base64")}`;
    const v1a = asymmetricSignature({ key, id: "msg_1", timestamp: SECONDS, body: Buffer.from(body) });
    const headers = { "webhook-id": "msg_1", "webhook-timestamp": String(SECONDS), "webhook-signature": v1a };
    expect(await receiverOf(standardWebhooks(publicKey)).codeOf({ body, headers })).toBe("handled");
    expect(await receiverOf(standardWebhooks(publicKey)).codeOf({ body: `${body} `, headers })).toBe(
      "no_match",
    );
    expect(await receiverOf(standardWebhooks(secrets[0])).codeOf({ body, headers })).toBe("malformed_header");
    const symmetric = await sign(body, secrets[0], SECONDS);
    expect(await receiverOf(standardWebhooks(publicKey)).codeOf({ body, headers: symmetric })).toBe(
      "no_match",
    );
    expect(() => standardWebhooks([publicKey, secrets[0]])).toThrow(/of one kind/);
  });
});

describe("verify", () => {
  it("cannot be combined with the options of Postbell's own signature", () => {
    for (const extra of [{ secrets: SECRET }, { header: "X" }, { body: "plain" }])
      expect(() => createReceiver({ verify: github(SECRET), onEvent() {}, ...extra } as never)).toThrow(
        expect.objectContaining({ code: "invalid_option", field: Object.keys(extra)[0] }),
      );
  });

  it("takes a scheme of the host's own, whose signature header also tells its requests", async () => {
    const acme: WebhookScheme<{ id: string }> = {
      header: "x-acme-key",
      verify: ({ header }) => (header("x-acme-key") === "let me in" ? undefined : "no_match"),
      read: ({ body }) => JSON.parse(String(body)),
    };
    const ids: string[] = [];
    const receiver = createReceiver({ verify: acme, onEvent: ({ id }) => ids.push(id), logger: false });
    const request = {
      method: "POST",
      path: "/hooks",
      query: "",
      body: Buffer.from('{"id":"1"}'),
      baseUrl: "http://localhost",
    };
    expect(await receiver.handle({ ...request, headers: {} })).toBeUndefined();
    expect(await receiver.handle({ ...request, headers: { "x-acme-key": "no" } })).toMatchObject({
      status: 400,
    });
    expect(await receiver.handle({ ...request, headers: { "x-acme-key": "let me in" } })).toMatchObject({
      status: 204,
    });
    expect(ids).toEqual(["1"]);
  });
});
