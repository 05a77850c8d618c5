/** The audit hook, the audit log and `notify.exhausted`: complete, discreet, never in the way. */

import { describe, expect, it, vi } from "vitest";
import { PostbellError } from "../../src/core/errors.js";
import { createWebhooks } from "../../src/index.js";
import { bearer } from "../../src/webhooks/access.js";
import type { AuditEntry } from "../../src/webhooks/webhook.js";
import { memoryStorage } from "../../storage/memory/index.js";
import {
  DAY,
  forever,
  type Harness,
  type HarnessOptions,
  type Held,
  HOUR,
  held,
  MINUTE,
  response,
  SECOND,
  START,
  SUBSCRIBER,
  startHarness,
} from "../support/webhook-harness.js";

const KEYS: Readonly<Record<string, { readonly id: string; readonly account: string }>> = {
  "secret-key-1": SUBSCRIBER,
  "secret-key-2": { id: "key-2", account: "clinic" },
  "secret-key-b": { id: "key-1", account: "hospital" },
};
const URL = "https://hooks.example.com/a";

interface Answer {
  readonly status: number | undefined;
  readonly json: {
    readonly entries: readonly Record<string, unknown>[];
    readonly next: string | null;
    readonly error: { readonly code: string; readonly field?: string };
    readonly webhook: { readonly id: string };
    readonly id: string;
    readonly secret: string;
  };
}

type Audited = Harness & {
  readonly entries: AuditEntry[];
  readonly call: (method: string, path: string, given?: { key?: string; json?: unknown }) => Promise<Answer>;
};

/** A service with an audit hook that notes its entries, and with a log of a thousand. */
async function startAudited({ options, ...rest }: HarnessOptions = {}): Promise<Audited> {
  const entries: AuditEntry[] = [];
  const harness = await startHarness({
    options: {
      access: {
        authenticate: (request) => KEYS[bearer(request) ?? ""] ?? null,
        canRead: () => true,
        canActFor: () => true,
      },
      retry: { jitter: 0 },
      limits: { auditEntries: 1_000 },
      audit: (entry) => entries.push(entry),
      ...options,
    },
    ...rest,
  });
  const call: Audited["call"] = async (method, path, { key = "secret-key-1", json } = {}) => {
    const [target = "", query = ""] = path.split("?");
    const answer = await harness.webhooks.handle({
      ...{ method, path: `/v1${target}`, query, baseUrl: "https://api.example.com" },
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: json === undefined ? null : Buffer.from(JSON.stringify(json)),
    });
    const text = typeof answer?.body === "string" ? answer.body : "null";
    return { status: answer?.status, json: JSON.parse(text) as Answer["json"] };
  };
  return { ...harness, entries, call };
}

const toLines = (entries: readonly Pick<AuditEntry, "action" | "actor">[]): string[] =>
  entries.map(({ action, actor }) => `${action} ${actor.type}${"id" in actor ? ` ${actor.id}` : ""}`);

describe("the audit hook", () => {
  it("tells what the host, the keys and the service did, in order", async () => {
    const s = await startAudited({ answer: () => response(500) });
    const { registrations, deliveries } = s.webhooks;
    const own = s.webhooks.as(SUBSCRIBER);
    const { id } = await s.register(URL);
    await registrations.update({ id, url: `${URL}b`, eventTypes: ["patient.*"] });
    await registrations.update({ id, url: `${URL}b`, status: "ENABLED" });
    await own.registrations.update({ id, status: "DISABLED", url: `${URL}c` });
    await own.registrations.update({ id, status: "ENABLED" });
    await own.registrations.rotateSecret({ id });
    await own.registrations.finishRotation(id);
    await own.registrations.finishRotation(id);
    await registrations.transfer({ id, subscriberId: "key-2" });
    const eventId = await s.emit();
    await s.run(SECOND);
    await own.deliveries.resend({ id: `${id}.${eventId}` });
    await deliveries.test({ webhookId: id, type: "patient.created" });
    await s.run(3 * DAY);
    const since = new Date(START);
    await own.deliveries.recover({ webhookId: id, since });
    expect(await own.deliveries.recover({ webhookId: id, since })).toEqual({ count: 0 });
    expect(await own.deliveries.recover({ account: "clinic", since })).toMatchObject({ count: 0 });
    await registrations.remove(id);
    await s.quiet();
    expect(toLines(s.entries)).toEqual([
      "webhook.created host",
      "webhook.changed host",
      "webhook.changed key key-1",
      "webhook.disabled key key-1",
      "webhook.enabled key key-1",
      "webhook.rotated key key-1",
      "webhook.rotation_finished key key-1",
      "webhook.transferred host",
      "delivery.resent key key-1",
      "webhook.tested host",
      "delivery.failed service",
      "webhook.recovered key key-1",
      "webhook.deleted host",
    ]);
    const common = { account: "clinic", webhookId: id };
    for (const entry of s.entries) expect(entry).toMatchObject({ ...common, at: expect.any(Date) as Date });
    expect(s.entries.flatMap(({ fields = [] }) => [fields])).toMatchObject({ 1: ["url", "eventTypes"] });
    expect(s.entries.find(({ action }) => action === "delivery.failed")).toMatchObject({
      ...{ deliveryId: `${id}.${eventId}`, eventId, reason: "exhausted" },
    });
    expect(s.entries.find(({ action }) => action === "webhook.recovered")?.count).toBe(1);
  });

  it("reports no change if a webhook is given what it has, also nothing for what it lacks", async () => {
    const s = await startAudited();
    const { id } = await s.register(URL);
    const path = `/webhooks/${id}`;
    const { json } = await s.call("GET", `${path}?include=details,event_types`);
    expect(json).toMatchObject({ description: null, metadata: null, event_types: ["*"] });
    expect((await s.call("PUT", path, { json })).status).toBe(200);
    await s.webhooks.registrations.update({ id, description: null, metadata: null });
    await s.webhooks.registrations.update({ id, description: "Ward 4", metadata: { a: "1", b: "2" } });
    await s.webhooks.registrations.update({ id, description: "Ward 4", metadata: { b: "2", a: "1" } });
    await s.webhooks.registrations.update({ id, description: null });
    await s.quiet();
    const changed = s.entries.filter(({ action }) => action === "webhook.changed");
    expect(changed.map(({ fields }) => fields)).toEqual([["description", "metadata"], ["description"]]);
  });

  it("tells of REST calls by the key, and of a repeated registration once", async () => {
    const s = await startAudited();
    const register = () =>
      s.webhooks.registrations.create({ subscriber: SUBSCRIBER, url: URL, idempotencyKey: "once" });
    await register();
    await register();
    const { json } = await s.call("POST", "/webhooks", { json: { url: URL } });
    await s.call("DELETE", `/webhooks/${json.webhook.id}`, { key: "secret-key-2" });
    await s.quiet();
    expect(toLines(s.entries)).toEqual([
      "webhook.created host",
      "webhook.created key key-1",
      "webhook.deleted key key-2",
    ]);
  });

  it("names the changed fields without their values, and each webhook of a recovery of an account", async () => {
    const s = await startAudited();
    const first = await s.register();
    const second = await s.register("https://hooks.example.com/b");
    const metadata = { ward: "value" };
    const change = { description: "value", metadata, url: URL };
    await s.webhooks.registrations.update({ id: first.id, ...change });
    await s.webhooks.registrations.update({ id: first.id, ...change });
    const setBoth = async (status: "ENABLED" | "DISABLED"): Promise<void> => {
      for (const { id } of [first, second]) await s.webhooks.registrations.update({ id, status });
    };
    const recover = () =>
      s.webhooks.as(SUBSCRIBER).deliveries.recover({ account: "clinic", since: new Date(START) });
    await recover(); // of nothing, which is not reported
    await setBoth("DISABLED");
    await s.emit();
    await setBoth("ENABLED");
    await recover();
    await s.quiet();
    const told = s.entries.filter(({ action }) => ["webhook.changed", "webhook.recovered"].includes(action));
    expect(told.map(({ webhookId, fields, count }) => [webhookId, fields ?? count])).toEqual([
      [first.id, ["description", "metadata"]],
      [first.id, 1],
      [second.id, 1],
    ]);
  });

  it("tells of withheld deliveries, and of an endpoint that the service disabled", async () => {
    let canRead = false;
    const s = await startAudited({
      answer: () => 500,
      options: { access: { authenticate: () => null, canRead: () => canRead } },
    });
    await s.register();
    await s.emit();
    await s.quiet();
    canRead = true;
    await s.emit();
    await s.run(5 * DAY);
    expect(toLines(s.entries)).toEqual([
      "webhook.created host",
      "delivery.withheld service",
      "delivery.failed service",
      "webhook.disabled service",
    ]);
    expect(s.entries[1]?.reason).toBe("access_denied");
  });

  it("reports no call that was refused, and no attempt that is retried", async () => {
    const s = await startAudited({ answer: () => 500 });
    const { id } = await s.register();
    await expect(s.webhooks.registrations.update({ id, url: "http://a.example" })).rejects.toThrow(/https/i);
    await expect(s.webhooks.registrations.remove("nothing")).rejects.toThrow(/no such webhook/);
    await expect(s.webhooks.deliveries.test({ webhookId: id, type: "no.type" })).rejects.toThrow(
      /unknown event type/,
    );
    await s.emit();
    await s.run(HOUR);
    expect(toLines(s.entries)).toEqual(["webhook.created host"]);
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("secret of the host");
      },
    ],
    ["rejects", () => Promise.reject(new Error("secret of the host"))],
    ["rejects with what is no error", () => Promise.reject(undefined as unknown as Error)],
    ["hangs", () => forever()],
    [
      "returns a hostile promise",
      () => ({
        // biome-ignore lint/suspicious/noThenProperty: that is the point.
        then() {
          throw new Error("secret of the host");
        },
      }),
    ],
  ])("that %s delays and fails nothing, two thousand times", async (_, audit) => {
    const s = await startAudited({ options: { audit, notify: { exhausted: audit } } });
    const { id } = await s.register();
    for (let count = 0; count < 1_000; count += 1) {
      await s.webhooks.registrations.update({ id, status: "DISABLED" });
      await s.webhooks.registrations.update({ id, status: "ENABLED" });
    }
    await s.emit();
    await s.quiet();
    expect(s.sent).toHaveLength(1);
    await s.run(MINUTE);
    const failed = s.log.filter((line) => line === "error the audit hook failed; the call is not repeated");
    expect(failed.length).toBeGreaterThan(0);
    expect(failed.length).toBeLessThanOrEqual(120);
    expect(s.log.join("\n")).not.toContain("secret of the host");
    expect(s.entries).toEqual([]);
  });

  it("gets four calls at once; a thousand wait, and the others are counted in one line", async () => {
    const gate = held<void>();
    let [running, most, calls] = [0, 0, 0];
    const fields: object[] = [];
    const logger = {
      ...{ debug() {}, info() {}, warn() {} },
      error: (given: object, message: string) => fields.push({ ...given, message }),
    };
    const s = await startAudited({
      options: {
        logger,
        async audit() {
          running += 1;
          calls += 1;
          most = Math.max(most, running);
          await gate.promise;
          running -= 1;
        },
      },
    });
    const { id } = await s.register();
    for (let count = 0; count < 1_100; count += 1)
      await s.webhooks.registrations.update({ id, url: `${URL}${count}` });
    expect([running, most]).toEqual([4, 4]);
    gate.resolve();
    await s.quiet();
    expect([calls, most]).toEqual([1_004, 4]);
    expect(fields).toEqual([
      { dropped: 97, message: "calls of the audit hook were dropped, because too many waited" },
    ]);
  });

  it("is waited for by stop(), at most for the time of a hook", async () => {
    const gate = held<void>();
    const { register, webhooks, clock, quiet } = await startAudited({
      options: { audit: () => gate.promise },
    });
    await register();
    let isStopped = false;
    const stopped = webhooks.stop().then(() => {
      isStopped = true;
    });
    await quiet();
    expect(isStopped).toBe(false);
    await clock.advance(5 * SECOND);
    await stopped;
    gate.resolve();
  });
});

describe("the audit log", () => {
  it("has the same entries, newest first and page by page, in-process and over REST", async () => {
    const s = await startAudited();
    const { id } = await s.register();
    for (let count = 0; count < 4; count += 1)
      await s.webhooks.as(SUBSCRIBER).registrations.rotateSecret({ id });
    await s.webhooks.registrations.update({ id, url: `${URL}b` });
    const { items: entries, next } = await s.webhooks.audit.list({ account: "clinic" });
    expect([entries, next]).toEqual([s.entries.toReversed(), null]);
    const listed: unknown[] = [];
    let cursor = "";
    do {
      const { json } = await s.call("GET", `/audit?limit=2${cursor}`);
      listed.push(...json.entries);
      cursor = json.next === null ? "" : `&cursor=${json.next}`;
    } while (cursor !== "");
    const shown = entries.map(({ account: _account, at, ...entry }) => ({ at: at.toISOString(), ...entry }));
    expect(listed).toEqual(shown);
    expect(listed[0]).toEqual({
      ...{ at: new Date(START).toISOString(), action: "webhook.changed", actor: { type: "host" } },
      ...{ webhookId: id, fields: ["url"] },
    });
  });

  it("is shown to every key of its account, and to no other account", async () => {
    const s = await startAudited();
    await s.register();
    await s.register("https://hooks.example.com/b", "hospital");
    const seen = async (key: string) => (await s.call("GET", "/audit", { key })).json.entries.length;
    expect([await seen("secret-key-1"), await seen("secret-key-2"), await seen("secret-key-b")]).toEqual([
      1, 1, 1,
    ]);
    const own = (await s.call("GET", "/audit")).json.entries;
    const foreign = (await s.call("GET", "/audit?account=clinic", { key: "secret-key-b" })).json.entries;
    expect(foreign).not.toEqual(own);
    expect((await s.call("GET", "/audit", { key: "unknown" })).status).toBe(401);
  });

  it.each(["x", "-1", "1e3", "' OR 1=1", "9".repeat(300), "%00", "__proto__"])(
    "refuses the forged cursor %s with 400",
    async (cursor) => {
      const s = await startAudited();
      await s.register();
      const { status, json } = await s.call("GET", `/audit?cursor=${encodeURIComponent(cursor)}`);
      expect([status, json.error]).toMatchObject([400, { code: "invalid_argument", field: "cursor" }]);
      expect((await s.call("GET", "/audit?limit=101")).status).toBe(400);
    },
  );

  it("keeps the newest entries of each account, as many as the option says", async () => {
    const s = await startAudited({ options: { limits: { auditEntries: 3 } } });
    const { id } = await s.register();
    for (let count = 0; count < 20; count += 1)
      await s.webhooks.registrations.update({ id, url: `${URL}${count}` });
    const { items: entries } = await s.webhooks.audit.list({ account: "clinic" });
    expect(toLines(entries)).toEqual(Array<string>(3).fill("webhook.changed host"));
  });

  it("is off by default: no route, no description, no call of the storage, and a clear error", async () => {
    const asked: string[] = [];
    const s = await startAudited({
      answer: () => 500,
      options: { limits: {} },
      change: () => ({
        addAuditEntries: async () => void asked.push("add"),
        listAuditEntries: async () => {
          asked.push("list");
          return { entries: [], next: null };
        },
      }),
    });
    await s.register();
    await s.emit();
    await s.run(4 * DAY);
    expect((await s.call("GET", "/audit")).status).toBeUndefined();
    expect(Object.keys(s.webhooks.openApi()["paths"] as object)).not.toContain("/v1/audit");
    expect(s.webhooks.audit.isKept).toBe(false);
    await expect(s.webhooks.audit.list({ account: "clinic" })).rejects.toMatchObject({
      ...{ code: "invalid_argument", message: expect.stringContaining("limits.auditEntries") as string },
    });
    expect(asked).toEqual([]);
  });

  it("is refused with a storage that cannot keep it", () => {
    const storage = memoryStorage();
    const older = {
      ...storage,
      webhooks: (context: Parameters<typeof storage.webhooks>[0]) => {
        const store = storage.webhooks(context);
        return {
          ...store,
          addAuditEntries: undefined,
          listAuditEntries: undefined,
        } as unknown as typeof store;
      },
    };
    const access = { authenticate: () => null, canRead: () => true };
    const create = (auditEntries: number) =>
      createWebhooks({ storage: older, access, limits: { auditEntries } });
    expect(() => create(1)).toThrow(
      expect.objectContaining({ code: "invalid_option", field: "limits.auditEntries" }),
    );
    expect(() => create(0)).not.toThrow();
    expect(() => create(10_001)).toThrow(expect.objectContaining({ field: "limits.auditEntries" }));
  });

  it("takes one call of the storage for the failures of a batch, and none for successes", async () => {
    let canRead = true;
    const added = vi.fn<(actions: readonly string[]) => void>();
    const s = await startAudited({
      options: { access: { authenticate: () => null, canRead: () => canRead } },
      change: (store) => ({
        addAuditEntries(request) {
          added(request.entries.map(({ entry }) => (JSON.parse(entry) as AuditEntry).action));
          return store.addAuditEntries?.(request) ?? Promise.resolve();
        },
      }),
    });
    await s.register();
    added.mockClear();
    const event = {
      type: "patient.updated",
      account: "clinic",
      resource: { resourceType: "Patient", id: "1" },
    };
    const emitMany = async () => {
      await s.webhooks.emit(Array<typeof event>(5).fill(event));
      await s.quiet();
    };
    await emitMany();
    expect(added).not.toHaveBeenCalled();
    canRead = false;
    await emitMany();
    expect(added.mock.calls).toEqual([[Array<string>(5).fill("delivery.withheld")]]);
  });

  it("has the order of what was done, however long each of its writes takes", async () => {
    const open: Held<void>[] = [];
    const sizes: number[] = [];
    const partitions = new Map<string, number>();
    const s = await startAudited({
      change: (store) => ({
        partitionOf: (id) => partitions.get(id) ?? 0,
        async addAuditEntries(request) {
          const hold = held<void>();
          open.push(hold);
          sizes.push(request.entries.length);
          await hold.promise;
          await store.addAuditEntries?.(request);
        },
      }),
    });
    const { registrations } = s.webhooks;
    const { id } = await s.register(URL);
    const other = await s.register("https://hooks.example.com/b", "hospital");
    partitions.set(other.id, 1);
    await registrations.update({ id, url: `${URL}b`, status: "DISABLED" });
    await registrations.update({ id: other.id, status: "DISABLED" });
    for (let count = 0; count < 3; count += 1) {
      await s.clock.advance(1);
      await registrations.update({ id, status: "ENABLED" });
      await registrations.update({ id, url: `${URL}${count}`, status: "DISABLED" });
    }
    await registrations.remove(id);
    // Whatever runs at once, the newest ends first.
    while (open.length > 0) {
      open.pop()?.resolve();
      await s.quiet();
    }
    const { items: entries } = await s.webhooks.audit.list({ account: "clinic" });
    expect(entries).toEqual(s.entries.filter(({ account }) => account === "clinic").toReversed());
    // The first, all that waited, and the entry of the other partition.
    expect(sizes).toEqual([1, 13, 1]);
  });

  it("gets what one call changed in one write, in order", async () => {
    const written: (readonly string[])[] = [];
    const s = await startAudited({
      change: (store) => ({
        addAuditEntries(request) {
          written.push(request.entries.map(({ entry }) => (JSON.parse(entry) as AuditEntry).action));
          return store.addAuditEntries?.(request) ?? Promise.resolve();
        },
      }),
    });
    const { id } = await s.register(URL);
    await s.webhooks.registrations.update({ id, status: "DISABLED", url: `${URL}b` });
    await s.quiet();
    expect(written).toEqual([["webhook.created"], ["webhook.changed", "webhook.disabled"]]);
  });

  it.each([
    ["is unavailable", () => Promise.reject(new PostbellError("storage_unavailable", "away"))],
    ["hangs", () => forever<void>()],
    [
      "throws",
      () => {
        throw new TypeError("broken");
      },
    ],
  ])("holds up nothing while its storage %s", async (_, addAuditEntries) => {
    const s = await startAudited({ answer: () => 500, change: () => ({ addAuditEntries }) });
    const { id } = await s.register();
    const eventId = await s.emit();
    await s.run(4 * DAY);
    expect((await s.webhooks.deliveries.get(`${id}.${eventId}`)).state).toBe("failed");
    expect(s.entries.map(({ action }) => action)).toContain("delivery.failed");
  });

  it("never has a secret, a key, a record or a response, however long the scenario", async () => {
    const secrets: string[] = [...Object.keys(KEYS), "Zebra-record", "Zebra-answer", "token=Zebra"];
    const s = await startAudited({
      answer: () => response(500, {}, "Zebra-answer"),
      options: { delivery: { excerptCharacters: 1_000 } },
    });
    for (let count = 0; count < 5; count += 1) {
      const { json } = await s.call("POST", "/webhooks", { json: { url: `${URL}?token=Zebra` } });
      const { id } = json.webhook;
      secrets.push(json.secret, (await s.call("POST", `/webhooks/${id}/rotate`)).json.secret);
      await s.call("PUT", `/webhooks/${id}`, { json: { url: `${URL}?token=Zebra2`, status: "ENABLED" } });
      await s.emit({ resource: { resourceType: "Patient", id: "1", text: "Zebra-record" } as never });
      await s.call("POST", `/webhooks/${id}/test`);
      await s.run(5 * DAY);
      await s.call("PUT", `/webhooks/${id}`, { json: { url: `${URL}?token=Zebra3`, status: "ENABLED" } });
      await s.call("POST", `/webhooks/${id}/recover`, { json: { since: new Date(START).toISOString() } });
    }
    const { items: entries } = await s.webhooks.audit.list({ account: "clinic", limit: 100 });
    expect(entries.length).toBeGreaterThan(30);
    const text = JSON.stringify([entries, s.entries, (await s.call("GET", "/audit?limit=100")).json]);
    for (const secret of secrets) expect(text).not.toContain(secret);
    expect(text).not.toMatch(/whsec_|Zebra|hooks\.example/);
  });
});

describe("notify.exhausted", () => {
  it("is called once for each delivery that failed, once that is stored, and not for tests", async () => {
    const told: unknown[] = [];
    const states: Promise<unknown>[] = [];
    const s: Harness = await startHarness({
      answer: () => response(503, {}, "an answer"),
      options: {
        retry: { jitter: 0 },
        delivery: { excerptCharacters: 100 },
        notify: {
          exhausted(event) {
            told.push(event);
            states.push(s.webhooks.deliveries.get(event.deliveryId).then(({ state }) => state));
          },
        },
      },
    });
    const { id } = await s.register();
    const eventId = await s.emit();
    await s.webhooks.deliveries.test({ webhookId: id });
    await s.run(2 * DAY);
    expect(told).toEqual([]);
    await s.run(2 * DAY);
    expect(told).toEqual([
      {
        webhook: expect.objectContaining({ id, account: "clinic", url: URL }) as unknown,
        ...{ deliveryId: `${id}.${eventId}`, eventId, type: "patient.updated", reason: "exhausted" },
        lastAttempt: { at: new Date(START + 71.75 * HOUR), kind: "http", status: 503, code: "HTTP_503" },
      },
    ]);
    expect(await Promise.all(states)).toEqual(["failed"]);
    expect(JSON.stringify(told)).not.toMatch(/whsec_|an answer/);
  });

  it("is not called for a withheld delivery, which is intended", async () => {
    const exhausted = vi.fn<() => void>();
    const access = { authenticate: () => null, canRead: () => false };
    const s = await startHarness({ options: { access, notify: { exhausted } } });
    const { id } = await s.register();
    const eventId = await s.emit();
    await s.run(DAY);
    expect((await s.webhooks.deliveries.get(`${id}.${eventId}`)).state).toBe("withheld");
    expect(exhausted).not.toHaveBeenCalled();
  });

  it("has no last attempt for a delivery that ended without one", async () => {
    const told: { readonly reason: string; readonly lastAttempt: unknown }[] = [];
    const s = await startHarness({
      answer: () => 500,
      options: { retry: { jitter: 0 }, notify: { exhausted: (event) => told.push(event) } },
    });
    const { id } = await s.register();
    await s.emit();
    await s.run(MINUTE);
    await s.webhooks.registrations.update({ id, status: "DISABLED" });
    await s.run(4 * DAY);
    expect(told).toMatchObject([{ reason: "disabled", lastAttempt: null }]);
  });
});
