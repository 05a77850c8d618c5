/** The feed of a webhook, as a host calls it and over REST, and who may not read it. */

import { describe, expect, it } from "vitest";
import type { Subscriber } from "../../../src/webhooks/access.js";
import type { EventPage, FeedEvent } from "../../../src/webhooks/delivery/event-feed.js";
import { byKey } from "../../support/registration-api.js";
import {
  DAY,
  type Harness,
  type HarnessOptions,
  HOUR,
  MINUTE,
  SECOND,
  startHarness,
  unreachable,
} from "../../support/webhook-harness.js";

const KEYS: Record<string, Subscriber> = {
  "key-1": { id: "key-1", account: "clinic" },
  "key-2": { id: "key-2", account: "clinic" },
  "key-b": { id: "key-1", account: "hospital" },
};
const authenticate = byKey((key) => KEYS[key] ?? null);

interface FeedBody extends Omit<EventPage, "items"> {
  events: (Omit<FeedEvent, "createdAt"> & { createdAt: string })[];
  error: { code: string; field?: string };
}

type Feed = Harness & {
  id: string;
  /** Reads every page, in process. */
  readAll: (after?: string) => Promise<{ ids: string[]; next: string; pages: EventPage[] }>;
  get: (query?: string, key?: string, id?: string) => Promise<{ status: number; json: FeedBody }>;
};

async function startFeed({ options, ...rest }: HarnessOptions = {}): Promise<Feed> {
  const access = { authenticate, canRead: () => true };
  const harness = await startHarness({ options: { access, retry: { jitter: 0 }, ...options }, ...rest });
  const { id } = await harness.register();
  return {
    ...harness,
    id,
    async readAll(after) {
      const pages: EventPage[] = [];
      let next = after;
      for (;;) {
        const page = await harness.webhooks.deliveries.listEvents({ webhookId: id, after: next, limit: 3 });
        pages.push(page);
        next = page.next;
        if (!page.hasMore) break;
      }
      return { ids: pages.flatMap(({ items }) => items.map(({ eventId }) => eventId)), next, pages };
    },
    async get(query = "", key = "key-1", webhookId = id) {
      const response = await harness.webhooks.handle({
        method: "GET",
        path: `/v1/webhooks/${webhookId}/events`,
        query,
        headers: { authorization: `Bearer ${key}` },
        body: null,
        baseUrl: "https://api.example.com",
      });
      return { status: response?.status ?? 0, json: JSON.parse(response?.body as string) as FeedBody };
    },
  };
}

const emitMany = async ({ emit, run }: Harness, count: number): Promise<string[]> => {
  const ids: string[] = [];
  for (let index = 0; index < count; index++) {
    ids.push(await emit({ resource: { resourceType: "Patient", id: String(index) } }));
    await run(SECOND);
  }
  return ids;
};

describe("the feed of a webhook", () => {
  it("lists what the endpoint should have received, oldest first, with the bytes that were sent", async () => {
    const feed = await startFeed();
    const ids = await emitMany(feed, 7);
    await feed.run(2 * MINUTE);
    const { pages, ...all } = await feed.readAll();
    expect(all.ids).toEqual(ids);
    expect(pages.flatMap(({ items }) => items).map(({ body }) => body)).toEqual(
      feed.sent.map(({ body }) => Buffer.from(body).toString()),
    );
    expect(pages[0]?.items[0]).toMatchObject({
      deliveryId: `${feed.id}.${ids[0]}`,
      type: "patient.updated",
      state: "delivered",
      createdAt: expect.any(Date),
    });
  });

  it("continues where its reader was, days later, with the deliveries that failed meanwhile", async () => {
    const feed = await startFeed();
    const [first] = await emitMany(feed, 1);
    await feed.run(2 * MINUTE);
    const { ids, next } = await feed.readAll();
    expect(ids).toEqual([first]);
    expect(await feed.readAll(next)).toMatchObject({ ids: [], next });
    feed.respond(() => unreachable);
    const missed = await emitMany(feed, 4);
    await feed.run(3 * DAY + HOUR);
    const later = await feed.readAll(next);
    expect(later.ids).toEqual(missed);
    expect(later.pages.flatMap(({ items }) => items).every(({ state }) => state === "failed")).toBe(true);
  });

  it("leaves out the last minute, tests, and the repetitions of an event that was sent again", async () => {
    const feed = await startFeed();
    const [id = ""] = await emitMany(feed, 1);
    await feed.webhooks.deliveries.test({ webhookId: feed.id });
    await feed.run(SECOND);
    await feed.webhooks.deliveries.resend({ id: `${feed.id}.${id}` });
    expect((await feed.readAll()).ids).toEqual([]);
    await feed.run(2 * MINUTE);
    const { ids, next } = await feed.readAll();
    expect(ids).toEqual([id]);
    expect((await feed.readAll(next)).ids).toEqual([]);
  });

  it("checks the rights now, leaves out what may not be read, and goes on behind it", async () => {
    const hidden = new Set(["1", "2", "3", "4"]);
    const canRead = (_: Subscriber, resource: { id?: string }) => !hidden.has(resource.id ?? "");
    const feed = await startFeed({ options: { access: { authenticate, canRead: canRead as never } } });
    const ids = await emitMany(feed, 6);
    await feed.run(2 * MINUTE);
    expect((await feed.readAll()).ids).toEqual([ids[0], ids[5]]);
    hidden.clear();
    expect((await feed.readAll()).ids).toEqual(ids);
  });

  it("keeps its place if canRead fails: a page ends before the event, and the next call is refused", async () => {
    let isBroken = true;
    const canRead = (_: Subscriber, { id }: { id?: string }) => {
      if (id === "1" && isBroken) throw new Error("no database");
      return true;
    };
    const feed = await startFeed({ options: { access: { authenticate, canRead: canRead as never } } });
    const ids = await emitMany(feed, 3);
    await feed.run(2 * MINUTE);
    const page = await feed.webhooks.deliveries.listEvents({ webhookId: feed.id });
    expect([page.items.map(({ eventId }) => eventId), page.hasMore]).toEqual([[ids[0]], true]);
    const again = () => feed.webhooks.deliveries.listEvents({ webhookId: feed.id, after: page.next });
    await expect(again()).rejects.toMatchObject({ code: "access_unavailable" });
    expect((await feed.get(`after=${page.next}`)).status).toBe(503);
    isBroken = false;
    expect((await again()).items.map(({ eventId }) => eventId)).toEqual(ids.slice(1));
  });

  it("ends a page after about 4 MiB", async () => {
    const feed = await startFeed();
    const text = "x".repeat(200_000);
    const ids: string[] = [];
    for (let index = 0; index < 30; index++)
      ids.push(
        await feed.emit({
          resource: { resourceType: "Patient", id: String(index), text: { div: text } } as never,
        }),
      );
    await feed.run(2 * MINUTE);
    const page = await feed.webhooks.deliveries.listEvents({ webhookId: feed.id, limit: 100 });
    expect([page.items.length, page.hasMore]).toEqual([21, true]);
    expect((await feed.readAll()).ids).toEqual(ids);
  });
});

describe("the feed over REST", () => {
  it("gives the same, with times in ISO 8601, and a cursor that only its webhook takes", async () => {
    const feed = await startFeed();
    const ids = await emitMany(feed, 3);
    await feed.run(2 * MINUTE);
    const { status, json } = await feed.get("limit=2");
    expect([status, json.events.map(({ eventId }) => eventId), json.hasMore]).toEqual([
      200,
      ids.slice(0, 2),
      true,
    ]);
    expect(json.events[0]?.createdAt).toMatch(/^2026-01-01T00:00:0.\.000Z$/);
    expect(JSON.parse(json.events[0]?.body ?? "")).toMatchObject({ id: ids[0] });
    const rest = await feed.get(`after=${json.next}`);
    expect([rest.json.events.map(({ eventId }) => eventId), rest.json.hasMore]).toEqual([
      ids.slice(2),
      false,
    ]);
    const { id: other } = await feed.register("https://hooks.example.com/b");
    const foreign = await feed.get(`after=${json.next}`, "key-1", other);
    expect([foreign.status, foreign.json.error]).toMatchObject([
      400,
      { code: "invalid_argument", field: "after" },
    ]);
  });

  it("is refused to other keys and accounts, and to cursors and limits that are made up", async () => {
    const feed = await startFeed();
    await emitMany(feed, 1);
    await feed.run(2 * MINUTE);
    const of = async (query: string, key?: string): Promise<unknown[]> => {
      const { status, json } = await feed.get(query, key);
      return [status, json.error.code, json.error.field];
    };
    expect(await of("", "key-2")).toEqual([403, "webhook_owned_by_another_key", undefined]);
    expect(await of("", "key-b")).toEqual([404, "not_found", undefined]);
    expect(await of("", "nobody")).toEqual([401, "unauthorized", undefined]);
    for (const limit of ["0", "101", "1e9", "-1", "NaN", "9".repeat(400)])
      expect(await of(`limit=${limit}`)).toEqual([400, "invalid_request", "limit"]);
    for (const after of [
      "x",
      "__proto__",
      `${feed.id}_x`,
      `${feed.id}_-1`,
      `${feed.id}_${"9".repeat(400)}`,
      `${feed.id}_' OR 1=1`,
    ])
      expect(await of(`after=${encodeURIComponent(after)}`), after).toEqual([
        400,
        "invalid_argument",
        "after",
      ]);
  });

  it("reads ten thousand events in pages whose cost does not grow", async () => {
    const feed = await startFeed({ options: { limits: { requestsPerMinute: 1_000_000 } as never } });
    let calls = 0;
    const counted = await startFeed({
      storage: feed.storage,
      clock: feed.clock,
      change: (store) => ({
        getEvent: (request) => {
          calls += 1;
          return store.getEvent(request);
        },
      }),
    });
    const events = Array.from({ length: 500 }, (_, index) => ({
      type: "patient.updated" as const,
      account: "clinic",
      resource: { resourceType: "Patient", id: String(index) },
    }));
    for (let batch = 0; batch < 20; batch++) await feed.webhooks.emit(events as never);
    await feed.run(2 * MINUTE);
    let after: string | undefined;
    const perPage: number[] = [];
    let count = 0;
    for (;;) {
      const before = calls;
      const page = await counted.webhooks.deliveries.listEvents({ webhookId: feed.id, after, limit: 100 });
      perPage.push(calls - before);
      count += page.items.length;
      after = page.next;
      if (!page.hasMore) break;
    }
    expect([count, Math.max(...perPage)]).toEqual([10_000, 100]);
  }, 60_000);
});
