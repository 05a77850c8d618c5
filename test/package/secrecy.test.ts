import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import type { OutboundResult } from "../../src/outbound/types.js";
import type { WebhookStore } from "../../src/webhooks/store.js";
import {
  type Answer,
  byKey,
  registrationApi,
  SUBSCRIBERS,
  storageWith,
  URL_1,
  URL_2,
} from "../support/registration-api.js";

const COLLECTION = "/v1/webhooks";
const HOUR = 3_600_000;

const organization = { resourceType: "Organization", id: "org-1", name: "Hidden Valley Clinic" };
const patient = {
  resourceType: "Patient",
  id: "patient-1",
  name: [{ family: "Wintermute" }],
  managingOrganization: { reference: "Organization/org-1" },
};
const CLINICAL = ["Wintermute", "Hidden Valley"];
const KEYS = [...Object.keys(SUBSCRIBERS), "key-of-nobody"];

/** An error as careless hosts and drivers make them: everything they were given is in it. */
function careless(...given: readonly unknown[]): Error {
  const text = JSON.stringify(given);
  const cause = Object.assign(new Error(text), { code: text });
  return Object.assign(new Error(`failed for ${text}`, { cause }), {
    code: "ECONNRESET",
    command: { args: given },
    request: given,
  });
}

/** Everything that can be seen of a value: hidden properties, causes, stacks, getters. */
const seen = (value: unknown): string =>
  inspect(value, {
    depth: Number.POSITIVE_INFINITY,
    showHidden: true,
    getters: true,
    maxStringLength: null,
    maxArrayLength: null,
  }) + JSON.stringify(value);

function expectNone(text: string, needles: readonly string[]): void {
  expect(needles.filter((needle) => text.includes(needle))).toEqual([]);
}

/**
 * A service whose hooks and store methods named in `throwing` throw their arguments, with all
 * secrets.
 */
function carelessStage() {
  const throwing = new Set<string>();
  const secrets = new Set<string>();
  const hook =
    <R>(name: string, answer: (...given: string[]) => R) =>
    (...given: unknown[]): R => {
      if (throwing.has(name)) throw careless(...given, [...secrets]);
      return answer(...(given as string[]));
    };
  const storage = storageWith((store) => {
    const careful = (name: string, method: (...given: unknown[]) => unknown) => [
      name,
      (...given: unknown[]): unknown =>
        throwing.has(name) ? Promise.reject(careless(...given, [...secrets])) : method(...given),
    ];
    const methods = Object.entries(store).filter(([, member]) => typeof member === "function");
    return Object.fromEntries(
      methods.map(([name, method]) => careful(name, method)),
    ) as Partial<WebhookStore>;
  });
  const failure: OutboundResult = {
    kind: "response",
    status: 500,
    headers: {},
    body: Buffer.from(JSON.stringify(patient)),
    complete: true,
  };
  const api = registrationApi({
    storage,
    access: {
      authenticate: byKey(hook("authenticate", (apiKey) => SUBSCRIBERS[apiKey] ?? null)),
      canRead: hook("canRead", () => true),
    },
    resolveReference: hook("resolveReference", () => organization),
    notify: { warning: hook("warning", () => {}), disabled: hook("disabled", () => {}) },
    delivery: { send: hook("send", async () => failure) },
  });
  /** Lets the clock run, timer by timer, while these throw. */
  const runFor = async (ms: number, names: readonly string[] = []): Promise<void> => {
    throwing.clear();
    for (const name of names) throwing.add(name);
    const until = api.clock.now() + ms;
    // Not `idle()`: calls to a storage without a time limit stay in flight while the clock stands
    // still.
    const settled = async (): Promise<void> => {
      for (let turn = 0; turn < 5; turn++) await api.clock.advance(0);
    };
    await settled();
    for (let at = api.clock.nextTimerAt(); at !== undefined && at <= until; at = api.clock.nextTimerAt()) {
      await api.clock.advance(Math.max(0, at - api.clock.now()));
      await settled();
    }
    await api.clock.advance(until - api.clock.now());
  };
  return { ...api, secrets, throwing, runFor };
}

/** Every route with this key, good and bad. */
async function callAll(
  call: (method: string, path: string, sent?: object) => Promise<Answer>,
  id: string,
  key: string,
): Promise<Answer[]> {
  const answers = [];
  for (const [method, path, json] of [
    ["GET", COLLECTION],
    ["GET", `${COLLECTION}/${id}`],
    ["HEAD", `${COLLECTION}/${id}`],
    ["PUT", `${COLLECTION}/${id}`, { url: URL_2, status: "ENABLED" }],
    ["PUT", `${COLLECTION}/${id}`, { url: URL_2, status: "no" }],
    ["POST", COLLECTION, { url: "https://user:pass@localhost/" }],
    ["POST", COLLECTION, { url: URL_1, event_types: ["no.such"] }],
    ["PATCH", COLLECTION],
    ["DELETE", `${COLLECTION}/3d3f1c1e-6f5b-4b5a-9a52-0a4cf3f6a111`],
  ] as const) {
    answers.push(await call(method, path, { key, json }));
  }
  return answers;
}

describe("secrets, keys and records", () => {
  it("stay out of every log entry and every answer but the one to the create, whatever fails", async () => {
    const { call, create, webhooks, log, throwing, secrets, runFor } = carelessStage();
    const answers: Answer[] = [];
    const messages: string[] = [];
    const messageOf = (work: Promise<unknown>): Promise<void> =>
      work.then(
        () => {},
        (error: unknown) => {
          messages.push((error as Error).message);
        },
      );
    const emit = () => webhooks.emit({ type: "patient.updated", account: "acme", resource: patient });

    // Nothing throws, though callers err and the endpoint fails.
    const { webhook, secret } = await create();
    secrets.add(secret);
    await webhooks.start();
    await emit();
    await runFor(HOUR);
    for (const key of KEYS) answers.push(...(await callAll(call, webhook.id, key)));
    secrets.add((await webhooks.registrations.rotateSecret({ id: webhook.id })).secret);
    answers.push(...(await callAll(call, webhook.id, "key-a2")));
    expect(new Set(log.map(({ message }) => message))).toEqual(new Set(["a delivery attempt failed"]));

    // The hooks throw.
    await runFor(HOUR, ["authenticate", "resolveReference", "send", "canRead"]);
    for (const key of KEYS) answers.push(...(await callAll(call, webhook.id, key)));
    await emit();
    await runFor(HOUR, ["resolveReference", "send", "canRead"]);
    await runFor(HOUR);
    await emit();
    await runFor(73 * HOUR, ["warning"]);
    await runFor(HOUR);
    await runFor(25 * HOUR, ["disabled"]);
    expect(await webhooks.registrations.get(webhook.id)).toMatchObject({ status: "DISABLED" });

    // The storage throws.
    await runFor(0, ["createWebhook", "getWebhook", "listWebhooks", "updateWebhook", "append"]);
    answers.push(...(await callAll(call, webhook.id, "key-a1")));
    answers.push(await call("POST", COLLECTION, { json: { url: URL_1 } }));
    await runFor(HOUR, ["claim", "claimHealthNotifications", "settleHealthNotification"]);
    throwing.clear();
    await webhooks.registrations.update({ id: webhook.id, status: "ENABLED" });
    await emit();
    await runFor(HOUR, ["settle"]);
    const stopped = webhooks.stop({ graceMs: 0 });
    await runFor(1, ["settle"]);
    await stopped;

    // The host errs.
    const { registrations } = webhooks;
    const bad = { ...organization, name: "Wintermute", big: 1n };
    await messageOf(webhooks.emit({ type: "patient.updated", account: "acme", resource: bad }));
    await messageOf(webhooks.emit({ type: "patient.updated", account: "acme", resource: organization }));
    await messageOf(webhooks.emit([{ type: "patient.updated", account: "", resource: patient }]));
    await messageOf(
      registrations.create({ subscriber: { id: "first", account: "acme" }, url: `http://${secret}/` }),
    );
    expect(messages).toHaveLength(4);

    const needles = [
      ...secrets,
      ...[...secrets].map((one) => one.slice("whsec_".length)),
      ...KEYS,
      ...CLINICAL,
    ];
    expect(secrets.size).toBe(2);
    const shown = seen(log);
    expectNone(shown, needles);
    for (const { text, headers } of answers) expectNone(seen([text, headers]), needles);
    expectNone(messages.join(), needles);

    // Each source of trouble has left its mark, so none of the above is empty talk.
    for (const message of [
      "access.authenticate failed or returned an invalid value",
      "access.canRead failed or returned an invalid value; the delivery waits",
      "resolveReference failed; the event is sent without an entry for it",
      "a notifier of the host failed; it will be called again",
      "a registration request failed",
      "the storage could not be asked for due deliveries",
      "the storage could not be asked for due health notifications",
      "a delivery could not be settled",
    ]) {
      expect(log.map((entry) => entry.message)).toContain(message);
    }
    expect(new Set(answers.map(({ status }) => status))).toEqual(
      new Set([200, 400, 401, 403, 404, 405, 503]),
    );
    // And what an operator needs is there: what failed, and where.
    expect(shown).toMatch(/ECONNRESET[\s\S]*at careless \(/);
  });

  it("the answer to a create holds the secret; after it only the signature of a delivery shows who knows it", async () => {
    const { call, create, webhooks } = registrationApi();
    const { webhook, secret } = await create();
    const path = `${COLLECTION}/${webhook.id}`;
    for (const [method, json] of [
      ["GET"],
      ["PUT", { url: URL_1, status: "DISABLED" }],
      ["DELETE"],
    ] as const) {
      expect((await call(method, path, { json })).text).not.toContain("whsec");
    }
    const again = await create();
    const { registrations, deliveries } = webhooks;
    const shown = [
      await registrations.get(again.webhook.id),
      await registrations.list({ account: "acme" }),
      await registrations.update({ id: again.webhook.id, status: "ENABLED" }),
      await webhooks.emit({ type: "patient.updated", account: "acme", resource: patient }),
      await deliveries.list({ webhookId: again.webhook.id }),
    ];
    expectNone(seen(shown), [secret, again.secret, "whsec"]);
  });

  it("the secret has 256 bits that no clock foretells", async () => {
    const secrets = new Set<string>();
    for (let run = 0; run < 20; run++) {
      const { secret } = await registrationApi().create();
      expect(Buffer.from(secret.slice("whsec_".length), "base64")).toHaveLength(32);
      secrets.add(secret);
    }
    expect(secrets.size).toBe(20);
  });
});
