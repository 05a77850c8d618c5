/** Concurrent writes of one process share commits. Each has its own result, as if it were alone. */

import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, it } from "vitest";
import type { ContentStorage, ContentStore } from "../../../src/content/store.js";
import { PostbellError } from "../../../src/core/errors.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { type Call, type CallAnswer, callsOf } from "../../support/content-call.js";
import { contentSite } from "../../support/content-site.js";
import { CONTENT_STORAGES } from "../../support/content-storages.js";
import { held } from "../../support/webhook-harness.js";

type Commit = ContentStore["commit"];

/** A storage with `commit` in place of its own, which it gets. */
const withCommit = (
  storage: ContentStorage,
  commit: (own: Commit, ...given: Parameters<Commit>) => ReturnType<Commit>,
): ContentStorage => ({
  ...storage,
  content(context) {
    const store = storage.content(context);
    return { ...store, commit: (...given) => commit((...own) => store.commit(...own), ...given) };
  },
});

/** Counts the commits since the last call of `reset`, and their writes. */
function counted(storage: ContentStorage) {
  const commits: number[] = [];
  const counting = withCommit(storage, (own, writes, basis) => {
    commits.push(writes.length);
    return own(writes, basis);
  });
  return { storage: counting, commits };
}

const create = (call: Call, body: object, path = "/posts") =>
  call(`POST ${path}`, { as: "administrator", body: { status: "publish", ...body } as never });
const update = (call: Call, id: number, body: object) =>
  call(`PUT /posts/${id}`, { as: "administrator", body: body as never });

const statusesOf = (answers: readonly CallAnswer[]): readonly number[] => answers.map(({ status }) => status);
const slugsOf = (answers: readonly CallAnswer[]): readonly string[] => answers.map(({ body }) => body.slug);
const many = <T>(count: number, make: (at: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(at));

const titlesIn = async (storage: ContentStorage): Promise<readonly string[]> => {
  const query = { per_page: 100, orderby: "id", order: "asc" };
  const { body } = await callsOf(contentSite({ storage }))("GET /posts", { query });
  return body.map((post: { title: { rendered: string } }) => post.title.rendered);
};

describe.each(CONTENT_STORAGES)("concurrent writes on %s", (_, open) => {
  it("are stored in few commits, in the order of the calls", async () => {
    const { storage, commits } = counted(open());
    const call = callsOf(contentSite({ storage }));
    await call("GET /posts");
    commits.length = 0;
    const titles = many(40, (at) => `Post ${at}`);
    const answers = await Promise.all(titles.map((title) => create(call, { title })));
    expect(new Set(statusesOf(answers))).toEqual(new Set([201]));
    const ids = answers.map(({ body }) => body.id as number);
    expect(ids).toEqual(many(40, (at) => (ids[0] as number) + at));
    expect(commits.length).toBeLessThanOrEqual(5);
    expect(await titlesIn(storage)).toEqual(titles);
  });

  it("that conflict with each other all count", async () => {
    const storage = open();
    const call = callsOf(contentSite({ storage }));
    const { id } = (await create(call, { title: "Shared" })).body;
    const [first, title, other, content, same, draft, late] = await Promise.all([
      create(call, { title: "News" }),
      update(call, id, { title: "Changed" }),
      create(call, { title: "Other" }),
      update(call, id, { content: "Changed too" }),
      create(call, { title: "News" }),
      create(call, { title: "Draft", slug: "given", status: "draft" }),
      create(call, { title: "Draft", slug: "given", status: "draft" }),
    ]);
    expect(slugsOf([first, other, same, draft, late])).toEqual([
      "news",
      "other",
      "news-2",
      "given",
      "given-2",
    ]);
    expect(statusesOf([title, content])).toEqual([200, 200]);
    const { body } = await callsOf(contentSite({ storage }))(`GET /posts/${id}`);
    expect(body).toMatchObject({
      title: { rendered: "Changed" },
      content: { rendered: "<p>Changed too</p>\n" },
    });
  });

  it("to one draft, which has no slug yet, all count", async () => {
    const call = callsOf(contentSite({ storage: open() }));
    const { id } = (await create(call, { title: "Draft", status: "draft" })).body;
    const changes = [{ title: "Changed" }, { content: "Text" }, { excerpt: "Short" }];
    const answers = await Promise.all(changes.map((change) => update(call, id, change)));
    expect(statusesOf(answers)).toEqual([200, 200, 200]);
    const { body } = await call(`GET /posts/${id}`, { as: "administrator", query: { context: "edit" } });
    expect(body).toMatchObject({
      title: { raw: "Changed" },
      content: { raw: "Text" },
      excerpt: { raw: "Short" },
    });
  });

  it("never put two pages below each other", async () => {
    const call = callsOf(contentSite({ storage: open() }));
    const [a, b] = [
      (await create(call, { title: "A" }, "/pages")).body.id,
      (await create(call, { title: "B" }, "/pages")).body.id,
    ];
    const move = (id: number, parent: number) =>
      call(`PUT /pages/${id}`, { as: "administrator", body: { parent } });
    await Promise.all([move(a, b), move(b, a)]);
    const parentOf = async (id: number) => (await call(`GET /pages/${id}`)).body.parent;
    expect([await parentOf(a), await parentOf(b)]).toContain(0);
  });

  it("are judged each on its own", async () => {
    const call = callsOf(contentSite({ storage: open() }));
    const { id } = (await create(call, { title: "There" })).body;
    const answers = await Promise.all([
      create(call, { title: "A" }),
      create(call, { title: "" }),
      create(call, { title: "B", parent: 4_711 }, "/pages"),
      update(call, id, { sticky: true, password: "secret" }),
      update(call, 4_711, { title: "C" }),
      create(call, { title: "D" }),
    ]);
    expect(statusesOf(answers)).toEqual([201, 400, 400, 400, 404, 201]);
    expect(answers[1]?.body.code).toBe("empty_content");
  });
});

describe("writes that share a commit", () => {
  it("are all decided again if another process was faster with one of them", async () => {
    const inner = memoryStorage();
    const faster = callsOf(contentSite({ storage: inner }));
    const { id } = (await create(faster, { title: "Contested" })).body;
    let isFirst = true;
    const storage = withCommit(inner, async (own, writes, basis) => {
      if (isFirst && writes.length > 2) {
        isFirst = false;
        await update(faster, id, { content: "by another" });
        await create(faster, { title: "Taken" });
      }
      return own(writes, basis);
    });
    const call = callsOf(contentSite({ storage }));
    await call("GET /posts");
    const answers = await Promise.all([
      create(call, { title: "Before" }),
      update(call, id, { title: "Renamed" }),
      create(call, { title: "Taken" }),
      create(call, { title: "After" }),
    ]);
    expect(isFirst).toBe(false);
    expect(statusesOf(answers)).toEqual([201, 200, 201, 201]);
    expect(slugsOf(answers)).toEqual(["before", "contested", "taken-2", "after"]);
    expect(answers[1]?.body).toMatchObject({ title: { raw: "Renamed" }, content: { raw: "by another" } });
  });

  it("do not fail because the storage refuses one of them", async () => {
    const inner = memoryStorage();
    const storage = withCommit(inner, async (own, writes, basis) => {
      if (writes.some(({ record }) => record?.body.includes("too much")))
        throw new PostbellError("storage_full", "full");
      return own(writes, basis);
    });
    const call = callsOf(contentSite({ storage }));
    await call("GET /posts");
    const answers = await Promise.all([
      create(call, { title: "A" }),
      create(call, { title: "B", content: "too much" }),
      create(call, { title: "C" }),
    ]);
    expect(statusesOf(answers)).toEqual([201, 503, 201]);
    expect(answers[1]?.body.code).toBe("rest_storage_full");
    expect(await titlesIn(inner)).toEqual(["A", "C"]);
  });

  it("do not fail because other processes are always faster with one of them", async () => {
    const inner = memoryStorage();
    const { id } = (await create(callsOf(contentSite({ storage: inner })), { title: "Contested" })).body;
    let refused = 0;
    const storage = withCommit(inner, async (own, writes, basis) => {
      if (!writes.some(({ key }) => key === `post/${id}`)) return own(writes, basis);
      refused += 1;
      return { ok: false, conflict: { key: `post/${id}` } };
    });
    const call = callsOf(contentSite({ storage }));
    await call("GET /posts");
    const answers = await Promise.all([
      create(call, { title: "Before" }),
      update(call, id, { title: "Changed" }),
      create(call, { title: "After" }),
    ]);
    expect(statusesOf(answers)).toEqual([201, 503, 201]);
    // Together, then 20 times alone.
    expect(refused).toBe(21);
    expect(await titlesIn(inner)).toEqual(["Contested", "Before", "After"]);
  });

  it("that a storage loses are all answered 503, and the next ones are stored", async () => {
    const inner = memoryStorage();
    let isAway = false;
    const storage = withCommit(inner, async (own, writes, basis) => {
      if (!isAway) return own(writes, basis);
      isAway = false;
      throw new PostbellError("storage_unavailable", "away");
    });
    const call = callsOf(contentSite({ storage }));
    await call("GET /posts");
    isAway = true;
    const lost = many(3, (at) => create(call, { title: `Lost ${at}` }));
    const judged = create(call, { title: "" });
    expect(statusesOf(await Promise.all([...lost, judged]))).toEqual([503, 503, 503, 400]);
    expect((await create(call, { title: "Next" })).status).toBe(201);
    expect(await titlesIn(inner)).toEqual(["Next"]);
  });

  it("are all stored or none if the process ends before the storage has answered", async () => {
    for (const isStored of [true, false]) {
      const inner = memoryStorage();
      let isKilled = false;
      const reached = held<void>();
      const storage = withCommit(inner, async (own, writes, basis) => {
        if (!isKilled) return own(writes, basis);
        if (isStored) await own(writes, basis);
        reached.resolve();
        return new Promise(() => {});
      });
      const call = callsOf(contentSite({ storage }));
      await call("GET /posts");
      isKilled = true;
      const answered: number[] = [];
      for (const at of many(3, (one) => one))
        void create(call, { title: `Post ${at}` }).then(() => answered.push(at));
      await reached.promise;
      expect(answered).toEqual([]);
      expect(await titlesIn(inner)).toEqual(isStored ? ["Post 0", "Post 1", "Post 2"] : []);
    }
  });

  it("are answered only once they are stored", async () => {
    const inner = memoryStorage();
    const gate = held<void>();
    const reached = held<void>();
    let isHeld = false;
    const storage = withCommit(inner, async (own, writes, basis) => {
      if (isHeld) {
        reached.resolve();
        await gate.promise;
      }
      return own(writes, basis);
    });
    const call = callsOf(contentSite({ storage }));
    await call("GET /posts");
    isHeld = true;
    const answered: string[] = [];
    const writes = ["A", "B", "C"].map((title) => create(call, { title }).then(() => answered.push(title)));
    await reached.promise;
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(answered).toEqual([]);
    expect(await titlesIn(inner)).toEqual([]);
    gate.resolve();
    await Promise.all(writes);
    expect(answered).toEqual(["A", "B", "C"]);
  });

  it("rely on no record that the same commit changes", async () => {
    const both: string[] = [];
    const storage = withCommit(memoryStorage(), (own, writes, basis = []) => {
      const written = new Set(writes.map(({ key }) => key));
      both.push(...basis.flatMap(({ key }) => (written.has(key) ? [key] : [])));
      return own(writes, basis);
    });
    const call = callsOf(contentSite({ storage }));
    const parent = (await create(call, { title: "Parent" }, "/pages")).body.id;
    const [, child] = await Promise.all([
      call(`PUT /pages/${parent}`, { as: "administrator", body: { slug: "renamed" } }),
      create(call, { title: "Child", parent }, "/pages"),
    ]);
    expect(child.body.link).toBe("http://localhost/renamed/child/");
    expect(both).toEqual([]);
  });

  it("leave out what would make a commit too large", async () => {
    const { storage, commits } = counted(memoryStorage());
    const call = callsOf(contentSite({ storage }));
    await call("GET /posts");
    commits.length = 0;
    const content = "x".repeat(400_000);
    const answers = await Promise.all(many(6, (at) => create(call, { title: `Post ${at}`, content })));
    expect(new Set(statusesOf(answers))).toEqual(new Set([201]));
    // Each has a revision of the same size.
    expect(Math.max(...commits)).toBeLessThanOrEqual(4);
  });

  it("tell the host in the context of each caller", async () => {
    const tenants = new AsyncLocalStorage<string>();
    const told: (readonly [tenant: string | undefined, id: number])[] = [];
    const site = contentSite({ changed: ({ id }) => void told.push([tenants.getStore(), id]) });
    const call = callsOf(site);
    await call("GET /posts");
    const answers = await Promise.all(
      many(5, (at) => tenants.run(`tenant ${at}`, () => create(call, { title: `Post ${at}` }))),
    );
    expect(told).toEqual(answers.map(({ body }, at) => [`tenant ${at}`, body.id]));
  });

  it("with the same title are decided at most twice each", async () => {
    const inner = memoryStorage();
    let ids = 0;
    const storage: ContentStorage = {
      ...inner,
      content(context) {
        const store = inner.content(context);
        const allocate: ContentStore["allocate"] = (kind, count) => {
          if (kind === "post") ids += count;
          return store.allocate(kind, count);
        };
        return { ...store, allocate };
      },
    };
    const call = callsOf(contentSite({ storage }));
    await call("GET /posts");
    const answers = await Promise.all(many(64, () => create(call, { title: "Same", status: "publish" })));
    expect(slugsOf(answers)).toEqual(many(64, (at) => (at === 0 ? "same" : `same-${at + 1}`)));
    // An id for each decision.
    expect(ids).toBeLessThanOrEqual(2 * 64 + 16);
  });
});
