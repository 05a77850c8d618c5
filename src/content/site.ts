/** The website as the host describes it, with the URLs and renderings that follow from that. */

import { AsyncResource } from "node:async_hooks";
import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { runInTurns, type Steps } from "../core/next-turn.js";
import { listAncestors } from "./query/row.js";
import type { SiteIndex } from "./query/site-index.js";
import type { Collection } from "./records/content-model.js";
import type { Post, PostColumns } from "./records/records.js";
import { hasSlugPerParent } from "./records/unique-names.js";
import { RenderBudget } from "./render-budget.js";
import type { SiteZone } from "./text/dates.js";
import { excerptSteps } from "./text/excerpt.js";
import { stripAll } from "./text/markup.js";
import { contentSteps, type RenderOptions, renderedExcerptSteps, titleSteps } from "./text/render.js";
import { footnoteSteps, sanitiseSteps, sanitiseTitleSteps } from "./text/sanitise-html.js";
import { type IsShortCode, isBuiltInShortCode } from "./text/short-codes.js";
import { toSlug } from "./text/slug.js";

/** The texts of a post that are HTML. */
export type HtmlField = "title" | "content" | "excerpt";

/**
 * Turns raw text into the HTML that is shown. Called for each text.
 *
 * It must be fast and pure, since its result is cached and sent as it is. If it throws, the text is
 * empty.
 */
export type Render = (raw: string, details: { field: "title" | "content" | "excerpt"; post: Post }) => string;

/** Renders contents with what they show of other records. */
export interface ContentRenderer {
  isShortCode: IsShortCode;
  /** True if the rendered content may show other records of the site. */
  showsOthers: (content: string) => boolean;
  render: (post: Post, options: RenderOptions, site: Site, budget: RenderBudget) => Promise<string>;
}

/** The website whose content this is. */
export interface SiteOptions {
  /** The name of the website, shown in the index and in embeds. */
  name: string;
  /** A tagline, shown in the index. Default: empty. */
  description?: string | undefined;
  /** The URL of the website, without a trailing slash: `https://www.example.org`. Required. */
  url: string;
  /** The URL of its front page. Default: `url`. Set it if the front page is elsewhere. */
  home?: string | undefined;
  /** The time zone of dates without an offset: `Europe/Berlin`, `+05:30`. Default: `UTC`. */
  timezone?: string | undefined;
  /**
   * The URL below which the host serves uploaded files. Default: `<url>/uploads`. Set it if they
   * have a separate server or a CDN.
   */
  uploads?: string | undefined;
  /** Names that the `template` of a post may have, besides the empty one. Default: `[]`. */
  templates?: readonly string[] | undefined;
}

export interface Site {
  name: string;
  description: string;
  url: string;
  home: string;
  templates: readonly string[];
  zone: SiteZone;
  /** The time zone as the host configured it. */
  timezone: string;
  /** Other requests run while a long text is rendered. */
  render: {
    title: (post: Post) => Promise<string>;
    /** `budget`: shared by the contents of one response. Default: that of one content. */
    content: (post: Post, budget?: RenderBudget) => Promise<string>;
    /** For media: the excerpt that was written, never a generated one. */
    caption: (post: Post) => Promise<string>;
    /** `words`: the length of an excerpt that is generated from the content. */
    excerpt: (post: Post, words: number) => Promise<string>;
  };
  /** True if the rendered content of the post may show other records, whose changes change it. */
  showsOthers: (post: Post) => boolean;
  /**
   * Sanitises text from users without `unfiltered_html` before it is stored. Other requests run
   * meanwhile.
   */
  sanitise: (field: HtmlField | "footnotes", raw: string) => Promise<string>;
  /** Returns the id of the page at the address of the site; 0 if it lists the posts. */
  frontPage: () => number;
  /** True if contents and excerpts show smilies as emoji. */
  hasSmilies: () => boolean;
  /** True if new posts are open, of types that have comments and pings. */
  newPostsAre: () => { commentStatus: Post["commentStatus"]; pingStatus: Post["pingStatus"] };
  /** The longest text that a user without `unfiltered_html` may write, in characters. */
  filteredCharacters: number;
  /** Removes all markup and puts the text on one line. */
  plainText: (raw: string) => string;
  slug: (text: string) => string;
  /** Returns the URL of a stored file. */
  upload: (name: string) => string;
  guid: (post: PostColumns) => string;
  /** Returns the URL of a post on the website. */
  link: (post: PostColumns, index: SiteIndex) => string;
  /** Returns that URL with `%postname%` or `%pagename%` in place of the slug. */
  linkTemplate: (post: PostColumns, index: SiteIndex) => string;
  /** Returns the URL of the posts of a term. */
  termLink: (taxonomyBase: string, slug: string) => string;
}

/** Returns the slugs from the root to the parent. */
const pathAbove = (post: PostColumns, index: SiteIndex): string[] =>
  listAncestors(post, index)
    .map((id) => index.post(id)?.slug ?? "")
    .reverse();

/** True if its slug may appear in the URL of another post. */
const isShown = (post: PostColumns | undefined): post is PostColumns => post?.status === "publish";

const listPrefix = (collection: Collection | undefined): string[] =>
  collection?.pathPrefix === undefined ? [] : [collection.pathPrefix];

const HAS_NO_ADDRESS: Set<string> = new Set(["draft", "pending", "auto-draft", "future", "trash"]);

/** The argument of the query that names a record of a type by its id. */
const ID_ARGUMENTS: Map<string, string> = new Map([
  ["post", "p"],
  ["page", "page_id"],
  ["attachment", "attachment_id"],
]);

/** About ten thousand words. */
export const DEFAULT_FILTERED_CHARACTERS = 65_536;

/** Texts that are known to be sanitised: a few megabytes of digests. */
const SANITISED_TEXTS = 10_000;

const digestOf = (text: string): string => createHash("sha256").update(text, "utf16le").digest("base64");

const RENDERED = { title: titleSteps, content: contentSteps, excerpt: renderedExcerptSteps };

export function createSite(
  {
    name,
    description = "",
    url,
    home = url,
    timezone = "UTC",
    uploads = `${url}/uploads`,
    templates = [],
  }: SiteOptions,
  zone: SiteZone,
  render: Render | undefined,
  {
    filteredCharacters = DEFAULT_FILTERED_CHARACTERS,
    frontPage = () => 0,
    hasSmilies = () => true,
    newPostsAre = () => ({ commentStatus: "open", pingStatus: "open" }),
    contents,
  }: {
    filteredCharacters?: number;
    frontPage?: () => number;
    hasSmilies?: () => boolean;
    newPostsAre?: Site["newPostsAre"];
    /** Default: contents show no other records. */
    contents?: ContentRenderer | undefined;
  } = {},
): Site {
  const query = ({ type, id }: PostColumns): string => {
    const name = ID_ARGUMENTS.get(type);
    return name === undefined ? `?post_type=${type}&p=${id}` : `?${name}=${id}`;
  };
  const address = (post: PostColumns, index: SiteIndex, slug: string): string => {
    if (post.type === "page" && post.id === frontPage()) return `${home}/`;
    const { types } = index.model;
    const collection = types.get(post.type);
    const owner = post.type === "attachment" ? index.post(post.parent) : undefined;
    const isHidden = HAS_NO_ADDRESS.has(post.status) || (owner && HAS_NO_ADDRESS.has(owner.status));
    const isPlain = slug === "" || isHidden || collection?.isViewable !== true;
    if (isPlain) return `${home}/${query(post)}`;
    const isBelow = collection.isHierarchical || isShown(owner);
    const above = isBelow ? pathAbove(post, index) : [];
    const prefix = listPrefix(isShown(owner) ? types.get(owner.type) : collection);
    return `${home}/${[...prefix, ...above, slug].join("/")}/`;
  };
  // Requests share rendered texts, so these must not depend on what one keeps in its async context.
  const renderShared = render && AsyncResource.bind(render);
  const sanitised = new LRUCache<string, true>({ max: SANITISED_TEXTS });
  /** Skips a text that it has returned before, since sanitising that again changes nothing. */
  function* sanitiseHtml(raw: string): Steps<string> {
    if (sanitised.get(digestOf(raw)) === true) return raw;
    const html = yield* sanitiseSteps(raw, { uploads });
    sanitised.set(digestOf(html), true);
    return html;
  }
  const isShortCode = contents?.isShortCode ?? isBuiltInShortCode;
  const shown = async (
    raw: string,
    field: HtmlField,
    post: Post,
    budget = new RenderBudget(),
  ): Promise<string> => {
    if (renderShared === undefined) {
      const { isTrusted } = post;
      const options = { isTrusted, sanitise: sanitiseHtml, smilies: hasSmilies(), isShortCode };
      if (field === "content" && contents !== undefined) return contents.render(post, options, made, budget);
      return runInTurns(RENDERED[field](raw, options), raw.length);
    }
    try {
      return renderShared(raw, { field, post });
    } catch {
      return "";
    }
  };
  const made: Site = {
    name,
    description,
    url,
    home,
    zone,
    timezone,
    templates,
    render: {
      title: (post) => shown(post.title, "title", post),
      content: (post, budget) => shown(post.content, "content", post, budget),
      caption: (post) => shown(post.excerpt, "excerpt", post),
      async excerpt(post, words) {
        const { content, excerpt } = post;
        const raw = excerpt || (await runInTurns(excerptSteps(content, words, isShortCode), content.length));
        return shown(raw, "excerpt", post);
      },
    },
    showsOthers: ({ content }) => renderShared === undefined && contents?.showsOthers(content) === true,
    frontPage,
    hasSmilies,
    newPostsAre,
    filteredCharacters,
    plainText: stripAll,
    upload: (file) => `${uploads}/${file}`,
    sanitise(field, raw) {
      const steps =
        field === "title"
          ? sanitiseTitleSteps(raw)
          : field === "footnotes"
            ? footnoteSteps(raw, { uploads })
            : sanitiseHtml(raw);
      return runInTurns(steps, raw.length);
    },
    slug: toSlug,
    guid: (post) => `${home}/${query(post)}`,
    link: (post, index) => address(post, index, post.slug),
    linkTemplate: (post, index) =>
      address(
        { ...post, status: "publish" },
        index,
        hasSlugPerParent(post.type) ? "%pagename%" : "%postname%",
      ),
    termLink: (base, slug) => `${home}/${base}/${slug}/`,
  };
  return made;
}
