/** `accounts` and `events`: lists for operators, and erasing, also during attempts. */

import { describe, expect, it } from "vitest";
import type { WebhookStore } from "../../src/ports.js";
import {
  DAY,
  type Harness,
  HOUR,
  holdingEndpoint,
  response,
  START,
  startHarness,
} from "../support/webhook-harness.js";

const PATIENT = { resourceType: "Patient", id: "7", name: [{ family: "Erasmus" }] };

/** True if a value, or anything that it refers to, contains the text. */
const contains = (value: unknown, text: string): boolean => JSON.stringify(value).includes(text);

const listAll = async ({ webhooks }: Harness, account = "clinic") =>
  (await webhooks.deliveries.list({ account })).items;

describe("accounts.list", () => {
  it("returns accounts in numbers, and those that fail on their own", async () => {
    const harness = await startHarness({ answer: ({ url }) => (url.endsWith("/bad") ? 500 : 200) });
    await harness.register("https://hooks.example.com/good", "hospital");
    await harness.register("https://hooks.example.com/bad");
    await harness.register("https://hooks.example.com/good");
    await harness.emit();
    await harness.quiet();
    const clinic = {
      account: "clinic",
      endpoints: { ok: 1, failing: 1, warned: 0, disabled: 0 },
      waiting: 1,
      lastDay: { attempts: 2, succeeded: 1 },
      lastEventAt: new Date(START),
    };
    const { items, next } = await harness.webhooks.accounts.list();
    expect(next).toBeNull();
    expect(items.map(({ account }) => account)).toEqual(["hospital", "clinic"]);
    expect(items[1]).toEqual(clinic);
    const failing = await harness.webhooks.accounts.list({ state: "failing", limit: 1 });
    expect(failing).toEqual({ items: [clinic], next: null });
  });

  it("lists two thousand accounts page by page, each once", async () => {
    const harness = await startHarness();
    const names = Array.from({ length: 2_000 }, (_, index) => `account ${index}`);
    for (const account of names) await harness.register("https://hooks.example.com/a", account);
    const seen: string[] = [];
    let cursor: string | null | undefined;
    while (cursor !== null) {
      const { items, next } = await harness.webhooks.accounts.list({ cursor, limit: 100 });
      expect(items.length).toBeLessThanOrEqual(100);
      seen.push(...items.map(({ account }) => account));
      cursor = next;
    }
    expect(seen).toEqual(names);
  });

  it.each([
    [{ state: "ok" }, "state"],
    [{ state: null }, "state"],
    [{ limit: 0 }, "limit"],
    [{ limit: 101 }, "limit"],
    [{ limit: Number.NaN }, "limit"],
    [{ cursor: "'; DROP TABLE webhooks" }, "cursor"],
    [{ cursor: 5 }, "cursor"],
    [{ operator: "" }, "operator"],
    [{ operator: { toString: null } }, "operator"],
  ])("refuses %j", async (request, field) => {
    const harness = await startHarness();
    await expect(harness.webhooks.accounts.list(request as never)).rejects.toMatchObject({ field });
  });

  it("refuses an argument that it does not know", async () => {
    const harness = await startHarness();
    const request = { account: "clinic" } as never;
    await expect(harness.webhooks.accounts.list(request)).rejects.toMatchObject({ code: "invalid_argument" });
  });

  it("tells the audit hook who looks and who erases, and stores nothing of it", async () => {
    const seen: unknown[] = [];
    const harness = await startHarness({
      options: {
        limits: { auditEntries: 100 },
        audit: ({ account, action, actor, count }) => {
          seen.push({ account, action, actor, ...(count !== undefined && { count }) });
        },
      },
    });
    await harness.register();
    const eventId = await harness.emit();
    await harness.quiet();
    await harness.webhooks.accounts.list({ operator: "Olga" });
    await harness.webhooks.events.erase({ account: "clinic", eventId });
    await harness.webhooks.accounts.erase("clinic");
    await harness.quiet();
    expect(seen.slice(1)).toEqual([
      { account: "", action: "accounts.listed", actor: { type: "operator", name: "Olga" } },
      { account: "clinic", action: "events.erased", actor: { type: "host" }, count: 1 },
      { account: "clinic", action: "account.erased", actor: { type: "host" } },
    ]);
    expect((await harness.webhooks.audit.list({ account: "clinic" })).items).toEqual([]);
    expect(harness.log.filter((line) => /^(warn|error)/.test(line))).toEqual([]);
  });
});

describe("accounts.erase", () => {
  it("returns what it has erased, and the account then has nothing", async () => {
    const harness = await startHarness({
      answer: () => response(500, {}, "Erasmus is unknown"),
      options: { limits: { auditEntries: 100 }, delivery: { excerptCharacters: 200 } },
    });
    const { id } = await harness.register();
    const eventId = await harness.emit({ resource: PATIENT });
    await harness.run(HOUR);
    expect(contains(await listAll(harness), "Erasmus")).toBe(true);
    const erased = await harness.webhooks.accounts.erase("clinic");
    expect(erased).toEqual({ webhooks: 1, events: 1, deliveries: 1, auditEntries: 1, rememberedIds: 0 });
    expect(await harness.store.getWebhook(id)).toBeUndefined();
    expect(await harness.store.getEvent({ account: "clinic", id: eventId })).toBeUndefined();
    expect(await listAll(harness)).toEqual([]);
    expect(await harness.webhooks.audit.list({ account: "clinic" })).toEqual({ items: [], next: null });
  });

  it("lets attempts in flight end without a line in the log, and sends no retry", async () => {
    const endpoint = holdingEndpoint();
    const harness = await startHarness({ answer: endpoint.answer });
    await harness.register();
    for (let count = 0; count < 3; count++) await harness.emit({ resource: PATIENT });
    await harness.quiet();
    expect(endpoint.open.length).toBeGreaterThan(0);
    await harness.webhooks.accounts.erase("clinic");
    const [first] = endpoint.open.splice(0, 1);
    first?.hold.resolve(response(500));
    endpoint.release();
    const { length } = harness.sent;
    await harness.run(DAY);
    expect(harness.sent).toHaveLength(length);
    expect(harness.log.filter((line) => /^(warn|error)/.test(line))).toEqual([]);
    const { pending, leased } = await harness.store.stats();
    expect({ pending, leased }).toEqual({ pending: 0, leased: 0 });
  });

  it("goes on where it was interrupted when it is called again", async () => {
    let calls = 0;
    const eraseAccount =
      (store: WebhookStore): WebhookStore["eraseAccount"] =>
      async (request) => {
        calls += 1;
        if (calls === 3) throw new Error("the process ends");
        return store.eraseAccount(request);
      };
    const harness = await startHarness({ change: (store) => ({ eraseAccount: eraseAccount(store) }) });
    await harness.register();
    for (let count = 0; count < 250; count++) await harness.emit();
    await harness.quiet();
    await expect(harness.webhooks.accounts.erase("clinic")).rejects.toThrow("the process ends");
    expect((await harness.store.stats()).events).toBeGreaterThan(0);
    await harness.webhooks.accounts.erase("clinic");
    const { webhooks, events, pending, ended } = await harness.store.stats();
    expect({ webhooks, events, pending, ended }).toEqual({ webhooks: 0, events: 0, pending: 0, ended: 0 });
  });

  it.each<[string, (harness: Harness) => Promise<unknown>]>([
    ["an account", ({ webhooks }) => webhooks.accounts.erase("clinic")],
    [
      "the events of a subject",
      ({ webhooks }) => webhooks.events.erase({ account: "clinic", subject: "Patient/7" }),
    ],
  ])("erases %s in steps between which other work runs", async (_, erase) => {
    const harness = await startHarness();
    await harness.register();
    const event = { type: "patient.updated", account: "clinic", resource: PATIENT } as const;
    for (let count = 0; count < 10; count++) await harness.webhooks.emit(Array(100).fill(event));
    await harness.quiet();
    const left: number[] = [];
    let isErasing = true;
    const watch = async (): Promise<void> => {
      left.push((await harness.store.stats()).events);
      if (isErasing) setImmediate(() => void watch());
    };
    setImmediate(() => void watch());
    await erase(harness);
    isErasing = false;
    expect(new Set(left).size).toBeGreaterThan(4);
  });

  it("costs calls that grow with the account only, for ten thousand events", async () => {
    const costs: number[] = [];
    const harness = await startHarness({
      change: (store) => ({
        eraseAccount: async (request) => {
          const step = await store.eraseAccount(request);
          costs.push(step.erased.events + step.erased.deliveries + step.erased.webhooks);
          return step;
        },
      }),
    });
    await harness.register();
    const event = { type: "patient.updated", account: "clinic", resource: PATIENT } as const;
    for (let count = 0; count < 100; count++) await harness.webhooks.emit(Array(100).fill(event));
    await harness.quiet();
    const { events, deliveries } = await harness.webhooks.accounts.erase("clinic");
    expect({ events, deliveries }).toEqual({ events: 10_000, deliveries: 10_000 });
    expect(Math.max(...costs)).toBeLessThanOrEqual(202);
    expect(costs.length).toBeLessThan(150);
  });

  it("leaves other accounts as they are, whatever their names", async () => {
    const harness = await startHarness();
    for (const account of ["hospital", "__proto__", "clinic2", "clini"])
      await harness.register("https://hooks.example.com/a", account);
    for (const account of ["clinic", "constructor", "hasOwnProperty", "%", "*"])
      expect((await harness.webhooks.accounts.erase(account)).webhooks).toBe(0);
    expect((await harness.store.stats()).webhooks).toBe(4);
    expect((await harness.webhooks.accounts.erase("__proto__")).webhooks).toBe(1);
    expect((await harness.store.stats()).webhooks).toBe(3);
  });

  it.each([[undefined], [null], [""], [{}], [["clinic"]], ["clinic\u0000"], ["\ud800"], ["x".repeat(257)]])(
    "refuses %j as an account and erases nothing",
    async (account) => {
      const harness = await startHarness();
      await harness.register();
      await expect(harness.webhooks.accounts.erase(account as string)).rejects.toMatchObject({
        code: "invalid_argument",
        field: "account",
      });
      expect((await harness.store.stats()).webhooks).toBe(1);
    },
  );
});

describe("events.erase", () => {
  it("reports the erasure to the audit hook, also if the storage repeated it and counts nothing", async () => {
    const seen: unknown[] = [];
    const harness = await startHarness({
      options: { audit: ({ action, count }) => void seen.push([action, count]) },
      change: (store) => ({
        eraseEvents: async (request) => {
          await store.eraseEvents(request);
          return store.eraseEvents(request);
        },
      }),
    });
    await harness.register();
    const eventId = await harness.emit();
    await harness.webhooks.events.erase({ account: "clinic", eventId });
    await harness.quiet();
    expect(seen.slice(1)).toEqual([["events.erased", 0]]);
  });

  it("erases the event with its deliveries, and its webhook keeps the others", async () => {
    const harness = await startHarness({ answer: () => response(500, {}, "Erasmus is unknown") });
    await harness.register();
    const eventId = await harness.emit({ resource: PATIENT });
    const other = await harness.emit();
    await harness.quiet();
    const erased = await harness.webhooks.events.erase({ account: "clinic", eventId: eventId.toUpperCase() });
    expect(erased).toEqual({ events: 1, deliveries: 1 });
    const left = await listAll(harness);
    expect(left.map(({ eventId: id }) => id)).toEqual([other]);
    expect(contains(left, "Erasmus")).toBe(false);
    expect(await harness.webhooks.events.erase({ account: "clinic", eventId })).toEqual({
      events: 0,
      deliveries: 0,
    });
  });

  it("erases the events about a person by their subject, and no others", async () => {
    const harness = await startHarness({ answer: () => 500 });
    await harness.register();
    for (let count = 0; count < 120; count++) await harness.emit({ resource: PATIENT });
    const other = await harness.emit();
    await harness.register("https://hooks.example.com/a", "hospital");
    await harness.emit({ account: "hospital", resource: PATIENT });
    await harness.quiet();
    const erase = (request: { account: string; subject: string }) => harness.webhooks.events.erase(request);
    for (const subject of ["Patient/", "Patient/77", "patient/7", "__proto__", "%", "Patient/7\u0000"])
      expect(await erase({ account: "clinic", subject })).toEqual({ events: 0, deliveries: 0 });
    expect(await erase({ account: "clinic", subject: "Patient/7" })).toEqual({
      events: 120,
      deliveries: 120,
    });
    expect((await listAll(harness)).map(({ eventId }) => eventId)).toEqual([other]);
    expect(await listAll(harness, "hospital")).toHaveLength(1);
    expect((await harness.store.stats()).events).toBe(2);
  });

  it("ends pending deliveries unsent, and drops the results of attempts in flight", async () => {
    const endpoint = holdingEndpoint();
    const harness = await startHarness({ answer: endpoint.answer });
    await harness.register();
    const eventIds = [await harness.emit(), await harness.emit(), await harness.emit()];
    await harness.quiet();
    const { length } = endpoint.open;
    for (const eventId of eventIds) await harness.webhooks.events.erase({ account: "clinic", eventId });
    endpoint.release(response(500));
    await harness.run(DAY);
    expect(harness.sent).toHaveLength(length);
    expect(harness.log.filter((line) => /^(warn|error)/.test(line))).toEqual([]);
    const after = await harness.emit();
    await harness.quiet();
    endpoint.release();
    await harness.quiet();
    expect((await listAll(harness)).map(({ eventId, state }) => [eventId, state])).toEqual([
      [after, "delivered"],
    ]);
  });

  it("erases no event of another account", async () => {
    const harness = await startHarness();
    await harness.register("https://hooks.example.com/a", "hospital");
    const eventId = await harness.emit({ account: "hospital" });
    for (const account of ["clinic", "__proto__", "hospital "])
      expect((await harness.webhooks.events.erase({ account, eventId })).events).toBe(0);
    expect(await harness.store.getEvent({ account: "hospital", id: eventId })).toBeDefined();
  });

  it.each([
    [{ account: "clinic" }, "subject"],
    [{ account: "clinic", subject: "" }, "subject"],
    [{ account: "clinic", subject: "x".repeat(1_001) }, "subject"],
    [{ account: "clinic", subject: ["Patient/7"] }, "subject"],
    [{ account: "clinic", subject: "a", eventId: "0f8fad5b-d9cb-469f-a165-70867728950e" }, "subject"],
    [{ account: "clinic", eventId: "1" }, "eventId"],
    [{ account: "clinic", eventId: { id: "x" } }, "eventId"],
    [{ eventId: "0f8fad5b-d9cb-469f-a165-70867728950e" }, "account"],
    [{ account: "a\u0000", eventId: "0f8fad5b-d9cb-469f-a165-70867728950e" }, "account"],
  ])("refuses %j", async (request, field) => {
    const harness = await startHarness();
    await expect(harness.webhooks.events.erase(request as never)).rejects.toMatchObject({
      code: "invalid_argument",
      field,
    });
  });
});
