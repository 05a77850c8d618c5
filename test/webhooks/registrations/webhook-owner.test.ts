/**
 * The rule of docs/decisions/webhook-owner.md: each operation, for each kind of key, over every
 * interface, host and storage.
 */

import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { HttpResponse } from "../../../src/http/types.js";
import {
  createWebhooks,
  type Storage,
  type Subscriber,
  type Webhooks,
  type WebhooksOptions,
} from "../../../src/index.js";
import { createPortal } from "../../../src/portal/index.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { redisStorage } from "../../../storage/redis/index.js";
import type { RunningHost } from "../../contracts/adapter.js";
import { HOSTS } from "../../support/hosts.js";
import { send } from "../../support/http-client.js";
import { freshPrefix, redisUrl } from "../../support/redis.js";
import { byKey } from "../../support/registration-api.js";
import { response } from "../../support/webhook-harness.js";

const URL_OF_OWNER = "https://owner.example.com/in";
const URL_OF_OTHER = "https://other.example.com/in";
const SINCE = "2020-01-01T00:00:00Z";

const STORAGES: readonly (readonly [string, () => Storage])[] = [
  ["memory", () => memoryStorage()],
  ["Redis", () => redisStorage({ url: redisUrl(), prefix: freshPrefix() })],
];

/**
 * `owner` created the webhook; `deputy` may act for it; `other` is of its account; `foreign` is
 * not.
 */
const ACTORS = ["owner", "deputy", "other", "foreign"] as const;
type Actor = (typeof ACTORS)[number];

const OPERATIONS = {
  read: "everybody",
  "list deliveries": "everybody",
  "read a delivery": "everybody",
  "read the figures": "everybody",
  disable: "everybody",
  delete: "everybody",
  "change the url": "manager",
  "change the url while disabling": "manager",
  "change the event types": "manager",
  enable: "manager",
  "read the request": "manager",
  rotate: "manager",
  test: "manager",
  resend: "manager",
  recover: "manager",
} as const;
type Operation = keyof typeof OPERATIONS;

const outcomeOf = (operation: Operation, actor: Actor): string => {
  if (actor === "foreign") return "not_found";
  const isRefused = actor === "other" && OPERATIONS[operation] === "manager";
  return isRefused ? "webhook_owned_by_another_key" : "done";
};

const serviceOn = (storage: Storage, options: Partial<WebhooksOptions> = {}): Webhooks =>
  createWebhooks({
    storage,
    access: {
      // `owner@account`
      authenticate: byKey((apiKey) => {
        const [id = "", account = ""] = apiKey.split("@");
        return { id, account };
      }),
      canRead: () => true,
      canActFor: ({ id }, owner) => id === "deputy" && owner.id === "owner",
    },
    limits: { requestsPerMinute: 0, repairsPerMinute: 0, webhooks: 1000, enabledWebhooks: 1000 },
    delivery: { send: async () => response(200) },
    ...options,
  });

interface Stage {
  readonly webhooks: Webhooks;
  readonly id: string;
  readonly deliveryId: string;
  readonly subscriber: Subscriber;
}

let accounts = 0;

/** A webhook of an account of its own, with a pending delivery. */
async function stageFor(webhooks: Webhooks, operation: Operation, actor: Actor): Promise<Stage> {
  const account = `account-${++accounts}`;
  const owner = { id: "owner", account };
  const { webhook } = await webhooks.registrations.create({ subscriber: owner, url: URL_OF_OWNER });
  const resource = { resourceType: "Patient", id: "1" };
  const { deliveries } = await webhooks.emit({ type: "patient.updated", account, resource });
  if (operation === "enable") await webhooks.registrations.update({ id: webhook.id, status: "DISABLED" });
  const subscriber = { id: actor, account: actor === "foreign" ? "elsewhere" : account };
  return { webhooks, id: webhook.id, deliveryId: deliveries[0]?.id ?? "", subscriber };
}

/** Returns the error that a call throws. */
function codeAndField(call: () => unknown): unknown {
  try {
    return call();
  } catch (error) {
    return error;
  }
}

/** Tries an operation: `done`, or the code of the error. */
type Try = (operation: Operation, stage: Stage) => Promise<string>;

const inProcess: Try = async (operation, { webhooks, id, deliveryId, subscriber }) => {
  const { registrations, deliveries } = webhooks.as(subscriber);
  const url = URL_OF_OTHER;
  const calls: Readonly<Record<Operation, () => PromiseLike<unknown>>> = {
    read: () => registrations.get(id),
    "list deliveries": () => deliveries.list({ webhookId: id }),
    "read a delivery": () => deliveries.get(deliveryId),
    "read the figures": () => deliveries.stats(id),
    disable: () => registrations.update({ id, status: "DISABLED" }),
    delete: () => registrations.remove(id),
    "change the url": () => registrations.update({ id, url }),
    "change the url while disabling": () => registrations.update({ id, url, status: "DISABLED" }),
    "change the event types": () => registrations.update({ id, eventTypes: ["*"] }),
    enable: () => registrations.update({ id, status: "ENABLED" }),
    "read the request": () => deliveries.inspect({ id: deliveryId }),
    rotate: () => registrations.rotateSecret({ id }),
    test: () => deliveries.test({ webhookId: id }),
    resend: () => deliveries.resend({ id: deliveryId }),
    recover: () => deliveries.recover({ webhookId: id, since: SINCE }),
  };
  return calls[operation]().then(
    () => "done",
    ({ code }: { code: string }) => code,
  );
};

/** An operation as an HTTP request. */
const requestOf = (
  operation: Operation,
  { id, deliveryId }: Stage,
): readonly [method: string, path: string, body?: object] => {
  const path = `/webhooks/${id}`;
  const put = (fields: object): readonly [string, string, object] => [
    "PUT",
    path,
    { url: URL_OF_OWNER, status: "ENABLED", ...fields },
  ];
  const requests: Readonly<Record<Operation, readonly [string, string, object?]>> = {
    read: ["GET", path],
    "list deliveries": ["GET", `${path}/deliveries`],
    "read a delivery": ["GET", `${path}/deliveries/${deliveryId}`],
    "read the figures": ["GET", `${path}/stats`],
    disable: put({ status: "DISABLED" }),
    delete: ["DELETE", path],
    "change the url": put({ url: URL_OF_OTHER }),
    "change the url while disabling": put({ url: URL_OF_OTHER, status: "DISABLED" }),
    "change the event types": put({ event_types: ["*"] }),
    enable: put({}),
    "read the request": ["GET", `${path}/deliveries/${deliveryId}/request`],
    rotate: ["POST", `${path}/rotate`, {}],
    test: ["POST", `${path}/test`, {}],
    resend: ["POST", `${path}/deliveries/${deliveryId}/resend`, {}],
    recover: ["POST", `${path}/recover`, { since: SINCE }],
  };
  return requests[operation];
};

const textOf = (answer: HttpResponse | undefined): string =>
  typeof answer?.body === "string" ? answer.body : "";

const codeOf = (status: number, text: string): string => {
  if (status < 300) return "done";
  const { error } = JSON.parse(text) as { error: { code: string } };
  const expected = { not_found: 404, webhook_owned_by_another_key: 403 }[error.code];
  expect(status).toBe(expected);
  return error.code;
};

const overHttp =
  (origin: () => string): Try =>
  async (operation, stage) => {
    const [method, path, body] = requestOf(operation, stage);
    const { id, account } = stage.subscriber;
    const { status, text } = await send(origin(), `/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${id}@${account}`,
        ...(body && { "content-type": "application/json" }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    return codeOf(status, text);
  };

const overPortal: Try = async (operation, stage) => {
  const { webhooks, subscriber } = stage;
  const portal = createPortal({ webhooks, authorize: () => ({ name: "Ada", subscriber }) });
  const [method, path, body] = requestOf(operation, stage);
  const answer = await portal.handle({
    method,
    path: `/api/v1${path}`,
    query: "",
    headers: { host: "host.example", "x-postbell-portal": "1", "content-type": "application/json" },
    body: body ? Buffer.from(JSON.stringify(body)) : null,
    baseUrl: "https://host.example/portal",
  });
  return codeOf(answer?.status ?? 0, textOf(answer));
};

function matrix(service: () => Webhooks, attempt: Try): void {
  it.each(Object.keys(OPERATIONS) as Operation[])("%s", async (operation) => {
    for (const actor of ACTORS) {
      const stage = await stageFor(service(), operation, actor);
      const before = await stage.webhooks.registrations.get(stage.id);
      const outcome = await attempt(operation, stage);
      expect([actor, outcome]).toEqual([actor, outcomeOf(operation, actor)]);
      // The refused changed nothing.
      const after = outcome === "done" ? before : await stage.webhooks.registrations.get(stage.id);
      expect(after).toEqual(before);
    }
  });
}

describe.each(STORAGES)("who may manage a webhook on %s", (_, storageOf) => {
  let storage: Storage;
  let webhooks: Webhooks;
  beforeAll(() => {
    storage = storageOf();
    webhooks = serviceOn(storage);
  });
  afterAll(() => storage.close());
  const service = (): Webhooks => webhooks;
  /** For a service that delivers: it would deliver what waits in the shared one too. */
  const ownStorage = (): Storage => {
    const own = storageOf();
    onTestFinished(() => own.close());
    return own;
  };

  describe("in-process", () => {
    matrix(service, inProcess);
  });
  describe("in the portal", () => {
    matrix(service, overPortal);
  });

  describe.each(HOSTS)("over REST in $name", ({ mount }) => {
    let host: RunningHost;
    beforeAll(async () => {
      host = await mount({ service: webhooks, prefix: "/api", parser: "none" });
    });
    afterAll(() => host.close());
    matrix(
      service,
      overHttp(() => host.origin),
    );
  });

  it("a call in-process that names nobody acts as the host, with full authority", async () => {
    const { id, deliveryId } = await stageFor(webhooks, "resend", "owner");
    const { registrations, deliveries } = webhooks;
    await deliveries.resend({ id: deliveryId });
    await registrations.rotateSecret({ id });
    await registrations.update({ id, url: URL_OF_OTHER, status: "ENABLED", eventTypes: ["*"] });
    await deliveries.recover({ webhookId: id, since: SINCE });
    await deliveries.test({ webhookId: id });
    expect(await registrations.get(id)).toMatchObject({ url: URL_OF_OTHER, subscriberId: "owner" });
  });

  it.each([undefined, null, "owner", {}, { id: "owner" }, { id: "", account: "a" }])(
    "a call in-process as %j is refused, so that it never acts as the host",
    (given) => {
      const refusal = { code: "invalid_argument", field: expect.stringMatching(/^subscriber/) };
      expect(codeAndField(() => webhooks.as(given as Subscriber))).toMatchObject(refusal);
    },
  );

  it("sends no record to the URL of a key that may not read it, whatever that key tries", async () => {
    const own = ownStorage();
    const sent: string[] = [];
    const account = `account-${++accounts}`;
    const wide = { id: "wide", account };
    const narrow = { id: "narrow", account };
    const service = serviceOn(own, {
      access: { authenticate: () => null, canRead: ({ id }) => id === "wide" },
      delivery: {
        async send({ url, body }) {
          sent.push(`${url} ${Buffer.from(body ?? []).toString()}`);
          return response(500, {}, "an echo: Evelyn");
        },
        excerptCharacters: 100,
      },
    });
    const { registrations } = service;
    const { webhook } = await registrations.create({ subscriber: wide, url: URL_OF_OWNER });
    const resource = { resourceType: "Patient", id: "1", name: [{ text: "Evelyn" }] };
    await service.start();
    onTestFinished(() => service.stop());
    const emitted = await service.emit({ type: "patient.updated", account, resource });
    await service.idle();
    const deliveryId = emitted.deliveries[0]?.id ?? "";
    // Enabled at the end, where it may be: else what waits would not be sent.
    const tries: Operation[] = [
      "change the url while disabling",
      "enable",
      "change the url",
      "rotate",
      "resend",
      "recover",
      "test",
    ];
    const outcomes: string[] = [];
    for (const operation of tries) {
      const stage = { webhooks: service, id: webhook.id, deliveryId, subscriber: narrow };
      outcomes.push(await inProcess(operation, stage), await overPortal(operation, stage));
    }
    await service.emit({ type: "patient.updated", account, resource });
    await service.idle();
    expect(sent.filter((text) => text.startsWith(URL_OF_OTHER))).toEqual([]);
    expect(new Set(outcomes)).toEqual(new Set(["webhook_owned_by_another_key"]));
    expect(sent).toHaveLength(2);

    const excerpts = async (as: Subscriber) => {
      const { items: listed } = await service.as(as).deliveries.list({ webhookId: webhook.id });
      const one = await service.as(as).deliveries.get(deliveryId);
      return [...listed, one].flatMap(({ attempts }) => attempts.map(({ excerpt }) => excerpt));
    };
    expect(new Set(await excerpts(wide))).toEqual(new Set(["an echo: Evelyn"]));
    expect(new Set(await excerpts(narrow))).toEqual(new Set([null]));
  });

  it("after a transfer, asks canRead for the new owner about pending deliveries too, and refuses the old one", async () => {
    const own = ownStorage();
    const asked: string[] = [];
    const account = `account-${++accounts}`;
    const service = serviceOn(own, {
      access: {
        authenticate: () => null,
        canRead({ id }) {
          asked.push(id);
          return true;
        },
      },
    });
    const { registrations } = service;
    const first = { id: "key-1", account };
    const given = { url: URL_OF_OWNER, idempotencyKey: "5f0c" };
    const { webhook } = await registrations.create({ subscriber: first, ...given });
    await service.emit({ type: "patient.updated", account, resource: { resourceType: "Patient", id: "1" } });
    expect(await registrations.transfer({ id: webhook.id, subscriberId: "key-2" })).toMatchObject({
      url: URL_OF_OWNER,
      subscriberId: "key-2",
    });
    await service.start();
    onTestFinished(() => service.stop());
    await service.idle();
    expect(asked).toEqual(["key-2"]);
    const refusal = { code: "webhook_owned_by_another_key" };
    await expect(service.as(first).registrations.rotateSecret({ id: webhook.id })).rejects.toMatchObject(
      refusal,
    );
    await expect(registrations.create({ subscriber: first, ...given })).rejects.toMatchObject(refusal);
    await service.as({ id: "key-2", account }).registrations.rotateSecret({ id: webhook.id });
  });

  it("answers a repeated registration over REST with 409 once the secret was rotated or the webhook deleted, with 403 after a transfer", async () => {
    const account = `account-${++accounts}`;
    const register = async (): Promise<readonly [number | undefined, string | undefined]> => {
      const answer = await webhooks.handle({
        method: "POST",
        path: "/v1/webhooks",
        query: "",
        headers: {
          authorization: `Bearer owner@${account}`,
          "content-type": "application/json",
          "idempotency-key": "5f0c",
        },
        body: Buffer.from(JSON.stringify({ url: URL_OF_OWNER })),
        baseUrl: "https://api.example.com",
      });
      const { error } = JSON.parse(textOf(answer)) as { error?: { code: string } };
      return [answer?.status, error?.code];
    };
    expect([await register(), await register()]).toEqual([
      [201, undefined],
      [201, undefined],
    ]);
    const [webhook] = (await webhooks.registrations.list({ account })).items;
    await webhooks.registrations.rotateSecret({ id: webhook?.id ?? "" });
    expect(await register()).toEqual([409, "secret_rotated"]);
    await webhooks.registrations.transfer({ id: webhook?.id ?? "", subscriberId: "key-2" });
    expect(await register()).toEqual([403, "webhook_owned_by_another_key"]);
    await webhooks.registrations.remove(webhook?.id ?? "");
    expect(await register()).toEqual([409, "webhook_deleted"]);
  });

  describe("while another call changes the webhook", () => {
    /**
     * A service whose next look-up of a webhook is followed, before its caller goes on, by
     * `change`.
     */
    const raced = async () => {
      const own = ownStorage();
      let change: (() => Promise<unknown>) | undefined;
      const slow: Storage = {
        ...own,
        webhooks(context) {
          const store = own.webhooks(context);
          return {
            ...store,
            now: () => store.now(),
            async getWebhook(id) {
              const found = await store.getWebhook(id);
              const then = change;
              change = undefined;
              await then?.();
              return found;
            },
          };
        },
      };
      const service = serviceOn(slow);
      const { registrations } = service;
      const account = `account-${++accounts}`;
      const owner = { id: "owner", account };
      const { webhook, secret } = await registrations.create({ subscriber: owner, url: URL_OF_OWNER });
      const meanwhile = (other: () => Promise<unknown>): void => {
        change = other;
      };
      return {
        registrations,
        id: webhook.id,
        secret,
        owner: service.as(owner).registrations,
        other: service.as({ id: "other", account }).registrations,
        meanwhile,
      };
    };

    it("another key that disables it writes the status only, and does not put back the url", async () => {
      const { registrations, id, owner, other, meanwhile } = await raced();
      meanwhile(() => owner.update({ id, url: URL_OF_OTHER }));
      await other.update({ id, url: URL_OF_OWNER, status: "DISABLED" });
      expect(await registrations.get(id)).toMatchObject({ url: URL_OF_OTHER, status: "DISABLED" });
    });

    it("a change or rotation of a key that stops being the owner is refused", async () => {
      const { registrations, id, owner, meanwhile } = await raced();
      const refusal = { code: "webhook_owned_by_another_key" };
      meanwhile(() => registrations.transfer({ id, subscriberId: "key-2" }));
      const redirect = owner.update({ id, url: URL_OF_OTHER });
      await expect(redirect).rejects.toMatchObject(refusal);
      await registrations.transfer({ id, subscriberId: "owner" });
      meanwhile(() => registrations.transfer({ id, subscriberId: "key-2" }));
      await expect(owner.rotateSecret({ id })).rejects.toMatchObject(refusal);
      expect(await registrations.get(id)).toMatchObject({ url: URL_OF_OWNER, subscriberId: "key-2" });
    });
  });

  it("repeats the answer to a registration while the webhook exists, its owner and its secret are the same", async () => {
    const account = `account-${++accounts}`;
    const owner = { id: "owner", account };
    const { registrations } = webhooks;
    const given = { url: URL_OF_OWNER, idempotencyKey: "5f0c" };
    const first = await registrations.create({ subscriber: owner, ...given });
    await registrations.update({ id: first.webhook.id, url: URL_OF_OTHER, status: "DISABLED" });
    expect(await registrations.create({ subscriber: owner, ...given })).toEqual(first);
    await registrations.rotateSecret({ id: first.webhook.id });
    await expect(registrations.create({ subscriber: owner, ...given })).rejects.toMatchObject({
      code: "secret_rotated",
      field: "Idempotency-Key",
      message: expect.stringContaining(first.webhook.id),
    });
    await registrations.remove(first.webhook.id);
    for (let count = 0; count < 2; count++)
      await expect(registrations.create({ subscriber: owner, ...given })).rejects.toMatchObject({
        code: "webhook_deleted",
        field: "Idempotency-Key",
      });
    expect((await registrations.list({ account })).items).toEqual([]);
    const other = { ...given, url: URL_OF_OTHER };
    await expect(registrations.create({ subscriber: owner, ...other })).rejects.toMatchObject({
      code: "idempotency_key_reused",
    });
  });
});

describe("access.canActFor", () => {
  it.each([
    [
      "throws",
      () => {
        throw new Error("no database");
      },
    ],
    ["rejects", () => Promise.reject(new Error("no database"))],
    ["returns no boolean", () => 1 as unknown as boolean],
  ])("that %s has nothing done, over REST 503; its message reaches nobody", async (_, canActFor) => {
    const webhooks = serviceOn(memoryStorage(), {
      access: {
        authenticate: byKey((key) => ({ id: key, account: "clinic" })),
        canRead: () => true,
        canActFor,
      },
    });
    const { webhook } = await webhooks.registrations.create({
      subscriber: { id: "owner", account: "clinic" },
      url: URL_OF_OWNER,
    });
    const answer = await webhooks.handle({
      method: "POST",
      path: `/v1/webhooks/${webhook.id}/rotate`,
      query: "",
      headers: { authorization: "Bearer other" },
      body: null,
      baseUrl: "https://api.example.com",
    });
    expect([answer?.status, answer?.headers["retry-after"]]).toEqual([503, "5"]);
    expect(textOf(answer)).not.toContain("database");
    const as = { id: "other", account: "clinic" };
    await expect(webhooks.as(as).registrations.rotateSecret({ id: webhook.id })).rejects.toMatchObject({
      code: "access_unavailable",
    });
    // Whatever the hook does, every key may stop what is sent.
    await webhooks.as(as).registrations.update({ id: webhook.id, status: "DISABLED" });
  });

  it("that fails keeps nobody from reading the log, only from its excerpts; a list asks it once", async () => {
    let asked = 0;
    const webhooks = serviceOn(memoryStorage(), {
      access: {
        authenticate: byKey((key) => ({ id: key, account: "clinic" })),
        canRead: () => true,
        canActFor: () => {
          asked += 1;
          throw new Error("no database");
        },
      },
      delivery: { send: async () => response(500, {}, "an echo"), excerptCharacters: 100 },
    });
    const { webhook } = await webhooks.registrations.create({
      subscriber: { id: "owner", account: "clinic" },
      url: URL_OF_OWNER,
    });
    await webhooks.start();
    onTestFinished(() => webhooks.stop());
    const resource = { resourceType: "Patient", id: "1" };
    const emitted = await webhooks.emit({ type: "patient.updated", account: "clinic", resource });
    await webhooks.idle();
    const read = async (path: string) => {
      const answer = await webhooks.handle({
        method: "GET",
        path: `/v1/webhooks/${webhook.id}/deliveries${path}`,
        query: "",
        headers: { authorization: "Bearer other" },
        body: null,
        baseUrl: "https://api.example.com",
      });
      return [answer?.status, textOf(answer).includes("HTTP_500"), textOf(answer).includes("an echo")];
    };
    expect(await read("")).toEqual([200, true, false]);
    expect(asked).toBe(1);
    expect(await read(`/${emitted.deliveries[0]?.id}`)).toEqual([200, true, false]);
    const as = { id: "other", account: "clinic" };
    const { items: deliveries } = await webhooks.as(as).deliveries.list({ webhookId: webhook.id });
    expect(deliveries.flatMap(({ attempts }) => attempts.map(({ excerpt }) => excerpt))).toEqual([null]);
    expect(asked).toBe(3);
  });
});
