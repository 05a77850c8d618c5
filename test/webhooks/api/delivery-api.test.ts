import { describe, expect, it } from "vitest";
import { PostbellError } from "../../../src/core/errors.js";
import { bearer } from "../../../src/webhooks/access.js";
import {
  DAY,
  type Harness,
  type HarnessOptions,
  HOUR,
  isSignedBy,
  MINUTE,
  response,
  SECOND,
  START,
  startHarness,
} from "../../support/webhook-harness.js";

const KEYS: Readonly<Record<string, { readonly id: string; readonly account: string }>> = {
  "key-1": { id: "key-1", account: "clinic" },
  "key-2": { id: "key-2", account: "clinic" },
  "key-b": { id: "key-1", account: "hospital" },
};
const ANY_ID = "3d3f1c1e-6f5b-4b5a-9a52-0a4cf3f6a111";
const iso = (ms: number): string => new Date(ms).toISOString();

interface Asked {
  /** `null` sends none. */
  readonly key?: string | null | undefined;
  readonly query?: string | undefined;
  readonly json?: unknown;
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly text: string;
  readonly json: Body;
}

/** The fields that a test uses, if they are present. */
interface Body {
  readonly error: { readonly code: string; readonly message: string; readonly field?: string };
  readonly deliveries: readonly { readonly eventId: string }[];
  readonly next: string | null;
  readonly eventTypes: readonly string[];
  readonly secret: string;
  readonly rotatesAt: string;
}

type Rest = Harness & {
  readonly call: (method: string, path: string, asked?: Asked) => Promise<Answer>;
};

/** A service that sends, and its API with two keys of the clinic and one of the hospital. */
async function startApi({ options, ...rest }: HarnessOptions = {}): Promise<Rest> {
  const harness = await startHarness({
    options: {
      access: { authenticate: (request) => KEYS[bearer(request) ?? ""] ?? null, canRead: () => true },
      retry: { jitter: 0 },
      ...options,
    },
    ...rest,
  });
  const call: Rest["call"] = async (method, path, { key = "key-1", query = "", json } = {}) => {
    const answer = await harness.webhooks.handle({
      method,
      path: `/v1${path}`,
      query,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(json === undefined ? {} : { "content-type": "application/json" }),
      },
      body: json === undefined ? null : Buffer.from(JSON.stringify(json)),
      baseUrl: "https://api.example.com",
    });
    const text = typeof answer?.body === "string" ? answer.body : "";
    const { status = 0, headers = {} } = answer ?? {};
    return { status, headers, text, json: JSON.parse(text || "null") as Body };
  };
  return { ...harness, call };
}

/** Every row that repairs or shows deliveries, as a good request. */
const rows = (webhookId: string, deliveryId: string): readonly (readonly [string, string, unknown?])[] => [
  ["GET", `/webhooks/${webhookId}/deliveries`],
  ["GET", `/webhooks/${webhookId}/deliveries/${deliveryId}`],
  ["POST", `/webhooks/${webhookId}/deliveries/${deliveryId}/resend`],
  ["POST", `/webhooks/${webhookId}/recover`, { since: iso(START) }],
  ["POST", `/webhooks/${webhookId}/test`],
  ["POST", `/webhooks/${webhookId}/rotate`],
  ["POST", `/webhooks/${webhookId}/rotate/finish`],
  ["GET", `/webhooks/${webhookId}/stats`],
];

describe("the delivery log over REST", () => {
  it("lists deliveries newest first, and shows one with all its attempts, but nothing of the record", async () => {
    const { register, emit, run, respond, call } = await startApi({
      answer: () => response(500, {}, "<b>no\r\nroom</b>"),
      options: { delivery: { excerptCharacters: 20 } },
    });
    const { id } = await register();
    const eventId = await emit({ resource: { resourceType: "Patient", id: "1", name: [{ text: "Grey" }] } });
    await run(MINUTE);
    respond(() => 204);
    await run(HOUR);
    const delivery = {
      id: `${id}.${eventId}`,
      webhookId: id,
      eventId,
      type: "patient.updated",
      subject: "Patient/1",
      tags: [],
      state: "delivered",
      reason: null,
      createdAt: iso(START),
      startedAt: iso(START),
      nextAttemptAt: null,
      endedAt: iso(START + 15 * MINUTE),
    };
    const ok = { at: iso(START + 15 * MINUTE), kind: "delivered", status: 204, code: "HTTP_204" };
    const list = await call("GET", `/webhooks/${id}/deliveries`);
    expect(list.json).toEqual({
      deliveries: [{ ...delivery, attemptCount: 2, lastAttempt: { ...ok, durationMs: 0 } }],
      next: null,
    });
    const one = await call("GET", `/webhooks/${id}/deliveries/${id}.${eventId}`);
    expect(one.json).toEqual({
      ...delivery,
      attempts: [
        {
          at: iso(START),
          durationMs: 0,
          step: 0,
          isExtra: false,
          kind: "http",
          status: 500,
          code: "HTTP_500",
          excerpt: "<b>no room</b>",
        },
        { ...ok, durationMs: 0, step: 1, isExtra: false, excerpt: null },
      ],
    });
    for (const { status, headers, text } of [list, one]) {
      expect(status).toBe(200);
      expect(headers).toEqual({
        "content-type": "application/json; charset=utf-8",
        "cache-control": "no-store",
        vary: "Authorization",
        "x-content-type-options": "nosniff",
      });
      expect(text).not.toContain("Grey");
    }
  });

  it("lists by state, type and time, in pages", async () => {
    const { register, emit, run, respond, call } = await startApi();
    const { id } = await register();
    const ids: string[] = [];
    for (let count = 0; count < 5; count++) {
      if (count === 3) respond(() => 500);
      ids.unshift(await emit());
      await run(MINUTE);
    }
    const of = async (query: string): Promise<string[]> => {
      const seen: string[] = [];
      for (let cursor = ""; ; ) {
        const { json } = await call("GET", `/webhooks/${id}/deliveries`, {
          query: `${query}&limit=2${cursor}`,
        });
        expect(json.deliveries.length).toBeLessThanOrEqual(2);
        seen.push(...json.deliveries.map(({ eventId }) => eventId));
        if (json.next === null) return seen;
        cursor = `&cursor=${json.next}`;
      }
    };
    expect(await of("")).toEqual(ids);
    expect(await of("state=pending")).toEqual(ids.slice(0, 2));
    expect(await of("state=delivered")).toEqual(ids.slice(2));
    expect(await of("type=patient.deleted")).toEqual([]);
    expect(await of("type=webhook.test")).toEqual([]);
    const [second, fourth] = [iso(START + MINUTE), iso(START + 3 * MINUTE)];
    expect(await of(`since=${second}&until=${fourth}`)).toEqual(ids.slice(2, 4));
    expect(await of(`since=${second}&type=patient.updated&state=pending`)).toEqual(ids.slice(0, 2));
    expect(await of(`until=${encodeURIComponent("2026-01-01T01:01:00+01:00")}`)).toEqual(ids.slice(4));
  });

  it("has 72 hours of one webhook, and the latest 24 of each in a list", async () => {
    const { register, emit, run, call } = await startApi();
    const { id } = await register();
    for (let hour = 0; hour < 80; hour += 1) {
      await emit();
      await run(60 * MINUTE);
    }
    const last = START + 79 * 60 * MINUTE;
    const read = async (path: string, query = "include=stats"): Promise<ReturnType<typeof JSON.parse>> =>
      (await call("GET", path, { query })).json;
    const toStarts = ({ stats }: { stats: { hours: { at: string }[] } }) => stats.hours.map(({ at }) => at);
    const one = toStarts(await read(`/webhooks/${id}`));
    expect([one.length, one.at(-1)]).toEqual([71, iso(last)]);
    const { webhooks } = await read("/webhooks");
    expect(webhooks.map(toStarts)).toEqual([one.slice(-24)]);
    expect(Object.keys((await read("/webhooks", "")).webhooks[0])).not.toContain("stats");
  });

  it("counts a webhook's deliveries and tells how its endpoint is", async () => {
    const { register, emit, run, respond, call, webhooks } = await startApi();
    const { id } = await register();
    const stats = async (): Promise<unknown> => (await call("GET", `/webhooks/${id}/stats`)).json;
    const none = {
      pending: 0,
      delivered: 0,
      failed: 0,
      withheld: 0,
      lastDay: { attempts: 0, succeeded: 0, averageMs: null as number | null },
      hours: [] as unknown[],
      eventTypes: null,
      rotatesAt: null,
      nextAttemptAt: null,
      lastAttempt: null,
    };
    const ok = { status: "ok", failingSince: null, warnAt: null, disableAt: null };
    expect(await stats()).toEqual({ ...none, health: ok });
    await emit();
    await run(MINUTE);
    respond(() => 503);
    await emit();
    await run(MINUTE);
    const failingSince = START + MINUTE;
    const failing = {
      ...none,
      delivered: 1,
      pending: 1,
      lastDay: { attempts: 2, succeeded: 1, averageMs: 0 },
      hours: [{ at: iso(START), delivered: 1, failed: 1, p50: 0, p95: 0 }],
      health: {
        status: "failing",
        failingSince: iso(failingSince),
        warnAt: iso(failingSince + 3 * DAY),
        disableAt: iso(failingSince + 4 * DAY),
      },
      nextAttemptAt: iso(failingSince + 15 * MINUTE),
      lastAttempt: { at: iso(failingSince), kind: "http", status: 503, code: "HTTP_503" },
    };
    expect(await stats()).toEqual(failing);
    expect((await webhooks.deliveries.stats(id)).health.warnAt).toEqual(new Date(failingSince + 3 * DAY));
    await run(3 * DAY);
    expect(await stats()).toMatchObject({
      failed: 1,
      nextAttemptAt: null,
      health: { ...failing.health, status: "warned" },
    });
    await run(DAY);
    const disabled = { status: "disabled", failingSince: iso(failingSince), warnAt: null, disableAt: null };
    expect(await stats()).toMatchObject({ health: disabled });
    await webhooks.registrations.update({ id, status: "ENABLED" });
    expect(await stats()).toMatchObject({ health: ok });
    await webhooks.registrations.update({ id, status: "DISABLED" });
    expect(await stats()).toMatchObject({ health: { ...disabled, failingSince: null } });
  });

  it("tells the event types to whoever has a key", async () => {
    const { call, webhooks } = await startApi();
    const { status, json } = await call("GET", "/event-types", { key: "key-b" });
    expect(status).toBe(200);
    expect(json.eventTypes).toHaveLength(50);
    expect(json.eventTypes).toEqual(json.eventTypes.toSorted());
    expect(json.eventTypes).toContain("patient.created");
    expect(json.eventTypes).not.toContain("webhook.test");
    expect(webhooks.eventTypes()).toEqual(json.eventTypes);
    expect((await call("GET", "/event-types", { key: null })).status).toBe(401);
  });
});

describe("repair over REST", () => {
  it("resends one delivery, and recovers what was missed while the webhook was disabled", async () => {
    const { register, emit, run, call, sent, webhooks } = await startApi();
    const { id } = await register();
    const first = await emit();
    await run(SECOND);
    const again = await call("POST", `/webhooks/${id}/deliveries/${id}.${first}/resend`);
    expect([again.status, again.json]).toEqual([202, { id: `${id}.${first}.1` }]);
    await run(SECOND);
    expect(sent.map(({ eventId }) => eventId)).toEqual([first, first]);
    await webhooks.registrations.update({ id, status: "DISABLED" });
    const missed = await emit();
    await run(HOUR);
    await webhooks.registrations.update({ id, status: "ENABLED" });
    const recovered = await call("POST", `/webhooks/${id}/recover`, { json: { since: iso(START) } });
    expect([recovered.status, recovered.json]).toEqual([202, { count: 1 }]);
    await run(SECOND);
    expect(sent.at(-1)?.eventId).toBe(missed);
    const twice = await call("POST", `/webhooks/${id}/recover`, { json: { since: iso(START) } });
    expect(twice.json).toEqual({ count: 0 });
  });

  it("rotates the secret: one signature at a time, by the old one until the time it names", async () => {
    const { register, emit, run, call, sent } = await startApi();
    const { id, secret } = await register();
    const rotated = await call("POST", `/webhooks/${id}/rotate`, { json: { overlap_seconds: 3600 } });
    expect(rotated.status).toBe(200);
    expect(rotated.json).toEqual({
      secret: expect.stringMatching(/^whsec_/),
      rotatesAt: iso(START + HOUR),
    });
    const signedBy = async (): Promise<readonly boolean[]> => {
      await emit();
      await run(1);
      const last = sent.at(-1);
      if (!last) throw new Error("nothing was sent");
      expect(last.headers["X-Service-Signature"]?.match(/s=/g)).toHaveLength(1);
      return [isSignedBy(last, secret), isSignedBy(last, rotated.json.secret)];
    };
    expect(await signedBy()).toEqual([true, false]);
    await run(HOUR - 2);
    expect(await signedBy()).toEqual([true, false]);
    expect(await signedBy()).toEqual([false, true]);
    const defaults = await call("POST", `/webhooks/${id}/rotate`);
    expect(Date.parse(defaults.json.rotatesAt)).toBeGreaterThan(START + DAY);
    expect((await call("GET", `/webhooks/${id}`)).text).not.toContain("whsec_");
  });

  it("says until when the old secret signs, and ends a rotation early on request", async () => {
    const { register, emit, run, call, sent } = await startApi();
    const { id } = await register();
    const readRotation = async () => (await call("GET", `/webhooks/${id}/stats`)).json.rotatesAt;
    expect(await readRotation()).toBeNull();
    const { json } = await call("POST", `/webhooks/${id}/rotate`);
    expect(await readRotation()).toBe(json.rotatesAt);
    const finished = await call("POST", `/webhooks/${id}/rotate/finish`);
    expect([finished.status, finished.json]).toEqual([
      200,
      { message: "Only the new secret signs from now on." },
    ]);
    expect(await readRotation()).toBeNull();
    await emit();
    await run(1);
    expect(sent.map((one) => isSignedBy(one, json.secret))).toEqual([true]);
    expect((await call("POST", `/webhooks/${id}/rotate/finish`)).status).toBe(200);
  });

  it.each(["recover", "test"])("bounds %s by webhook and time: 429, and when to ask again", async (what) => {
    const { register, run, call, webhooks } = await startApi();
    const { id } = await register();
    const other = await register();
    const json = what === "recover" ? { since: iso(START) } : {};
    for (let count = 0; count < 6; count++)
      expect((await call("POST", `/webhooks/${id}/${what}`, { json })).status).toBe(202);
    // Another key of the account neither gets that far nor uses anything up.
    expect((await call("POST", `/webhooks/${other.id}/${what}`, { json, key: "key-2" })).status).toBe(403);
    const refused = await call("POST", `/webhooks/${id}/${what}`, { json });
    expect(refused.status).toBe(429);
    expect(refused.json.error).toEqual({
      code: "rate_limited",
      message: expect.stringContaining("10 s"),
    });
    expect(refused.headers["retry-after"]).toBe("10");
    const asked =
      what === "recover"
        ? webhooks.deliveries.recover({ webhookId: id, since: iso(START) })
        : webhooks.deliveries.test({ webhookId: id });
    await expect(asked).rejects.toMatchObject({ code: "rate_limited", retryAfterMs: 10_000 });
    expect((await call("POST", `/webhooks/${other.id}/${what}`, { json })).status).toBe(202);
    await run(10 * SECOND);
    expect((await call("POST", `/webhooks/${id}/${what}`, { json })).status).toBe(202);
  });

  it("refuses to send again while an attempt is in flight, unless it is forced", async () => {
    const { register, emit, quiet, call } = await startApi({ answer: () => new Promise(() => {}) });
    const { id } = await register();
    const deliveryId = `${id}.${await emit()}`;
    await quiet();
    const path = `/webhooks/${id}/deliveries/${deliveryId}/resend`;
    const refused = await call("POST", path);
    expect([refused.status, refused.json.error.code]).toEqual([409, "attempt_in_flight"]);
    const forced = await call("POST", path, { json: { force: true } });
    expect([forced.status, forced.json]).toEqual([202, { id: `${deliveryId}.1` }]);
    const wrong = await call("POST", path, { json: { force: "yes" } });
    expect([wrong.status, wrong.json.error.field]).toEqual([400, "force"]);
  });

  it("sends one event again to one webhook a hundred times at most", async () => {
    const { register, emit, quiet, call } = await startApi({ options: { limits: { requestsPerMinute: 0 } } });
    const { id } = await register();
    const eventId = await emit();
    const path = `/webhooks/${id}/deliveries/${id}.${eventId}/resend`;
    for (let count = 1; count <= 100; count++) {
      await quiet();
      expect((await call("POST", path)).json).toEqual({ id: `${id}.${eventId}.${count}` });
    }
    await quiet();
    const refused = await call("POST", path);
    expect([refused.status, refused.json.error.code]).toEqual([409, "resend_limit_reached"]);
  });

  it("recovers a withheld event only as often as it may be sent again", async () => {
    const { register, emit, run, quiet, call } = await startApi({
      options: {
        access: { authenticate: (request) => KEYS[bearer(request) ?? ""] ?? null, canRead: () => false },
        limits: { requestsPerMinute: 0, repairsPerMinute: 0 },
      },
    });
    const { id } = await register();
    const eventId = await emit();
    const recover = async (): Promise<unknown> => {
      await quiet();
      await run(50);
      const json = { since: iso(START), state: "withheld" };
      const { json: result } = await call("POST", `/webhooks/${id}/recover`, { json });
      return result;
    };
    const resend = () => call("POST", `/webhooks/${id}/deliveries/${id}.${eventId}/resend`);
    for (let count = 1; count < 100; count++) expect(await recover()).toEqual({ count: 1 });
    await quiet();
    await run(50);
    expect((await resend()).json).toEqual({ id: `${id}.${eventId}.100` });
    expect(await recover()).toEqual({ count: 0 });
    expect((await resend()).json.error.code).toBe("resend_limit_reached");
  });
});

describe("who may see and repair deliveries", () => {
  it("shows the log to every key of the account, lets its owner repair it, and answers any other as if there were no such webhook, byte for byte", async () => {
    const { register, emit, quiet, call } = await startApi();
    const { id } = await register();
    const deliveryId = `${id}.${await emit()}`;
    await quiet();
    const unknown = rows(ANY_ID, `${ANY_ID}.${ANY_ID}`);
    for (const [index, [method, path, json]] of rows(id, deliveryId).entries()) {
      expect([200, 202]).toContain((await call(method, path, { json })).status);
      expect((await call(method, path, { key: "key-2", json })).status).toBe(method === "GET" ? 200 : 403);
      const [, otherPath = ""] = unknown[index] ?? [];
      const nothing = await call(method, otherPath, { json });
      expect(nothing.status).toBe(404);
      expect(await call(method, path, { key: "key-b", json })).toEqual(nothing);
      for (const key of [null, "nobody"]) {
        const refused = await call(method, path, { key, json });
        expect([refused.status, refused.json.error.code]).toEqual([401, "unauthorized"]);
      }
    }
  });

  it("knows a delivery only under its own webhook", async () => {
    const { register, emit, quiet, call } = await startApi();
    const one = await register();
    const two = await register();
    const eventId = await emit();
    await quiet();
    const under = (deliveryId: string): string => `/webhooks/${two.id}/deliveries/${deliveryId}`;
    for (const [method, end] of [
      ["GET", ""],
      ["GET", "/request"],
      ["POST", "/resend"],
    ] as const) {
      const nothing = await call(method, under(`${two.id}.${ANY_ID}`) + end);
      expect(nothing.json).toEqual({ error: { code: "not_found", message: "There is no such delivery." } });
      for (const other of [
        `${one.id}.${eventId}`,
        `${two.id}.${eventId}.1`,
        two.id,
        "x",
        "%",
        "..",
        "__proto__",
      ])
        expect(await call(method, under(other) + end)).toEqual(nothing);
      expect((await call(method, under(`${two.id}.${eventId}`) + end)).status).toBeLessThan(300);
    }
  });

  it("refuses other methods with what there is", async () => {
    const { call } = await startApi();
    for (const [path, method, allow] of [
      ["/event-types", "POST", "GET, HEAD, OPTIONS"],
      [`/webhooks/${ANY_ID}/deliveries`, "POST", "GET, HEAD, OPTIONS"],
      [`/webhooks/${ANY_ID}/deliveries/x`, "DELETE", "GET, HEAD, OPTIONS"],
      [`/webhooks/${ANY_ID}/deliveries/x/request`, "POST", "GET, HEAD, OPTIONS"],
      [`/webhooks/${ANY_ID}/deliveries/x/resend`, "GET", "POST, OPTIONS"],
      [`/webhooks/${ANY_ID}/recover`, "GET", "POST, OPTIONS"],
      [`/webhooks/${ANY_ID}/test`, "GET", "POST, OPTIONS"],
      [`/webhooks/${ANY_ID}/rotate`, "GET", "POST, OPTIONS"],
      [`/webhooks/${ANY_ID}/rotate/finish`, "GET", "POST, OPTIONS"],
      [`/webhooks/${ANY_ID}/stats`, "PUT", "GET, HEAD, OPTIONS"],
    ] as const) {
      const answer = await call(method, path);
      expect([answer.status, answer.headers["allow"]]).toEqual([405, allow]);
    }
  });
});

describe("what cannot be used", () => {
  it.each([
    ["state=lost", "state", /pending, delivered, failed, withheld/],
    ["state=", "state", /pending/],
    ["type=patient.update", "type", /'patient.updated'/],
    ["type=", "type", /unknown event type/],
    ["since=yesterday", "since", /ISO 8601/],
    ["since=", "since", /ISO 8601/],
    ["until=2026-02-30T00:00:00Z", "until", /ISO 8601/],
    ["until=2026-01-01T00:00:00", "until", /offset/],
    ["limit=0", "limit", /1 to 100/],
    ["limit=x", "limit", /1 to 100/],
    ["limit=", "limit", /1 to 100/],
    ["cursor=%00", "cursor", /next/],
    ["cursor=", "cursor", /next/],
  ])("is refused in the list: %s", async (query, field, message) => {
    const { register, call } = await startApi();
    const { id } = await register();
    const { status, json } = await call("GET", `/webhooks/${id}/deliveries`, { query });
    expect(status).toBe(400);
    expect(json.error).toMatchObject({ field, message: expect.stringMatching(message) });
  });

  it.each<[string, unknown, string | undefined, RegExp]>([
    ["recover", undefined, undefined, /no body/],
    ["recover", {}, "since", /missing/],
    ["recover", { since: 0 }, "since", /ISO 8601/],
    ["recover", { since: null }, "since", /ISO 8601/],
    ["recover", { since: { valueOf: 0 } }, "since", /ISO 8601/],
    ["recover", { since: "2026-01-01" }, "since", /ISO 8601/],
    ["recover", { from: iso(START) }, "from", /'since'/],
    ["recover", [], undefined, /object/],
    ["test", { event_type: 1 }, "event_type", /string/],
    ["test", { event_type: null }, "event_type", /string/],
    ["test", { event_type: "patient.update" }, "event_type", /'patient.updated'/],
    ["test", { event_type: "patient.*" }, "event_type", /unknown event type/],
    ["test", { event_type: "consent.created" }, "event_type", /does not subscribe/],
    ["test", { type: "patient.updated" }, "type", /'event_type'/],
    ["test", "x", undefined, /object/],
    ["rotate", { overlap_seconds: -1 }, "overlap_seconds", /0 to 604800/],
    ["rotate", { overlap_seconds: 604_801 }, "overlap_seconds", /0 to 604800/],
    ["rotate", { overlap_seconds: 0.5 }, "overlap_seconds", /whole number/],
    ["rotate", { overlap_seconds: "60" }, "overlap_seconds", /whole number/],
    ["rotate", { overlap_seconds: null }, "overlap_seconds", /whole number/],
    ["rotate", { overlap: 60 }, "overlap", /'overlap_seconds'/],
  ])("is refused by %s: %j", async (what, json, field, message) => {
    const { call, webhooks, sent } = await startApi();
    const { webhook } = await webhooks.registrations.create({
      subscriber: { id: "key-1", account: "clinic" },
      url: "https://hooks.example.com/a",
      eventTypes: ["patient.*"],
    });
    const answer = await call("POST", `/webhooks/${webhook.id}/${what}`, { json });
    expect(answer.status).toBe(400);
    expect(answer.json.error.field).toBe(field);
    expect(answer.json.error.message).toMatch(message);
    expect(sent).toEqual([]);
    expect((await webhooks.deliveries.list({ webhookId: webhook.id })).items).toEqual([]);
  });

  it("is a DISABLED webhook, for all that sends", async () => {
    const { register, emit, quiet, call, webhooks } = await startApi();
    const { id } = await register();
    const deliveryId = `${id}.${await emit()}`;
    await quiet();
    await webhooks.registrations.update({ id, status: "DISABLED" });
    const wasRefused: string[] = [];
    for (const [method, path, json] of rows(id, deliveryId)) {
      const answer = await call(method, path, { json });
      if (answer.status === 200) continue;
      expect([answer.status, answer.json.error]).toEqual([
        409,
        { code: "webhook_disabled", message: expect.stringContaining("enable it") },
      ]);
      wasRefused.push(path.split("/").at(-1) ?? "");
    }
    expect(wasRefused).toEqual(["resend", "recover", "test"]);
  });

  it("is a storage that is away: 503 with Retry-After", async () => {
    const away = (): Promise<never> => Promise.reject(new PostbellError("storage_unavailable", "no answer"));
    const { register, emit, call } = await startApi({
      change: () => ({ listDeliveries: away, getDelivery: away, deliveryStats: away, recover: away }),
    });
    const { id } = await register();
    const paths = rows(id, `${id}.${await emit()}`).filter(([, path]) => !/test|rotate/.test(path));
    expect(paths).toHaveLength(5);
    for (const [method, path, json] of paths) {
      const answer = await call(method, path, { json });
      expect([answer.status, answer.headers["retry-after"]]).toEqual([503, "5"]);
    }
  });
});
