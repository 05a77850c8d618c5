/**
 * Every block of the block editor, saved by an author and by an administrator over a real socket:
 * the editor reports a block as invalid when the saved text is not the one it wrote.
 */

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nodeAdapter } from "../../../adapters/node.js";
import type { RunningHost } from "../../contracts/adapter.js";
import { contentSite, credentials, type Role } from "../../support/content-site.js";
import { listen } from "../../support/hosts.js";

/** WordPress's names without `core/`. The block "missing" stands for a block of others. */
const BLOCKS = (
  "accordion accordion-heading accordion-item accordion-panel archives audio avatar block breadcrumbs button buttons calendar " +
  "categories code column columns comment-author-avatar comment-author-name comment-content comment-date comment-edit-link " +
  "comment-reply-link comment-template comments comments-pagination comments-pagination-next comments-pagination-numbers " +
  "comments-pagination-previous comments-title cover details embed file footnotes freeform gallery group heading home-link html " +
  "icon image latest-comments latest-posts list list-item loginout math media-text missing more navigation navigation-link " +
  "navigation-overlay-close navigation-submenu nextpage page-list page-list-item paragraph pattern playlist playlist-track " +
  "post-author post-author-biography post-author-name post-comments-count post-comments-form post-comments-link post-content " +
  "post-date post-excerpt post-featured-image post-navigation-link post-template post-terms post-time-to-read post-title " +
  "preformatted pullquote query query-no-results query-pagination query-pagination-next query-pagination-numbers " +
  "query-pagination-previous query-title query-total quote read-more rss search separator shortcode site-logo site-tagline " +
  "site-title social-link social-links spacer tab tab-list tab-panel tab-panels table table-of-contents tabs tag-cloud " +
  "template-part term-count term-description term-name term-template terms-query text-columns verse video"
).split(" ");

const examples = readFileSync(new URL("../../data/block-markup.txt", import.meta.url), "utf8")
  .split(/^=== /m)
  .slice(1)
  .map((part) => {
    const end = part.indexOf("\n");
    return { label: part.slice(0, end), markup: part.slice(end + 1).trimEnd() };
  });

const inGroups = <T>(items: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, n) => items.slice(n * size, (n + 1) * size));

let host: RunningHost;
const site = contentSite({
  site: { url: "https://site.test", name: "Blocks", uploads: "https://site.test/wp-content/uploads" },
});
beforeAll(async () => {
  host = await listen(createServer(nodeAdapter(site)));
});
afterAll(() => host.close());

/** Sends JSON as somebody, and returns the raw content of the post in the response. */
async function save(as: Role, path: string, content?: string): Promise<{ id: number; raw: string }> {
  const response = await fetch(`${host.origin}/core/v2${path}`, {
    method: content === undefined ? "GET" : "POST",
    headers: { authorization: credentials(as), "content-type": "application/json" },
    ...(content === undefined ? {} : { body: JSON.stringify({ content }) }),
  });
  const body = (await response.json()) as { id: number; content: { raw: string } };
  expect(response.ok, JSON.stringify(body)).toBe(true);
  return { id: body.id, raw: body.content.raw };
}

describe("blocks as the editor saves them", () => {
  it("are all there: 116 blocks in 232 examples", () => {
    expect(BLOCKS).toHaveLength(116);
    expect(examples).toHaveLength(232);
    const labels = new Set(examples.map(({ label }) => label));
    const written = new Set(
      examples.flatMap(({ markup }) => [...markup.matchAll(/<!-- wp:([a-z-]+)\s/g)].map(([, name]) => name)),
    );
    expect(BLOCKS.filter((name) => !written.has(name) && !labels.has(name))).toEqual([]);
  });

  it.each(["author", "administrator"] as const)(
    "stay unchanged when an %s saves, reads and saves again",
    async (role) => {
      const changed: string[] = [];
      for (const some of inGroups(examples, 8)) {
        const markup = some.map((example) => example.markup).join("\n\n");
        const { id, raw } = await save(role, "/posts", markup);
        const read = await save(role, `/posts/${id}?context=edit`);
        const again = await save(role, `/posts/${id}`, read.raw);
        for (const text of [raw, read.raw, again.raw]) {
          changed.push(...some.filter((example) => !text.includes(example.markup)).map(({ label }) => label));
          expect(text).toHaveLength(markup.length);
        }
      }
      expect(changed).toEqual([]);
    },
  );
});
