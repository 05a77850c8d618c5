/** The website as the host describes it, with the URLs and renderings that follow from that. */

import { listAncestors } from "./query/page-tree.js";
import type { SiteIndex } from "./query/site-index.js";
import type { Post, PostColumns } from "./records/records.js";
import type { SiteZone } from "./text/dates.js";
import { makeExcerpt } from "./text/excerpt.js";
import { stripAll } from "./text/plain.js";
import { renderContent, renderExcerpt, renderTitle } from "./text/render.js";
import { sanitiseHtml, sanitiseSteps, sanitiseTitle } from "./text/sanitise-html.js";
import { toSlug } from "./text/slug.js";

type TextField = "title" | "content" | "excerpt";

/**
 * Turns raw text into the HTML that is shown. Called for each text.
 *
 * It must be fast and pure, since its result is cached and sent as it is. If it throws, the text is
 * empty.
 */
export type Render = (
  raw: string,
  details: { readonly field: "title" | "content" | "excerpt"; readonly post: Post },
) => string;

/** The website whose content this is. */
export interface SiteOptions {
  /** The name of the website, shown in the index and in embeds. */
  readonly name: string;
  /** A tagline, shown in the index. Default: empty. */
  readonly description?: string | undefined;
  /** The URL of the website, without a trailing slash: `https://www.example.org`. Required. */
  readonly url: string;
  /** The URL of its front page. Default: `url`. Set it if the front page is elsewhere. */
  readonly home?: string | undefined;
  /** The time zone of dates without an offset: `Europe/Berlin`, `+05:30`. Default: `UTC`. */
  readonly timezone?: string | undefined;
  /**
   * The URL below which the host serves uploaded files. Default: `<url>/uploads`. Set it if they
   * have a server or a CDN of their own.
   */
  readonly uploads?: string | undefined;
  /** Names that the `template` of a post may have, besides the empty one. Default: `[]`. */
  readonly templates?: readonly string[] | undefined;
}

export interface Site {
  readonly name: string;
  readonly description: string;
  readonly url: string;
  readonly home: string;
  readonly templates: readonly string[];
  readonly zone: SiteZone;
  /** The time zone as the host configured it. */
  readonly timezone: string;
  readonly render: {
    readonly title: (post: Post) => string;
    readonly content: (post: Post) => string;
    /** For media: the excerpt that was written, never a generated one. */
    readonly caption: (post: Post) => string;
    /** `words`: the length of an excerpt that is generated from the content. */
    readonly excerpt: (post: Post, words: number) => string;
  };
  /** Sanitises text from users without `unfiltered_html` before it is stored. */
  readonly filter: {
    readonly title: (raw: string) => string;
    readonly content: (raw: string) => string;
    readonly excerpt: (raw: string) => string;
  };
  /** The longest text that a user without `unfiltered_html` may write, in characters. */
  readonly filteredCharacters: number;
  /** Removes all markup and puts the text on one line. */
  readonly plainText: (raw: string) => string;
  readonly slug: (text: string) => string;
  /** Returns the URL of a stored file. */
  readonly upload: (name: string) => string;
  readonly guid: (post: PostColumns) => string;
  /** Returns the URL of a post on the website. */
  readonly link: (post: PostColumns, index: SiteIndex) => string;
  /** Returns that URL with `%postname%` or `%pagename%` in place of the slug. */
  readonly linkTemplate: (post: PostColumns, index: SiteIndex) => string;
  /** Returns the URL of the posts of a term. */
  readonly termLink: (taxonomyBase: string, slug: string) => string;
}

/** Returns the slugs from the root to the parent. */
const pathAbove = (post: PostColumns, index: SiteIndex): readonly string[] =>
  listAncestors(post, index)
    .map((id) => index.post(id)?.slug ?? "")
    .reverse();

/** True if its slug may appear in the URL of another post. */
const isShown = (post: PostColumns | undefined): boolean => post?.status === "publish";

const HAS_NO_ADDRESS: ReadonlySet<string> = new Set(["draft", "pending", "auto-draft", "future"]);

const TYPES_WITHOUT_ADDRESS: ReadonlySet<string> = new Set(["wp_block", "wp_navigation", "nav_menu_item"]);

/** About ten thousand words. Sanitising the worst text of this size takes 40 ms. */
export const DEFAULT_FILTERED_CHARACTERS = 65_536;

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
  filteredCharacters = DEFAULT_FILTERED_CHARACTERS,
): Site {
  const query = ({ type, id }: PostColumns): string =>
    type === "page" ? `?page_id=${id}` : type === "post" ? `?p=${id}` : `?post_type=${type}&p=${id}`;
  const address = (post: PostColumns, index: SiteIndex, slug: string): string => {
    const isPlain = slug === "" || HAS_NO_ADDRESS.has(post.status) || TYPES_WITHOUT_ADDRESS.has(post.type);
    if (isPlain) return `${home}/${query(post)}`;
    const isBelow = post.type === "page" || (post.type === "attachment" && isShown(index.post(post.parent)));
    const above = isBelow ? pathAbove(post, index) : [];
    return `${home}/${[...above, slug].join("/")}/`;
  };
  const shown = (
    raw: string,
    field: TextField,
    post: Post,
    byDefault: (raw: string, post: Post) => string,
  ): string => {
    if (render === undefined) return byDefault(raw, post);
    try {
      return render(raw, { field, post });
    } catch {
      return "";
    }
  };
  const sanitise = (raw: string): string => sanitiseHtml(raw, { uploads });
  const safely =
    (byDefault: typeof renderContent) =>
    (raw: string, { isTrusted }: Post): string =>
      byDefault(raw, { isTrusted, sanitise: (html) => sanitiseSteps(html, { uploads }) });
  return {
    name,
    description,
    url,
    home,
    zone,
    timezone,
    templates,
    render: {
      title: (post) => shown(post.title, "title", post, renderTitle),
      content: (post) => shown(post.content, "content", post, safely(renderContent)),
      caption: (post) => shown(post.excerpt, "excerpt", post, safely(renderExcerpt)),
      excerpt: (post, words) => {
        const raw = post.excerpt === "" ? makeExcerpt(post.content, words) : post.excerpt;
        return shown(raw, "excerpt", post, safely(renderExcerpt));
      },
    },
    filteredCharacters,
    plainText: stripAll,
    upload: (file) => `${uploads}/${file}`,
    filter: { title: sanitiseTitle, content: sanitise, excerpt: sanitise },
    slug: toSlug,
    guid: (post) => `${home}/${query(post)}`,
    link: (post, index) => address(post, index, post.slug),
    linkTemplate: (post, index) =>
      address({ ...post, status: "publish" }, index, post.type === "page" ? "%pagename%" : "%postname%"),
    termLink: (base, slug) => `${home}/${base}/${slug}/`,
  };
}
