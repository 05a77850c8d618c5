/** Blocks that show other records: patterns, footnotes and the table of dynamic blocks. */

import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../src/schema/types.js";
import { callsOf } from "../../support/content-call.js";
import { contentSite, type Role } from "../../support/content-site.js";
import { countTurns } from "../../support/count-turns.js";

type Site = ReturnType<typeof contentSite>;

function pagesOf(site: Site) {
  const call = callsOf(site);
  const write = async (collection: string, body: JsonObject, as: Role = "editor") =>
    (await call(`POST /${collection}`, { as, body: { status: "publish", ...body } })).body;
  const read = async (id: number): Promise<string> => (await call(`GET /posts/${id}`)).body.content.rendered;
  const show = async (content: string, more: JsonObject = {}): Promise<string> =>
    (await write("posts", { title: "t", content, ...more })).content.rendered;
  return { call, write, read, show };
}

const paragraph = (text: string): string => `<!-- wp:paragraph -->\n<p>${text}</p>\n<!-- /wp:paragraph -->`;
const shown = (text: string): string => `\n<p class="wp-block-paragraph">${text}</p>\n`;
const pattern = (id: number): string => `<!-- wp:block {"ref":${id}} /-->`;

describe("a pattern in a content", () => {
  it("shows its blocks, with the patterns inside, and follows their changes", async () => {
    const { call, write, read } = pagesOf(contentSite());
    const inner = await write("blocks", { title: "i", content: paragraph('"inner"') });
    const outer = await write("blocks", {
      title: "o",
      content: `${paragraph("outer")}\n${pattern(inner.id)}`,
    });
    const post = await write("posts", { title: "t", content: `${pattern(outer.id)}\n${paragraph("own")}` });
    expect(post.content.rendered).toBe(`${shown("outer")}\n${shown("&#8220;inner&#8221;")}\n${shown("own")}`);
    expect(await read(post.id)).toContain("inner");
    await call(`PUT /blocks/${inner.id}`, { as: "editor", body: { content: paragraph("changed") } });
    expect(await read(post.id)).toBe(`${shown("outer")}\n${shown("changed")}\n${shown("own")}`);
  });

  it("is hidden as a draft, with a password, as another type, and inside itself", async () => {
    const { call, write, show } = pagesOf(contentSite());
    const content = paragraph("secret");
    const draft = await write("blocks", { title: "d", content, status: "draft" });
    const locked = await write("blocks", { title: "l", content, password: "x" });
    const post = await write("posts", { title: "p", content });
    const own = await write("blocks", { title: "s", content: "" });
    await call(`PUT /blocks/${own.id}`, { as: "editor", body: { content: `a${pattern(own.id)}b` } });
    for (const { id } of [draft, locked, post, { id: 999 }]) expect(await show(pattern(id))).toBe("");
    expect(await show(pattern(own.id))).toBe("ab");
  });

  it("of an author without free HTML is sanitised in a content of anybody", async () => {
    const { write, show } = pagesOf(contentSite());
    const { id } = await write("blocks", { title: "a", content: '<p onclick="x">a</p>' }, "author");
    expect(await show(pattern(id))).toBe("<p>a</p>");
  });

  it("that holds a hundred others, each with a hundred, is shown in part", async () => {
    const { write, show } = pagesOf(contentSite());
    const leaf = await write("blocks", { title: "l", content: paragraph("leaf") });
    const branch = await write("blocks", { title: "b", content: pattern(leaf.id).repeat(100) });
    const tree = await write("blocks", { title: "t", content: pattern(branch.id).repeat(100) });
    const html = await show(pattern(tree.id));
    expect(html.match(/leaf/g)?.length).toBe(989);
  });
});

describe("the footnotes of a content", () => {
  const note = '[{"content":"The \\"note\\" <b>b</b>","id":"a1"},{"content":"two","id":"b2\\" x"}]';

  it("are the ones in its meta field", async () => {
    const { show } = pagesOf(contentSite());
    const html = await show(`${paragraph("x")}\n<!-- wp:footnotes {"className":"own"} /-->`, {
      meta: { footnotes: note },
    });
    expect(html).toBe(
      `${shown("x")}\n<ol class="own wp-block-footnotes"><li id="a1">The &#8220;note&#8221; <b>b</b> <a href="#a1-link" aria-label="Jump to footnote reference 1">↩︎</a></li>` +
        `<li id="b2&quot; x">two <a href="#b2&quot; x-link" aria-label="Jump to footnote reference 2">↩︎</a></li></ol>`,
    );
  });

  it.each(["", "[]", "no json", '{"a":1}', "[null,1]"])(
    "are left out if the field is %j",
    async (footnotes) => {
      const { show } = pagesOf(contentSite());
      expect(await show("a<!-- wp:footnotes /-->b", { meta: { footnotes } })).toMatch(
        /^a(<ol[^>]*><\/ol>)?b$/,
      );
    },
  );
});

it("keeps what was saved of blocks that it does not know, however deep they are", async () => {
  const { show } = pagesOf(contentSite());
  const deep = `${"<!-- wp:group -->".repeat(5_000)}x${"<!-- /wp:group -->".repeat(5_000)}`;
  const html = await show(
    `<!-- wp:clinic/today -->saved<!-- /wp:clinic/today -->${deep}<!-- wp:footnotes /-->`,
  );
  expect(html).toBe("savedx");
});

/** A site with a category, a tag, three posts, two pages and a menu. */
async function filledSite() {
  const site = contentSite({
    site: {
      url: "http://localhost",
      name: "Bars & Co",
      description: "A 'tag' line",
      timezone: "Europe/Berlin",
    },
    responsiveImages: false,
  });
  const pages = pagesOf(site);
  const { write } = pages;
  const news = (await write("categories", { name: "News & more", slug: "news", status: null })).id as number;
  const tag = (await write("tags", { name: "Red", slug: "red", status: null })).id as number;
  const posts: number[] = [];
  for (const [at, title] of ["One", "Two", 'Three "3"'].entries()) {
    const date = `2026-0${at + 1}-15T10:00:00`;
    const terms = at === 2 ? { categories: [news], tags: [tag] } : {};
    posts.push((await write("posts", { title, date, content: `${title} text`, ...terms })).id);
  }
  await write("posts", { title: "Draft", status: "draft", categories: [news] });
  await write("posts", { title: "Locked", content: "secret", password: "x", date: "2025-12-01T10:00:00" });
  const about = (await write("pages", { title: "About", slug: "about" })).id as number;
  await write("pages", { title: "Team", slug: "team", parent: about });
  return { ...pages, news, tag, posts, about };
}

describe("a dynamic block", () => {
  const filled = filledSite();
  const link = "http://localhost";

  it.each<[name: string, attributes: string, rendered: unknown]>([
    [
      "latest-posts",
      '{"postsToShow":2,"displayPostDate":true,"displayAuthor":true,"displayPostContent":true,"excerptLength":1}',
      `<ul class="wp-block-latest-posts__list has-dates has-author wp-block-latest-posts">` +
        `<li><a class="wp-block-latest-posts__post-title" href="${link}/three-3/">Three &#8220;3&#8221;</a><div class="wp-block-latest-posts__post-author">by The editor</div>` +
        `<time datetime="2026-03-15T10:00:00+01:00" class="wp-block-latest-posts__post-date">March 15, 2026</time><div class="wp-block-latest-posts__post-excerpt">Three [&hellip;]</div></li>\n` +
        `<li><a class="wp-block-latest-posts__post-title" href="${link}/two/">Two</a><div class="wp-block-latest-posts__post-author">by The editor</div>` +
        `<time datetime="2026-02-15T10:00:00+01:00" class="wp-block-latest-posts__post-date">February 15, 2026</time><div class="wp-block-latest-posts__post-excerpt">Two [&hellip;]</div></li>\n</ul>`,
    ],
    [
      "archives",
      '{"showPostCounts":true}',
      `<ul class="wp-block-archives-list wp-block-archives">\t<li><a href='${link}/2026/03/'>March 2026</a>&nbsp;(1)</li>\n` +
        `\t<li><a href='${link}/2026/02/'>February 2026</a>&nbsp;(1)</li>\n\t<li><a href='${link}/2026/01/'>January 2026</a>&nbsp;(1)</li>\n` +
        `\t<li><a href='${link}/2025/12/'>December 2025</a>&nbsp;(1)</li>\n</ul>`,
    ],
    [
      "categories",
      '{"showPostCounts":true}',
      expect.stringMatching(
        /^<ul class="wp-block-categories-list wp-block-categories">\t<li class="cat-item cat-item-\d+"><a href="http:\/\/localhost\/category\/news\/">News &amp; more<\/a> \(1\)\n<\/li>\n\t<li class="cat-item cat-item-\d+"><a [^>]*>Uncategorized<\/a> \(3\)\n<\/li>\n<\/ul>$/,
      ),
    ],
    [
      "tag-cloud",
      "",
      expect.stringMatching(
        /^<p class="wp-block-tag-cloud"><a href="http:\/\/localhost\/tag\/red\/" class="tag-cloud-link tag-link-\d+ tag-link-position-1" style="font-size: 8pt;" aria-label="Red \(1 item\)">Red<\/a><\/p>$/,
      ),
    ],
    [
      "page-list",
      "",
      `<ul class="wp-block-page-list"><li class="wp-block-pages-list__item has-child"><a class="wp-block-pages-list__item__link" href="${link}/about/">About</a>` +
        `<ul class="submenu-container"><li class="wp-block-pages-list__item"><a class="wp-block-pages-list__item__link" href="${link}/about/team/">Team</a></li></ul></li></ul>`,
    ],
    [
      "site-title",
      '{"level":2}',
      `<h2 class="wp-block-site-title"><a href="${link}" target="_self" rel="home">Bars &amp; Co</a></h2>`,
    ],
    [
      "site-tagline",
      '{"textAlign":"center"}',
      `<p class="has-text-align-center wp-block-site-tagline">A &#039;tag&#039; line</p>`,
    ],
    ["site-logo", "", ""],
    [
      "post-title",
      '{"isLink":true,"className":"own"}',
      expect.stringMatching(
        /^<h2 class="own wp-block-post-title"><a href="http:\/\/localhost\/[^"]+\/" target="_self">t<\/a><\/h2>$/,
      ),
    ],
    [
      "post-date",
      '{"isLink":true,"format":"\\\\Y: Y"}',
      expect.stringMatching(
        /<time datetime="[^"]*"><a href="http:\/\/localhost\/[^"]+">Y: \d{4}<\/a><\/time><\/div>$/,
      ),
    ],
    [
      "post-date",
      '{"format":"Y-m-d"}',
      expect.stringMatching(
        /^<div class="wp-block-post-date"><time datetime="[\dT:+-]+">\d{4}-\d\d-\d\d<\/time><\/div>$/,
      ),
    ],
    [
      "post-author",
      '{"byline":"By <b>"}',
      '<div class="wp-block-post-author"><div class="wp-block-post-author__content"><p class="wp-block-post-author__byline">By</p><p class="wp-block-post-author__name">The editor</p></div></div>',
    ],
    [
      "post-terms",
      '{"term":"category"}',
      `<div class="taxonomy-category wp-block-post-terms"><a href="${link}/category/uncategorized/" rel="tag">Uncategorized</a></div>`,
    ],
    ["post-featured-image", "", ""],
    [
      "read-more",
      '{"content":"More"}',
      expect.stringMatching(
        /^<a class="wp-block-read-more" href="http:\/\/localhost\/[^"]+\/" target="_self">More<span class="screen-reader-text">: t<\/span><\/a>$/,
      ),
    ],
    [
      "search",
      '{"label":"Find","placeholder":"a \\"b\\""}',
      `<form role="search" method="get" action="${link}/" class="wp-block-search__button-outside wp-block-search__text-button wp-block-search"><label class="wp-block-search__label" for="wp-block-search__input-1">Find</label>` +
        `<div class="wp-block-search__inside-wrapper"><input class="wp-block-search__input" id="wp-block-search__input-1" placeholder="a &quot;b&quot;" value="" type="search" name="s" required />` +
        `<button aria-label="Search" class="wp-block-search__button wp-element-button" type="submit">Search</button></div></form>`,
    ],
    [
      "social-link",
      '{"url":"example.org/me","service":"mastodon"}',
      '<li class="wp-social-link wp-social-link-mastodon wp-block-social-link"><a href="https://example.org/me" class="wp-block-social-link-anchor"><span class="wp-block-social-link-label">Mastodon</span></a></li>',
    ],
    ["social-link", '{"url":"javascript:alert(1)","service":"x"}', expect.stringMatching(/<a href=""/)],
    ["home-link", '{"label":"Start"}', expect.stringMatching(/rel="home">Start<\/a><\/li>$/)],
  ])("shows core/%s with %s", async (name, attributes, rendered) => {
    const { show } = await filled;
    const html = await show(`<!-- wp:${name} ${attributes} /-->`, { status: "private" });
    expect(html).toEqual(rendered);
  });

  it("shows a menu with links to what is published", async () => {
    const { write, show, about, posts } = await filled;
    const draft = await write("pages", { title: "Hidden", status: "draft" });
    const to = (id: number, label: string): string =>
      `<!-- wp:navigation-link {"id":${id},"kind":"post-type","label":"${label}","url":"/old"} /-->`;
    const submenu = `<!-- wp:navigation-submenu {"label":"More","url":"/more"} -->${to(posts[0] ?? 0, "First")}<!-- /wp:navigation-submenu -->`;
    const menu = await write(
      "navigation",
      {
        title: "Main",
        content: to(about, "Us") + to(draft.id, "No") + submenu,
      },
      "administrator",
    );
    expect(await show(`<!-- wp:navigation {"ref":${menu.id}} /-->`, { status: "private" })).toBe(
      `<nav class="wp-block-navigation" aria-label="Main"><ul class="wp-block-navigation__container">` +
        `<li class="wp-block-navigation-item wp-block-navigation-link"><a class="wp-block-navigation-item__content" href="${link}/about/"><span class="wp-block-navigation-item__label">Us</span></a></li>` +
        `<li class="wp-block-navigation-item has-child wp-block-navigation-link"><a class="wp-block-navigation-item__content" href="/more"><span class="wp-block-navigation-item__label">More</span></a>` +
        `<ul class="wp-block-navigation__submenu-container"><li class="wp-block-navigation-item wp-block-navigation-link"><a class="wp-block-navigation-item__content" href="${link}/one/"><span class="wp-block-navigation-item__label">First</span></a></li></ul></li></ul></nav>`,
    );
  });

  it("repeats the template of a query for each of its posts, and follows new ones", async () => {
    const { call, write, read, show } = await filled;
    const query = (json: string): string =>
      `<!-- wp:query {"query":${json}} -->\n<div class="wp-block-query"><!-- wp:post-template -->\n<!-- wp:post-title /-->\n<!-- wp:post-excerpt /-->\n<!-- /wp:post-template --></div>\n<!-- /wp:query -->`;
    const html = await show(query('{"perPage":2,"postType":"post","order":"asc","orderBy":"date"}'), {
      status: "private",
    });
    expect(html.match(/<h2[^>]*>[^<]*/g)).toEqual([
      '<h2 class="wp-block-post-title">Locked',
      '<h2 class="wp-block-post-title">One',
    ]);
    expect(html).toContain("There is no excerpt because this is a protected post.");
    expect(html).not.toContain("secret");
    const { id } = await write("posts", {
      title: "List",
      date: "2020-01-01T00:00:00",
      content: query('{"perPage":1}'),
    });
    expect(await read(id)).toContain("Three");
    const { id: newest } = await write("posts", { title: "Newest", date: "2026-04-01T00:00:00" });
    expect(await read(id)).toContain("Newest");
    await call(`DELETE /posts/${newest}`, { as: "editor", query: { force: true } });
    expect(await read(id)).toContain("Three");
  });
});

describe("a block that somebody wrote to harm the site", () => {
  it.each([
    '<!-- wp:latest-posts {"orderBy":"constructor"} /-->',
    '<!-- wp:query {"query":{"orderBy":"__proto__"}} --><!-- wp:post-template --><!-- wp:post-title /--><!-- /wp:post-template --><!-- /wp:query -->',
    '<!-- wp:post-terms {"term":"constructor"} /-->',
    '<!-- wp:post-terms {"term":"__proto__"} /-->',
    '<!-- wp:latest-posts {"categories":[{"id":{"toString":1,"valueOf":2}}]} /-->',
  ])("is shown or left out, and everything else goes on: %s", async (block) => {
    const { call, write } = pagesOf(contentSite());
    await write("posts", { title: "one" });
    const { status } = await call("POST /posts", { as: "contributor", body: { title: "d", content: block } });
    expect(status).toBe(201);
    const published = await write("posts", { title: "two", content: block });
    expect(published.id).toBeGreaterThan(0);
    const list = await call("GET /posts");
    expect([list.status, list.body.length]).toEqual([200, 2]);
  });

  it("shows no footnotes of a post with a password", async () => {
    const { write, show } = pagesOf(contentSite());
    const meta = { footnotes: '[{"content":"SECRET NOTE","id":"a"}]' };
    await write("posts", { title: "locked", password: "x", meta });
    await write("posts", { title: "open", meta: { footnotes: '[{"content":"open note","id":"b"}]' } });
    const html = await show(
      '<!-- wp:query {"query":{"postType":"post"}} --><!-- wp:post-template --><!-- wp:footnotes /--><!-- /wp:post-template --><!-- /wp:query -->',
    );
    expect(html).toContain("open note");
    expect(html).not.toContain("SECRET");
  });

  it("runs no short code of a title in the content that lists it", async () => {
    const run: string[] = [];
    const shortcodes = {
      danger: ({ id = "" }: { [name: string]: string }) => {
        run.push(id);
        return "RAN";
      },
    };
    const { write, show } = pagesOf(contentSite({ shortcodes }));
    await write("posts", { title: "[danger id=1]", excerpt: "[danger id=2]" }, "author");
    const html = await show(
      '<!-- wp:latest-posts {"displayPostContent":true} /--><!-- wp:query {"query":{"postType":"post"}} --><!-- wp:post-template --><!-- wp:post-title /--><!-- wp:post-excerpt /--><!-- /wp:post-template --><!-- /wp:query -->',
    );
    expect(html).toContain("&#91;danger id=1]");
    expect(html).not.toContain("RAN");
    expect(run).not.toContain("1");
  });

  it.each([
    "<!-- wp:search --><div><div><!-- /wp:search --></div></div>after",
    '<a href="https://example.org/"><!-- wp:search --></a><!-- /wp:search -->after',
    "[gallery x='<div><div>']</div></div>after",
  ])("leaves no tag open or closed that is not its own: %s", async (content) => {
    const { write } = pagesOf(contentSite());
    const { content: written } = await write("posts", { title: "t", content }, "author");
    const count = (pattern: RegExp): number => written.rendered.match(pattern)?.length ?? 0;
    for (const name of ["div", "a"])
      expect(count(new RegExp(`<${name}[ >]`, "g"))).toBe(count(new RegExp(`</${name}>`, "g")));
  });
});

describe("a calendar", () => {
  const calendar = (attributes: JsonObject = {}): string =>
    `<!-- wp:calendar ${JSON.stringify(attributes)} /-->`;

  it("shows the month of the newest post, with links to its days and the months around", async () => {
    const { call, write, show } = pagesOf(contentSite({ settings: { writable: ["start_of_week"] } }));
    for (const date of ["2021-02-28T10:00:00", "2021-02-28T11:00:00", "2020-12-01T00:00:00"])
      await write("posts", { title: "p", date });
    const html = await show(calendar(), { date: "2021-02-01T00:00:00" });
    expect(html).toContain("<caption>February 2021</caption>");
    expect(html).toContain('<th scope="col" aria-label="Monday">M</th>');
    expect(html.match(/<td>|<td class|<td colspan/g)).toHaveLength(28);
    expect(html.match(/<tr>/g)).toHaveLength(5);
    expect(html).toContain(
      '<a href="http://localhost/2021/02/28/" aria-label="Posts published on February 28, 2021">28</a>',
    );
    expect(html).toContain('<a href="http://localhost/2020/12/">&laquo; Dec</a>');
    expect(html).toContain('<span class="wp-calendar-nav-next">&nbsp;</span>');
    const december = await show(calendar({ month: 12, year: 2020 }), { date: "2020-12-31T00:00:00" });
    expect(december).toContain('<a href="http://localhost/2021/02/">Feb &raquo;</a>');
    expect(december).toContain('<tr>\n\t\t<td colspan="1" class="pad">&nbsp;</td><td>');
    expect(december).toContain('<td class="pad" colspan="3">&nbsp;</td>');
    await call("POST /settings", { as: "administrator", body: { start_of_week: 0 } });
    expect(await show(calendar({ month: 12, year: 2020 }))).toContain('<td colspan="2" class="pad">');
  });

  it.each([{ month: 13, year: 2020 }, { month: "1", year: 2020 }, { month: 1, year: 1e9 }, { month: 1 }])(
    "ignores the month of %j",
    async (attributes) => {
      const { show } = pagesOf(contentSite());
      expect(await show(calendar(attributes), { date: "2021-02-01T00:00:00" })).toContain("February 2021");
    },
  );

  it("is empty without a published post", async () => {
    const { show } = pagesOf(contentSite());
    expect(await show(calendar(), { status: "draft" })).toBe("");
  });
});

describe("the contents of one response", () => {
  const list = '<!-- wp:latest-posts {"postsToShow":100} /-->';

  it("show 5000 other records together, and are cached whole once they are read alone", async () => {
    const { call, write, read } = pagesOf(contentSite());
    for (let at = 0; at < 100; at += 1) await write("posts", { title: "p", content: "a" });
    for (let at = 0; at < 5; at += 1) await write("posts", { title: "l", content: list.repeat(20) });
    const count = (html: string): number => html.match(/<li>/g)?.length ?? 0;
    const { body } = await call("GET /posts", { query: { per_page: 5 } });
    const shown = body.map(({ content }: { content: { rendered: string } }) => count(content.rendered));
    expect(shown).toEqual([2_000, 2_000, 500, 0, 0]);
    for (const [at, { id }] of body.entries()) expect(count(await read(id)), at).toBe(2_000);
    const again = await call("GET /posts", { query: { per_page: 5, context: "view" } });
    expect(
      again.body.map(({ content }: { content: { rendered: string } }) => count(content.rendered)),
    ).toEqual(Array(5).fill(2_000));
  });

  it("let other requests run before each of their lists", async () => {
    const { call, write } = pagesOf(contentSite());
    for (let at = 0; at < 5; at += 1) await write("posts", { title: "l", content: list.repeat(20) });
    await write("posts", { title: "changed" });
    expect(await countTurns(() => call("GET /posts"))).toBeGreaterThanOrEqual(100);
  });

  it("count a search in a query as 250 records", async () => {
    const { show } = pagesOf(contentSite());
    const query =
      '<!-- wp:query {"query":{"search":"t"}} --><!-- wp:post-template -->x<!-- /wp:post-template --><!-- /wp:query -->';
    expect((await show(query.repeat(20), { title: "t" })).match(/<ul/g)?.length).toBe(19);
  });
});
