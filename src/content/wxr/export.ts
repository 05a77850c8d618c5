/** `content.export`: the whole site as a WXR 1.2 file, piece by piece. */

import type { PostType, Taxonomy, Term } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import type { Site } from "../site.js";
import { taxonomies } from "../terms/taxonomies.js";
import { listTermAncestors } from "../terms/term-fields.js";
import type { Users } from "../users/users.js";
import { writeItem } from "./export-item.js";
import { listPostIdsOfType } from "./post-ids.js";
import { element, escaped } from "./xml.js";

/** What `content.export` takes. Once `signal` is aborted, the stream ends with its reason. */
export interface ExportOptions {
  /** Told after every batch. Must not throw. */
  readonly onProgress?: ((progress: ExportProgress) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** How far an export has come. */
export interface ExportProgress {
  /** Posts of any type that were written. */
  readonly items: number;
  readonly itemsTotal: number;
}

export type Export = (options?: ExportOptions) => AsyncIterable<string>;

/** Posts in one read of the storage. */
const BATCH = 100;
/** What is pointed at comes before what points at it: it is there when the file is read as a stream. */
const ORDER: readonly PostType[] = ["attachment", "page", "post", "wp_block", "nav_menu_item"];

const HEAD = `<?xml version="1.0" encoding="UTF-8" ?>
<rss version="2.0"
	xmlns:excerpt="http://wordpress.org/export/1.2/excerpt/"
	xmlns:content="http://purl.org/rss/1.0/modules/content/"
	xmlns:wfw="http://wellformedweb.org/CommentAPI/"
	xmlns:dc="http://purl.org/dc/elements/1.1/"
	xmlns:wp="http://wordpress.org/export/1.2/"
>
<channel>
`;

export function createExport({
  library,
  site,
  users,
}: {
  readonly library: ContentRepository;
  readonly site: Site;
  readonly users: Users;
}): Export {
  const { index } = library;

  return async function* exported({ onProgress, signal } = {}) {
    await library.current();
    const people = new Map((await users.all()).map((user) => [user.id, user]));
    const loginOf = (id: number): string => people.get(id)?.slug ?? (id === 0 ? "" : `user-${id}`);
    const posts = ORDER.flatMap((type) => listPostIdsOfType(index, type));
    const authors = new Set(posts.map((id) => index.post(id)?.author ?? 0));

    yield HEAD + siteHead(site);
    for (const id of authors) {
      if (id === 0) continue;
      const { email = "", name = loginOf(id) } = people.get(id) ?? {};
      yield `\t<wp:author>\n${element("wp:author_id", id)}${element("wp:author_login", loginOf(id))}${element("wp:author_email", email)}${element("wp:author_display_name", name)}\t</wp:author>\n`;
    }
    for (const taxonomy of Object.keys(taxonomies) as Taxonomy[]) {
      for (const term of parentsFirst(taxonomy)) yield exportedTerm(term);
    }
    yield `\t<generator>${escaped("https://www.npmjs.com/package/postbell")}</generator>\n`;
    for (let start = 0; start < posts.length; start += BATCH) {
      signal?.throwIfAborted();
      const batch = await library.posts(posts.slice(start, start + BATCH));
      // One that was deleted meanwhile is left out.
      yield batch
        .map((post) => (post === undefined ? "" : writeItem(post, { site, index, loginOf })))
        .join("");
      onProgress?.({ items: start + batch.length, itemsTotal: posts.length });
    }
    yield "</channel>\n</rss>\n";
  };

  function parentsFirst(taxonomy: Taxonomy): readonly Term[] {
    const depth = (term: Term): number => listTermAncestors(term, index).length;
    return index
      .terms(taxonomy)
      .map((term) => ({ term, depth: depth(term) }))
      .sort((a, b) => a.depth - b.depth || a.term.id - b.term.id)
      .map(({ term }) => term);
  }

  function exportedTerm(term: Term): string {
    const { id, taxonomy, slug, name, description, parent } = term;
    const above = index.term(parent)?.slug ?? "";
    const line = (tag: string, texts: readonly (readonly [string, string | number])[]): string =>
      `\t<${tag}>\n${texts.map(([child, text]) => element(child, text)).join("")}\t</${tag}>\n`;
    if (taxonomy === "category") {
      return line("wp:category", [
        ["wp:term_id", id],
        ["wp:category_nicename", slug],
        ["wp:category_parent", above],
        ["wp:cat_name", name],
        ["wp:category_description", description],
      ]);
    }
    if (taxonomy === "post_tag") {
      return line("wp:tag", [
        ["wp:term_id", id],
        ["wp:tag_slug", slug],
        ["wp:tag_name", name],
        ["wp:tag_description", description],
      ]);
    }
    return line("wp:term", [
      ["wp:term_id", id],
      ["wp:term_taxonomy", taxonomy],
      ["wp:term_slug", slug],
      ["wp:term_parent", above],
      ["wp:term_name", name],
      ["wp:term_description", description],
    ]);
  }
}

const siteHead = ({ name, url, home, description }: Site): string =>
  `\t<title>${escaped(name)}</title>\n\t<link>${escaped(home)}</link>\n\t<description>${escaped(description)}</description>\n\t<wp:wxr_version>1.2</wp:wxr_version>\n\t<wp:base_site_url>${escaped(url)}</wp:base_site_url>\n\t<wp:base_blog_url>${escaped(url)}</wp:base_blog_url>\n`;
