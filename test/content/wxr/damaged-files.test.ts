/** A file with damaged places is imported without them, and the summary names their lines. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ImportSummary } from "../../../src/content/wxr/options.js";
import type { Json } from "../../../src/schema/types.js";
import { exported } from "../../support/content-dump.js";
import { contentSite } from "../../support/content-site.js";
import { bytesOf, WXR_END, wxrFile, wxrHead, wxrItem } from "../../support/wxr-file.js";

const COUNT = 12;
const numbers = Array.from({ length: COUNT }, (_, index) => index + 1);

/** Every text names its item, so that a mixture of two items is seen. */
const ORIGINAL = wxrFile(
  numbers.map((id) => ({
    id,
    title: `Title ${id}`,
    content: `<!-- wp:paragraph -->\n<p>Content <b>${id}</b> & more ${id}</p>\n<!-- /wp:paragraph -->`,
    excerpt: `Excerpt ${id}`,
    slug: `slug-${id}`,
    date: `2020-01-${String(id).padStart(2, "0")} 10:00:00`,
    menuOrder: id,
    terms: [["post_tag", `tag-${id}`, `Tag ${id}`]],
    meta: { footnotes: `[{"id":"n${id}","content":"Note ${id}"}]` },
  })),
);

interface ImportedPost {
  readonly title: { readonly raw: string };
  readonly content: { readonly raw: string };
  readonly excerpt: { readonly raw: string };
  readonly slug: string;
  readonly date: string;
  readonly tags: Json;
  readonly meta: { readonly footnotes: string };
}

/** Exports an imported site, so that the damaged files are of the writer of the package too. */
async function exportOnce(): Promise<string> {
  const content = contentSite();
  await content.import(bytesOf(ORIGINAL), { as: 1 });
  return exported(content);
}

async function importFile(file: Uint8Array): Promise<{
  readonly posts: readonly ImportedPost[];
  readonly summary?: ImportSummary;
  readonly error?: unknown;
}> {
  const content = contentSite();
  let summary: ImportSummary;
  try {
    summary = await content.import(bytesOf(file, 4_096), { as: 1 });
  } catch (error) {
    return { posts: [], error };
  }
  const { body } = await content.request({
    method: "GET",
    path: "/core/v2/posts",
    query: { per_page: 100, context: "edit", status: "any", orderby: "id", order: "asc" },
    as: 1,
  });
  return { posts: body as unknown as readonly ImportedPost[], summary };
}

const toTexts = (post: ImportedPost): readonly string[] => [
  post.title.raw,
  post.content.raw,
  post.excerpt.raw,
  post.slug,
  post.date,
  post.meta.footnotes,
];

/** Counts the texts of a post that are not those of the item whose number it has. */
function countDifferent(post: ImportedPost, originals: ReadonlyMap<string, readonly string[]>): number {
  const [number] = /\d+/.exec(post.slug) ?? /\d+/.exec(post.title.raw) ?? [""];
  const original = originals.get(`slug-${number}`) ?? [];
  return toTexts(post).filter((text, index) => text !== original[index]).length;
}

describe("a damaged file", () => {
  it("is imported without half an item, or refused as no WXR file, wherever it is damaged", async () => {
    const originals = [Buffer.from(ORIGINAL), Buffer.from(await exportOnce())];
    const whole = new Map<string, readonly string[]>();
    for (const post of (await importFile(originals[0] as Buffer)).posts) whole.set(post.slug, toTexts(post));
    expect(whole.size).toBe(COUNT);
    const bytes = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 6 }),
      fc
        .constantFrom("\0", "&", "<", ">", '"', "]]>", "<b>", "</title>", "?", "-->")
        .map((text) => Uint8Array.from(Buffer.from(text))),
    );
    const kind = fc.constantFrom("overwrite", "insert", "delete", "truncate");
    await fc.assert(
      fc.asyncProperty(
        fc.nat(originals.length - 1),
        fc.nat(1e6),
        kind,
        bytes,
        async (which, at, how, damage) => {
          const file = originals[which] ?? Buffer.alloc(0);
          const place = at % file.length;
          const removed = how === "insert" ? 0 : how === "truncate" ? file.length : damage.length;
          const added = how === "overwrite" || how === "insert" ? damage : new Uint8Array();
          const damaged = Buffer.concat([file.subarray(0, place), added, file.subarray(place + removed)]);
          const { posts, error } = await importFile(damaged);
          const isRefused = (error as { code?: string } | undefined)?.code === "invalid_import";
          // Only a damaged head makes it no WXR file.
          const isHead = place < file.indexOf("<item>") + 6;
          const fields = posts.reduce((sum, post) => sum + countDifferent(post, whole), 0);
          const isEnough = how === "truncate" || posts.length >= COUNT - 2;
          const verdict =
            isRefused && isHead ? "refused" : isEnough && fields <= 1 && !error ? "imported" : error;
          expect(verdict).toBeOneOf(["refused", "imported"]);
        },
      ),
      { numRuns: 80, examples: [[1, 45, "truncate", Uint8Array.from([0])]] },
    );
  });

  it("is summed up with a limited number of warnings", async () => {
    const items = Array.from({ length: 400 }, (_, n) =>
      wxrItem({ id: n + 1 }).replace("<![CDATA[Item", "Q & A <![CDATA[Item"),
    );
    const { summary, posts } = await importFile(Buffer.from(wxrHead() + items.join("") + WXR_END));
    expect(posts).toHaveLength(100);
    expect(summary).toMatchObject({ created: 400, moreWarnings: 300 });
    expect(summary?.warnings).toHaveLength(100);
  });

  it("that ends within an item has the items before that, and their number in the summary", async () => {
    const file = wxrFile([{ id: 1 }, { id: 2 }]);
    const { summary } = await importFile(Buffer.from(file.slice(0, file.lastIndexOf("<wp:post_id>"))));
    expect(summary).toMatchObject({ created: 1, skipped: 1, items: 2, site: { title: "Old site" } });
    expect(summary?.warnings.map(({ message }) => message)).toEqual([
      "An item was skipped: the file ends before it is complete. Correct it in the file, and import the file again.",
      "The file ends before the end of the rss element.",
    ]);
  });
});
