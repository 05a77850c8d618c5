/** A receiver that was away: what its deliveries did not bring, it fetches, and each event once. */

import { createServer } from "node:http";
import { promisify } from "node:util";
import { afterEach, describe, expect, it } from "vitest";
import { nodeAdapter } from "../../adapters/node.js";
import {
  createReceiver,
  type PlainNotification,
  type ReceivedEvents,
  type WebhookScheme,
} from "../../src/receiver/index.js";
import type { ReceiverOptions } from "../../src/receiver/options.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { bearer } from "../../src/webhooks/access.js";
import { createWebhooks } from "../../src/webhooks/service.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { memoryReceived } from "../../storage/received/index.js";
import { listen } from "../support/hosts.js";
import { recordingLogger } from "../support/registration-api.js";

const START = Date.UTC(2026, 10, 28);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const OWNER = { id: "key-1", account: "shop" };

const cleanup: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of cleanup.splice(0).reverse()) await end();
});

/** Lets sockets and promises do what needs no time of the clock. */
const settle = async (isDone: () => boolean): Promise<void> => {
  for (let turns = 0; turns < 5_000 && !isDone(); turns += 1) await new Promise(setImmediate);
};

/** A host with its API over HTTP, a clock that stands still, and an endpoint that may be away. */
async function openHost() {
  const clock = manualClock(START);
  let endpoint: ((body: string, headers: Record<string, string>) => Promise<number>) | undefined;
  const isUp = () => endpoint !== undefined;
  const webhooks = createWebhooks({
    storage: memoryStorage(),
    clock,
    logger: false,
    events: { "order.paid": {} },
    retry: { jitter: 0 },
    access: { authenticate: (request) => (bearer(request) === "s3cret" ? OWNER : null), canRead: () => true },
    delivery: {
      async send({ body, headers }) {
        if (endpoint === undefined) return { kind: "connect", code: "ECONNREFUSED", message: "away" };
        const status = await endpoint(Buffer.from(body ?? []).toString(), headers);
        return { kind: "response", status, headers: {}, body: new Uint8Array(0), complete: true };
      },
    },
  });
  const requests: string[] = [];
  const handle = nodeAdapter(webhooks);
  const http = createServer((req, res) => {
    requests.push(req.url ?? "");
    handle(req, res);
  });
  const server = await listen(http);
  const connections = promisify(http.getConnections.bind(http));
  cleanup.push(
    () => server.close(),
    () => webhooks.stop({ graceMs: 0 }),
  );
  const { webhook, secret } = await webhooks.registrations.create({
    subscriber: OWNER,
    url: "https://hooks.example.com/in",
  });
  await webhooks.start();
  const url = `${server.origin}/v1/webhooks/${webhook.id}/events`;
  const emit = async (n: number): Promise<string> =>
    (await webhooks.emit({ type: "order.paid", account: "shop", data: { n } })).id;
  const run = async (ms: number): Promise<void> => {
    const until = clock.now() + ms;
    for (let at = clock.nextTimerAt(); at !== undefined && at <= until; at = clock.nextTimerAt()) {
      await clock.advance(at - clock.now());
      await new Promise(setImmediate);
    }
    await clock.advance(until - clock.now());
    await new Promise(setImmediate);
  };
  const connect = (next: typeof endpoint): void => {
    endpoint = next;
  };
  return {
    clock,
    webhooks,
    webhookId: webhook.id,
    secret,
    url,
    requests,
    connections,
    emit,
    run,
    connect,
    isUp,
  };
}

type Host = Awaited<ReturnType<typeof openHost>>;

function openReceiver(
  host: Host,
  storage: ReceivedEvents,
  onEvent: (event: PlainNotification) => unknown = () => {},
  changes: Partial<ReceiverOptions> = {},
) {
  const ids: string[] = [];
  const { logger, log } = recordingLogger();
  const receiver = createReceiver({
    body: "plain",
    secrets: host.secret,
    storage,
    clock: host.clock,
    logger,
    catchUp: { url: host.url, apiKey: "s3cret", allowHttp: true },
    onEvent: async (event) => {
      await onEvent(event);
      ids.push(event.id);
    },
    ...(changes as object),
  });
  cleanup.push(() => receiver.stop({ graceMs: 0 }));
  const receive = async (body: string, headers: Record<string, string>): Promise<number> => {
    const result = await receiver.receive({ body, headers });
    return result.ok ? 204 : result.status;
  };
  return { receiver, ids, log, receive };
}

describe("a receiver that catches up", () => {
  it("misses nothing after two days away, and handles each event once, pushed or fetched", async () => {
    const host = await openHost();
    const storage = memoryReceived();
    const before = openReceiver(host, storage);
    host.connect(before.receive);
    const all = [await host.emit(0)];
    await host.run(MINUTE);
    expect(before.ids).toEqual(all);
    // The process ends, and the host goes on for more than the three days of retries.
    host.connect(undefined);
    for (let n = 1; n <= 30; n += 1) all.push(await host.emit(n));
    await host.run(2 * DAY);
    const late: string[] = [];
    for (let n = 31; n <= 40; n += 1) late.push(await host.emit(n));
    await host.run(DAY + HOUR);
    const { webhookId, webhooks } = host;
    expect((await webhooks.deliveries.stats(webhookId)).failed).toBe(30);

    const after = openReceiver(host, storage);
    host.connect(after.receive);
    await after.receiver.start();
    // The newest events are sent again while the run fetches them.
    await Promise.all(late.map((id) => webhooks.deliveries.resend({ id: `${webhookId}.${id}` })));
    await settle(() => after.ids.length >= 40);
    let rest = await after.receiver.catchUp();
    for (let runs = 0; !rest.isComplete && runs < 10; runs += 1) rest = await after.receiver.catchUp();
    expect(rest.isComplete).toBe(true);
    expect([...before.ids, ...after.ids].sort()).toEqual([...all, ...late].sort());
    expect(new Set(after.ids).size).toBe(40);
    // Nothing is fetched again: the cursor is behind all of them.
    const fetched = host.requests.length;
    expect(await after.receiver.catchUp()).toEqual({ handled: 0, duplicates: 0, isComplete: true });
    expect(host.requests.length).toBe(fetched + 1);
    await after.receiver.stop();
    await host.run(9 * HOUR);
    expect(after.ids).toHaveLength(40);
  }, 60_000);

  it("continues at its cursor after a restart, on any storage that it shares", async () => {
    const host = await openHost();
    const storage = memoryReceived();
    const ids = [await host.emit(1), await host.emit(2)];
    await host.run(2 * MINUTE);
    const one = openReceiver(host, storage);
    expect(await one.receiver.catchUp()).toEqual({ handled: 2, duplicates: 0, isComplete: true });
    ids.push(await host.emit(3));
    await host.run(2 * MINUTE);
    const two = openReceiver(host, storage);
    expect(await two.receiver.catchUp()).toEqual({ handled: 1, duplicates: 0, isComplete: true });
    expect([...one.ids, ...two.ids]).toEqual(ids);
    expect(host.requests.at(-1)).toContain("after=");
  });

  it("takes an event that arrives at the same moment once, and comes back for it if that fails", async () => {
    const host = await openHost();
    const storage = memoryReceived();
    await host.emit(1);
    await host.run(2 * MINUTE);
    let finish: (fails: boolean) => void = () => {};
    let isFirst = true;
    const onEvent = (): Promise<void> | undefined => {
      if (!isFirst) return undefined;
      isFirst = false;
      return new Promise((resolve, reject) => {
        finish = (fails) => (fails ? reject(new Error("disk full")) : resolve());
      });
    };
    const { receiver, ids, receive } = openReceiver(host, storage, onEvent);
    host.connect(receive);
    await host.run(20 * MINUTE);
    // The retry is being handled.
    expect(await receiver.catchUp()).toEqual({ handled: 0, duplicates: 0, isComplete: false });
    finish(true);
    await new Promise(setImmediate);
    expect(await receiver.catchUp()).toEqual({ handled: 1, duplicates: 0, isComplete: true });
    expect(ids).toHaveLength(1);
  });

  it("waits at an event that fails, also over a restart, until it is handled, and push goes on", async () => {
    const host = await openHost();
    const [bad, good] = [await host.emit(1), await host.emit(2)];
    await host.run(2 * MINUTE);
    const storage = memoryReceived();
    let calls = 0;
    const failing = ({ id }: { id: string }): void => {
      if (id !== bad) return;
      calls += 1;
      throw new Error("poison");
    };
    const { receiver, ids, log, receive } = openReceiver(host, storage, failing);
    for (let times = 1; times <= 12; times += 1)
      expect(await receiver.catchUp()).toEqual({ handled: 0, duplicates: 0, isComplete: false });
    expect([calls, ids]).toEqual([12, []]);
    expect(log).toHaveLength(12);
    expect(log[0]).toMatchObject({
      level: "error",
      fields: { event: bad },
      message: expect.stringContaining("onEvent failed: the feed waits at this event"),
    });
    host.connect(receive);
    const pushed = await host.emit(3);
    await host.run(1_000);
    expect(ids).toEqual([pushed]);
    const repaired = openReceiver(host, storage);
    expect(await repaired.receiver.catchUp()).toEqual({ handled: 2, duplicates: 0, isComplete: true });
    expect(repaired.ids).toEqual([bad, good]);
  });

  it("without a cursor handles only events whose delivery was not acknowledged", async () => {
    const host = await openHost();
    // Another endpoint, which remembered nothing in this storage.
    host.connect(async () => 204);
    await host.emit(1);
    await host.run(MINUTE);
    host.connect(undefined);
    const missed = [await host.emit(2)];
    await host.run(4 * DAY - HOUR);
    host.connect(async () => 204);
    await host.emit(3);
    await host.run(MINUTE);
    host.connect(undefined);
    missed.push(await host.emit(4));
    await host.run(2 * MINUTE);
    const storage = memoryReceived();
    const { receiver, ids } = openReceiver(host, storage);
    const { handled, duplicates, isComplete } = await receiver.catchUp();
    expect([ids, handled, isComplete]).toEqual([missed, 2, true]);
    expect(duplicates).toBeGreaterThanOrEqual(1);
    // The cursor is behind all of them.
    expect(await receiver.catchUp()).toEqual({ handled: 0, duplicates: 0, isComplete: true });
  });

  it("leaves delivered events out until the feed was read once to its end, also if it is stopped", async () => {
    const host = await openHost();
    const item = (id: string, state: string) => ({
      eventId: id,
      state,
      body: JSON.stringify({ id, type: "order.paid", timestamp: "2026-11-28T00:00:00Z", data: {} }),
    });
    const pages = new Map([
      [null, { events: [item("a", "delivered"), item("b", "failed")], next: "1", hasMore: true }],
      ["1", { events: [item("c", "pending"), item("d", "delivered")], next: "2", hasMore: true }],
      ["2", { events: [], next: "2", hasMore: false }],
    ]);
    const after: (string | null)[] = [];
    const server = await listen(
      createServer((req, res) => {
        after.push(new URL(req.url ?? "", "http://localhost").searchParams.get("after"));
        res.end(JSON.stringify(pages.get(after.at(-1) ?? null)));
      }),
    );
    cleanup.push(() => server.close());
    let fails = true;
    const onEvent = ({ id }: { id: string }): void => {
      if (id === "c" && fails) throw new Error("disk full");
    };
    const { receiver, ids } = openReceiver(
      { ...host, url: `${server.origin}/feed` },
      memoryReceived(),
      onEvent,
    );
    expect(await receiver.catchUp()).toEqual({ handled: 1, duplicates: 1, isComplete: false });
    fails = false;
    expect(await receiver.catchUp()).toEqual({ handled: 1, duplicates: 3, isComplete: true });
    expect(ids).toEqual(["b", "c"]);
    expect(await receiver.catchUp()).toEqual({ handled: 0, duplicates: 0, isComplete: true });
    expect(after).toEqual([null, "1", null, "1", "2", "2"]);
  });

  it("catches up on request after it was stopped, and leaves no connection open", async () => {
    const host = await openHost();
    const { receiver, ids } = openReceiver(host, memoryReceived());
    await receiver.start();
    await settle(() => host.requests.length === 1);
    await receiver.stop();
    const missed = await host.emit(1);
    await host.run(2 * MINUTE);
    expect(await receiver.catchUp()).toEqual({ handled: 1, duplicates: 0, isComplete: true });
    expect(ids).toEqual([missed]);
    let open = await host.connections();
    for (let turns = 0; turns < 1_000 && open > 0; turns += 1) {
      await new Promise(setImmediate);
      open = await host.connections();
    }
    expect(open).toBe(0);
  });

  it("ends its run at an event that its scheme cannot read without throwing", async () => {
    const host = await openHost();
    const event = await host.emit(1);
    await host.run(2 * MINUTE);
    let fails = true;
    const verify: WebhookScheme<{ id: string }> = {
      header: "x-acme-key",
      verify: () => undefined,
      read({ body }) {
        if (fails) throw new Error("a field is missing");
        return JSON.parse(String(body));
      },
    };
    const scheme = { verify, body: undefined, secrets: undefined } as object;
    const { receiver, ids, log } = openReceiver(host, memoryReceived(), undefined, scheme);
    expect(await receiver.catchUp()).toEqual({ handled: 0, duplicates: 0, isComplete: false });
    expect(log).toMatchObject([
      { level: "error", fields: { event }, message: expect.stringContaining("read() of the scheme failed") },
    ]);
    fails = false;
    expect(await receiver.catchUp()).toEqual({ handled: 1, duplicates: 0, isComplete: true });
    expect(ids).toHaveLength(1);
  });

  it("fetches every ten minutes, sooner after a failure and then ever later, until it is stopped", async () => {
    const host = await openHost();
    const { receiver } = openReceiver(host, memoryReceived());
    const runs = async (ms: number): Promise<number> => {
      const seen = host.requests.length;
      for (let left = ms; left > 0; left -= MINUTE) {
        const now = host.requests.length;
        await host.clock.advance(MINUTE);
        for (let turns = 0; turns < 50 && host.requests.length === now; turns += 1)
          await new Promise((resolve) => setImmediate(resolve));
        for (let turns = 0; turns < 50; turns += 1) await new Promise((resolve) => setImmediate(resolve));
      }
      return host.requests.length - seen;
    };
    await receiver.start();
    await receiver.start();
    await settle(() => host.requests.length === 1);
    await receiver.catchUp();
    const before = host.requests.length;
    expect(before).toBeLessThanOrEqual(2);
    expect(await runs(30 * MINUTE)).toBe(3);
    await receiver.stop();
    expect(await runs(60 * MINUTE)).toBe(0);
    await receiver.start();
    await settle(() => host.requests.length === before + 4);
    await receiver[Symbol.asyncDispose]();
    expect(await runs(60 * MINUTE)).toBe(0);
  });

  it("reads what was not delivered from the beginning if the feed does not know its cursor", async () => {
    const host = await openHost();
    await host.emit(1);
    await host.run(MINUTE);
    host.connect(async () => 204);
    await host.emit(2);
    await host.run(2 * MINUTE);
    const storage = memoryReceived();
    const foreign: ReceivedEvents = {
      ...storage,
      readCursor: async () => "6f1c7f6e-3f0b-5c3a-9d53-6f2f1f3c7b10_1",
    };
    const { receiver, ids, log } = openReceiver(host, foreign);
    expect(await receiver.catchUp()).toEqual({ handled: 1, duplicates: 1, isComplete: true });
    expect(ids).toHaveLength(1);
    expect(log).toMatchObject([{ level: "warn" }, { level: "info" }]);
  });

  it.each<[string, (req: { url?: string | undefined }) => [number, Record<string, string>, string]]>([
    ["a redirect", () => [302, { location: "https://evil.example/" }, ""]],
    ["a refusal of the key", () => [403, {}, '{"error":{"code":"webhook_owned_by_another_key"}}']],
    ["a page of HTML", () => [200, {}, "<html>"]],
    ["a list in place of a page", () => [200, {}, "[]"]],
    [
      "events without an id",
      () => [200, {}, '{"events":[{"__proto__":{"eventId":"a","body":"{}"}}],"next":"a","hasMore":true}'],
    ],
    [
      "a cursor that is too long",
      () => [200, {}, JSON.stringify({ events: [], next: "x".repeat(257), hasMore: true })],
    ],
    [
      "too many events",
      () => [
        200,
        {},
        JSON.stringify({
          events: Array(1_001).fill({ eventId: "a", body: "{}" }),
          next: "a",
          hasMore: false,
        }),
      ],
    ],
    ["a limit of its requests", () => [429, { "retry-after": "60" }, "{}"]],
  ])("ends its run at %s, and changes nothing", async (_, answer) => {
    const host = await openHost();
    const seen: (string | undefined)[] = [];
    const server = await listen(
      createServer((req, res) => {
        seen.push(req.headers.authorization);
        const [status, headers, body] = answer(req);
        res.writeHead(status, headers).end(body);
      }),
    );
    cleanup.push(() => server.close());
    const storage = memoryReceived();
    const { receiver, ids, log } = openReceiver({ ...host, url: `${server.origin}/feed` }, storage);
    expect(await receiver.catchUp()).toEqual({ handled: 0, duplicates: 0, isComplete: false });
    expect([ids, seen]).toEqual([[], ["Bearer s3cret"]]);
    expect(log).toMatchObject([
      { level: "warn", message: expect.stringContaining("catching up ended early") },
    ]);
    expect(JSON.stringify(log)).not.toContain("s3cret");
  });

  it("needs a storage, a key, and an address that is encrypted unless that is allowed", () => {
    const storage = memoryReceived();
    const options = { secrets: "whsec_x", onEvent() {}, storage };
    const url = "https://api.example.com/v1/webhooks/1/events";
    for (const [changes, field] of [
      [{ catchUp: { url, apiKey: "k" }, storage: undefined }, "storage"],
      [{ catchUp: { url } }, "catchUp.apiKey"],
      [{ catchUp: { apiKey: "k" } }, "catchUp.url"],
      [{ catchUp: { url: url.replace("https", "http"), apiKey: "k" } }, "catchUp.url"],
      [{ catchUp: { url: "ftp://x", apiKey: "k" } }, "catchUp.url"],
      [{ catchUp: { url, apiKey: "k\r\nx: y" } }, "catchUp.apiKey"],
      [{ catchUp: { url, apiKey: "k", everyMs: 10 } }, "catchUp.everyMs"],
    ] as const)
      expect(() => createReceiver({ ...options, ...changes } as never)).toThrow(
        expect.objectContaining({ code: "invalid_option", field }),
      );
  });

  it("is refused for a receiver without the option, which starts and stops all the same", async () => {
    const receiver = createReceiver({ secrets: "whsec_x", onEvent() {} });
    await receiver.start();
    await expect(receiver.catchUp()).rejects.toMatchObject({ code: "invalid_option", field: "catchUp" });
    await receiver.stop();
  });
});
