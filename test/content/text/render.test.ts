import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hasBlocks, renderBlocks, splitBlocks } from "../../../src/content/text/blocks.js";
import { makeExcerpt } from "../../../src/content/text/excerpt.js";
import { renderContent, renderExcerpt, renderTitle } from "../../../src/content/text/render.js";
import { expectLinear } from "../../support/cpu-time.js";

const trusted = { isTrusted: true };
const untrusted = { isTrusted: false };

describe("a rendered title", () => {
  it.each([
    [
      `w "quotes" & 'single' -- dash ... <em>em</em>`,
      "w &#8220;quotes&#8221; &#038; &#8216;single&#8217; &#8212; dash &#8230; <em>em</em>",
    ],
    ['w <b>bold</b> & "q"', "w <b>bold</b> &#038; &#8220;q&#8221;"],
    ["plain", "plain"],
    ["", ""],
    ["it's the '90s, don't", "it&#8217;s the &#8217;90s, don&#8217;t"],
    ["rock 'n' roll", "rock &#8216;n&#8217; roll"],
    [
      "'tis 'twas 'twere 'twill 'til 'bout 'cause 'em 'nuff 'round 'tain't",
      "&#8217;tis &#8217;twas &#8217;twere &#8217;twill &#8217;til &#8217;bout &#8217;cause &#8217;em &#8217;nuff &#8217;round &#8217;tain&#8217;t",
    ],
    ["'Tis 'TIL a'til 'emu'", "&#8216;Tis &#8216;TIL a&#8217;til &#8217;emu&#8217;"],
    [
      "'42' '99\" '99.5' '99% '999'",
      "&#8217;42&#8217; &#8217;99&#8221; &#8216;99.5&#8217; &#8216;99% &#8216;999&#8217;",
    ],
    ["'a '99 b'", "&#8216;a &#8217;99 b&#8217;"],
    ["'80s-'90s, '60s rock", "&#8217;80s-&#8217;90s, &#8217;60s rock"],
    [`6' 2" tall and 15"`, "6&#8242; 2&#8243; tall and 15&#8243;"],
    [`"I was 9"`, "&#8220;I was 9&#8221;"],
    [`("x") ['y']`, "(&#8220;x&#8221;) [&#8216;y&#8217;]"],
    ["a - b -- c --- d a--b a-b", "a &#8211; b &#8212; c &#8212; d a&#8211;b a-b"],
    ["xn--abc", "xn--abc"],
    ["``a'' (tm) b (tm)", "&#8220;a&#8221; &#8482; b &#8482;"],
    ["AT&amp;T &#038; &nbsp; & &copy &;", "AT&amp;T &#038; &nbsp; &#038; &#038;copy &#038;;"],
    ['<a href="?a=1&b=2" title="it\'s -- ...">x</a>', '<a href="?a=1&#038;b=2" title="it\'s -- ...">x</a>'],
    [`<code>"a" -- b</code> "c"`, `<code>"a" -- b</code> &#8220;c&#8221;`],
    ["日本語 😀", "日本語 😀"],
    ['""', "&#8220;&#8221;"],
    ['"" and "a"', "&#8220;&#8221; and &#8220;a&#8221;"],
    ["9x9, 1.5x2.", "9&#215;9, 1.5&#215;2."],
    ["9x9x9 0x12 a9x9 9x9b é9x9 x9 9x 3 x 4", "9x9x9 0x12 a9x9 9x9b é9x9 x9 9x 3 x 4"],
    [`${"9".repeat(30)}x9 9x${"9".repeat(30)}`, `${"9".repeat(30)}x9 9x${"9".repeat(30)}`],
    [":) stays", ":) stays"],
    ["\n a\u00a0\u2028\0", "a\u00a0\u2028"],
  ])("%s", (raw, rendered) => {
    expect(renderTitle(raw, trusted)).toBe(rendered);
  });

  it("is sanitised unless its author is trusted", () => {
    expect(renderTitle('<i onclick="x">a</i><script>"b"</script>', untrusted)).toBe(
      "<i>a</i>&#8220;b&#8221;",
    );
    expect(renderTitle("<script>1</script>", trusted)).toBe("<script>1</script>");
  });

  it("is the same wherever the steps on a long text divide it", () => {
    const signs = " (tm) ... &amp; -- \"q\" ``z'' &#8230; it's ---";
    const render = (text: string): string => renderTitle(text, { isTrusted: true });
    for (let length = 16_320; length <= 16_400; length += 1) {
      const long = render("x".repeat(length) + signs + "y".repeat(20_000));
      expect(long.replace(/x+/, "x").replace(/y+/, "y")).toBe(render(`x${signs}y`));
    }
  });
});

describe("rendered content without blocks", () => {
  it.each([
    [
      "Line one\n\nLine two <strong>bold</strong>",
      "<p>Line one</p>\n<p>Line two <strong>bold</strong></p>\n",
    ],
    [
      '<h2>Head</h2>\n<ul>\n<li>One</li>\n</ul>\nText with "quotes" and a line\nbreak.',
      "<h2>Head</h2>\n<ul>\n<li>One</li>\n</ul>\n<p>Text with &#8220;quotes&#8221; and a line<br />\nbreak.</p>\n",
    ],
    ["body", "<p>body</p>\n"],
    ["", ""],
    [" \n\n ", ""],
    ["a\r\n\r\nb\rc", "<p>a</p>\n<p>b<br />\nc</p>\n"],
    ["a<br>b<br />\nc<br><br>d", "<p>a<br />b<br />\nc</p>\n<p>d</p>\n"],
    ["<p>own</p>\n\n<p>para\ngraphs</p>", "<p>own</p>\n<p>para<br />\ngraphs</p>\n"],
    ["<p>two\n\nin one</p>", "<p>two</p>\n<p>in one</p>\n"],
    ["<div>text</div>after", "<div>text</div>\n<p>after</p>\n"],
    ["<div>a\n\nb</div>", "<div>a</p>\n<p>b</p></div>\n"],
    ["<blockquote>q</blockquote>", "<blockquote><p>q</p></blockquote>\n"],
    ["<blockquote>q<p>r</p>s</blockquote>", "<blockquote><p>q</p>\n<p>r</p>\n<p>s</p></blockquote>\n"],
    ["<div>\n\na\n</div>", "<div>\n<p>a\n</p></div>\n"],
    ["<div>a\n\n</div>", "<div>a</p>\n</div>\n"],
    ["<BR/>a<br class=x>b", "<p><BR/>a<br class=x>b</p>\n"],
    ["<ol>\n  <li>a</li>\n\n  <li>b</li>\n</ol>", "<ol>\n<li>a</li>\n<li>b</li>\n</ol>\n"],
    [
      "<figure>\n<img src=x>\n<figcaption>\nc\n</figcaption>\n</figure>\nd",
      "<figure>\n<img src=x><figcaption>\nc<br />\n</figcaption></figure>\n<p>d</p>\n",
    ],
    [
      "<video>\n<source src=a>\nnot\nshown\n</video>\nb",
      "<p><video><source src=a>not<br />\nshown</video><br />\nb</p>\n",
    ],
    [
      "<object>\n<object>\n<param>\n</object>\n</object>\na\nb",
      "<p><object><object><param></object></object><br />\na<br />\nb</p>\n",
    ],
    ["<svg\n/>\na\nb", "<p><svg\n/><br />\na<br />\nb</p>\n"],
    [
      "<select>\n<option>a\n<p>b\nc</p>\nd\ne",
      "<p><select><option>a</p>\n<p>b<br />\nc</p>\n<p>d<br />\ne</p>\n",
    ],
    ["</svg>\na\n</math>\nb", "<p></svg><br />\na<br />\n</math><br />\nb</p>\n"],
    ['<pre>a\n\n  b -- "c"\n</pre>\nx', '<pre>a\n\n  b -- "c"\n</pre>\n<p>x</p>\n'],
    ["a <em\nclass='x'>b</em>", "<p>a <em\nclass='x'>b</em></p>\n"],
    ["<script>\nif (a && b)\n\n  c--\n</script>", "<p><script>\nif (a && b)\n\n  c--\n</script></p>\n"],
    ["a<hr>b", "<p>a</p>\n<hr>\n<p>b</p>\n"],
    ["one<!--more-->two", "<p>one<!--more-->two</p>\n"],
    ["<table>\n<tr>\n<td>1</td>\n</tr>\n</table>", "<table>\n<tr>\n<td>1</td>\n</tr>\n</table>\n"],
    ["<p>a<div>b</div>c", "<p>a</p>\n<div>b</div>\n<p>c</p>\n"],
    ["a </div> b <b>c", "<p>a </p></div>\n<p> b <b>c</p>\n"],
    ["<footer>\na\n</footer>", "<footer>\na<br />\n</footer>\n"],
    ["<li>\na\n</li>", "<li>\na\n</li>\n"],
    ["<li>a\n\n<li>b", "<li>a\n<li>b<br />\n"],
    [
      "<picture>\n<source srcset=a>\n<img src=b>\n</picture>",
      "<picture><source srcset=a><img src=b>\n</picture>\n",
    ],
    ["a\n<style>\nb {}\n</style>\nc", "<p>a</p>\n<style>\nb {}\n</style>\n<p>c</p>\n"],
    ["<textarea>\na\nb</textarea>", "<p><textarea><br />\na<br />\nb</textarea></p>\n"],
    ["<textarea>a<div>b</div></textarea>", "<p><textarea>a<div>b</div></textarea></p>\n"],
    [
      "<svg>\n\n<style>\n\na {}</style>\n</svg>\nb",
      "<p><svg>\n\n<style>\n\na {}</style>\n</svg><br />\nb</p>\n",
    ],
    ["<p>a\n</p>", "<p>a</p>\n"],
    ["<p></p>\n\na\n\n<p> </p>b", "</p>\n<p>a</p>\n<p>b</p>\n"],
    ["a<br /> \n<br>b<br />\n", "<p>a</p>\n<p>b</p>\n"],
    ["a<br /> \nb", "<p>a<br /> <br />\nb</p>\n"],
    ["<blockquote>a\n\nb</blockquote>", "<blockquote><p>a</p>\n<p>b</p></blockquote>\n"],
    ["<DIV>a</DIV>", "<p><DIV>a</DIV></p>\n"],
  ])("%j", (raw, rendered) => {
    expect(renderContent(raw, trusted)).toBe(rendered);
  });

  it.each([
    [":) ;-) :cool: :???: :!:", "🙂 😉 😎 😕 ❗"],
    ["a\n:D\nb", "a<br />\n😀<br />\nb"],
    ["x:) :)y (see 8) :)) :constructor: :mrgreen: ::", "x:) :)y (see 8) :)) :constructor: :mrgreen: ::"],
    ["<code>:)</code> <i title=' :) '>:)</i>", "<code>:)</code> <i title=' :) '>🙂</i>"],
  ])("has smilies as emoji, unless they are switched off: %s", (raw, shown) => {
    expect(renderContent(raw, trusted)).toBe(`<p>${shown}</p>\n`);
    expect(renderExcerpt(raw, trusted)).toBe(`<p>${shown}</p>\n`);
    expect(renderContent(raw, { ...trusted, smilies: false })).toBe(
      `<p>${raw.replaceAll("\n", "<br />\n")}</p>\n`,
    );
  });

  it.each([
    ["paragraph", "<p>a</p><p>b</p>", '<p class="wp-block-paragraph">a</p><p>b</p>'],
    ["paragraph", '<p class="has-x">a</p>', '<p class="has-x wp-block-paragraph">a</p>'],
    ["paragraph", "<P CLASS=x>a</P>", '<P class="x wp-block-paragraph">a</P>'],
    ["paragraph", '<p class="wp-block-paragraph">a</p>', '<p class="wp-block-paragraph">a</p>'],
    ["paragraph", "no element", "no element"],
    ["heading", "\n<h2>a</h2>\n", '\n<h2 class="wp-block-heading">a</h2>\n'],
    [
      "list",
      "<ul><!-- wp:list-item --><li>a</li><!-- /wp:list-item --></ul>",
      '<ul class="wp-block-list"><li>a</li></ul>',
    ],
    ["group", "<div><p>a</p></div>", "<div><p>a</p></div>"],
    ["my/paragraph", "<p>a</p>", "<p>a</p>"],
  ])("has WordPress's class in the first element of a %s: %s", (name, html, rendered) => {
    expect(renderContent(`<!-- wp:${name} -->${html}<!-- /wp:${name} -->`, trusted)).toBe(rendered);
  });

  it("is sanitised unless its author is trusted", () => {
    const raw = '<p onclick="a()">ok</p><script>bad()</script><iframe src="https://example.org/"></iframe>';
    expect(renderContent(raw, untrusted)).toBe("<p>ok</p>\n<p>bad()</p>\n");
    expect(renderContent(raw, trusted)).toContain("<iframe");
  });
});

describe("rendered content with blocks", () => {
  it("is what the blocks hold, with no paragraphs made", () => {
    expect(
      renderContent(
        '<!-- wp:group {"a":1} -->\n<div>a\n\n"b"<!-- wp:x /--></div>\n<!-- /wp:group -->',
        untrusted,
      ),
    ).toBe("\n<div>a\n\n&#8220;b&#8221;</div>\n");
  });

  it("is sanitised unless its author is trusted", () => {
    const raw =
      '<!-- wp:html {"a":"--!><img src=x onerror=1>"} --><img src=x onerror=alert(1)><!-- /wp:html -->';
    expect(renderContent(raw, untrusted)).toBe('<img src="x" />');
  });
});

describe("block delimiters", () => {
  it("are found with their kind, name and attributes", () => {
    const parts = splitBlocks(
      'a<!-- wp:image {"id":1} --><b><!-- /wp:image --><!-- wp:my/x /--><!-- wp:more {"a":"}"} /-->z',
    );
    expect(
      parts.map((part) => (typeof part === "string" ? part : [part.kind, part.name, part.attributes])),
    ).toEqual([
      "a",
      ["open", "core/image", '{"id":1}'],
      "<b>",
      ["close", "core/image", ""],
      ["void", "my/x", ""],
      ["void", "core/more", '{"a":"}"}'],
      "z",
    ]);
  });

  it.each([
    "<!-- wp: x -->",
    "<!--wp:x -->",
    "<!-- wp:x-->",
    "<!-- wp:X -->",
    "<!-- wp:x [1] -->",
    "<!-- wp:x {} y -->",
    "<!-- note -->",
    "<!--more-->",
    "<!-- wp:x ",
  ])("are not %s", (text) => {
    expect(renderBlocks(text)).toBe(text);
  });

  it("are seen by their beginning, as WordPress does", () => {
    expect(hasBlocks("x <!-- wp:paragraph -->")).toBe(true);
    expect(hasBlocks("<!-- note -->")).toBe(false);
  });

  it("give the text back with what is between them", () => {
    const part = fc.constantFrom(
      "<!-- wp:x -->",
      "<!-- /wp:x -->",
      '<!-- wp:x {"a":1} /-->',
      "<!--",
      "-->",
      "text",
      "<!-- wp:",
      "{",
      "}",
      " ",
    );
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 30 }).map((parts) => parts.join("")),
        (raw) => {
          const whole = splitBlocks(raw).map((found) => (typeof found === "string" ? found : found.text));
          expect(whole.join("")).toBe(raw);
        },
      ),
    );
  });
});

describe("an excerpt", () => {
  it("that was written is rendered in paragraphs", () => {
    expect(renderExcerpt("own words here that count more than three", trusted)).toBe(
      "<p>own words here that count more than three</p>\n",
    );
    expect(renderExcerpt("", trusted)).toBe("");
    expect(renderExcerpt("<b>bold</b><script>x</script>", untrusted)).toBe("<p><b>bold</b>x</p>\n");
  });

  const made = (content: string, words?: number): string =>
    renderExcerpt(makeExcerpt(content, words), untrusted);

  it.each([
    ["auto excerpt words w", "<p>auto excerpt words w</p>\n"],
    [
      '<h2>Head</h2>\n<ul>\n<li>One</li>\n</ul>\nText with "quotes" and a line\nbreak.',
      "<p>Head One Text with &#8220;quotes&#8221; and a line break.</p>\n",
    ],
    ["Teaser text<!--more-->the rest", "<p>Teaser text</p>\n"],
    ["Teaser text<!--more Read on-->the rest", "<p>Teaser text</p>\n"],
    ["Page one<!--nextpage-->page two", "<p>Page one</p>\n"],
    ["", ""],
    ["<h2>A</h2><p>B<br>C</p>", "<p>A B C</p>\n"],
    ["a<style>p{}</style><script>x</script> b <i>c</i>d", "<p>a b cd</p>\n"],
    ["5 < 6 & 7", "<p>5 &lt; 6 &amp; 7</p>\n"],
    ['x [gallery ids="1,2"] y [caption id="a"]<img src="a"> c[/caption] z [other]', "<p>x y z [other]</p>\n"],
    [
      "<!-- wp:heading --><h2>Head</h2><!-- /wp:heading --><!-- wp:button --><a>Press</a><!-- /wp:button -->" +
        "<!-- wp:group --><div><!-- wp:paragraph --><p>Text</p><!-- /wp:paragraph --></div><!-- /wp:group -->",
      "<p>Head Text</p>\n",
    ],
  ])("is made of %j", (content, rendered) => {
    expect(made(content)).toBe(rendered);
  });

  it("has as many words as asked for, 55 by default", () => {
    const words = (count: number): string => Array.from({ length: count }, (_, n) => `w${n}`).join(" ");
    expect(made(words(70))).toBe(`<p>${words(55)} [&hellip;]</p>\n`);
    expect(renderExcerpt(makeExcerpt(words(70)), trusted)).toBe(`<p>${words(55)} [&hellip;]</p>\n`);
    expect(makeExcerpt(words(70), 5)).toBe(`${words(5)} [&hellip;]`);
    expect(makeExcerpt(words(55))).toBe(words(55));
    expect(makeExcerpt(words(3), 0).trim()).toBe("[&hellip;]");
    expect(makeExcerpt(words(3), -1).trim()).toBe("[&hellip;]");
  });

  it("never holds markup", () => {
    const part = fc.constantFrom(
      "<",
      ">",
      "<b",
      "</",
      "<!--",
      "-->",
      "<!--more-->",
      "<script>",
      "</script>",
      "[caption]",
      "[/caption]",
      "<!-- wp:x -->",
      "a ",
      '"',
    );
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 30 }).map((parts) => parts.join("")),
        (content) => {
          expect(makeExcerpt(content)).not.toContain("<");
        },
      ),
      { numRuns: 1000 },
    );
  });
});

describe("what is rendered for somebody who is not trusted", () => {
  const alphabet = fc.constantFrom(
    ...[
      "<p>",
      "</p>",
      "<b>",
      "</b>",
      "<div>",
      "</div>",
      "<pre>",
      "</pre>",
      "<code>",
      "<a href=",
      "javascript:x",
      "<img src=x onerror=x>",
    ],
    ...[
      "<script>",
      "</script>",
      '"',
      "'",
      " ",
      "\n",
      "\n\n",
      "--",
      "...",
      "&",
      "<",
      ">",
      "x",
      "1",
      "<!-- wp:x -->",
      '<!-- wp:x {"a":"',
    ],
    ...[
      '"} -->',
      "<!--",
      "-->",
      "<!--more-->",
      "<hr>",
      "<ul><li>",
      "&lt;",
      "title=",
      "onclick=",
      "/",
      "=",
      "\ufdd0",
      "\ufdd2",
      "<br>",
    ],
  );

  it("has no tag but harmless ones, and never loses to a typographic sign", () => {
    fc.assert(
      fc.property(
        fc.array(alphabet, { maxLength: 40 }).map((parts) => parts.join("")),
        (raw) => {
          for (const render of [renderTitle, renderContent, renderExcerpt]) {
            const rest = render(raw, untrusted)
              .replace(/<!--[^<>]*-->/g, "")
              .replace(/<\/?(?:p|b|div|pre|code|ul|li)>|<(?:br|hr)(?: \/)?>|<img src="[^"<>]*" \/>/g, "")
              .replace(/<a(?: href(?:="(?!javascript)[^"<>]*")?)?(?: title(?:="[^"<>]*")?)?>|<\/a>/g, "");
            expect(rest).not.toContain("<");
          }
        },
      ),
      { numRuns: 2000 },
    );
  });

  const repeated =
    (text: string, before = "", after = "") =>
    (size: number): string =>
      before + text.repeat(Math.floor(size / text.length)) + after;

  it.each<[string, (size: number) => string]>([
    ["quotes", repeated(`"a" 'b' -- `)],
    ["dashes", repeated("-")],
    ["blanks", repeated(" ", "a", "b")],
    ["line ends", repeated("\n ", "a", "b")],
    ["line breaks", repeated("<br> ")],
    ["open elements", repeated("<div><p>")],
    ["closing elements", (size) => "<div>".repeat(size / 5) + repeated("</p></li>")(size)],
    ["preformatted text", repeated("<pre>")],
    ["comments", repeated("<!--")],
    ["angle brackets", repeated("<a")],
    ["short codes", repeated("[gallery]")],
    ["short codes that do not end", repeated("[gallery ")],
    ["brackets", repeated("[")],
    ["escaped short codes", repeated("[[gallery]")],
    ["nested short codes", repeated("[caption][video x=1][audio]")],
    ["short codes with closing tags elsewhere", repeated("[caption]", "", "[/video]")],
    ["attributes that do not end", repeated(' a="', "[gallery", "]")],
    ["references", repeated("&#1")],
    ["scripts", repeated("<script>")],
    ["blocks", repeated("<!-- wp:x -->")],
  ])("takes half a megabyte of %s in linear time, trusted or not", async (_, textOf) => {
    await expectLinear(500_000, (size) => {
      const raw = textOf(size);
      renderContent(raw, trusted);
      renderContent(raw, untrusted);
      renderTitle(raw, trusted);
      makeExcerpt(raw);
    });
  });
});

it("puts a paragraph of very many tags together, which no single call could take as arguments", () => {
  const html = renderContent("<link>x".repeat(150_000), trusted);
  expect(html.startsWith("<link>")).toBe(true);
  expect(html.length).toBeGreaterThanOrEqual(7 * 150_000);
});
