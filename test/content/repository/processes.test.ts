import { describe, expect, it } from "vitest";
import type { ContentChanged } from "../../../src/content/records/record-changes.js";
import type { ContentContext, ContentStorage, ContentStore } from "../../../src/content/store.js";
import { PostbellError } from "../../../src/core/errors.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { type Call, callsOf } from "../../support/content-call.js";
import { contentSite } from "../../support/content-site.js";

/**
 * A storage whose store is changed on the way: what two processes and a server that fails do to
 * each other.
 */
const changedStore = (
  storage: ContentStorage,
  change: (store: ContentStore) => Partial<ContentStore>,
): ContentStorage => ({
  ...storage,
  content(context: ContentContext) {
    const store = storage.content(context);
    return { ...store, ...change(store) };
  },
});

/**
 * Two services on one storage; what `meanwhile` is set to happens once, while the second one reads
 * records.
 */
function twoProcesses() {
  const storage = memoryStorage();
  const pause: { meanwhile?: (() => Promise<unknown>) | undefined } = {};
  const paused = changedStore(storage, (store) => ({
    async read(keys) {
      const { meanwhile } = pause;
      pause.meanwhile = undefined;
      await meanwhile?.();
      return store.read(keys);
    },
  }));
  return {
    first: callsOf(contentSite({ storage })),
    second: callsOf(contentSite({ storage: paused })),
    pause,
  };
}

const create = async (
  call: Call,
  path: string,
  body: object,
  as: "administrator" | "contributor" = "administrator",
) => {
  const answer = await call(`POST ${path}`, { as, body: body as never });
  expect(answer.status).toBe(201);
  return answer.body.id as number;
};

describe("a storage that is away when the site is new", () => {
  it("gets what every site has as soon as it is back", async () => {
    let isAway = true;
    const storage = changedStore(memoryStorage(), (store) => ({
      async commit(...given) {
        if (isAway) throw new PostbellError("storage_unavailable", "away");
        return store.commit(...given);
      },
    }));
    const call = callsOf(contentSite({ storage }));
    expect((await call("GET /categories")).status).toBe(503);
    isAway = false;
    const { body } = await call("POST /posts", { as: "editor", body: { title: "A", status: "publish" } });
    expect((await call("GET /categories")).body).toMatchObject([
      { id: body.categories[0], slug: "uncategorized", count: 1 },
    ]);
  });
});

describe("a record that changes while somebody is judged", () => {
  it("is not written by who lost the right to", async () => {
    for (const request of ["PUT", "DELETE"]) {
      const { first, second, pause } = twoProcesses();
      const id = await create(first, "/posts", { title: "Mine", content: "draft" }, "contributor");
      await second("GET /categories");
      pause.meanwhile = () =>
        first(`PUT /posts/${id}`, { as: "editor", body: { status: "publish", content: "approved" } });
      const answer = await second(`${request} /posts/${id}`, {
        as: "contributor",
        body: { content: "defaced", force: true },
      });
      expect(answer.status).toBe(403);
      const { body } = await first(`GET /posts/${id}`);
      expect(body).toMatchObject({ status: "publish", content: { rendered: "<p>approved</p>\n" } });
    }
  });

  it("is not read by who may no longer", async () => {
    for (const path of ["", "/list"]) {
      const { first, second, pause } = twoProcesses();
      const id = await create(first, "/posts", { title: "Open", content: "public", status: "publish" });
      await second("GET /categories");
      pause.meanwhile = () =>
        first(`PUT /posts/${id}`, { as: "editor", body: { status: "private", content: "top secret" } });
      const answer = await second(path === "" ? `GET /posts/${id}` : "GET /posts");
      expect(JSON.stringify(answer.body)).not.toContain("secret");
    }
  });
});

describe("two processes", () => {
  const parentOf = async (call: Call, path: string) =>
    (await call(`GET ${path}`, { as: "administrator" })).body.parent;

  it.each([
    ["pages", { status: "publish" }, "title"],
    ["categories", {}, "name"],
  ])("make no cycle of %s", async (base, more, name) => {
    const { first, second } = twoProcesses();
    const a = await create(first, `/${base}`, { [name]: "A", ...more });
    const b = await create(first, `/${base}`, { [name]: "B", ...more });
    await second("GET /categories");
    await Promise.all([
      first(`PUT /${base}/${a}`, { as: "administrator", body: { parent: b } }),
      second(`PUT /${base}/${b}`, { as: "administrator", body: { parent: a } }),
    ]);
    const parents = [await parentOf(first, `/${base}/${a}`), await parentOf(first, `/${base}/${b}`)];
    expect(parents.filter((parent) => parent !== 0)).toHaveLength(1);
  });

  it("see each other's writes with the next request", async () => {
    const { first, second } = twoProcesses();
    for (const call of [first, second]) {
      const other = call === first ? second : first;
      const id = await create(call, "/posts", { title: "New", status: "publish" });
      expect((await other(`GET /posts/${id}`)).status).toBe(200);
      await call(`DELETE /posts/${id}`, { as: "administrator", query: { force: true } });
      expect((await other(`GET /posts/${id}`)).status).toBe(404);
    }
  });
});

describe("a scheduled post that cannot be stored", () => {
  const NOON = Date.UTC(2026, 10, 21, 12);

  async function failing() {
    const clock = manualClock(NOON);
    let isAway = false;
    let commits = 0;
    const storage = changedStore(memoryStorage(), (store) => ({
      async commit(...given) {
        if (!isAway) return store.commit(...given);
        commits += 1;
        throw new PostbellError("storage_unavailable", "The storage is away.");
      },
    }));
    const site = contentSite({ clock, storage });
    const call = callsOf(site);
    const id = await create(call, "/posts", {
      title: "Later",
      status: "publish",
      date: "2026-11-21T13:00:00",
    });
    isAway = true;
    const back = (): void => {
      isAway = false;
    };
    return { clock, site, call, id, back, commits: () => commits };
  }

  it("keeps nobody from reading, and is published once it can be", async () => {
    const { clock, call, id, back } = await failing();
    await clock.advance(7_200_000);
    expect((await call("GET /posts")).headers["X-WP-Total"]).toBe("0");
    back();
    expect((await call("GET /posts")).headers["X-WP-Total"]).toBe("1");
    expect((await call(`GET /posts/${id}`)).status).toBe(200);
  });

  it("is tried again about once a minute by a service that was started", async () => {
    const { clock, site, commits } = await failing();
    await site.start();
    await clock.advance(2 * 3_600_000);
    await site.stop();
    expect(commits()).toBeGreaterThan(50);
    expect(commits()).toBeLessThan(65);
  });
});

describe("the host", () => {
  it("is told of every record that a change touched, under its own collection", async () => {
    const seen: string[] = [];
    const changed = ({ action, collection, id }: ContentChanged): void => {
      seen.push(`${action} ${collection} ${id}`);
    };
    const clock = manualClock(Date.UTC(2026, 10, 21, 12));
    const call = callsOf(contentSite({ changed, clock }));
    const page = await create(call, "/pages", {
      title: "Page",
      status: "publish",
      date: "2026-11-21T13:00:00",
    });
    await clock.advance(7_200_000);
    await call("GET /pages");
    const child = await create(call, "/pages", { title: "Child", status: "publish", parent: page });
    const item = await create(call, "/menu-items", { type: "post_type", object: "page", object_id: page });
    const tag = await create(call, "/tags", { name: "Tag" });
    seen.splice(0, 1);
    await call(`DELETE /pages/${page}`, { as: "administrator", query: { force: true } });
    expect(seen.sort()).toEqual(
      [
        `updated pages ${page}`,
        `created pages ${child}`,
        `created menu-items ${item}`,
        `created tags ${tag}`,
        `deleted pages ${page}`,
        `deleted menu-items ${item}`,
        `updated pages ${child}`,
      ].sort(),
    );
  });
});
