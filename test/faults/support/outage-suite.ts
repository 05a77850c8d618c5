/**
 * A server that is killed and started again, under both services and every kind of host. Lines of
 * the log and calls are counted: how long something took is not asserted.
 */

import { expect, it, onTestFinished } from "vitest";
import { createContent } from "../../../src/content/index.js";
import { createHealth, createWebhooks, isPostbellError } from "../../../src/index.js";
import type { OutboundRequest } from "../../../src/ports.js";
import { HOSTS } from "../../support/hosts.js";
import { response } from "../../support/webhook-harness.js";
import { startForTests } from "./start-for-tests.js";
import type { StorageUnderTest } from "./storage-under-test.js";
import { eventually, type LogEntry, listLogger } from "./store-driver.js";

const SUBSCRIBER = { id: "key-1", account: "clinic" };
const EVENT = {
  type: "patient.updated",
  account: SUBSCRIBER.account,
  resource: { resourceType: "Patient", id: "p1" },
} as const;

const BEGUN = /^the storage is unavailable$/;
const OVER = /^the storage is available again after \d+ (?:s|min)$/;

/** Returns the lines that an operator sees by default. */
const toLines = (log: readonly LogEntry[]): readonly LogEntry[] =>
  log.filter(({ level }) => level === "warn" || level === "error");

async function openServices(on: StorageUnderTest) {
  const address = await on.fresh();
  const storage = on.open(address);
  const delivered = new Map<string, number>();
  const { logger, log } = listLogger();
  const webhooks = createWebhooks({
    storage,
    logger,
    access: { authenticate: () => SUBSCRIBER, canRead: () => true },
    limits: { requestsPerMinute: 0 },
    delivery: {
      async send({ body }: OutboundRequest) {
        const { id } = JSON.parse(Buffer.from(body ?? "").toString()) as { id: string };
        delivered.set(id, (delivered.get(id) ?? 0) + 1);
        return response(204);
      },
    },
  });
  const site = listLogger();
  const content = createContent({
    storage,
    logger: site.logger,
    awaitStorage: true,
    site: { name: "Example", url: "https://www.example.org" },
    authenticate: () => null,
    users: [],
  });
  onTestFinished(async () => {
    await Promise.all([webhooks.stop({ graceMs: 0 }), content.stop()]);
    await storage.close();
  });
  return { webhooks, content, delivered, log, siteLog: site.log };
}

/** Mounts a service in each kind of host. Returns the addresses. */
async function mountEverywhere(service: Parameters<(typeof HOSTS)[number]["mount"]>[0]["service"]) {
  const hosts = await Promise.all(
    HOSTS.map(({ mount }) => mount({ service, prefix: "/api", parser: "none" })),
  );
  onTestFinished(async () => {
    await Promise.all(hosts.map((host) => host.close()));
  });
  return hosts.map(({ origin }) => `${origin}/api`);
}

/** Returns the distinct statuses, with `Retry-After`, of the same request to all hosts. */
async function statusesOf(origins: readonly string[], path: string): Promise<readonly string[]> {
  const responses = await Promise.all(
    origins.map((origin) => fetch(`${origin}${path}`, { headers: { authorization: "Bearer key" } })),
  );
  await Promise.all(responses.map((answer) => answer.text()));
  return [...new Set(responses.map(({ status, headers }) => `${status} ${headers.get("retry-after")}`))];
}

/** True for the error of a call that was refused without being sent. */
const isRefused = (error: unknown): boolean =>
  isPostbellError(error, "storage_unavailable") &&
  error.effect === "none" &&
  error.message.includes("This call was not sent");

/** Declares the tests on one kind of server. */
export function describeOutage(start: () => Promise<StorageUnderTest>): void {
  const on = startForTests(start);

  it("refuses calls at once while it is gone, logs that twice, and delivers everything once after", async () => {
    const { webhooks, content, delivered, log, siteLog } = await openServices(on());
    await Promise.all([webhooks.start(), content.start()]);
    await webhooks.registrations.create({ subscriber: SUBSCRIBER, url: "https://hooks.example.com/" });
    const [api, site] = await Promise.all([mountEverywhere(webhooks), mountEverywhere(content)]);
    const emitted = new Set<string>();
    const emit = async (): Promise<unknown> => {
      try {
        emitted.add((await webhooks.emit(EVENT)).id);
        return "stored";
      } catch (error) {
        return error;
      }
    };
    for (let count = 0; count < 20; count++) expect(await emit()).toBe("stored");
    expect(await statusesOf(api, "/v1/webhooks")).toEqual(["200 null"]);
    expect(await statusesOf(site, "/core/v2/posts")).toEqual(["200 null"]);

    await on().server?.kill();
    await eventually(async () => isRefused(await emit()), { ms: 30_000, what: "calls are refused" });
    const isSiteDown = (): boolean => siteLog.some(({ message }) => BEGUN.test(message));
    await eventually(
      async () => {
        await statusesOf(site, "/core/v2/posts");
        return isSiteDown();
      },
      { ms: 30_000, what: "the content service knows" },
    );
    const before = { webhooks: toLines(log).length, content: toLines(siteLog).length };
    for (let count = 0; count < 50; count++) {
      expect(isRefused(await emit())).toBe(true);
      expect(await statusesOf(api, "/v1/webhooks")).toEqual(["503 5"]);
      expect(await statusesOf(site, "/core/v2/posts")).toEqual(["503 5"]);
    }
    // More than a thousand failed requests and emits: no line about any of them.
    expect(toLines(log).length).toBe(before.webhooks);
    expect(toLines(siteLog).length).toBe(before.content);

    await on().server?.restart();
    await eventually(async () => (await emit()) === "stored", { ms: 30_000, what: "events are stored" });
    const isSiteBack = async (): Promise<boolean> =>
      (await statusesOf(site, "/core/v2/posts")).join() === "200 null";
    await eventually(isSiteBack, { ms: 30_000, what: "the site is back" });
    expect(await statusesOf(api, "/v1/webhooks")).toEqual(["200 null"]);
    const isAllDelivered = (): boolean => [...emitted].every((id) => delivered.has(id));
    await eventually(isAllDelivered, { ms: 60_000, what: "all is delivered" });
    expect([...emitted].map((id) => delivered.get(id))).toEqual([...emitted].map(() => 1));

    for (const own of [log, siteLog]) {
      const lines = toLines(own);
      const messages = lines.map(({ message }) => message);
      expect(messages.filter((message) => BEGUN.test(message))).toHaveLength(1);
      expect(messages.filter((message) => OVER.test(message))).toHaveLength(1);
      expect(lines.find(({ message }) => BEGUN.test(message))?.fields["reason"]).toMatch(/^[A-Z0-9_]+/);
      // Calls that were sent before the outage was known.
      expect(lines.length).toBeLessThan(8);
    }
    console.log(
      `${on().kind}: ${toLines(log).length} lines of webhooks, ${toLines(siteLog).length} of content`,
    );
  });

  it("can be started with once it is there, and names the cause until then", async () => {
    const { webhooks, content, log } = await openServices(on());
    const health = createHealth({ webhooks, content });
    const healthOf = async (): Promise<{ status: number; body: string }> => {
      const request = { method: "GET", path: "/healthz", query: "", headers: {}, body: null, baseUrl: "" };
      const answer = await health.handle(request);
      return { status: answer?.status ?? 0, body: answer?.body as string };
    };
    await on().server?.kill();
    const address = `ECONNREFUSED 127.0.0.1:${on().server?.port}`;
    for (const service of [webhooks, content]) {
      await expect(service.start()).rejects.toMatchObject({
        code: "storage_unavailable",
        reason: address,
        isPermanent: false,
        message: expect.stringContaining(address),
      });
    }
    const red = await healthOf();
    expect(red.status).toBe(503);
    expect(red.body).toContain("storage_not_reached");
    expect(red.body).toContain("(ECONNREFUSED)");
    expect(red.body).not.toContain("127.0.0.1");
    expect(red.body).not.toMatch(/"forMs":\d+\./);
    await on().server?.restart();
    for (const service of [webhooks, content]) {
      const isStarted = (): Promise<boolean> =>
        service.start().then(
          () => true,
          () => false,
        );
      await eventually(isStarted, { ms: 30_000, what: "it starts" });
    }
    await eventually(async () => (await healthOf()).status === 200, { ms: 10_000, what: "it is healthy" });
    expect(toLines(log).map(({ message }) => message)).toEqual([
      "the storage is unavailable",
      expect.stringMatching(OVER),
    ]);
  });
}
