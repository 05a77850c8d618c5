/** The parts of the log that a caller asks for: statistics, attempts, one event, the request. */

import { describe, expect, it } from "vitest";
import type { Delivery, Subscriber, WebhooksOptions } from "../../../src/index.js";
import { forever, HOUR, MINUTE, response, SECOND, startHarness } from "../../support/webhook-harness.js";

const OWNER: Subscriber = { id: "key-1", account: "clinic" };
const ANY_ID = "3d3f1c1e-6f5b-4b5a-9a52-0a4cf3f6a111";
const RECORD = { resourceType: "Patient", id: "1", name: [{ text: "Grün" }] };

/** A service that sends, called through `handleAs`. */
async function startLog(options: Partial<WebhooksOptions> = {}, answer = () => response(500, {}, "no room")) {
  const harness = await startHarness({
    answer,
    options: { retry: { jitter: 0 }, delivery: { excerptCharacters: 20 }, ...options },
  });
  const read = async (path: string, query = "", as: Subscriber = OWNER) => {
    const found = await harness.webhooks.as(as).handle({
      method: "GET",
      path: `/v1${path}`,
      query,
      headers: {},
      body: null,
      baseUrl: "https://a.example",
    });
    if (typeof found?.body !== "string") throw new Error(`${path} has no text.`);
    return { status: found.status, json: JSON.parse(found.body) };
  };
  return { ...harness, read };
}

describe("include=stats", () => {
  it("adds the statistics of each webhook to a list and to one webhook", async () => {
    const { register, emit, quiet, read } = await startLog();
    const [one, two] = [await register(), await register()];
    await emit();
    await quiet();
    const { json } = await read("/webhooks", "include=stats");
    expect(json.webhooks.map(({ id }: { id: string }) => id)).toEqual([one.id, two.id]);
    for (const webhook of json.webhooks) {
      expect(webhook.stats).toEqual((await read(`/webhooks/${webhook.id}/stats`)).json);
      expect(webhook.stats).toMatchObject({ pending: 1, health: { status: "failing" } });
      expect((await read(`/webhooks/${webhook.id}`, "include=stats")).json).toEqual(webhook);
    }
    for (const path of ["/webhooks", `/webhooks/${one.id}`])
      expect(JSON.stringify((await read(path)).json)).not.toContain("stats");
  });

  it.each([
    "attempts",
    "",
    "Stats",
    "stats,stats",
    "stats,",
    "event_types,stats,stats",
    "eventTypes",
    "stats ,event_types",
  ])("refuses include=%s", async (include) => {
    const { register, read } = await startLog();
    const { id } = await register();
    for (const path of ["/webhooks", `/webhooks/${id}`])
      expect(await read(path, `include=${include}`)).toMatchObject({
        status: 400,
        json: { error: { code: "invalid_argument", field: "include" } },
      });
  });

  it("adds the subscription of each webhook, alone or with the statistics", async () => {
    const { webhooks, register, read } = await startLog();
    const all = await register();
    const { webhook: some } = await webhooks.registrations.create({
      subscriber: OWNER,
      url: "https://hooks.example.com/some",
      eventTypes: ["patient.*", "consent.created"],
    });
    const list = async (query: string) => (await read("/webhooks", query)).json.webhooks;
    const [first, second] = await list("include=event_types");
    expect([first, second]).toEqual([
      { ...(await read(`/webhooks/${all.id}`)).json, event_types: ["*"] },
      { ...(await read(`/webhooks/${some.id}`)).json, event_types: ["patient.*", "consent.created"] },
    ]);
    expect((await read(`/webhooks/${some.id}`, "include=event_types")).json).toEqual(second);
    const both = (await read(`/webhooks/${some.id}`, "include=event_types%2Cstats")).json;
    expect(both).toMatchObject({ ...second, stats: { eventTypes: second.event_types } });
    const foreign = await read(`/webhooks/${some.id}`, "include=event_types", {
      id: "key-2",
      account: "other",
    });
    expect([foreign.status, foreign.json.error.code]).toEqual([404, "not_found"]);
  });

  it("returns a subscription that an update accepts, also from another key that only disables", async () => {
    const { webhooks, register, read } = await startLog();
    const { id } = await register();
    const { json: record } = await read(`/webhooks/${id}`, "include=event_types");
    const colleague: Subscriber = { id: "key-2", account: OWNER.account };
    const put = async (body: object, as: Subscriber): Promise<unknown> => {
      const response = await webhooks.as(as).handle({
        method: "PUT",
        path: `/v1/webhooks/${id}`,
        query: "",
        headers: { "content-type": "application/json" },
        body: Buffer.from(JSON.stringify(body)),
        baseUrl: "https://a.example",
      });
      return response?.status;
    };
    expect(await put({ ...record, status: "DISABLED" }, colleague)).toBe(200);
    expect(await put({ ...record, event_types: ["patient.*"], status: "DISABLED" }, colleague)).toBe(403);
    expect(await put(record, OWNER)).toBe(200);
  });

  it("costs an account one more request for each webhook of a list", async () => {
    const { webhooks, register, clock } = await startLog({ limits: { requestsPerMinute: 6 } });
    for (let count = 0; count < 4; count++) await register();
    const list = async (query: string) => {
      const found = await webhooks.handle({
        method: "GET",
        path: "/v1/webhooks",
        query,
        headers: { authorization: "Bearer key" },
        body: null,
        baseUrl: "https://a.example",
      });
      return [found?.status, found?.headers["retry-after"]];
    };
    expect(await list("include=stats")).toEqual([200, undefined]);
    expect(await list("")).toEqual([200, undefined]);
    expect(await list("")).toEqual([429, "10"]);
    await clock.advance(10 * SECOND);
    expect(await list("")).toEqual([200, undefined]);
  });
});

describe("lists of deliveries", () => {
  it("have all attempts with include=attempts, but never the beginning of a response", async () => {
    const { register, emit, run, read } = await startLog();
    const { id } = await register();
    await emit();
    await run(HOUR);
    const { deliveries } = (await read(`/webhooks/${id}/deliveries`, "include=attempts")).json;
    const { attempts, ...row } = deliveries[0];
    const one = (await read(`/webhooks/${id}/deliveries/${row.id}`)).json;
    expect(one.attempts).toHaveLength(3);
    expect(one.attempts[0].excerpt).toBe("no room");
    expect(attempts).toEqual(one.attempts.map((attempt: object) => ({ ...attempt, excerpt: null })));
    expect((await read(`/webhooks/${id}/deliveries`)).json).toEqual({ deliveries: [row], next: null });
    expect((await read(`/webhooks/${id}/deliveries`, "include=body")).status).toBe(400);
  });

  it("have the deliveries of one event with event_id, newest first, with the other filters and in pages", async () => {
    const { webhooks, register, emit, run, read } = await startLog({}, () => response(204));
    const [{ id }, other] = [await register(), await register()];
    const eventId = await emit();
    await emit();
    const first = `${id}.${eventId}`;
    await run(HOUR);
    for (let count = 0; count < 11; count++) {
      await webhooks.deliveries.resend({ id: first });
      await run(HOUR);
    }
    const resent = Array.from({ length: 11 }, (_, index) => `${first}.${index + 1}`).reverse();
    const list = async (query: string) => {
      const { json } = await read(`/webhooks/${id}/deliveries`, query);
      return { ids: json.deliveries.map((delivery: Delivery) => delivery.id), next: json.next };
    };
    const all = [...resent, first];
    expect(await list(`event_id=${eventId}`)).toEqual({ ids: all, next: null });
    expect(await list(`event_id=${eventId.toUpperCase()}`)).toEqual({ ids: all, next: null });
    const page = await list(`event_id=${eventId}&limit=8`);
    expect(page.ids).toEqual(all.slice(0, 8));
    expect(await list(`event_id=${eventId}&limit=8&cursor=${page.next}`)).toEqual({
      ids: all.slice(8),
      next: null,
    });
    const [{ createdAt }] = (await webhooks.deliveries.list({ webhookId: id, limit: 1 })).items as [Delivery];
    expect((await list(`event_id=${eventId}&since=${createdAt.toISOString()}`)).ids).toEqual([all[0]]);
    expect((await list(`event_id=${eventId}&until=${createdAt.toISOString()}`)).ids).toEqual(all.slice(1));
    expect((await list(`event_id=${eventId}&state=delivered&type=patient.updated`)).ids).toEqual(all);
    expect((await list(`event_id=${eventId}&state=failed`)).ids).toEqual([]);
    expect((await list(`event_id=${eventId}&type=patient.created`)).ids).toEqual([]);
    expect(await list(`event_id=${ANY_ID}`)).toEqual({ ids: [], next: null });
    const elsewhere = await webhooks.deliveries.list({ webhookId: other.id, eventId });
    expect(elsewhere.items.map((delivery) => delivery.id)).toEqual([`${other.id}.${eventId}`]);
  });

  it.each([
    ["event_id", "event_id=1"],
    ["event_id", "event_id="],
    ["event_id", `event_id=${ANY_ID}.1`],
    ["cursor", `event_id=${ANY_ID}&cursor=x`],
  ])("name %s for ?%s", async (field, query) => {
    const { register, read } = await startLog();
    const { id } = await register();
    const { status, json } = await read(`/webhooks/${id}/deliveries`, query);
    expect([status, json.error.field]).toEqual([400, field]);
  });
});

describe("the request of a delivery", () => {
  it("is what the attempts sent, without its signatures, and has the body on demand", async () => {
    const { register, emit, quiet, sent, read } = await startLog();
    const { id, secret } = await register();
    const path = `/webhooks/${id}/deliveries/${id}.${await emit({ resource: RECORD })}/request`;
    await quiet();
    const [attempt] = sent;
    if (attempt === undefined) throw new Error("Nothing was sent.");
    const perAttempt = "(computed for each attempt)";
    const computed = ["X-Service-Signature", "webhook-timestamp", "webhook-signature"];
    const expected = {
      method: attempt.method,
      url: attempt.url,
      headers: Object.fromEntries(
        Object.entries(attempt.headers).map(([name, text]) => [
          name,
          computed.includes(name) ? perAttempt : text,
        ]),
      ),
      bytes: attempt.body.length,
      body: null,
    };
    expect(await read(path)).toEqual({ status: 200, json: expected });
    const body = Buffer.from(attempt.body).toString();
    expect(body.length).toBeLessThan(attempt.body.length);
    const { status, json } = await read(path, "include=body");
    expect([status, json]).toEqual([200, { ...expected, body }]);
    expect(JSON.stringify(json)).not.toContain(secret);
    expect((await read(path, "include=attempts")).status).toBe(400);
  });

  it("leaves out what the subscriber may not read now; without the record itself it is 403", async () => {
    let hidden = "";
    const canRead = (_: Subscriber, { resourceType }: { resourceType: string }): boolean =>
      resourceType !== hidden;
    const { register, emit, quiet, read } = await startLog({
      access: { authenticate: () => OWNER, canRead },
    });
    const { id } = await register();
    const resource = { ...RECORD, managingOrganization: { reference: "Organization/2" } };
    const related = [{ resourceType: "Organization", id: "2" }];
    const path = `/webhooks/${id}/deliveries/${id}.${await emit({ resource, related })}/request`;
    await quiet();
    const types = async (): Promise<string[]> => {
      const { json } = await read(path, "include=body");
      const { event } = JSON.parse(json.body);
      return event.context[0].resource.entry.map((entry: { resource: { resourceType: string } }) => {
        return entry.resource.resourceType;
      });
    };
    expect(await types()).toEqual(["Patient", "Organization"]);
    hidden = "Organization";
    expect(await types()).toEqual(["Patient"]);
    hidden = "Patient";
    for (const query of ["", "include=body"])
      expect(await read(path, query)).toMatchObject({
        status: 403,
        json: { error: { code: "record_not_readable" } },
      });
  });

  it("is 503 while canRead fails or does not answer", async () => {
    let answer: () => unknown = () => true;
    const canRead = (): boolean => answer() as boolean;
    const { register, emit, quiet, clock, read } = await startLog({
      access: { authenticate: () => OWNER, canRead },
    });
    const { id } = await register();
    const path = `/webhooks/${id}/deliveries/${id}.${await emit()}/request`;
    await quiet();
    for (const failing of [
      () => {
        throw new Error("away");
      },
      () => "yes",
      () => forever(),
    ]) {
      answer = failing;
      const found = read(path);
      await clock.advance(5 * SECOND);
      expect((await found).status).toBe(503);
    }
  });

  it("shows a test without a call of canRead, and is 404 once the event is gone", async () => {
    const { webhooks, register, run, quiet, read } = await startLog({
      access: { authenticate: () => OWNER, canRead: () => false },
      retention: { keepMs: MINUTE },
    });
    const { id } = await register();
    const test = await webhooks.deliveries.test({ webhookId: id });
    await quiet();
    const path = `/webhooks/${id}/deliveries/${test.id}/request`;
    expect((await read(path, "include=body")).json.body).toContain("OperationOutcome");
    await run(HOUR);
    await webhooks.deliveries.test({ webhookId: id });
    await quiet();
    expect((await read(path)).status).toBe(404);
  });
});
