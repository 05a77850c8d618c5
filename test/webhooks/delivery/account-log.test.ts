/** The deliveries of all webhooks of an account: their list, and their recovery. */

import { describe, expect, it } from "vitest";
import { PostbellError } from "../../../src/core/errors.js";
import type { Subscriber, WebhooksOptions } from "../../../src/index.js";
import type { Delivery } from "../../../src/webhooks/delivery/deliveries.js";
import { listAccountDeliveries } from "../../../src/webhooks/delivery/delivery-lists.js";
import type { AuditEntry } from "../../../src/webhooks/webhook.js";
import {
  type Harness,
  MINUTE,
  response,
  SECOND,
  START,
  type StoreChange,
  SUBSCRIBER,
  startHarness,
} from "../../support/webhook-harness.js";

const COLLEAGUE: Subscriber = { id: "key-2", account: SUBSCRIBER.account };
const STRANGER: Subscriber = { id: "key-1", account: "hospital" };
const ACCOUNT = SUBSCRIBER.account;
const since = new Date(START);

interface RestAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what a client would.
  readonly json: any; // oxlint-disable-line typescript/no-explicit-any
}

/** Calls the REST routes for a subscriber. */
const createCaller =
  ({ webhooks }: Pick<Harness, "webhooks">, onCost?: (requests: number) => void) =>
  async (method: string, path: string, { query = "", json = undefined as unknown, as = SUBSCRIBER } = {}) => {
    const answer = await webhooks.as(as).handle(
      {
        method,
        path: `/v1${path}`,
        query,
        headers: json === undefined ? {} : { "content-type": "application/json" },
        body: json === undefined ? null : Buffer.from(JSON.stringify(json)),
        baseUrl: "https://a.example",
      },
      { onCost },
    );
    const body = typeof answer?.body === "string" ? (JSON.parse(answer.body) as unknown) : undefined;
    return { status: answer?.status, headers: answer?.headers, json: body } as RestAnswer;
  };

/** Two webhooks of the account, one of another, with deliveries of three events. */
async function startAccount(options: Partial<WebhooksOptions> = {}, change?: StoreChange) {
  const harness = await startHarness({
    answer: () => response(500, {}, "quote"),
    change,
    options: { retry: { jitter: 0 }, delivery: { excerptCharacters: 20 }, ...options },
  });
  const { register, emit, run, webhooks } = harness;
  const [one, two] = [await register(), await register("https://hooks.example.com/b")];
  const foreign = await register("https://hooks.example.com/c", STRANGER.account);
  const events: string[] = [];
  for (const type of ["patient.created", "patient.updated", "patient.created"]) {
    events.push(await emit({ type }));
    await run(SECOND);
  }
  await emit({ account: STRANGER.account });
  await run(SECOND);
  const ids = [one.id, two.id].sort();
  const expected = events.toReversed().flatMap((eventId) => ids.map((id) => `${id}.${eventId}`));
  return {
    ...harness,
    call: createCaller(harness),
    one,
    two,
    foreign,
    events,
    expected,
    deliveries: webhooks.deliveries,
  };
}

const toIds = (rows: readonly Pick<Delivery, "id">[]): string[] => rows.map(({ id }) => id);

describe("deliveries.list of an account", () => {
  it("passes on the cursors of a storage, whatever their text", async () => {
    const { one, deliveries, store: real } = await startAccount();
    const [delivery] = (await deliveries.list({ webhookId: one.id })).items;
    const webhook = await real.getWebhook(one.id);
    if (delivery === undefined || webhook === undefined) throw new Error("There is no delivery.");
    const cursors: unknown[] = [];
    const record = await real.getDelivery(delivery.id);
    const store = {
      getDelivery: (id: string) => real.getDelivery(id),
      // Five deliveries of one millisecond, one on each page.
      async listDeliveries({ cursor = "+/=_0" }: { readonly cursor?: string | undefined }) {
        cursors.push(cursor);
        const next = Number(cursor.slice(4)) + 1;
        return { deliveries: record ? [record] : [], next: next < 5 ? `+/=_${next}` : null };
      },
    };
    let cursor: string | undefined;
    for (let page = 0; page < 5; page++) {
      const { next } = await listAccountDeliveries(store, [webhook], { limit: 1, cursor });
      cursor = next ?? undefined;
    }
    expect(new Set(cursors)).toEqual(new Set(["+/=_0", "+/=_1", "+/=_2", "+/=_3", "+/=_4"]));
  });

  it("has those of all its webhooks, newest first, in pages", async () => {
    const { deliveries, expected } = await startAccount();
    const { items: all, next } = await deliveries.list({ account: ACCOUNT });
    expect([toIds(all), next]).toEqual([expected, null]);
    for (const limit of [1, 2, 4]) {
      const found: string[] = [];
      for (let cursor: string | null = "", pages = 0; cursor !== null && pages < 50; pages++) {
        const page = await deliveries.list({ account: ACCOUNT, limit, cursor: cursor || undefined });
        expect(page.items.length).toBeLessThanOrEqual(limit);
        found.push(...toIds(page.items));
        cursor = page.next;
      }
      expect(found).toEqual(expected);
    }
    for (const { id } of all) expect(all.find((row) => row.id === id)).toEqual(await deliveries.get(id));
  });

  it("takes the filters of the list of one webhook", async () => {
    const { deliveries, expected, events, webhooks, one, run } = await startAccount();
    const list = async (query: object) =>
      toIds((await deliveries.list({ account: ACCOUNT, ...query })).items);
    const [first = "", second = "", third = ""] = events;
    const of = (...ids: string[]) => expected.filter((id) => ids.some((event) => id.endsWith(event)));
    expect(await list({ type: "patient.created" })).toEqual(of(first, third));
    expect(await list({ since: new Date(START + SECOND) })).toEqual(of(second, third));
    expect(await list({ until: new Date(START + SECOND) })).toEqual(of(first));
    expect(await list({ state: "failed" })).toEqual([]);
    expect(await list({ eventId: second })).toEqual(of(second));
    await webhooks.registrations.update({ id: one.id, status: "DISABLED" });
    await run(15 * MINUTE);
    expect(await list({ state: "pending" })).toEqual(expected);
    const page = await deliveries.list({ account: ACCOUNT, eventId: second, limit: 1 });
    const rest = await deliveries.list({
      account: ACCOUNT,
      eventId: second,
      limit: 1,
      cursor: page.next ?? "",
    });
    expect([...toIds(page.items), ...toIds(rest.items), rest.next]).toEqual([...of(second), null]);
  });

  it("takes either a webhook or an account, and an account of the caller", async () => {
    const { webhooks, one, foreign } = await startAccount();
    const { deliveries } = webhooks;
    await expect(deliveries.list({ account: ACCOUNT, webhookId: one.id })).rejects.toMatchObject({
      code: "invalid_argument",
      field: "account",
    });
    const neither = { code: "invalid_argument", field: "webhookId" };
    await expect(deliveries.list({})).rejects.toMatchObject(neither);
    // @ts-expect-error Neither a webhook nor an account.
    await expect(deliveries.recover({ since })).rejects.toMatchObject(neither);
    await expect(webhooks.as(STRANGER).deliveries.list({ account: ACCOUNT })).rejects.toMatchObject({
      code: "not_found",
    });
    await expect(deliveries.list({ account: "" })).rejects.toMatchObject({ code: "invalid_argument" });
    const { items: own } = await webhooks.as(STRANGER).deliveries.list({ account: STRANGER.account });
    expect(own.map(({ webhookId }) => webhookId)).toEqual([foreign.id]);
    expect(await deliveries.list({ account: "nobody" })).toEqual({ items: [], next: null });
  });

  it("makes at most 20 calls of the storage at once", async () => {
    let open = 0;
    let most = 0;
    const harness = await startHarness({
      options: { limits: { enabledWebhooks: 60 } },
      change: (store) => ({
        listDeliveries: async (request) => {
          open += 1;
          most = Math.max(most, open);
          await new Promise((resolve) => setImmediate(resolve));
          open -= 1;
          return store.listDeliveries(request);
        },
      }),
    });
    for (let count = 0; count < 45; count++) await harness.register();
    await harness.emit();
    const { items: deliveries } = await harness.webhooks.deliveries.list({ account: ACCOUNT, limit: 100 });
    expect([deliveries.length, most]).toEqual([45, 20]);
  });

  it("works with a storage that does not say how far it got", async () => {
    const { webhooks, register, emit, run } = await startHarness({
      change: (store) => ({
        listDeliveries: async (request) => {
          const { deliveries, next } = await store.listDeliveries(request);
          return { deliveries, next };
        },
      }),
    });
    await register();
    await register();
    for (let count = 0; count < 25; count++) {
      await emit();
      await run(count % 3);
    }
    const found = new Set<string>();
    for (let cursor: string | null = "", pages = 0; cursor !== null && pages < 100; pages++) {
      const page = await webhooks.deliveries.list({
        account: ACCOUNT,
        limit: 4,
        cursor: cursor || undefined,
      });
      for (const { id } of page.items) found.add(id);
      cursor = page.next;
    }
    expect(found.size).toBe(50);
  });
});

describe("GET /v1/deliveries", () => {
  it("has the rows of the lists of the webhooks", async () => {
    const { call, one, two, expected } = await startAccount();
    const { status, json } = await call("GET", "/deliveries");
    expect([status, toIds(json.deliveries), json.next]).toEqual([200, expected, null]);
    const rows = await Promise.all(
      [one, two].map(async ({ id }) => (await call("GET", `/webhooks/${id}/deliveries`)).json.deliveries),
    );
    const byId = new Map(rows.flat().map((row: Delivery) => [row.id, row]));
    expect(json.deliveries).toEqual(expected.map((id) => byId.get(id)));
    const detailed = await call("GET", "/deliveries", { query: "include=attempts&limit=1" });
    expect(detailed.json.deliveries[0].attempts).toHaveLength(1);
  });

  it("hides the details of webhooks that the key may not manage, and of them alone", async () => {
    const { call, webhooks, one, two, emit, run } = await startAccount();
    await webhooks.registrations.transfer({ id: two.id, subscriberId: COLLEAGUE.id });
    await emit();
    await run(SECOND);
    for (const [as, owned] of [
      [SUBSCRIBER, one.id],
      [COLLEAGUE, two.id],
    ] as const) {
      const { json } = await call("GET", "/deliveries", { as });
      expect(json.deliveries.length).toBeGreaterThan(0);
      for (const { webhookId, subject } of json.deliveries)
        expect([webhookId, subject]).toEqual([webhookId, webhookId === owned ? "Patient/1" : null]);
    }
  });

  it("hides the details of every webhook if access.canActFor fails", async () => {
    const canActFor = () => {
      throw new Error("The directory is down.");
    };
    const access = { authenticate: () => SUBSCRIBER, canRead: () => true, canActFor };
    const { call } = await startAccount({ access });
    const { status, json } = await call("GET", "/deliveries", { as: COLLEAGUE });
    expect(status).toBe(200);
    for (const { subject } of json.deliveries) expect(subject).toBeNull();
  });

  it("never leads into another account, whatever the cursor says", async () => {
    const { call, foreign, one, webhooks } = await startAccount();
    const own = new Set((await call("GET", "/deliveries")).json.deliveries.map((row: Delivery) => row.id));
    const theirs = await webhooks.deliveries.list({ account: STRANGER.account, limit: 1 });
    const late = START + 100 * SECOND;
    const cursors = [
      theirs.next,
      `${late}_${foreign.id}_`,
      `${late}_${foreign.id}_1`,
      `${late}_${one.id}_`,
      `${START + 1}_${one.id}_999999999999999`,
    ];
    for (const cursor of cursors.filter((text) => text !== null)) {
      const { status, json } = await call("GET", "/deliveries", { query: `cursor=${cursor}` });
      expect(status).toBe(200);
      for (const { id } of json.deliveries) expect(own).toContain(id);
    }
  });

  it.each([
    ["cursor", `cursor=${"9".repeat(300)}`],
    ["cursor", "cursor=%00%FF%FE"],
    ["cursor", "cursor="],
    ["cursor", "cursor=1_../../x_"],
    ["cursor", "cursor=9999999999999999"],
    ["cursor", `cursor=1_${SUBSCRIBER.account}_`],
    ["state", "state=lost"],
    ["since", "since=yesterday"],
    ["limit", "limit=101"],
    ["event_id", "event_id=1"],
    ["include", "include=body"],
  ])("names %s for ?%s", async (field, query) => {
    const { call } = await startAccount();
    const { status, json } = await call("GET", "/deliveries", { query });
    expect([status, json.error.field]).toEqual([400, field]);
  });

  it("costs one more request for each webhook", async () => {
    const harness = await startAccount();
    let cost = 0;
    const call = createCaller(harness, (requests) => {
      cost += requests;
    });
    await call("GET", "/deliveries");
    expect(cost).toBe(2);
    await call("POST", "/deliveries/recover", { json: { since: since.toISOString() } });
    expect(cost).toBe(4);
  });
});

/** Two webhooks of the account that failed for good; then one event that both missed. */
async function startFailed(options: Partial<WebhooksOptions> = {}, change?: StoreChange) {
  const retry = { jitter: 0, intervalsMs: [10], everyMs: 10_000, windowMs: 15 };
  const harness = await startAccount({ retry, ...options }, change);
  const { webhooks, one, two, emit, run, respond } = harness;
  const both = async (status: "ENABLED" | "DISABLED") => {
    for (const { id } of [one, two]) await webhooks.registrations.update({ id, status });
  };
  await both("DISABLED");
  await emit({ type: "patient.updated" });
  await both("ENABLED");
  respond(() => 204);
  await run(SECOND);
  harness.sent.length = 0;
  return harness;
}

/** The same, on a storage that examines two events in a call, and refuses all from one call on. */
const startRefusing = (from: number, options: Partial<WebhooksOptions> = {}) => {
  let calls = 0;
  return startFailed(options, (store) => ({
    recover(request) {
      calls += 1;
      if (calls < from) return store.recover({ ...request, limit: 2 });
      return Promise.reject(new PostbellError("storage_unavailable", "down"));
    },
  }));
};

describe("recover of an account", () => {
  const body = (fields: object = {}) => ({ json: { since: since.toISOString(), ...fields } });
  const RECOVER = "/deliveries/recover";

  it("recovers every webhook, once, and says how many events each missed", async () => {
    const { deliveries, sent, run, one, two, foreign } = await startFailed();
    const result = await deliveries.recover({ account: ACCOUNT, since });
    const counts = [one, two].map(({ id: webhookId }) => ({ webhookId, count: 4 }));
    expect(result).toEqual({ count: 8, webhooks: expect.arrayContaining(counts), skipped: [] });
    await run(MINUTE);
    expect(sent).toHaveLength(8);
    expect(sent.map(({ webhookId }) => webhookId)).not.toContain(foreign.id);
    expect((await deliveries.recover({ account: ACCOUNT, since })).count).toBe(0);
  });

  it.each([
    [{ state: "failed" }, 3],
    [{ state: "missed" }, 1],
    [{ state: "withheld" }, 0],
    [{ type: "patient.updated" }, 2],
    [{ type: "patient.updated", state: "missed" }, 1],
    [{ type: "patient.created", state: "missed" }, 0],
    [{ type: "consent.created" }, 0],
  ] as const)(
    "selects events with %o, of one webhook and of all, in-process and over REST",
    async (selection, count) => {
      const { deliveries, call, one, two } = await startFailed();
      expect(await deliveries.recover({ webhookId: one.id, since, ...selection })).toEqual({ count });
      const { status, json } = await call("POST", RECOVER, body(selection));
      expect([status, json.count]).toEqual([202, count]);
      expect(json.webhooks).toContainEqual({ webhookId: two.id, count });
      const single = await call("POST", `/webhooks/${two.id}/recover`, body(selection));
      expect([single.status, single.json]).toEqual([202, { count: 0 }]);
    },
  );

  it("sends a withheld event again only if the subscriber may read it by then", async () => {
    let isAllowed = false;
    const access = { authenticate: () => SUBSCRIBER, canRead: () => isAllowed };
    const { deliveries, respond, sent, run } = await startAccount({ access });
    respond(() => 204);
    const recover = (fields: object = {}) => deliveries.recover({ account: ACCOUNT, since, ...fields });
    expect((await recover()).count).toBe(0);
    expect((await recover({ state: "withheld" })).count).toBe(6);
    await run(MINUTE);
    expect(sent).toEqual([]);
    isAllowed = true;
    expect((await recover({ state: "withheld" })).count).toBe(6);
    await run(MINUTE);
    expect(sent).toHaveLength(6);
    expect((await recover({ state: "withheld" })).count).toBe(0);
  });

  it("skips webhooks that are disabled or that the key may not manage, and says so", async () => {
    const { call, webhooks, one, two, register } = await startFailed();
    await webhooks.registrations.transfer({ id: two.id, subscriberId: COLLEAGUE.id });
    const off = await register();
    await webhooks.registrations.update({ id: off.id, status: "DISABLED" });
    expect((await call("POST", RECOVER, body())).json).toEqual({
      count: 4,
      webhooks: [{ webhookId: one.id, count: 4 }],
      skipped: [
        { webhookId: two.id, reason: "webhook_owned_by_another_key" },
        { webhookId: off.id, reason: "webhook_disabled" },
      ],
    });
    const foreign = await call("POST", RECOVER, { ...body(), as: STRANGER });
    expect(foreign.json.webhooks.map(({ webhookId }: { webhookId: string }) => webhookId)).not.toContain(
      one.id,
    );
    await expect(webhooks.as(STRANGER).deliveries.recover({ account: ACCOUNT, since })).rejects.toMatchObject(
      {
        code: "not_found",
      },
    );
  });

  it("changes nothing if it cannot be told what the key may manage", async () => {
    const canActFor = () => {
      throw new Error("The directory is down.");
    };
    const access = { authenticate: () => SUBSCRIBER, canRead: () => true, canActFor };
    const { call, deliveries } = await startFailed({ access });
    expect((await call("POST", RECOVER, { ...body(), as: COLLEAGUE })).status).toBe(503);
    expect((await deliveries.recover({ account: ACCOUNT, since })).count).toBe(8);
  });

  it("holds the limits of each webhook and of the account, and names what they refused", async () => {
    const { deliveries, call, one, clock } = await startFailed({ limits: { repairsPerMinute: 1 } });
    await deliveries.recover({ webhookId: one.id, since });
    const { count, skipped } = await deliveries.recover({ account: ACCOUNT, since });
    expect([count, skipped]).toEqual([4, [{ webhookId: one.id, reason: "rate_limited" }]]);
    const refused = await call("POST", RECOVER, body());
    expect([refused.status, refused.json.error.code, refused.headers["retry-after"]]).toEqual([
      429,
      "rate_limited",
      "60",
    ]);
    await clock.advance(MINUTE);
    expect((await deliveries.recover({ account: ACCOUNT, since })).skipped).toEqual([]);
  });

  it("ends at the account's budget of examined events, and leaves the rest for later", async () => {
    const { deliveries, clock } = await startFailed({ limits: { recoveredEventsPerMinute: 3 } });
    const { webhooks, skipped } = await deliveries.recover({ account: ACCOUNT, since });
    expect([webhooks.length, skipped.map(({ reason }) => reason)]).toEqual([1, ["rate_limited"]]);
    await expect(deliveries.recover({ account: ACCOUNT, since })).rejects.toMatchObject({
      code: "rate_limited",
    });
    await clock.advance(5 * MINUTE);
    const [left] = skipped;
    expect(await deliveries.recover({ webhookId: left?.webhookId ?? "", since })).toEqual({ count: 4 });
  });

  it.each([
    // Each webhook missed four events, so its recovery takes two calls.
    { from: 2, counts: [2], unavailable: 2 },
    { from: 3, counts: [4], unavailable: 1 },
    { from: 4, counts: [4, 2], unavailable: 1 },
    { from: 5, counts: [4, 4], unavailable: 0 },
  ])(
    "says what it created before the storage refused call $from, and which webhooks are left",
    async ({ from, counts, unavailable }) => {
      const { call, webhooks: service, register, one, two, run, sent } = await startRefusing(from);
      const off = await register();
      await service.registrations.update({ id: off.id, status: "DISABLED" });
      const { status, json } = await call("POST", RECOVER, body());
      const found: readonly { readonly count: number; readonly webhookId: string }[] = json.webhooks;
      const total = counts.reduce((sum, count) => sum + count, 0);
      expect([status, json.count, found.map(({ count }) => count)]).toEqual([202, total, counts]);
      const done = new Set(found.filter(({ count }) => count === 4).map(({ webhookId }) => webhookId));
      const left = [one.id, two.id].filter((id) => !done.has(id));
      expect(left).toHaveLength(unavailable);
      expect(json.skipped).toHaveLength(unavailable + 1);
      expect(json.skipped).toEqual(
        expect.arrayContaining([
          ...left.map((webhookId) => ({ webhookId, reason: "unavailable" })),
          { webhookId: off.id, reason: "webhook_disabled" },
        ]),
      );
      await run(MINUTE);
      expect(sent).toHaveLength(total);
    },
  );

  it("rejects with the error of the storage if nothing was created", async () => {
    const { deliveries, call } = await startRefusing(1);
    const refused = { code: "storage_unavailable" };
    await expect(deliveries.recover({ account: ACCOUNT, since })).rejects.toMatchObject(refused);
    expect((await call("POST", RECOVER, body())).status).toBe(503);
  });

  it("of one webhook sends and notes what was created before the storage refused the rest", async () => {
    const counts: (number | undefined)[] = [];
    const audit = ({ action, count }: AuditEntry): void => {
      if (action === "webhook.recovered") counts.push(count);
    };
    const { deliveries, one, run, sent } = await startRefusing(2, { audit });
    await expect(deliveries.recover({ webhookId: one.id, since })).rejects.toMatchObject({
      code: "storage_unavailable",
    });
    await run(MINUTE);
    expect([sent.length, counts]).toEqual([2, [2]]);
  });

  it.each([
    ["since", {}, { since: undefined }],
    ["since", { since: "yesterday" }, {}],
    ["state", { state: "waiting" }, {}],
    ["state", { state: ["failed"] }, {}],
    ["state", { state: "__proto__" }, {}],
    ["type", { type: "patient.*" }, {}],
    ["type", { type: "webhook.test" }, {}],
    ["type", { type: 7 }, {}],
    ["type", { type: "x".repeat(10_000) }, {}],
    ["webhookId", { webhookId: "x" }, {}],
  ])("refuses a wrong %s, %o", async (field, wrong, removed) => {
    const { call, one } = await startFailed();
    const json = { since: since.toISOString(), ...wrong, ...removed };
    for (const path of [RECOVER, `/webhooks/${one.id}/recover`]) {
      const answer = await call("POST", path, { json });
      expect([answer.status, answer.json.error.field]).toEqual([400, field]);
    }
    expect((await call("POST", RECOVER, body())).json.count).toBe(8);
  });
});
