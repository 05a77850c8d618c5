/** Slugs of posts with equal titles: the ones of WordPress, found without a scan. */

import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { builtInModel } from "../../../src/content/declared-types.js";
import { findFreeSlug, reparentChildren } from "../../../src/content/posts/write-post.js";
import type { SiteIndex, StoredColumns } from "../../../src/content/query/site-index.js";
import { getTaxonomy } from "../../../src/content/records/content-model.js";
import type { Post, PostType } from "../../../src/content/records/records.js";
import { applyTermValues } from "../../../src/content/terms/write-term.js";
import { isReservedSlug, uniqueSlug } from "../../../src/content/text/slug.js";
import { callsOf } from "../../support/content-call.js";
import { contentSite } from "../../support/content-site.js";
import { CONTENT_STORAGES } from "../../support/content-storages.js";
import { indexOf, ofPost, ofTerm, post, removal } from "../../support/query-site.js";

const ADDRESSED: readonly PostType[] = ["post", "page", "attachment"];

/** The rule of `wp_unique_post_slug`, with a scan of all posts. */
function isTakenByRule(own: StoredColumns, slug: string, posts: readonly StoredColumns[]): boolean {
  for (const other of posts) {
    if (other.id === own.id || other.slug !== slug) continue;
    const isSibling = other.parent === own.parent;
    if (own.type === "attachment" && ADDRESSED.includes(other.type)) return true;
    if (own.type === "page" && ["page", "attachment"].includes(other.type) && isSibling) return true;
    if (own.type !== "page" && other.type === own.type) return true;
  }
  return false;
}

const slugByRule = (own: StoredColumns, wanted: string, posts: readonly StoredColumns[]): string =>
  uniqueSlug(wanted, (slug) => isReservedSlug(slug, own.type) || isTakenByRule(own, slug, posts));

const WANTED = [
  "a",
  "a-2",
  "a-10",
  "feed",
  "7",
  "page2",
  `${"x".repeat(196)}%c3%bc`.slice(0, 200),
  "y".repeat(199),
];
const command = fc.record({
  id: fc.integer({ min: 1, max: 40 }),
  type: fc.constantFrom<PostType>(...ADDRESSED, "wp_block"),
  parent: fc.constantFrom(0, 1, 2),
  wanted: fc.constantFrom(...WANTED),
  does: fc.constantFrom("create", "create", "create", "keep", "remove"),
});

describe("a free slug", () => {
  it("is the lowest one of WordPress's rule, whatever was stored and removed before", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 120 }), async (commands) => {
        const index = await indexOf([]);
        const posts = new Map<number, StoredColumns>();
        for (const { id, does, wanted, ...given } of commands) {
          const columns = post({ id, ...given, slug: wanted });
          if (does === "remove") {
            index.apply([removal(`post/${id}`)]);
            posts.delete(id);
            continue;
          }
          const free = findFreeSlug(columns, wanted, index);
          expect(free).toBe(slugByRule(columns, wanted, [...posts.values()]));
          expect(free.length).toBeLessThanOrEqual(200);
          const stored = { ...columns, slug: does === "create" ? free : wanted };
          index.apply([ofPost(stored)]);
          posts.set(id, stored);
        }
      }),
      { numRuns: 200 },
    );
  });

  it("skips no number that was given up, and forgets none that others ask for meanwhile", async () => {
    const index = await indexOf([]);
    const create = (id: number, wanted: string): string => {
      const columns = post({ id, slug: findFreeSlug(post({ id }), wanted, index) });
      index.apply([ofPost(columns)]);
      return columns.slug;
    };
    for (let id = 1; id <= 120; id += 1) create(id, "same");
    for (let other = 0; other < 1_100; other += 1) {
      create(1_000 + 2 * other, `other-${other}x`);
      create(1_001 + 2 * other, `other-${other}x`);
    }
    expect(create(200, "same")).toBe("same-121");
    index.apply([removal("post/7"), removal("post/120"), removal("post/99"), removal("post/1")]);
    const next = [201, 202, 203, 204, 205].map((id) => create(id, "same"));
    expect(next).toEqual(["same", "same-7", "same-99", "same-120", "same-122"]);
    // A post that asks again gets its own number, not one after all others.
    expect(findFreeSlug(post({ id: 203 }), "same", index)).toBe("same-99");
  });
});

/** Counts the look-ups in maps while `work` runs: each step of a scan is at least one. */
function countSteps(work: () => void): number {
  const spy = vi.spyOn(Map.prototype, "get");
  try {
    work();
    return spy.mock.calls.length;
  } finally {
    spy.mockRestore();
  }
}

const create = (index: SiteIndex, id: number, fields: Partial<StoredColumns>): void => {
  const columns = post({ id, ...fields });
  index.apply([ofPost({ ...columns, slug: findFreeSlug(columns, "same", index) })]);
};

type Step = (index: SiteIndex, n: number) => void;

const HISTORIES: readonly (readonly [name: string, step: Step])[] = [
  ["posts of one title", (index, n) => create(index, n, {})],
  ["pages of one title below one parent", (index, n) => create(index, n, { type: "page", parent: 9 })],
  [
    "pages of one title, each below its own parent",
    (index, n) => create(index, n, { type: "page", parent: n + 9_000 }),
  ],
  [
    "attachments that share titles with pages",
    (index, n) => create(index, n, { type: n % 2 === 0 ? "page" : "attachment", parent: n % 3 }),
  ],
  [
    "posts whose lowest number is removed and given again",
    (index, n) => {
      create(index, n, {});
      if (n > 3) index.apply([removal("post/2")]);
      create(index, 2, {});
    },
  ],
  [
    "a post that is published among drafts with its slug",
    (index, n) => {
      index.apply([ofPost(post({ id: n, slug: "same", status: "draft" }))]);
      create(index, 100_000, {});
    },
  ],
  [
    "one slug that is trashed again and again",
    (index, n) => {
      const columns = post({ id: n, status: "trash" });
      index.apply([ofPost({ ...columns, slug: findFreeSlug(columns, "same__trashed", index) })]);
    },
  ],
  [
    "pages that move up to a level where their slug is taken, because their parent is removed",
    (index, n) => {
      const removed = post({ id: 10_000 + n, type: "page" });
      const child = post({ id: n, type: "page", parent: removed.id, slug: "same" }) as Post;
      index.apply([ofPost(removed), ofPost(child)]);
      const [moved = child] = reparentChildren([child], removed, index);
      expect(moved.slug).toBe(n === 1 ? "same" : `same-${n}`);
      index.apply([ofPost(moved), removal(`post/${removed.id}`)]);
    },
  ],
  ...(["category", "post_tag"] as const).map((name): (typeof HISTORIES)[number] => [
    `terms of ${name} that ask for one slug`,
    (index, n) => {
      const values = { name: `Term ${n}`, slug: "same" };
      const written = applyTermValues(values, null, n, {
        definition: getTaxonomy(builtInModel, name),
        index,
      });
      const expected = n === 1 ? "same" : `same-${n}`;
      if (written.slug !== expected) throw new Error(`The slug is ${written.slug}, not ${expected}.`);
      index.apply([ofTerm(written)]);
    },
  ]),
  [
    "slugs of 200 bytes",
    (index, n) => {
      const columns = post({ id: n });
      index.apply([ofPost({ ...columns, slug: findFreeSlug(columns, "x".repeat(200), index) })]);
    },
  ],
];

describe("the steps for one slug", () => {
  it.each(HISTORIES)("do not grow with the number of %s", async (_, step) => {
    const perItem = async (count: number): Promise<number> => {
      const index = await indexOf([]);
      const steps = countSteps(() => {
        for (let n = 1; n <= count; n += 1) step(index, n);
      });
      return steps / count;
    };
    const [few, many] = [await perItem(500), await perItem(2_000)];
    expect(many).toBeLessThan(1.5 * few);
  });
});

describe.each(CONTENT_STORAGES)("posts of one title on %s", (_, open) => {
  const COUNT = 30;
  const numbered = (count: number): readonly string[] =>
    Array.from({ length: count }, (_, n) => (n === 0 ? "same" : `same-${n + 1}`));

  it("have the lowest free numbers, also from two processes at once, and after a deletion", async () => {
    const storage = open();
    const calls = [callsOf(contentSite({ storage })), callsOf(contentSite({ storage }))] as const;
    const createOne = async (
      call: (typeof calls)[number],
      fields = {},
    ): Promise<{ id: number; slug: string }> => {
      const body = { title: "Same", status: "publish", ...fields };
      const answer = await call("POST /posts", { as: "administrator", body });
      expect(answer.status).toBe(201);
      return answer.body;
    };
    const created = await Promise.all(
      Array.from({ length: COUNT }, (_, n) => createOne(calls[n % 2 === 0 ? 0 : 1])),
    );
    const bySlug = new Map(created.map(({ slug, id }) => [slug, id]));
    expect([...bySlug.keys()].sort()).toEqual([...numbered(COUNT)].sort());
    const [first, second] = calls;
    const remove = (slug: string, force: boolean) =>
      first(`DELETE /posts/${bySlug.get(slug)}`, { as: "administrator", query: { force } });
    expect((await remove("same-7", true)).status).toBe(200);
    expect((await remove("same-3", false)).body.slug).toBe("same-3__trashed");
    const given = [];
    for (let n = 0; n < 3; n += 1) given.push((await createOne(second)).slug);
    expect(given).toEqual(["same-3", "same-7", `same-${COUNT + 1}`]);
    // The same slug is trashed again: the name of the one in the trash is taken.
    const again = await second(`GET /posts`, { query: { slug: "same-3" } });
    const trashed = await first(`DELETE /posts/${again.body[0].id}`, { as: "administrator" });
    expect(trashed.body.slug).toBe("same-3__trashed-2");
  });
});

describe("the slug of a post in the trash", () => {
  it("never ends in half of an encoded character", async () => {
    const call = callsOf(contentSite());
    const { body } = await call("POST /posts", {
      as: "administrator",
      body: { title: `${"x".repeat(185)}日日`, status: "publish" },
    });
    const trashed = await call(`DELETE /posts/${body.id}`, { as: "administrator" });
    expect(trashed.body.slug).toBe(`${"x".repeat(185)}__trashed`);
    expect(() => decodeURIComponent(trashed.body.slug)).not.toThrow();
  });
});
