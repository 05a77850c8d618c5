/** What the host says of its website, and the addresses and renderings that follow from it. */

import { listAncestors } from "./query/page-tree.js";
import type { SiteIndex } from "./query/site-index.js";
import type { Post, PostColumns } from "./records/records.js";
import type { SiteZone } from "./text/dates.js";
import { makeExcerpt } from "./text/excerpt.js";
import { stripAll } from "./text/plain.js";
import { renderContent, renderExcerpt, renderTitle } from "./text/render.js";
import { sanitiseHtml, sanitiseTitle } from "./text/sanitise-html.js";
import { toSlug } from "./text/slug.js";

/** Turns a raw text into what is shown. `post` is the record it belongs to. Must be fast and must not throw; what it throws is answered with an empty text. */
type TextField = "title" | "content" | "excerpt";

/** Makes of a raw text the HTML that is shown. It is called for each text and must be pure: what it returns is kept, and sent as it is. */
export type Render = (
  raw: string,
  details: { readonly field: "title" | "content" | "excerpt"; readonly post: Post },
) => string;

/** The website that the content is of. */
export interface SiteOptions {
  readonly name: string;
  readonly description?: string | undefined;
  /** Address of the website, without a trailing slash: `https://www.example.org`. */
  readonly url: string;
  /** Address of its first page. Default: `url`. */
  readonly home?: string | undefined;
  /** IANA name or offset: `Europe/Berlin`, `+05:30`. Default: `UTC`. */
  readonly timezone?: string | undefined;
  /** Address below which the host serves uploaded files. Default: `<url>/uploads`. */
  readonly uploads?: string | undefined;
  /** Names that a post's `template` may have beside none. Default: none. */
  readonly templates?: readonly string[] | undefined;
}

export interface Site {
  readonly name: string;
  readonly description: string;
  readonly url: string;
  readonly home: string;
  readonly templates: readonly string[];
  readonly zone: SiteZone;
  /** As the host configured it. */
  readonly timezone: string;
  readonly render: {
    readonly title: (post: Post) => string;
    readonly content: (post: Post) => string;
    /** Of media: the excerpt alone, never one that is made. */
    readonly caption: (post: Post) => string;
    /** `words`: of one that is made from the content. */
    readonly excerpt: (post: Post, words: number) => string;
  };
  /** What of a text is stored that comes from somebody without `unfiltered_html`. */
  readonly filter: {
    readonly title: (raw: string) => string;
    readonly content: (raw: string) => string;
    readonly excerpt: (raw: string) => string;
  };
  /** The longest text that somebody without `unfiltered_html` may write. */
  readonly filteredCharacters: number;
  /** Without any markup, on one line. */
  readonly plainText: (raw: string) => string;
  readonly slug: (text: string) => string;
  /** Address of a stored file. */
  readonly upload: (name: string) => string;
  readonly guid: (post: PostColumns) => string;
  /** Where the post is seen on the website. */
  readonly link: (post: PostColumns, index: SiteIndex) => string;
  /** The same with `%postname%` or `%pagename%` in place of its own slug. */
  readonly linkTemplate: (post: PostColumns, index: SiteIndex) => string;
  /** Where the posts of a term are seen. */
  readonly termLink: (taxonomyBase: string, slug: string) => string;
}

/** Slugs from the root to the parent. */
const pathAbove = (post: PostColumns, index: SiteIndex): readonly string[] =>
  listAncestors(post, index)
    .map((id) => index.post(id)?.slug ?? "")
    .reverse();

/** Whether its slug may stand in the address of something else. */
const isShown = (post: PostColumns | undefined): boolean => post?.status === "publish";

const HAS_NO_ADDRESS: ReadonlySet<string> = new Set(["draft", "pending", "auto-draft", "future"]);

/** About ten thousand words. Filtering a text of this size that is made to be slow takes 40 ms. */
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
    const isPlain =
      slug === "" ||
      HAS_NO_ADDRESS.has(post.status) ||
      post.type === "wp_block" ||
      post.type === "nav_menu_item";
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
      content: (post) => shown(post.content, "content", post, renderContent),
      caption: (post) => shown(post.excerpt, "excerpt", post, renderExcerpt),
      excerpt: (post, words) => {
        const raw = post.excerpt === "" ? makeExcerpt(post.content, words) : post.excerpt;
        return shown(raw, "excerpt", post, renderExcerpt);
      },
    },
    filteredCharacters,
    plainText: stripAll,
    upload: (file) => `${uploads}/${file}`,
    filter: { title: sanitiseTitle, content: sanitiseHtml, excerpt: sanitiseHtml },
    slug: toSlug,
    guid: (post) => `${home}/${query(post)}`,
    link: (post, index) => address(post, index, post.slug),
    linkTemplate: (post, index) =>
      address({ ...post, status: "publish" }, index, post.type === "page" ? "%pagename%" : "%postname%"),
    termLink: (base, slug) => `${home}/${base}/${slug}/`,
  };
}
