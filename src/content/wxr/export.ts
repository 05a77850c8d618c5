/** `content.export`: writes the whole site as a WXR 1.2 file, piece by piece. */

import { refuseUnknownKeys } from "../../core/known-names.js";
import type { SiteIndex } from "../query/site-index.js";
import type { PostType, Taxonomy, Term } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import type { Site } from "../site.js";
import { taxonomies } from "../terms/taxonomies.js";
import { listTermAncestors } from "../terms/term-fields.js";
import type { Users } from "../users/users.js";
import { writeItem } from "./export-item.js";
import { listPostIdsOfType } from "./post-ids.js";
import { escapeXml, writeElement } from "./xml.js";

/**
 * Options of `content.export`.
 *
 * @example
 * await pipeline(content.export({ onProgress: console.log }), createWriteStream("site.xml"));
 */
export interface ExportOptions {
  /** Called after every batch. Must not throw. */
  readonly onProgress?: ((progress: ExportProgress) => void) | undefined;
  /** Once it is aborted, the stream throws its reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Progress of an export. */
export interface ExportProgress {
  /** Posts of any type that were written so far. */
  readonly items: number;
  readonly itemsTotal: number;
}

export type Export = (options?: ExportOptions) => AsyncIterable<string>;

/** Posts that are read from the storage at once. */
const BATCH = 100;
/**
 * Targets of references come before the posts that refer to them, so that an import of the file as
 * a stream finds them.
 */
const ORDER: readonly PostType[] = [
  "attachment",
  "page",
  "post",
  "wp_block",
  "wp_navigation",
  "nav_menu_item",
];

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
  repository,
  site,
  users,
}: {
  readonly repository: ContentRepository;
  readonly site: Site;
  readonly users: Users;
}): Export {
  const { index } = repository;

  return async function* exportSite(options = {}) {
    refuseUnknownKeys("content.export", options, ["onProgress", "signal"]);
    const { onProgress, signal } = options;
    await repository.current();
    const people = new Map((await users.all()).map((user) => [user.id, user]));
    const getLogin = (id: number): string => people.get(id)?.slug ?? (id === 0 ? "" : `user-${id}`);
    const posts = ORDER.flatMap((type) => listPostIdsOfType(index, type));
    const authors = new Set(posts.map((id) => index.post(id)?.author ?? 0));

    yield HEAD + writeSite(site);
    for (const id of authors) {
      if (id === 0) continue;
      const { email = "", name = getLogin(id) } = people.get(id) ?? {};
      yield `\t<wp:author>\n${writeElement("wp:author_id", id)}${writeElement("wp:author_login", getLogin(id))}${writeElement("wp:author_email", email)}${writeElement("wp:author_display_name", name)}\t</wp:author>\n`;
    }
    for (const taxonomy of Object.keys(taxonomies) as Taxonomy[]) {
      for (const term of listParentsFirst(taxonomy, index)) yield writeTerm(term, index);
    }
    yield `\t<generator>${escapeXml("https://www.npmjs.com/package/postbell")}</generator>\n`;
    for (let start = 0; start < posts.length; start += BATCH) {
      signal?.throwIfAborted();
      const batch = await repository.posts(posts.slice(start, start + BATCH));
      // A post that was deleted in the meantime is left out.
      yield batch
        .map((post) => (post === undefined ? "" : writeItem(post, { site, index, getLogin })))
        .join("");
      onProgress?.({ items: start + batch.length, itemsTotal: posts.length });
    }
    yield "</channel>\n</rss>\n";
  };
}

function listParentsFirst(taxonomy: Taxonomy, index: SiteIndex): readonly Term[] {
  const depth = (term: Term): number => listTermAncestors(term, index).length;
  return index
    .terms(taxonomy)
    .map((term) => ({ term, depth: depth(term) }))
    .sort((a, b) => a.depth - b.depth || a.term.id - b.term.id)
    .map(({ term }) => term);
}

function writeTerm(term: Term, index: SiteIndex): string {
  const { id, taxonomy, slug, name, description, parent } = term;
  const above = index.term(parent)?.slug ?? "";
  const line = (tag: string, texts: readonly (readonly [string, string | number])[]): string =>
    `\t<${tag}>\n${texts.map(([child, text]) => writeElement(child, text)).join("")}\t</${tag}>\n`;
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

const writeSite = ({ name, url, home, description }: Site): string =>
  `\t<title>${escapeXml(name)}</title>\n\t<link>${escapeXml(home)}</link>\n\t<description>${escapeXml(description)}</description>\n\t<wp:wxr_version>1.2</wp:wxr_version>\n\t<wp:base_site_url>${escapeXml(url)}</wp:base_site_url>\n\t<wp:base_blog_url>${escapeXml(url)}</wp:base_blog_url>\n`;
