/**
 * Writes WXR files for tests: by a seed, or of a few items given in short. Not the writer of the
 * package: it must not agree with the reader by chance.
 */

export interface SeededPost {
  readonly id: number;
  readonly author: string;
  readonly title: string;
  readonly slug: string;
  /** `2026-11-21 10:00:00` */
  readonly date: string;
  readonly modified: string;
  readonly menuOrder: number;
  readonly featuredMedia: number;
}

export interface SeededSite {
  readonly posts: readonly SeededPost[];
  readonly media: readonly { readonly id: number; readonly file: string }[];
  readonly file: () => Generator<string>;
}

const WORDS =
  "heart pulse clinic ward nurse dose scan fever bone lung vein cell x-ray Über Ångström café".split(" ");

/** The same numbers for the same seed: a linear congruence. */
function seededNumbers(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 4_294_967_296) * below);
  };
}

const cdata = (text: string): string => `<![CDATA[${text.replaceAll("]]>", "]]]]><![CDATA[>")}]]>`;
const sqlDate = (ms: number): string => new Date(ms).toISOString().slice(0, 19).replace("T", " ");

export const wxrHead = (
  more = "",
  url = "https://old.example.org",
): string => `<?xml version="1.0" encoding="UTF-8" ?>
<!-- generator="WordPress/6.9" -->
<rss version="2.0"
  xmlns:excerpt="http://wordpress.org/export/1.2/excerpt/"
  xmlns:content="http://purl.org/rss/1.0/modules/content/"
  xmlns:wfw="http://wellformedweb.org/CommentAPI/"
  xmlns:dc="http://purl.org/dc/elements/1.1/"
  xmlns:wp="http://wordpress.org/export/1.2/">
<channel>
  <title>Old site</title>
  <link>${url}</link>
  <language>en-US</language>
  <wp:wxr_version>1.2</wp:wxr_version>
  <wp:base_site_url>${url}</wp:base_site_url>
  <wp:base_blog_url>${url}</wp:base_blog_url>
${more}`;

export const WXR_END = "</channel>\n</rss>\n";

export interface ShortItem {
  readonly id?: number;
  readonly type?: string;
  readonly title?: string;
  readonly content?: string;
  readonly excerpt?: string;
  readonly slug?: string;
  readonly status?: string;
  readonly creator?: string;
  readonly parent?: number;
  readonly date?: string;
  readonly dateGmt?: string;
  readonly modified?: string;
  readonly modifiedGmt?: string;
  readonly menuOrder?: number;
  readonly sticky?: boolean;
  readonly password?: string;
  readonly attachmentUrl?: string;
  readonly terms?: readonly (readonly [taxonomy: string, slug: string, name: string])[];
  readonly meta?: { readonly [name: string]: string };
  /** As it stands. */
  readonly more?: string;
}

export function wxrItem(item: ShortItem): string {
  const { id = 1, type = "post", title = `Item ${id}`, slug = `item-${id}` } = item;
  const date = item.date ?? "2024-05-06 07:08:09";
  const modified = item.modified ?? date;
  const terms = (item.terms ?? []).map(
    ([taxonomy, nicename, name]) =>
      `<category domain="${taxonomy}" nicename="${nicename}">${cdata(name)}</category>\n`,
  );
  const meta = Object.entries(item.meta ?? {}).map(
    ([name, value]) =>
      `<wp:postmeta>\n<wp:meta_key>${cdata(name)}</wp:meta_key>\n<wp:meta_value>${cdata(value)}</wp:meta_value>\n</wp:postmeta>\n`,
  );
  return `<item>
  <title>${cdata(title)}</title>
  <link>https://old.example.org/${slug}/</link>
  <dc:creator>${cdata(item.creator ?? "anna")}</dc:creator>
  <guid isPermaLink="false">https://old.example.org/?p=${id}</guid>
  <description></description>
  <content:encoded>${cdata(item.content ?? "")}</content:encoded>
  <excerpt:encoded>${cdata(item.excerpt ?? "")}</excerpt:encoded>
  <wp:post_id>${id}</wp:post_id>
  <wp:post_date>${cdata(date)}</wp:post_date>
  <wp:post_date_gmt>${cdata(item.dateGmt ?? date)}</wp:post_date_gmt>
  <wp:post_modified>${cdata(modified)}</wp:post_modified>
  <wp:post_modified_gmt>${cdata(item.modifiedGmt ?? modified)}</wp:post_modified_gmt>
  <wp:comment_status>${cdata("open")}</wp:comment_status>
  <wp:ping_status>${cdata("closed")}</wp:ping_status>
  <wp:post_name>${cdata(slug)}</wp:post_name>
  <wp:status>${cdata(item.status ?? (type === "attachment" ? "inherit" : "publish"))}</wp:status>
  <wp:post_parent>${item.parent ?? 0}</wp:post_parent>
  <wp:menu_order>${item.menuOrder ?? 0}</wp:menu_order>
  <wp:post_type>${cdata(type)}</wp:post_type>
  <wp:post_password>${cdata(item.password ?? "")}</wp:post_password>
  <wp:is_sticky>${item.sticky ? 1 : 0}</wp:is_sticky>
${item.attachmentUrl === undefined ? "" : `<wp:attachment_url>${cdata(item.attachmentUrl)}</wp:attachment_url>`}
${terms.join("")}${meta.join("")}${item.more ?? ""}</item>
`;
}

export const wxrFile = (items: readonly ShortItem[], more = ""): string =>
  wxrHead(more) + items.map(wxrItem).join("") + WXR_END;

/** `text` as the bytes of a stream, in pieces of `size`. */
export async function* bytesOf(text: string | Uint8Array, size = 65_536): AsyncGenerator<Uint8Array> {
  const bytes = typeof text === "string" ? Buffer.from(text) : text;
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size);
}

export async function* streamOf(parts: Iterable<string>): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield Buffer.from(part);
}

export const SEEDED_AUTHORS = ["anna", "bert", "cleo"] as const;

/**
 * A site of `count` posts, with a featured image for every fifth, with the dates, titles and slugs
 * that ties in lists come of. `words`: of the text of each. Deterministic by `seed`.
 */
export function seededSite({
  count,
  seed,
  words = 60,
}: {
  count: number;
  seed: number;
  words?: number;
}): SeededSite {
  const pick = seededNumbers(seed);
  const word = (): string => WORDS[pick(WORDS.length)] ?? "";
  const phrase = (length: number): string => Array.from({ length }, word).join(" ");
  const start = Date.UTC(2015, 0, 1);
  const media = Array.from({ length: Math.floor(count / 5) }, (_, n) => ({
    id: 900_000 + n,
    file: `2015/0${1 + pick(9)}/picture-${n}.jpg`,
  }));
  const posts = Array.from({ length: count }, (_, n): SeededPost => {
    // Some hundred days for thousands of posts: many have the same second.
    const date = start + pick(Math.max(Math.floor(count / 3), 2)) * 86_400_000;
    return {
      id: 10 + n * 2 + pick(2),
      author: SEEDED_AUTHORS[pick(SEEDED_AUTHORS.length)] ?? "anna",
      title: `${phrase(1 + pick(3))}${pick(4) === 0 ? "" : ` ${pick(50)}`}`,
      slug: `post-${pick(1_000_000)}-${n}`,
      date: sqlDate(date),
      modified: sqlDate(date + pick(30) * 86_400_000),
      menuOrder: pick(7),
      featuredMedia: n % 5 === 0 && media[n / 5] !== undefined ? 900_000 + n / 5 : 0,
    };
  });

  function* file(): Generator<string> {
    const texts = seededNumbers(seed + 1);
    const authors = SEEDED_AUTHORS.map(
      (login, n) =>
        `<wp:author><wp:author_id>${n + 1}</wp:author_id><wp:author_login>${cdata(login)}</wp:author_login><wp:author_email>${cdata(`${login}@example.org`)}</wp:author_email><wp:author_display_name>${cdata(login)}</wp:author_display_name></wp:author>\n`,
    );
    yield wxrHead(authors.join(""));
    for (const { id, featuredMedia, ...post } of posts) {
      const text = Array.from({ length: words }, () => WORDS[texts(WORDS.length)]).join(" ");
      yield wxrItem({
        ...post,
        id,
        creator: post.author,
        content: `<!-- wp:paragraph -->\n<p>${text}</p>\n<!-- /wp:paragraph -->`,
        terms: [["category", `ward-${id % 7}`, `Ward ${id % 7}`]],
        meta: featuredMedia === 0 ? {} : { _thumbnail_id: String(featuredMedia) },
      });
    }
    for (const { id, file: name } of media) {
      yield wxrItem({
        id,
        type: "attachment",
        slug: `picture-${id}`,
        attachmentUrl: `https://old.example.org/wp-content/uploads/${name}`,
        meta: { _wp_attached_file: name, _wp_attachment_image_alt: `Picture ${id}` },
      });
    }
    yield WXR_END;
  }
  return { posts, media, file };
}
