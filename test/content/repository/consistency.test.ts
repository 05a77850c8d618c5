/**
 * How current answers are on a storage outside of this process, and what is answered while it is
 * away.
 */

import { describe, expect, it } from "vitest";
import { coalesceCalls } from "../../../src/content/repository/resident-site.js";
import type { ContentContext, ContentStorage, ContentStore } from "../../../src/content/store.js";
import { PostbellError } from "../../../src/core/errors.js";
import { silentLogger } from "../../../src/core/logger.js";
import { type ManualClock, manualClock } from "../../../src/testing/manual-clock.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { type Call, callsOf } from "../../support/content-call.js";
import { contentSite } from "../../support/content-site.js";
import { forever, held } from "../../support/webhook-harness.js";

const START = Date.UTC(2026, 10, 21, 12);

/** The same storage as another machine's: every call takes a turn, `change` may replace some. */
const remote = (
  storage: ContentStorage,
  change: (store: ContentStore) => Partial<ContentStore> = () => ({}),
): ContentStorage => ({
  ...storage,
  content(context: ContentContext) {
    const store = storage.content(context);
    return { ...store, changes: async (since) => store.changes(since), ...change(store) };
  },
});

/** Until what was asked for has been asked of the storage. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 6; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/**
 * Advances the clock in steps, and each step ends the work that it begins. A storage call takes
 * turns of the event loop, and a clock that jumped would be far ahead by then.
 */
async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 500) await clock.advance(500);
}

const created = async (call: Call, title: string): Promise<number> => {
  const { status, body } = await call("POST /posts", {
    as: "administrator",
    body: { title, status: "publish" },
  });
  expect(status).toBe(201);
  return body.id as number;
};

const totalOf = async (call: Call): Promise<string | undefined> =>
  (await call("GET /posts")).headers["X-WP-Total"];

const away = (): PostbellError => new PostbellError("storage_unavailable", "The storage is away.");

describe("a shared call", () => {
  function counted() {
    const calls: ReturnType<typeof held<void>>[] = [];
    const shared = coalesceCalls(() => {
      const call = held<void>();
      calls.push(call);
      return call.promise;
    });
    return { calls, shared };
  }

  it("answers only those who asked before it started, and all of them at once", async () => {
    const { calls, shared } = counted();
    const over: string[] = [];
    const ask = (name: string) => Promise.resolve(shared()).then(() => over.push(name));
    const first = ask("first");
    const others = [ask("second"), ask("third")];
    calls[0]?.resolve();
    await first;
    others.push(ask("fourth"));
    await turns();
    expect([over, calls.length]).toEqual([["first"], 2]);
    const last = ask("fifth");
    calls[1]?.resolve();
    await Promise.all(others);
    expect(over).toEqual(["first", "second", "third", "fourth"]);
    await turns();
    expect(calls).toHaveLength(3);
    calls[2]?.resolve();
    await last;
  });

  it("waits for those who ask again as soon as they are answered", async () => {
    const { calls, shared } = counted();
    const first = shared();
    const second = shared();
    calls[0]?.resolve();
    await first;
    await new Promise((resolve) => setImmediate(resolve));
    const again = shared();
    await turns();
    expect(calls).toHaveLength(2);
    calls[1]?.resolve();
    await Promise.all([second, again]);
    expect(calls).toHaveLength(2);
  });

  it("that fails fails for those who wait, and is made again for whoever comes later", async () => {
    const { calls, shared } = counted();
    const asked = [shared(), shared()].map((answer) => Promise.resolve(answer).catch(String));
    calls[0]?.resolve(Promise.reject(new Error("away")) as never);
    expect(await Promise.all(asked)).toEqual(["Error: away", "Error: away"]);
    const later = shared();
    await turns();
    calls[1]?.resolve();
    await later;
    expect(calls).toHaveLength(2);
  });

  it("hands on at once what needs no waiting", () => {
    expect(coalesceCalls(() => {})()).toBeUndefined();
  });
});

describe("strong consistency", () => {
  it("proves a hundred concurrent requests current with one call", async () => {
    const storage = memoryStorage();
    let calls = 0;
    const call = callsOf(
      contentSite({
        storage: remote(storage, (store) => ({
          async changes(since) {
            calls += 1;
            await new Promise((resolve) => setImmediate(resolve));
            return store.changes(since);
          },
        })),
      }),
    );
    await call("GET /posts");
    calls = 0;
    await Promise.all(Array.from({ length: 100 }, () => call("GET /posts")));
    expect(calls).toBe(1);
  });

  it("shows a later read what was stored while the proof of an earlier one was on its way", async () => {
    const storage = memoryStorage();
    const writer = callsOf(contentSite({ storage }));
    const gate = held<void>();
    const answered = held<void>();
    let isHeld = false;
    const reader = callsOf(
      contentSite({
        storage: remote(storage, (store) => ({
          async changes(since) {
            const changes = await store.changes(since);
            if (isHeld) {
              isHeld = false;
              answered.resolve();
              await gate.promise;
            }
            return changes;
          },
        })),
      }),
    );
    expect(await totalOf(reader)).toBe("0");
    isHeld = true;
    const early = totalOf(reader);
    await answered.promise;
    await created(writer, "Meanwhile");
    const late = totalOf(reader);
    await turns();
    gate.resolve();
    expect(await late).toBe("1");
    await early;
  });

  it("shows what was stored while the content was loaded", async () => {
    const storage = memoryStorage();
    const writer = callsOf(contentSite({ storage }));
    const gate = held<void>();
    const started = held<void>();
    const reader = callsOf(
      contentSite({
        storage: remote(storage, (store) => ({
          async load() {
            const snapshot = await store.load();
            started.resolve();
            await gate.promise;
            return snapshot;
          },
        })),
      }),
    );
    const early = totalOf(reader);
    await started.promise;
    await created(writer, "Meanwhile");
    const late = totalOf(reader);
    gate.resolve();
    expect(await late).toBe("1");
    await early;
  });
});

describe("a process that missed too much", () => {
  it("loads again, and answers each request in flight from the old state or the new, none from a part", async () => {
    const storage = memoryStorage();
    const writer = callsOf(contentSite({ storage }));
    for (let post = 0; post < 30; post += 1) await created(writer, `Post ${post}`);
    let isCutOff = false;
    let loads = 0;
    const reader = callsOf(
      contentSite({
        storage: remote(storage, (store) => ({
          async changes(since) {
            if (!isCutOff) return store.changes(since);
            isCutOff = false;
            return "reload";
          },
          async load() {
            loads += 1;
            const { sequence, batches } = await store.load();
            async function* slowly() {
              for await (const batch of batches) {
                for (const change of batch) {
                  await new Promise((resolve) => setImmediate(resolve));
                  yield [change];
                }
              }
            }
            return { sequence, batches: slowly() };
          },
        })),
      }),
    );
    expect(await totalOf(reader)).toBe("30");
    await created(writer, "One more");
    isCutOff = true;
    const searches = Array.from({ length: 5 }, () =>
      reader("GET /posts", { query: { search: "Post", per_page: 100 } }),
    );
    const totals = Array.from({ length: 20 }, () => totalOf(reader));
    expect(new Set(await Promise.all(totals))).toEqual(new Set(["31"]));
    for (const { headers } of await Promise.all(searches)) expect(headers["X-WP-Total"]).toBe("30");
    expect(loads).toBe(2);
  });

  it("answers with nothing of what was there before the storage was emptied and filled again", async () => {
    const [before, after] = [memoryStorage(), memoryStorage()];
    const ids: number[] = [];
    for (const [storage, title] of [
      [before, "Old"],
      [after, "New"],
    ] as const) {
      ids.push(await created(callsOf(contentSite({ storage })), title));
    }
    // The same id, and the same version: nothing but the load tells one from the other.
    expect(ids[0]).toBe(ids[1]);
    let isFilledAgain = false;
    let hasReloaded = false;
    const context = { clock: manualClock(START), logger: silentLogger };
    const filled = after.content(context);
    const call = callsOf(
      contentSite({
        storage: remote(before, (store) => ({
          read: (keys) => (isFilledAgain ? filled : store).read(keys),
          async load() {
            hasReloaded = isFilledAgain;
            return (isFilledAgain ? filled : store).load();
          },
          changes: async (since) =>
            isFilledAgain && !hasReloaded ? "reload" : (isFilledAgain ? filled : store).changes(since),
        })),
      }),
    );
    const titles = async (): Promise<readonly string[]> => {
      const [one, list] = [await call(`GET /posts/${ids[0]}`), await call("GET /posts")];
      return [one.body, ...list.body].map((post: { title: { rendered: string } }) => post.title.rendered);
    };
    expect(await titles()).toEqual(["Old", "Old"]);
    isFilledAgain = true;
    expect(await titles()).toEqual(["New", "New"]);
  });

  it("answers 503 while it cannot load, and is itself again afterwards", async () => {
    const storage = memoryStorage();
    let isAway = false;
    const call = callsOf(
      contentSite({
        storage: remote(storage, (store) => ({
          changes: async (since) => (isAway ? "reload" : store.changes(since)),
          async load() {
            if (isAway) throw away();
            return store.load();
          },
        })),
      }),
    );
    const id = await created(call, "Kept");
    isAway = true;
    const answer = await call(`GET /posts/${id}`);
    expect([answer.status, answer.headers["Retry-After"]]).toEqual([503, "5"]);
    isAway = false;
    expect((await call(`GET /posts/${id}`)).status).toBe(200);
  });
});

describe("a write that was stored", () => {
  it("is answered as such where the storage goes away right after, and is read again when it is back", async () => {
    const storage = memoryStorage();
    let isAway = false;
    const clock = manualClock(Date.UTC(2026, 0, 1));
    const call = callsOf(
      contentSite({
        clock,
        logger: false,
        storage: remote(storage, (store) => ({
          async commit(...given) {
            const committed = await store.commit(...given);
            isAway = true;
            return committed;
          },
          async changes(since) {
            if (isAway) throw away();
            return store.changes(since);
          },
          async read(keys) {
            if (isAway) throw away();
            return store.read(keys);
          },
        })),
      }),
    );
    /** A ping notices it within a second. */
    const isBack = async (): Promise<void> => {
      isAway = false;
      await clock.advance(1_000);
    };
    await call("GET /posts").catch(() => {});
    await isBack();
    const id = await created(call, "Stored");
    expect((await call(`GET /posts/${id}`)).status).toBe(503);
    await isBack();
    const renamed = await call(`PUT /posts/${id}`, { as: "administrator", body: { title: "Renamed" } });
    expect([renamed.status, renamed.body.title.raw]).toEqual([200, "Renamed"]);
    await isBack();
    const gone = await call(`DELETE /posts/${id}`, { as: "administrator", query: { force: true } });
    expect([gone.status, gone.body.deleted]).toEqual([200, true]);
    await isBack();
    expect(await totalOf(call)).toBe("0");
  });
});

describe("a storage that hangs", () => {
  it.each(["load", "changes", "read", "commit", "allocate"] as const)(
    "in `%s` is answered with 503 within the limit, and holds nothing up",
    async (method) => {
      const clock = manualClock(START);
      let isHanging = false;
      const storage = memoryStorage();
      const id = await created(callsOf(contentSite({ storage, clock })), "Earlier");
      const call = callsOf(
        contentSite({
          clock,
          limits: { cacheBytes: 0 },
          storage: remote(storage, (store) => ({
            [method]: (...given: unknown[]) =>
              isHanging ? forever() : (store[method] as (...all: unknown[]) => unknown)(...given),
          })),
        }),
      );
      if (method !== "load") await call("GET /categories");
      isHanging = true;
      const asking =
        method === "commit" || method === "allocate"
          ? call("POST /posts", { as: "administrator", body: { title: "New", status: "publish" } })
          : call(`GET /posts/${id}`);
      await turns();
      await clock.advance(4_000);
      const { status, headers } = await asking;
      expect([status, headers["Retry-After"]]).toEqual([503, "5"]);
      isHanging = false;
      expect((await call(`GET /posts/${id}`)).status).toBe(200);
      await created(call, "Later");
    },
  );
});

describe("eventual consistency", () => {
  function site() {
    const clock = manualClock(START);
    const storage = memoryStorage();
    let calls = 0;
    let isAway = false;
    const reading = contentSite({
      clock,
      consistency: "eventual",
      storage: remote(storage, (store) => ({
        async changes(since) {
          calls += 1;
          if (isAway) throw away();
          return store.changes(since);
        },
      })),
    });
    const setAway = (value: boolean): void => {
      isAway = value;
    };
    return {
      clock,
      reading,
      setAway,
      calls: () => calls,
      reader: callsOf(reading),
      writer: callsOf(contentSite({ clock, storage })),
    };
  }

  it("shows what others stored a second later, without asking before that", async () => {
    const { clock, reader, writer, calls } = site();
    expect(await totalOf(reader)).toBe("0");
    await created(writer, "Another's");
    const before = calls();
    await clock.advance(1_000);
    expect(await totalOf(reader)).toBe("0");
    expect(calls()).toBe(before);
    await clock.advance(1);
    expect(await totalOf(reader)).toBe("1");
  });

  it("shows its own writes at once, decided on the newest state", async () => {
    const { reader, writer } = site();
    await reader("GET /posts");
    const id = await created(writer, "Another's");
    const answer = await reader(`PUT /posts/${id}`, { as: "administrator", body: { title: "Mine" } });
    expect(answer.status).toBe(200);
    await created(reader, "Own");
    expect(await totalOf(reader)).toBe("2");
  });

  it.each(["reads the content", "is away"])(
    "starts nothing if it is stopped while it waits for a storage that %s",
    async (what) => {
      const clock = manualClock(START);
      const asked = held<void>();
      const isAway = what === "is away";
      let calls = 0;
      const content = contentSite({
        clock,
        consistency: "eventual",
        storage: remote(memoryStorage(), (store) => ({
          async changes(since) {
            calls += 1;
            await asked.promise;
            if (isAway) throw away();
            return store.changes(since);
          },
        })),
      });
      const started = content.start();
      await content.stop();
      asked.resolve();
      await expect(started).resolves.toBeUndefined();
      expect(await content.status()).toEqual({ isStarted: false, problems: [] });
      const before = calls;
      await pass(clock, 10_000);
      expect(calls).toBe(before);
    },
  );

  it("keeps no request waiting once it was started, and stops asking once it was stopped", async () => {
    const { clock, reading, reader, writer, calls, setAway } = site();
    await reading.start();
    await created(writer, "Another's");
    await pass(clock, 10_000);
    const before = calls();
    expect(await totalOf(reader)).toBe("1");
    expect(calls()).toBe(before);
    setAway(true);
    await pass(clock, 2_000);
    expect((await reader("GET /posts")).status).toBe(503);
    setAway(false);
    await pass(clock, 1_000);
    expect(await totalOf(reader)).toBe("1");
    await reading.stop();
    const last = calls();
    await pass(clock, 10_000);
    expect(calls()).toBe(last);
  });
});
