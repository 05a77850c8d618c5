/**
 * Both services while their storage is unavailable: in memory, and switched off. The clock stands
 * still where a response has to be immediate.
 */

import { describe, expect, it } from "vitest";
import { createContent } from "../../src/content/index.js";
import type { ContentStorage } from "../../src/content/store.js";
import { PostbellError } from "../../src/core/errors.js";
import { createHealth, type Logger } from "../../src/index.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import type { WebhookStore } from "../../src/webhooks/store.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { callsOf } from "../support/content-call.js";
import { contentSite } from "../support/content-site.js";
import { recordingLogger } from "../support/registration-api.js";
import {
  eventLoopTurn,
  type HarnessOptions,
  holdingEndpoint,
  MINUTE,
  openHarness,
  response,
  SECOND,
  START,
  startHarness,
} from "../support/webhook-harness.js";

const away = (): PostbellError =>
  new PostbellError("storage_unavailable", "The connection is refused; nothing was changed.", {
    effect: "none",
    reason: "ECONNREFUSED 127.0.0.1:6379",
    isOutage: true,
  });

/** The methods that return no promise, and so need no storage. */
const LOCAL = new Set(["now", "watch", "partitionOf", "newWebhookId", "connectionProblem"]);

/** Returns the methods of a store so that they fail while `power.isOff`, and counts their calls. */
function switchable<S extends object>(store: S, power: { isOff: boolean; calls: number }): Partial<S> {
  const methods = Object.entries(store).filter(
    ([name, member]) => typeof member === "function" && !LOCAL.has(name),
  ) as [string, (...given: unknown[]) => unknown][];
  return Object.fromEntries(
    methods.map(([name, method]) => [
      name,
      (...given: unknown[]) => {
        if (!power.isOff) return method(...given);
        power.calls += 1;
        return Promise.reject(away());
      },
    ]),
  ) as Partial<S>;
}

const withoutDebug = (log: readonly string[]): readonly string[] =>
  log.filter((line) => !line.startsWith("debug"));

const OUTAGE_LINES =
  /^(?:error the storage is unavailable|warn the storage is still unavailable|warn the storage is available again after .*)$/;

const power = () => ({ isOff: false, calls: 0 });
const switched = (own: { isOff: boolean; calls: number }) => (store: WebhookStore) => switchable(store, own);

async function healthOf(
  services: Pick<Parameters<typeof createHealth>[0], "webhooks" | "content">,
  clock: ReturnType<typeof manualClock>,
) {
  const request = { method: "GET", path: "/healthz", query: "", headers: {}, body: null, baseUrl: "" };
  const asked = createHealth({ ...services, clock }).handle(request);
  await eventLoopTurn();
  await clock.advance(20);
  const answer = await asked;
  return { status: answer?.status, body: JSON.parse(answer?.body as string) };
}

describe("webhooks while the storage is unavailable", () => {
  const request = (method: string, path: string) => ({
    ...{ method, path, query: "", baseUrl: "https://api.example.com" },
    headers: { authorization: "Bearer key", "content-type": "application/json" },
    body: method === "POST" ? Buffer.from('{"url":"https://a.example.com/"}') : null,
  });

  it("reject emits and answer 503 while the clock stands still, and do not ask the storage", async () => {
    const own = power();
    const { webhooks, emit, register, run } = await startHarness({ change: switched(own) });
    await register();
    own.isOff = true;
    await emit().catch(() => {});
    own.calls = 0;
    for (let count = 0; count < 20; count++) {
      const id = "0e0b7f0a-0000-4000-8000-000000000001";
      await expect(emit({ id })).rejects.toMatchObject({
        code: "storage_unavailable",
        effect: "none",
        eventId: id,
        reason: "ECONNREFUSED 127.0.0.1:6379",
        isOutage: true,
        message: expect.stringContaining("This call was not sent."),
      });
      for (const [method, path] of [
        ["POST", "/v1/webhooks"],
        ["GET", "/v1/webhooks"],
      ] as const) {
        expect(await webhooks.handle(request(method, path))).toMatchObject({
          status: 503,
          headers: { "retry-after": "5" },
        });
      }
    }
    expect(own.calls).toBe(0);
    own.isOff = false;
    await run(SECOND);
    await emit();
    expect(await webhooks.handle(request("GET", "/v1/webhooks"))).toMatchObject({ status: 200 });
  });

  it("keep what the attempts in flight resulted in, count none twice, and deliver the rest after", async () => {
    const own = power();
    const endpoint = holdingEndpoint();
    const { webhooks, emit, register, quiet, run, store, respond, sent } = await startHarness({
      answer: endpoint.answer,
      change: switched(own),
      options: { delivery: { perEndpoint: 2 } },
    });
    const { id } = await register();
    for (let count = 0; count < 6; count++) await emit();
    await quiet();
    const inFlight = sent.length;
    own.isOff = true;
    await run(2 * SECOND);
    endpoint.release();
    respond(() => response(200));
    await run(20 * SECOND);
    expect(sent).toHaveLength(inFlight);
    own.isOff = false;
    await run(10 * SECOND);
    expect(await store.stats()).toMatchObject({ pending: 0, leased: 0, ended: 6 });
    expect(new Set(sent.map(({ eventId }) => eventId)).size).toBe(6);
    expect(sent).toHaveLength(6);
    const { items: deliveries } = await webhooks.deliveries.list({ webhookId: id });
    expect(deliveries.map(({ attempts }) => attempts.length)).toEqual([1, 1, 1, 1, 1, 1]);
  });

  it("log when it begins, each minute, and when it is over: nothing else, whatever fails", async () => {
    const own = power();
    const endpoint = holdingEndpoint();
    const { emit, register, run, quiet, log } = await startHarness({
      answer: endpoint.answer,
      change: switched(own),
    });
    await register();
    await emit();
    await quiet();
    own.isOff = true;
    endpoint.release();
    for (let second = 0; second < 130; second++) {
      await emit().catch(() => {});
      await run(SECOND);
    }
    own.isOff = false;
    await run(5 * SECOND);
    const lines = withoutDebug(log);
    expect(lines.filter((line) => !OUTAGE_LINES.test(line))).toEqual([]);
    expect(lines).toEqual([
      "error the storage is unavailable",
      "warn the storage is still unavailable",
      "warn the storage is still unavailable",
      expect.stringMatching(/^warn the storage is available again after /),
    ]);
  });

  it("start once the storage is back, if it was unavailable before", async () => {
    const own = { isOff: true, calls: 0 };
    const { webhooks, register, emit, run, quiet, sent, clock, log } = openHarness({ change: switched(own) });
    const refused = { code: "storage_unavailable", reason: "ECONNREFUSED 127.0.0.1:6379" };
    await expect(webhooks.start()).rejects.toMatchObject(refused);
    await run(1);
    const red = await healthOf({ webhooks }, clock);
    expect([red.status, red.body.webhooks.started]).toEqual([503, false]);
    expect(red.body.webhooks.problems.map(({ code }: { code: string }) => code)).toContain(
      "storage_not_reached",
    );
    await expect(webhooks.start()).rejects.toMatchObject(refused);
    own.isOff = false;
    await run(SECOND);
    expect((await healthOf({ webhooks }, clock)).status).toBe(200);
    await webhooks.start();
    await register();
    await emit();
    await quiet();
    expect(sent).toHaveLength(1);
    expect(withoutDebug(log)).toEqual([
      "error the storage is unavailable",
      expect.stringMatching(/^warn the storage is available again/),
    ]);
    await webhooks.stop({ graceMs: 0 });
  });

  it("stop in the middle of it, and deliver after the next start", async () => {
    const own = power();
    const { webhooks, register, emit, run, stop, store, quiet } = await startHarness({
      change: switched(own),
      answer: () => 500,
    });
    await register();
    await emit();
    await quiet();
    own.isOff = true;
    await run(10 * SECOND);
    await stop(SECOND);
    own.isOff = false;
    await run(SECOND);
    await webhooks.start();
    await run(20 * MINUTE);
    expect(await store.stats()).toMatchObject({ pending: 1, leased: 0 });
    await stop(0);
  });

  it("settle, read and claim on a storage that is read-only as before: it is not taken for unavailable", async () => {
    const readOnly = new PostbellError("storage_unavailable", "Read only.", {
      effect: "none",
      reason: "25006",
    });
    let isReadOnly = false;
    const refuse: HarnessOptions["change"] = (store) => ({
      maxSleepMs: SECOND,
      append: (given) => (isReadOnly ? Promise.reject(readOnly) : store.append(given)),
      claim: (given) => (isReadOnly ? Promise.reject(readOnly) : store.claim(given)),
      settle: (given) => (isReadOnly ? Promise.reject(readOnly) : store.settle(given)),
    });
    const { webhooks, register, emit, run, log } = await startHarness({ change: refuse });
    const { id } = await register();
    isReadOnly = true;
    for (let second = 0; second < 90; second++) {
      await expect(emit()).rejects.toMatchObject({ message: "Read only.", effect: "none" });
      expect((await webhooks.registrations.get(id)).id).toBe(id);
      await run(SECOND);
    }
    // The loop tells of it once a minute.
    expect(withoutDebug(log)).toEqual([
      "error the storage could not be asked for due deliveries",
      "error the storage could not be asked for due deliveries",
    ]);
    isReadOnly = false;
    await run(2 * SECOND);
    await emit();
  });
});

describe("content while the storage is unavailable", () => {
  function site() {
    const own = power();
    const clock = manualClock(START);
    const { logger, log } = recordingLogger();
    const storage = memoryStorage();
    const switchedStorage: ContentStorage = {
      content(context) {
        const store = storage.content(context);
        return { ...store, ...switchable(store, own) };
      },
      close: () => storage.close(),
    };
    const create = (options: { logger: Logger; consistency?: "strong" | "eventual" }) =>
      contentSite({ storage: switchedStorage, clock, awaitStorage: true, ...options });
    const lines = () =>
      log.filter(({ level }) => level !== "debug").map(({ level, message }) => `${level} ${message}`);
    return { own, clock, logger, create, lines };
  }

  it.each(["strong", "eventual"] as const)(
    "answers 503 while the clock stands still, and logs three kinds of lines: %s",
    async (consistency) => {
      const { own, clock, logger, create, lines } = site();
      const content = create({ logger, consistency });
      const call = callsOf(content);
      await content.start();
      const write = () => call("POST /posts", { as: "editor", body: { title: "One" } });
      expect((await write()).status).toBe(201);
      own.isOff = true;
      for (let second = 0; second < 125; second++) {
        await write();
        await clock.advance(SECOND);
      }
      own.calls = 0;
      for (let count = 0; count < 20; count++) {
        const answers = [await write(), await call("GET /posts")];
        expect(answers.map(({ status, headers }) => [status, headers["Retry-After"]])).toEqual([
          [503, "5"],
          [503, "5"],
        ]);
      }
      expect(own.calls).toBe(0);
      own.isOff = false;
      await clock.advance(SECOND);
      expect([(await call("GET /posts")).status, (await write()).status]).toEqual([200, 201]);
      expect(lines()).toEqual([
        "error the storage is unavailable",
        "warn the storage is still unavailable",
        "warn the storage is still unavailable",
        "warn the storage is available again after 2 min",
      ]);
      await content.stop();
    },
  );

  it("is not healthy if it never reached the storage, and tells since when and why, without an address", async () => {
    const { own, clock, logger, create } = site();
    own.isOff = true;
    const content = create({ logger });
    await expect(content.start()).rejects.toMatchObject({ code: "storage_unavailable" });
    await clock.advance(1_234.5);
    const { status, body } = await healthOf({ content }, clock);
    expect(status).toBe(503);
    expect(body.content.problems).toEqual([
      {
        code: "storage_away",
        forMs: 1_235,
        reason: "The storage does not respond, or refuses to store (ECONNREFUSED).",
      },
      {
        code: "storage_not_reached",
        forMs: 1_235,
        reason: "The storage could not be used since the service was created (ECONNREFUSED).",
      },
    ]);
    own.isOff = false;
    await clock.advance(SECOND);
    expect((await healthOf({ content }, clock)).status).toBe(200);
  });

  it("is not healthy right after a start without the storage", async () => {
    const { own, clock } = site();
    const storage = memoryStorage();
    const content = createContent({
      storage: {
        content: (context) => {
          const store = storage.content(context);
          return { ...store, ...switchable(store, own) };
        },
        close: () => storage.close(),
      },
      site: { url: "https://www.example.org", name: "Example" },
      authenticate: () => null,
      users: [],
      awaitStorage: false,
      logger: false,
      clock,
    });
    own.isOff = true;
    await content.start();
    await clock.advance(1);
    expect((await healthOf({ content }, clock)).status).toBe(503);
    await content.stop();
  });
});
