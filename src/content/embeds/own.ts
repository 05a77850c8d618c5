/** Describes the site's posts for others to embed. Fetches nothing. */

import { parseUrl } from "../../core/parse-url.js";
import { trimEnd } from "../../core/trim-end.js";
import type { ContentBase } from "../content-base.js";
import { getMediaUrl } from "../media/media-rules.js";
import type { Post, PostColumns } from "../records/records.js";
import { stripTags } from "../text/markup.js";
import { authorAddress } from "../users/user-fields.js";
import { type Embed, escapeHtml } from "./embed.js";

export interface OwnEmbeds {
  /** True if the URL is on this site, even if there is nothing. */
  isOwn: (url: string) => boolean;
  /**
   * Returns `undefined` unless the URL names a post that everybody may see. The same for all
   * callers.
   */
  find: (url: string, maxWidth: number) => Promise<Embed | undefined>;
}

const MIN_WIDTH = 200;
const MAX_WIDTH = 600;
const MIN_HEIGHT = 200;

/** Makes two spellings of a path equal: the case of escapes and a final slash do not count. */
const normalisePath = (path: string): string =>
  trimEnd(
    path.replace(/%[\da-f]{2}/gi, (octet) => octet.toLowerCase()),
    "/",
  );

export function createOwnEmbeds({ repository, site, users, callers }: ContentBase): OwnEmbeds {
  const { index } = repository;
  const { anonymous } = callers;
  const types = [...index.model.types.values()].flatMap(({ type, isViewable }) => (isViewable ? [type] : []));
  const bases = [site.home, site.url].map((base) => new URL(base));

  /** With or without TLS, since URLs outlive a change to it. Another port is another server. */
  const isHost = ({ protocol, host }: URL): boolean =>
    /^https?:$/.test(protocol) && bases.some((base) => base.host === host);

  const mayBeSeen = (post: PostColumns | undefined): post is PostColumns =>
    post !== undefined &&
    index.model.types.get(post.type)?.isViewable === true &&
    anonymous.may("read", post, post.status === "inherit" ? index.post(post.parent) : undefined);

  function findPost(url: URL): PostColumns | undefined {
    const home = normalisePath(new URL(site.home).pathname);
    const path = normalisePath(url.pathname);
    const id = ["p", "page_id", "attachment_id"].map((name) => url.searchParams.get(name)).find(Boolean);
    if (id && path === home) return /^\d{1,15}$/.test(id) ? index.post(Number(id)) : undefined;
    const slug = path.slice(path.lastIndexOf("/") + 1);
    const ids = types.flatMap((type) => index.withSlug(type, slug));
    return ids
      .map((one) => index.post(one))
      .find((post) => mayBeSeen(post) && normalisePath(new URL(site.link(post, index)).pathname) === path);
  }

  /** A protected post has no thumbnail: its picture needs the password too. */
  async function buildThumbnail(post: Post, frameWidth: number): Promise<Partial<Embed>> {
    if (post.password !== "") return {};
    const image = index.post(post.type === "attachment" ? post.id : post.featuredMedia);
    if (!mayBeSeen(image) || !image.mimeType.startsWith("image/")) return {};
    const [whole] = image.id === post.id ? [post] : await repository.posts([image.id]);
    if (!whole?.media) return {};
    const { width, height } = whole.media;
    const shownWidth = Math.min(width, frameWidth);
    return {
      thumbnail_url: getMediaUrl(whole.media, site),
      thumbnail_width: shownWidth,
      thumbnail_height:
        shownWidth === width ? height : Math.max(Math.round((height * shownWidth) / width), 1),
    };
  }

  return {
    isOwn(text) {
      const url = parseUrl(text);
      return url !== undefined && isHost(url);
    },
    async find(text, maxWidth) {
      const url = parseUrl(text);
      if (url === undefined || !isHost(url) || url.username !== "" || url.password !== "") return undefined;
      const found = findPost(url);
      if (!mayBeSeen(found)) return undefined;
      const [post] = await repository.posts([found.id]);
      // The post may have changed during the read.
      if (!mayBeSeen(post)) return undefined;
      const author = await users.get(post.author);
      const width = Math.min(Math.max(maxWidth, MIN_WIDTH), MAX_WIDTH);
      const height = Math.max(Math.ceil((width * 9) / 16), MIN_HEIGHT);
      const title = `${post.password === "" ? "" : "Protected: "}${await site.render.title(post)}`;
      return {
        version: "1.0",
        provider_name: site.name,
        provider_url: site.home,
        author_name: author?.name ?? site.name,
        author_url: author ? authorAddress(site.home, author) : site.home,
        title,
        type: "rich",
        width,
        height,
        html: renderFrame(site.link(post, index), title, { width, height }),
        ...(await buildThumbnail(post, width)),
      };
    },
  };
}

/**
 * Returns a link, for places without frames, and the page in a sandboxed frame that may run
 * nothing. The title is HTML, which is reduced to its text.
 */
function renderFrame(link: string, title: string, size: { width: number; height: number }): string {
  const address = escapeHtml(link);
  const text = stripTags(title).replaceAll('"', "&quot;");
  return (
    `<blockquote class="wp-embedded-content"><a href="${address}">${text}</a></blockquote>` +
    `<iframe class="wp-embedded-content" sandbox="" src="${address}" width="${size.width}" height="${size.height}" ` +
    `title="${text}" loading="lazy"></iframe>`
  );
}
