import { beforeAll, describe, expect, it } from "vitest";
import type { Content } from "../../../src/content/service.js";
import type { ImportSummary } from "../../../src/content/wxr/options.js";
import { contentSite } from "../../support/content-site.js";
import { SEEDED_AUTHORS, type SeededPost, seededSite, streamOf } from "../../support/wxr-file.js";

const COUNT = 5_000;
const site = seededSite({ count: COUNT, seed: 20, words: 12 });

/** Normalises the letters of the seeds as MySQL's utf8mb4_unicode_520_ci does. */
const folded = (title: string): string => title.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

type Key = (post: SeededPost) => string | number;

/**
 * Sorts by the data of the generator only. Posts get their ids in the order of the file, and equal
 * values keep that order, except that equal dates are ordered by id.
 */
function expected(key: Key, { descending = false, tieDescends = false } = {}): readonly string[] {
  const sign = descending ? -1 : 1;
  return site.posts
    .map((post, place) => ({ slug: post.slug, key: key(post), place }))
    .sort((a, b) =>
      a.key < b.key ? -sign : a.key > b.key ? sign : (tieDescends ? -1 : 1) * (a.place - b.place),
    )
    .map(({ slug }) => slug);
}

let content: Content;
let summary: ImportSummary;

beforeAll(async () => {
  content = contentSite();
  summary = await content.import(streamOf(site.file()), { as: 1, authors: { anna: 1, bert: 2, cleo: 3 } });
});

describe("a site of 5 000 posts with media, imported", () => {
  it("has every post and every media record", () => {
    expect(summary).toMatchObject({
      kinds: { posts: { created: COUNT }, media: { created: COUNT / 5 }, categories: { created: 7 } },
      warnings: [],
      notHeld: {},
    });
  });

  it.each<[order: "asc" | "desc", orderby: string, slugs: readonly string[]]>([
    ["desc", "date", expected(({ date }) => date, { descending: true, tieDescends: true })],
    ["asc", "date", expected(({ date }) => date)],
    ["asc", "title", expected(({ title }) => folded(title))],
    ["desc", "modified", expected(({ modified }) => modified, { descending: true })],
    ["asc", "slug", expected(({ slug }) => slug)],
    [
      "desc",
      "author",
      expected(({ author }) => SEEDED_AUTHORS.map(String).indexOf(author), { descending: true }),
    ],
    ["desc", "id", expected((post) => site.posts.indexOf(post), { descending: true })],
  ])("lists them in the order of WordPress, %s by %s", async (order, orderby, slugs) => {
    const listed: string[] = [];
    for (let page = 1; page <= COUNT / 100; page += 1) {
      const { status, body } = await content.request({
        method: "GET",
        path: "/core/v2/posts",
        query: { per_page: 100, page, orderby, order, _fields: "slug" },
        as: null,
      });
      expect(status).toBe(200);
      listed.push(...(body as unknown as { slug: string }[]).map(({ slug }) => slug));
    }
    expect(listed).toEqual(slugs);
  });

  it("keeps the featured media of a post", async () => {
    const { slug } = site.posts[0] as SeededPost;
    const { body } = await content.request({
      method: "GET",
      path: "/core/v2/posts",
      query: { slug, _embed: "wp:featuredmedia" },
      as: null,
    });
    expect(body).toMatchObject([
      {
        _embedded: {
          "wp:featuredmedia": [
            {
              alt_text: "Picture 900000",
              source_url: `https://old.example.org/wp-content/uploads/${site.media[0]?.file}`,
              mime_type: "image/jpeg",
            },
          ],
        },
      },
    ]);
  });
});
