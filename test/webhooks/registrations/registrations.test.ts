import { describe, expect, it } from "vitest";
import type { Registrations, WebhookWithSecret } from "../../../src/webhooks/registrations/registrations.js";
import { type Answer, registrationApi, START, URL_1, URL_2 } from "../../support/registration-api.js";

const COLLECTION = "/v1/webhooks";
const ACME = { id: "first", account: "acme" };
const BOLT = { id: "first", account: "bolt" };
const TEN_MINUTES = 600_000;
const DAY = 86_400_000;

const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));
const statuses = (answers: readonly Answer[]): Record<number, number> => {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
};
const fill = (registrations: Registrations, count = 15): Promise<WebhookWithSecret[]> =>
  Promise.all(times(count, () => registrations.create({ subscriber: ACME, url: URL_1 })));

const LIMIT_REACHED = { status: 409, json: { error: { code: "webhook_limit_reached" } } };

describe("the limit of fifteen ENABLED webhooks", () => {
  const put = (status: string) => ({ json: { url: URL_1, status } });

  it("lets exactly fifteen of fifty concurrent creates through, and refuses the others with 409", async () => {
    const { call, webhooks } = registrationApi();
    const answers = await Promise.all(
      times(50, (index) =>
        call("POST", COLLECTION, { key: index % 2 ? "key-a1" : "key-a2", json: { url: URL_1 } }),
      ),
    );
    expect(statuses(answers)).toEqual({ 201: 15, 409: 35 });
    const refused = answers.filter(({ status }) => status === 409);
    for (const answer of refused) expect(answer).toMatchObject(LIMIT_REACHED);
    const { items: stored } = await webhooks.registrations.list({ account: "acme" });
    expect(stored).toHaveLength(15);
    expect(stored.every(({ status }) => status === "ENABLED")).toBe(true);
  });

  it("is each account's own", async () => {
    const { call, webhooks } = registrationApi();
    await fill(webhooks.registrations);
    expect((await call("POST", COLLECTION, { key: "key-b", json: { url: URL_1 } })).status).toBe(201);
    expect(await call("POST", COLLECTION, { json: { url: URL_1 } })).toMatchObject(LIMIT_REACHED);
  });

  it("does not count DISABLED ones, and frees a place with each one disabled or deleted", async () => {
    const { call, webhooks } = registrationApi();
    const [one, two] = await fill(webhooks.registrations);
    await call("PUT", `${COLLECTION}/${one?.webhook.id}`, put("DISABLED"));
    expect((await call("POST", COLLECTION, { json: { url: URL_1 } })).status).toBe(201);
    expect(await call("POST", COLLECTION, { json: { url: URL_1 } })).toMatchObject(LIMIT_REACHED);
    await call("DELETE", `${COLLECTION}/${two?.webhook.id}`);
    expect((await call("POST", COLLECTION, { json: { url: URL_1 } })).status).toBe(201);
    expect((await webhooks.registrations.list({ account: "acme" })).items).toHaveLength(16 - 1 + 1);
  });

  it("lets an ENABLED one be updated at the limit, and a DISABLED one be updated as long as it stays so", async () => {
    const { call, webhooks } = registrationApi();
    const [first] = await fill(webhooks.registrations, 1);
    const path = `${COLLECTION}/${first?.webhook.id}`;
    await call("PUT", path, put("DISABLED"));
    const [enabled] = await fill(webhooks.registrations);
    const update = await call("PUT", `${COLLECTION}/${enabled?.webhook.id}`, {
      json: { url: URL_2, status: "ENABLED" },
    });
    expect(update).toMatchObject({ status: 200, json: { url: URL_2 } });
    expect((await call("PUT", path, put("DISABLED"))).status).toBe(200);
    expect(await call("PUT", path, put("ENABLED"))).toMatchObject(LIMIT_REACHED);
    expect((await call("GET", path)).json).toMatchObject({ status: "DISABLED" });
  });

  it("lets one of many take the last place, whether they are created or enabled again", async () => {
    const { call, webhooks } = registrationApi();
    const resting = await fill(webhooks.registrations, 10);
    for (const { webhook } of resting) {
      await webhooks.registrations.update({ id: webhook.id, status: "DISABLED" });
    }
    await fill(webhooks.registrations, 14);
    const answers = await Promise.all(
      resting.flatMap(({ webhook }) => [
        call("PUT", `${COLLECTION}/${webhook.id}`, put("ENABLED")),
        call("POST", COLLECTION, { json: { url: URL_1 } }),
      ]),
    );
    const { 200: enabled = 0, 201: created = 0, 409: refused = 0 } = statuses(answers);
    expect([enabled + created, refused]).toEqual([1, 19]);
    const { items: all } = await webhooks.registrations.list({ account: "acme" });
    expect(all.filter(({ status }) => status === "ENABLED")).toHaveLength(15);
  });

  it("is what the host sets it to", async () => {
    const { webhooks } = registrationApi({ limits: { enabledWebhooks: 2 } });
    const outcomes = await Promise.allSettled(
      times(5, () => webhooks.registrations.create({ subscriber: ACME, url: URL_1 })),
    );
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
    expect(outcomes).toContainEqual(
      expect.objectContaining({
        reason: expect.objectContaining({
          code: "webhook_limit_reached",
          message: expect.stringContaining("2 ENABLED"),
        }),
      }),
    );
  });
});

describe("Idempotency-Key", () => {
  const keyed = (value: string, json: object = { url: URL_1 }) => ({
    json,
    headers: { "idempotency-key": value },
  });
  const REUSED = {
    status: 409,
    json: { error: { code: "idempotency_key_reused", field: "Idempotency-Key" } },
  };

  it("gives a create whose answer was lost the same answer again, secret included", async () => {
    const { call, clock, webhooks } = registrationApi();
    const answer = await call("POST", COLLECTION, keyed("k1"));
    await clock.advance(TEN_MINUTES - 1);
    expect(await call("POST", COLLECTION, keyed("k1"))).toEqual(answer);
    expect((await webhooks.registrations.list({ account: "acme" })).items).toHaveLength(1);
  });

  it("makes one webhook of concurrent creates", async () => {
    const { call, webhooks } = registrationApi();
    const answers = await Promise.all(times(20, () => call("POST", COLLECTION, keyed("k1"))));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect((await webhooks.registrations.list({ account: "acme" })).items).toHaveLength(1);
  });

  it("gives the answer again also where the limit has been reached since", async () => {
    const { call, webhooks } = registrationApi();
    const answer = await call("POST", COLLECTION, keyed("k1"));
    await fill(webhooks.registrations, 14);
    expect(await call("POST", COLLECTION, keyed("k2"))).toMatchObject(LIMIT_REACHED);
    expect(await call("POST", COLLECTION, keyed("k1"))).toEqual(answer);
  });

  it("is refused with another body", async () => {
    const { call } = registrationApi();
    const types = { url: URL_1, event_types: ["patient.created"] };
    await call("POST", COLLECTION, keyed("k1"));
    for (const json of [{ url: URL_2 }, types]) {
      expect(await call("POST", COLLECTION, keyed("k1", json))).toMatchObject(REUSED);
    }
    await call("POST", COLLECTION, keyed("k2", types));
    expect(await call("POST", COLLECTION, keyed("k2"))).toMatchObject(REUSED);
  });

  it("is used up by no create that failed", async () => {
    const { call } = registrationApi();
    expect((await call("POST", COLLECTION, keyed("k1", { url: "http://example.com/" }))).status).toBe(400);
    expect((await call("POST", COLLECTION, keyed("k1"))).status).toBe(201);
  });

  it("is forgotten after ten minutes", async () => {
    const { call, clock } = registrationApi();
    const answer = await call("POST", COLLECTION, keyed("k1"));
    await clock.advance(TEN_MINUTES);
    const again = await call("POST", COLLECTION, keyed("k1", { url: URL_2 }));
    expect(again.status).toBe(201);
    expect(again.text).not.toBe(answer.text);
  });

  it("of one subscriber means nothing to another, nor to the same name in another account", async () => {
    const { call } = registrationApi();
    const answers = await Promise.all(
      ["key-a1", "key-a2", "key-b"].map((key) => call("POST", COLLECTION, { ...keyed("k1"), key })),
    );
    expect(statuses(answers)).toEqual({ 201: 3 });
    expect(new Set(answers.map(({ text }) => text)).size).toBe(3);
  });

  it.each(["", " ", "a b", "é", "a\u0000", "k".repeat(256)])("is refused as '%s'", async (value) => {
    const { call, webhooks } = registrationApi();
    expect(await call("POST", COLLECTION, keyed(value))).toMatchObject({
      status: 400,
      json: { error: { code: "invalid_request", field: "Idempotency-Key" } },
    });
    expect((await webhooks.registrations.list({ account: "acme" })).items).toEqual([]);
  });

  it("may be 255 characters long", async () => {
    const { call } = registrationApi();
    expect((await call("POST", COLLECTION, keyed("~".repeat(255)))).status).toBe(201);
  });

  it("works in-process too", async () => {
    const { registrations } = registrationApi().webhooks;
    const made = { url: URL_1, idempotencyKey: "k1" };
    expect(await registrations.create({ subscriber: ACME, ...made })).toEqual(
      await registrations.create({ subscriber: ACME, ...made }),
    );
  });
});

describe("registrations in-process", () => {
  it("show what the REST record leaves out, and are the same webhooks", async () => {
    const { call, webhooks } = registrationApi();
    const { webhook } = await webhooks.registrations.create({
      subscriber: ACME,
      url: URL_1,
      eventTypes: ["patient.created"],
    });
    const date = new Date(START);
    expect(webhook).toEqual({
      id: webhook.id,
      account: "acme",
      subscriberId: "first",
      url: URL_1,
      status: "ENABLED",
      eventTypes: ["patient.created"],
      createdAt: date,
      updatedAt: date,
      failingSince: null,
      description: null,
      metadata: null,
    });
    expect(await webhooks.registrations.get(webhook.id)).toEqual(webhook);
    expect((await call("GET", `${COLLECTION}/${webhook.id}`)).status).toBe(200);
  });

  it("keep the list of one account from another", async () => {
    const { registrations } = registrationApi().webhooks;
    const { webhook } = await registrations.create({ subscriber: ACME, url: URL_1 });
    await registrations.create({ subscriber: BOLT, url: URL_1 });
    expect(await registrations.list({ account: "acme" })).toEqual({ items: [webhook], next: null });
    expect(await registrations.list({ account: "nobody" })).toEqual({ items: [], next: null });
  });

  it("change what an update gives, and nothing else", async () => {
    const { registrations } = registrationApi().webhooks;
    const { webhook } = await registrations.create({ subscriber: ACME, url: URL_1 });
    const later = expect.toSatisfy((date: Date) => date > webhook.updatedAt);
    expect(await registrations.update({ id: webhook.id, url: URL_2 })).toEqual({
      ...webhook,
      url: URL_2,
      updatedAt: later,
    });
    expect(await registrations.update({ id: webhook.id, eventTypes: ["*"] })).toMatchObject({
      url: URL_2,
      eventTypes: ["*"],
    });
    expect(await registrations.update({ id: webhook.id, status: "DISABLED" })).toMatchObject({
      url: URL_2,
      eventTypes: ["*"],
      status: "DISABLED",
    });
  });

  it("refuse a name of a subscriber or account that cannot be stored, with its path", async () => {
    const { registrations } = registrationApi().webhooks;
    const bad: unknown[] = ["", "a".repeat(257), "a\u0000b", "t\ud800", "\udc00t", 7, null, undefined];
    for (const value of bad) {
      for (const field of ["id", "account"]) {
        await expect(
          registrations.create({ subscriber: { ...ACME, [field]: value }, url: URL_1 }),
        ).rejects.toMatchObject({ code: "invalid_argument", field: `subscriber.${field}` });
      }
    }
    await registrations.create({ subscriber: { id: "a".repeat(256), account: "文\n\u{1f600}" }, url: URL_1 });
  });

  it("refuse an account with a lone surrogate in every call, and say what is wrong with it", async () => {
    const { webhooks } = registrationApi();
    const { registrations } = webhooks;
    // In UTF-8, the account below would be this one.
    const { webhook } = await registrations.create({
      subscriber: { id: "first", account: "t\ufffd" },
      url: URL_1,
    });
    const [account, { id }] = ["t\ud800", webhook];
    const as = { id: "first", account };
    const event = { type: "patient.updated", account, resource: { resourceType: "Patient" } } as const;
    const calls: Readonly<Record<string, () => PromiseLike<unknown>>> = {
      account: () => registrations.list({ account }),
      "subscriber.account": async () => webhooks.as(as).registrations.get(id),
      "subscriber.id": async () => webhooks.as({ id: account, account: "t\ufffd" }).deliveries.stats(id),
      subscriberId: () => registrations.transfer({ id, subscriberId: account }),
      idempotencyKey: () => registrations.create({ subscriber: ACME, url: URL_1, idempotencyKey: account }),
    };
    const emit = () => webhooks.emit(event);
    for (const [field, call] of [...Object.entries(calls), ["account", emit] as const]) {
      const message = `${field} must be a string of 1 to 256 characters without NUL and lone surrogates (got one with a lone surrogate).`;
      await expect(call()).rejects.toMatchObject({ code: "invalid_argument", field, message });
    }
    expect((await registrations.list({ account: "t\ufffd" })).items).toHaveLength(1);
  });

  it("refuse a limit that is no page size", async () => {
    const { registrations } = registrationApi().webhooks;
    for (const limit of [0, 101, 1.5, Number.NaN, "5" as unknown as number]) {
      await expect(registrations.list({ account: "acme", limit })).rejects.toMatchObject({
        code: "invalid_request",
        field: "limit",
      });
    }
  });

  it("say so where there is no such webhook", async () => {
    const { registrations } = registrationApi().webhooks;
    const id = "3d3f1c1e-6f5b-4b5a-9a52-0a4cf3f6a111";
    for (const call of [
      registrations.get(id),
      registrations.update({ id, url: URL_1 }),
      registrations.remove(id),
      registrations.rotateSecret({ id }),
    ]) {
      await expect(call).rejects.toMatchObject({ code: "not_found" });
    }
  });

  it("are frozen, and hand out nothing through which a stored record could be changed", async () => {
    const { registrations } = registrationApi().webhooks;
    const given = ["patient.created"];
    const { webhook } = await registrations.create({ subscriber: ACME, url: URL_1, eventTypes: given });
    given.push("no.such");
    Object.assign(webhook, { url: URL_2 });
    expect(() => (webhook.eventTypes as string[]).push("no.such")).toThrow(TypeError);
    expect(await registrations.get(webhook.id)).toMatchObject({
      url: URL_1,
      eventTypes: ["patient.created"],
    });
    expect(Object.isFrozen(registrations)).toBe(true);
  });
});

describe("rotating a secret", () => {
  it("gives a new one each time and dates the webhook, whatever the overlap", async () => {
    const { registrations } = registrationApi().webhooks;
    const { webhook, secret } = await registrations.create({ subscriber: ACME, url: URL_1 });
    const secrets = [secret];
    for (const options of [undefined, {}, { overlapMs: 0 }, { overlapMs: 7 * DAY }]) {
      secrets.push((await registrations.rotateSecret({ id: webhook.id, ...options })).secret);
    }
    expect(new Set(secrets).size).toBe(5);
    for (const one of secrets) expect(one).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    const { updatedAt, ...rest } = await registrations.get(webhook.id);
    expect(updatedAt > webhook.updatedAt).toBe(true);
    expect({ ...rest, updatedAt: webhook.updatedAt }).toEqual(webhook);
  });

  it("dates the webhook when a rotation is finished, but not if none is in progress", async () => {
    const { webhooks, clock } = registrationApi();
    const { registrations } = webhooks;
    const { webhook } = await registrations.create({ subscriber: ACME, url: URL_1 });
    const dates = [webhook.updatedAt];
    const finish = async (waitMs: number) => {
      await clock.advance(waitMs);
      await webhooks.as(ACME).registrations.finishRotation(webhook.id);
      dates.push((await registrations.get(webhook.id)).updatedAt);
    };
    await finish(1_000);
    await registrations.rotateSecret({ id: webhook.id, overlapMs: 60_000 });
    await finish(1_000);
    await registrations.rotateSecret({ id: webhook.id, overlapMs: 60_000 });
    const { updatedAt } = await registrations.get(webhook.id);
    await finish(60_000);
    const [created, idle, finished, over] = dates;
    expect([idle, over]).toEqual([created, updatedAt]);
    expect(finished).not.toEqual(created);
    const other = { id: "key-9", account: ACME.account };
    await expect(webhooks.as(other).registrations.finishRotation(webhook.id)).rejects.toMatchObject({
      code: "webhook_owned_by_another_key",
    });
  });

  it.each([-1, 1.5, 7 * DAY + 1, Number.NaN, Number.POSITIVE_INFINITY, "1"])(
    "refuses an overlap of %s",
    async (overlapMs) => {
      const { registrations } = registrationApi().webhooks;
      const { webhook } = await registrations.create({ subscriber: ACME, url: URL_1 });
      await expect(
        registrations.rotateSecret({ id: webhook.id, overlapMs: overlapMs as number }),
      ).rejects.toMatchObject({ code: "invalid_request", field: "overlapMs" });
    },
  );
});

describe("a misspelt argument in-process", () => {
  it.each([
    ["create", "event_types", "eventTypes"],
    ["update", "state", "status"],
    ["list", "acount", "account"],
    ["rotateSecret", "overlap", "overlapMs"],
    ["deliveries.list", "webhook", "webhookId"],
    ["deliveries.recover", "from", "since"],
  ] as const)(
    "is refused, so that it cannot subscribe to everything: %s({ %s })",
    async (call, slip, meant) => {
      const { webhooks } = registrationApi();
      const { registrations, deliveries } = webhooks;
      const { webhook } = await registrations.create({
        subscriber: ACME,
        url: URL_1,
        eventTypes: ["patient.created"],
      });
      const given: object = { [slip]: ["patient.created"] };
      const calls = {
        create: () => registrations.create({ subscriber: ACME, url: URL_1, ...given }),
        update: () => registrations.update({ id: webhook.id, ...given }),
        list: () => registrations.list(given as never),
        rotateSecret: () => registrations.rotateSecret({ id: webhook.id, ...given }),
        "deliveries.list": () => deliveries.list(given as never),
        "deliveries.recover": () => deliveries.recover(given as never),
      };
      await expect(calls[call]()).rejects.toMatchObject({
        code: "invalid_argument",
        field: slip,
        message: expect.stringMatching(new RegExp(`did you mean '${meant}'|it takes .*'${meant}'`)),
      });
      expect((await registrations.list({ account: webhook.account })).items).toEqual([webhook]);
    },
  );

  it.each([undefined, null, "x", 5])("and an argument that is no object: %s", async (given) => {
    const { registrations } = registrationApi().webhooks;
    await expect(registrations.create(given as never)).rejects.toMatchObject({
      code: "invalid_argument",
    });
    await expect(registrations.list(given as never)).rejects.toMatchObject({ code: "invalid_argument" });
  });

  it.each([
    ["http://example.com/h", "destinations.allowHttp"],
    ["https://10.20.0.1/h", "destinations.allow"],
    ["https://hooks.internal/h", "destinations.allow"],
    ["https://intranet/h", "destinations.allow"],
    ["ftp://example.com/h", undefined],
    ["https://169.254.169.254/", undefined],
    ["https://224.0.0.1/", undefined],
    ["https://example.com:22/", undefined],
    ["https://a..example.com/", undefined],
  ])("names the option that would allow %s to the host, and never to a subscriber", async (url, option) => {
    const { call, create, webhooks } = registrationApi();
    const { registrations } = webhooks;
    const { webhook } = await create();
    const messages: string[] = [];
    for (const attempt of [
      registrations.create({ subscriber: ACME, url }),
      registrations.update({ id: webhook.id, url }),
    ]) {
      const error: unknown = await attempt.catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "invalid_url", field: "url" });
      messages.push((error as Error).message);
    }
    const named = messages.map((message) => /the option (destinations\.\w+)\.$/.exec(message)?.[1]);
    expect(named).toEqual([option, option]);
    const path = `${COLLECTION}/${webhook.id}`;
    const answers = [
      await call("POST", COLLECTION, { json: { url } }),
      await call("PUT", path, { json: { url, status: "ENABLED" } }),
    ];
    for (const { status, text } of answers) {
      expect([status, text]).toEqual([400, expect.stringContaining('"invalid_url"')]);
      expect(text).not.toContain("destinations");
    }
  });

  it("registers and delivers to a private host that destinations.allow lists", async () => {
    const { call, webhooks } = registrationApi({
      destinations: { allow: ["10.20.0.0/16", "hooks.internal"] },
    });
    for (const url of ["https://10.20.0.1/h", "https://hooks.internal/h", "https://HOOKS.internal.:8443/h"])
      await webhooks.registrations.create({ subscriber: ACME, url });
    const statusOf = async (url: string) => (await call("POST", COLLECTION, { json: { url } })).status;
    expect(await statusOf("https://10.20.255.255/h")).toBe(201);
    for (const url of ["https://10.21.0.1/", "https://a.hooks.internal/", "https://169.254.169.254/"])
      expect(await statusOf(url)).toBe(400);
    expect(await statusOf("http://hooks.internal/h")).toBe(400);
  });

  it("names the fields that a call takes, where none is near to the one given", async () => {
    const { webhooks } = registrationApi();
    const { registrations, deliveries } = webhooks;
    await expect(deliveries.inspect({ webhook: "id" } as never)).rejects.toThrow(
      "inspect() has no field 'webhook'; it takes 'id', 'includeBody'.",
    );
    await expect(registrations.list({ acount: "acme" } as never)).rejects.toThrow(
      "list() has no field 'acount'; did you mean 'account'?",
    );
  });
});
