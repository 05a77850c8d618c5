import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cleanClasses, stripAll } from "../../../src/content/text/markup.js";
import { sanitiseHtml, sanitiseTitle } from "../../../src/content/text/sanitise-html.js";
import { cleanUrl, isSafeUrl } from "../../../src/content/text/urls.js";
import { expectLinear } from "../../support/cpu-time.js";
import { hostileHtml } from "../../support/hostile-html.js";

/**
 * The only parts of sanitised HTML: text, comments that no browser ends early, tags in lower case
 * with quoted attributes. Every browser parses these in the same way.
 */
const COMMENT = /<!--(?!\s*#)(?:[^<>-]|-(?!-))+-->/y;
const TAG = /<\/?([a-z][a-z0-9]*)((?:\s+[a-z][a-z0-9_:-]*(?:="[^"<>]*"|='[^'<>]*')?)*)\s*\/?>/y;
const FORBIDDEN_TAGS = new Set(
  "script style iframe object embed form input textarea select option svg base link meta template noscript title xmp".split(
    " ",
  ),
);

const LOADS = new Set("href src cite poster longdesc usemap background".split(" "));

function faultsOf(html: string): string[] {
  const faults: string[] = html.includes("\0") ? ["a NUL character"] : [];
  for (let at = html.indexOf("<"); at !== -1; at = html.indexOf("<", at + 1)) {
    COMMENT.lastIndex = TAG.lastIndex = at;
    const comment = COMMENT.exec(html)?.[0];
    const [tag, name = "", attributes = ""] = TAG.exec(html) ?? [];
    if (comment !== undefined) faults.push(...(/--|[<>]/.test(comment.slice(4, -3)) ? [comment] : []));
    else if (tag === undefined || FORBIDDEN_TAGS.has(name)) faults.push(html.slice(at, at + 80));
    else faults.push(...attributeFaults(attributes));
  }
  return faults;
}

const attributeFaults = (attributes: string): string[] =>
  [...attributes.matchAll(/\s([^\s="']+)(?:="([^"]*)"|='([^']*)')?/g)]
    .map(([attribute, key = "", quoted, single]) => ({ attribute, key, value: quoted ?? single ?? "" }))
    .filter(
      ({ key, value }) =>
        /^on|^srcdoc$|^action$|^formaction$|^form$|^srcset$|^xmlns|^xlink|^data-wp-|^actiontype$|^definitionurl$/.test(
          key,
        ) ||
        (LOADS.has(key) && /^\s*(?:javascript|vbscript|data)\s*:/i.test(value)) ||
        (key === "style" &&
          /expression|javascript|behaviou?r|-moz-binding|@import|(?:^|[\s;])position|\/\*|\\/i.test(value)),
    )
    .map(({ attribute }) => attribute);

const expectSafe = (html: string): void => expect(faultsOf(html)).toEqual([]);

/**
 * Returns the attributes that the parser of the block editor may find. It ends a delimiter at a
 * bracket before `-->`, wherever that makes the attributes JSON.
 */
function listEditorBlocks(html: string): string[] {
  return [...html.matchAll(/<!--\s+\/?wp:[a-z][\w/-]*\s+(?=\{)/g)].flatMap(({ index, 0: head }) => {
    const rest = html.slice(index + head.length);
    const ends = [...rest.matchAll(/\}(?=\s+\/?-->)/g)].map((end) => rest.slice(0, end.index + 1));
    return ends.filter((attributes) => {
      try {
        return Boolean(JSON.parse(attributes));
      } catch {
        return false;
      }
    });
  });
}

describe("HTML of an author who may not write free HTML", () => {
  it.each([
    [
      '<p onclick="a()">ok</p><script>bad()</script><iframe src="https://example.org/"></iframe>',
      "<p>ok</p>bad()",
    ],
    ["<b>bold</b><script>x</script>", "<b>bold</b>x"],
    ["Tom & Jerry &amp; &lt;friends&gt;", "Tom &amp; Jerry &amp; &lt;friends&gt;"],
    ["a < b > c", "a &lt; b &gt; c"],
    [
      "&foo; &copy; & &#0; &#xD800; &#x110000; &Copy; &;",
      "&amp;foo; &copy; &amp; &amp;#0; &amp;#xD800; &amp;#x110000; &amp;Copy; &amp;;",
    ],
    ['<i title="&foo;&lt;">a</i>', '<i title="&amp;foo;&lt;">a</i>'],
    ["a > b &copy <b>c</b>", "a &gt; b &amp;copy <b>c</b>"],
    ["<BR><IMG SRC='/a.png' alt=>", '<br /><img src="/a.png" alt="" />'],
    ['<a title="a > b" href=/x>y</a>', '<a title="a &gt; b" href="/x">y</a>'],
    ["<!-- [if IE]>a<![endif] --><!--#exec cmd='x'--><!-- esi:include src='x' -->b", "b"],
    ["<p>a<p>b<ul><li>c<li>d", "<p>a</p><p>b</p><ul><li>c</li><li>d</li></ul>"],
  ])("%s is kept as %s", (raw, kept) => {
    expect(sanitiseHtml(raw)).toBe(kept);
    expectSafe(kept);
  });

  it.each([
    `no markup "at all", it's plain`,
    "a&nbsp;b",
    '<a href="https://example.org/?a=1&amp;b=2" target="_blank" rel="noopener">x</a>',
    '<a href="mailto:a@example.org">m</a> <a href="tel:+123">t</a> <a href="/x">r</a> <a href="#y">f</a>',
    '<img src="https://example.org/a.png" alt="" />',
    '<p class="has-text-align-center" style="text-align:center;color:#fff;--x-y:var(--z)">x</p>',
    '<div style="background-image:url(&quot;https://example.org/a.png&quot;);width:calc(100% - 2rem)">x</div>',
    '<h2 id="h" data-x="1" aria-label="l" lang="de">x</h2><ul><li>a</li></ul>',
    '<table><tbody><tr><td colspan="2">1</td></tr></tbody></table>',
    '<details open><summary>s</summary>text</details><time datetime="2026-01-01">t</time>',
    "&copy; &#8220;x&#8221; &hellip; a\u00a0b &nbsp; &#39; &#x1F600;",
    '<br><br/><br /><hr><p\n  class=\'a "b"\'\tid="c" >x</p>',
    '<a href="/f.zip" class="k" download>f</a><a href="/f.zip" download="name.zip">f</a><p class="">x</p>',
    '<video controls autoplay loop muted playsinline src="/v"><track default kind="subtitles" src="/t" /></video>',
    '<ol reversed start="3"><li value="2">x</li></ol><p hidden tabindex="-1" aria-selected="true">x</p>',
    '<details name="faq" open=""><summary>s</summary></details><search>x</search><data value="1">one</data>',
    '<dialog open closedby="any" autofocus>x</dialog><meter min="0" max="9" low="2" high="8" optimum="5" value="3"></meter>',
    '<progress max="9" value="3"></progress><button popovertarget="p" popovertargetaction="show">x</button>',
    '<button type="button" commandfor="d" command="show-modal" aria-haspopup="dialog">x</button><div popover id="p">x</div>',
    '<math display="block"><msup><mi mathvariant="normal">x</mi><mn>2</mn></msup><mspace width="1em"></mspace></math>',
    "Text <!-- a comment, with - dashes --> text",
    '<p style="color: red; text-align:center;">x</p>',
    '<p style="font-family:Ünïcode, serif;--own_x: 1|2;grid-column-start:[main]">x</p>',
    '<p style="border:1px solid #000;columns:2;fill:red;clip-path:circle(40%);container-type:size">x</p>',
    '<!-- wp:x {"a":"<b>t</b>"} /-->'.replace("<b>t</b>", "\\u003cb class='k'\\u003et\\u003c/b\\u003e a & b"),
    '<!-- wp:math {"latex":"x & y \\u003c z \\u003e \\u002d\\u002d \\u005cfrac \\u0022q\\u0022"} /-->',
    "<!-- wp:paragraph --><p>Block</p><!-- /wp:paragraph -->",
    '<!-- wp:group {"a":{"b":"ü & \\u002d\\u002d"}} --><div class="g"><!-- wp:x -->\n<p>x</p>\n<!-- /wp:x --></div><!-- /wp:group -->',
    '<!-- wp:my-plugin/thing {"id": 12} /-->',
    "Teaser<!--more-->Rest<!--nextpage-->Second<!--more Read on-->",
  ])("%s stays as it is", (raw) => {
    expect(sanitiseHtml(raw)).toBe(raw);
    expectSafe(raw);
  });

  it.each([
    ["a javascript address", '<a href="javascript:alert(1)">x</a>', "<a>x</a>"],
    ["one in references", '<a href="&#106;ava&#x73;cript&colon;alert(1)">x</a>', "<a>x</a>"],
    ["one with blanks in it", '<a href=" java\tscr\nipt:alert(1)">x</a>', "<a>x</a>"],
    ["one with a comment in it", '<a href="java<!-- -->script:alert(1)">x</a>', "<a>x</a>"],
    ["one in references of references", '<a href="javascript&amp;colon;alert(1)">x</a>', "<a>x</a>"],
    ["a data address", '<img src="data:text/html,<script>alert(1)</script>" alt="x">', '<img alt="x" />'],
    [
      "a vbscript poster",
      '<video poster="vbscript:x" src="https://e.org/v"></video>',
      '<video src="https://e.org/v"></video>',
    ],
    ["an unquoted handler", "<img src=x onerror=alert(1)>", '<img src="x" />'],
    ["a handler after a slash", "<svg/onload=alert(1)>", ""],
    ["a handler in capitals", '<B ONCLICK="x">a</B>', "<b>a</b>"],
    ["a split tag", "<scr<script>ipt>alert(1)</scr</script>ipt>", "ipt&gt;alert(1)ipt&gt;"],
    ["an unclosed tag", "<img src=x onerror=alert(1)//", ""],
    [
      "a form",
      '<form action="/x"><input name="a"><button formaction="javascript:x">b</button></form>',
      "<button>b</button>",
    ],
    ["a style sheet", "<style>@import 'x'</style>", "@import 'x'"],
    [
      "a style that runs",
      '<p style="width:expression(alert(1));color:red">x</p>',
      '<p style="color:red">x</p>',
    ],
    ["a style that loads a script", '<p style="background:url(javascript:alert(1))">x</p>', "<p>x</p>"],
    ["a style in escapes", '<p style="color:\\65xpression(1);w/**/idth:1px">x</p>', "<p>x</p>"],
    ["a style with a comment", '<p style="color:r/**/ed">x</p>', "<p>x</p>"],
    ["a style that loads a page", '<p style="background:url(data:text/html;x)">x</p>', "<p>x</p>"],
    ["a style that loads a file", "<p style=\"background:url('file:///x')\">x</p>", "<p>x</p>"],
    ["a style that covers the page", '<p style="position:fixed;top:0;z-index:9">x</p>', "<p>x</p>"],
    ["markup in raw text", "<textarea></textarea><img src=x onerror=alert(1)></textarea>", '<img src="x" />'],
    [
      "markup in foreign text",
      "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
      "<math><mtext><table>&lt;img src=x onerror=alert(1)&gt;</table></mtext></math>",
    ],
    [
      "text that reads as markup",
      '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
      '<p title="&lt;/noscript&gt;&lt;img src=x onerror=alert(1)&gt;"></p>',
    ],
    [
      "a style in math",
      "<math><mi style='color:red;position:fixed'>x</mi></math>",
      '<math><mi style="color:red">x</mi></math>',
    ],
    [
      "a link in math",
      '<math href="javascript:x"><mi xlink:href="javascript:x" xmlns="x">x</mi></math>',
      "<math><mi>x</mi></math>",
    ],
    [
      "an action in math",
      '<math><maction actiontype="statusline" xlink:href="x"><mi>x</mi></maction></math>',
      "<math><mi>x</mi></math>",
    ],
    [
      "foreign markup in math",
      '<math><semantics><annotation-xml encoding="text/html"><style><img src=x onerror=alert(1)></style></annotation-xml></semantics></math>',
      "<math><semantics>&lt;img src=x onerror=alert(1)&gt;</semantics></math>",
    ],
    [
      "glyphs that change the parser",
      "<math><mtext><mglyph><malignmark><mi>x</mi></mtext></math>",
      "<math><mtext><mi>x</mi></mtext></math>",
    ],
    [
      "CDATA in math",
      "<math><mi><![CDATA[<img src=x onerror=alert(1)>]]></mi></math>",
      "<math><mi></mi></math>",
    ],
    [
      "handlers of new elements",
      "<dialog onclose=x oncancel=x><progress onload=x></progress><meter onfocus=x>m</meter><data onclick=x>d</data>",
      "<dialog><progress></progress><meter>m</meter><data>d</data></dialog>",
    ],
    [
      "handlers of popovers",
      '<div popover ontoggle=x onbeforetoggle=x>p</div><button popovertarget=p formaction="javascript:x" form=f>b</button>',
      '<div popover>p</div><button popovertarget="p">b</button>',
    ],
    [
      "a popover on another element",
      '<p popover>p</p><a popovertarget="x" command="x">a</a>',
      "<p>p</p><a>a</a>",
    ],
    [
      "directives of a script",
      '<p data-wp-bind--href="context.x" data-wp-context="{}" data-a.b="1" data-a="1">x</p>',
      '<p data-a="1">x</p>',
    ],
    [
      "a style that moves over the page",
      '<p style="transform:scale(99);top:0;z-index:9;pointer-events:none;inset:0;color:red">x</p>',
      '<p style="color:red">x</p>',
    ],
    ["an object", '<object data="https://example.org/a.pdf" type="application/pdf">x</object>', "x"],
    ["a tag in the raw text of another", "<title><svg></title><xmp><svg></xmp>", "&lt;svg&gt;&lt;svg&gt;"],
    [
      "what an attribute says the second time",
      '<a href="https://e.org/" href="javascript:alert(1)" title="t" title=\'u\'>x</a>',
      '<a href="https://e.org/" title="t">x</a>',
    ],
    [
      "a style that is given twice",
      '<p style="color:red" style="position:fixed;inset:0">x</p>',
      '<p style="color:red">x</p>',
    ],
    ["a conditional comment", "a<!--[if IE]><script>alert(1)</script><![endif]-->b", "ab"],
    ["a processing instruction", "a<?php echo 1 ?>b<!DOCTYPE html><![CDATA[x]]>", "ab"],
  ])("loses %s", (_, raw, expected) => {
    const sanitised = sanitiseHtml(raw);
    expect(sanitised).toBe(expected);
    expectSafe(sanitised);
  });

  it.each([
    [
      "ends the comment",
      '<!-- wp:x {"a":"--!><img src=x onerror=alert(1)>"} -->',
      '<!-- wp:x {"a":"\\u002d\\u002d!\\u0026gt;\\u003cimg src=\\u0022x\\u0022 /\\u003e"} -->',
    ],
    ["opens a comment", '<!-- wp:x {"a":"<!--"} -->', '<!-- wp:x {"a":""} -->'],
    ["begins a tag at its end", '<!-- wp:x {"a":"b <"} -->', '<!-- wp:x {"a":"b \\u0026lt;"} -->'],
    [
      "holds tags in a name",
      '<!-- wp:x {"<script>a":{"<i>b</i>":1}} /-->',
      '<!-- wp:x {"a":{"\\u003ci\\u003eb\\u003c/i\\u003e":1}} /-->',
    ],
    [
      "has, without them, the name of another",
      '<!-- wp:x {"\\u003cscript\\u003ea\\u003c/script\\u003e":1,"a":2} /-->',
      '<!-- wp:x {"a":2} /-->',
    ],
    [
      "names a tag that runs",
      '<!-- wp:template-part {"slug":"a","tagName":"script"} /-->',
      '<!-- wp:template-part {"slug":"a","tagName":""} /-->',
    ],
    [
      "holds tags",
      '<!-- wp:x {"a":"<b onclick=x>t</b>"} /-->',
      '<!-- wp:x {"a":"\\u003cb\\u003et\\u003c/b\\u003e"} /-->',
    ],
    [
      "holds a script address",
      '<!-- wp:x {"url":"java\\u0073cript:alert(1)","b":["k"]} /-->',
      '<!-- wp:x {"url":"","b":["k"]} /-->',
    ],
    ["holds one with a tab in it", '<!-- wp:x {"a":"java\\tscript:alert(1)"} -->', '<!-- wp:x {"a":""} -->'],
    ["holds one between tags", '<!-- wp:x {"a":"java<b>script:x"} -->', '<!-- wp:x {"a":""} -->'],
    ["holds a page", '<!-- wp:x {"a":"data:text/html,x"} -->', '<!-- wp:x {"a":""} -->'],
    ["only looks like an address", '<!-- wp:x {"a":"Data: 5"} -->', '<!-- wp:x {"a":"Data: 5"} -->'],
    [
      "spells a NUL character",
      '<!-- wp:x {"a":"b\\u0000","c\\u0000":"d"} -->',
      '<!-- wp:x {"a":"b","c":"d"} -->',
    ],
    ["is no JSON", "<!-- wp:core/x {a:1} -->", "<!-- wp:x -->"],
    [
      "names a prototype",
      '<!-- wp:x {"__proto__":{"a":"<i>"}} -->',
      '<!-- wp:x {"__proto__":{"a":"\\u003ci\\u003e\\u003c/i\\u003e"}} -->',
    ],
  ])("makes a block harmless whose attribute %s", (_, raw, expected) => {
    expect(sanitiseHtml(raw)).toBe(expected);
    expectSafe(sanitiseHtml(raw));
    expect(sanitiseHtml(sanitiseHtml(raw))).toBe(sanitiseHtml(raw));
  });

  it("takes a block delimiter in an attribute or in raw text for what a browser takes it for", () => {
    const inAttribute = sanitiseHtml('<a title="<!-- wp:x {"a":" onmouseover=alert(1) "} -->">x</a>');
    expect(inAttribute).toBe('<a title="&lt;!-- wp:x {">"&gt;x</a>');
    expectSafe(inAttribute);
    expect(sanitiseHtml("<script>a<!-- wp:x --></script>")).toBe("a&lt;!-- wp:x --&gt;");
  });

  it.each([
    ["<b>x<i title='", "<b>x</b>"],
    ["<form><p>x<b", "<p>x</p>"],
    ["<b>x</b><!-- y", "<b>x</b>"],
  ])("drops a tag or comment that never ends: %s", (raw, kept) => {
    expect(sanitiseHtml(raw)).toBe(kept);
  });

  it("shows what nests too deep as text, and keeps what nests as deep as allowed", () => {
    const nested = (depth: number): string => `${"<div>".repeat(depth)}x${"</div>".repeat(depth)}`;
    expect(sanitiseHtml(nested(512))).toBe(nested(512));
    expect(sanitiseHtml(nested(513))).toBe(nested(513).replaceAll("<", "&lt;").replaceAll(">", "&gt;"));
  });

  it("keeps an object that shows a PDF file of the site, and no other", () => {
    const uploads = "https://example.org/files";
    const object = (data: string, type = "application/pdf"): string =>
      `<object class="k" data="${data}" type="${type}" style="width:100%" aria-label="l"></object>`;
    for (const data of [`${uploads}/a.pdf`, `${uploads}/2026/01/\u00fc-%20b.pdf`]) {
      expect(sanitiseHtml(object(data), { uploads })).toBe(object(data));
      expect(sanitiseHtml(object(data))).toBe("");
    }
    const outside = [
      ...[
        "https://example.org/a.pdf",
        "https://evil.example/a.pdf",
        `${uploads}/a.html`,
        `${uploads}/a.pdf?x=.pdf`,
      ],
      ...[
        `${uploads}/../a.pdf`,
        `${uploads}/%2E%2e/a.pdf`,
        `${uploads}/a.html#.pdf`,
        `${uploads}\\..\\a.pdf`,
      ],
      ...["javascript:alert(1)//.pdf", "data:text/html,x.pdf", ""],
    ];
    for (const data of outside) expect(sanitiseHtml(object(data), { uploads })).toBe("");
    expect(sanitiseHtml(object(`${uploads}/a.pdf`, "text/html"), { uploads })).toBe("");
    expect(sanitiseHtml(`<object data="${uploads}/a.pdf">x</object>`, { uploads })).toBe("x");
  });

  it("sanitises 200 different strings with tags in block attributes, and takes the tags from further ones", () => {
    const strings = Array.from({ length: 201 }, (_, at) => `<b>${at}</b>`);
    const block = `<!-- wp:x ${JSON.stringify({ a: strings }).replaceAll("<", "\\u003c")} /-->`;
    expect(sanitiseHtml(block).match(/u003cb/g)).toHaveLength(200);
    expect(sanitiseHtml(sanitiseHtml(block))).toBe(sanitiseHtml(block));
  });

  it("is safe for any input, and sanitising it again changes nothing", () => {
    fc.assert(
      fc.property(hostileHtml, (raw) => {
        for (const sanitise of [sanitiseHtml, sanitiseTitle]) {
          const sanitised = sanitise(raw);
          expectSafe(sanitised);
          expect(sanitise(sanitised)).toBe(sanitised);
        }
      }),
      { numRuns: 3000 },
    );
  });

  it("is safe for any string in a block's attributes", () => {
    fc.assert(
      fc.property(hostileHtml, hostileHtml, (name, text) => {
        const json = JSON.stringify({ [name]: text }).replaceAll("--", "\\u002d\\u002d");
        const raw = `<!-- wp:x ${json} /-->`;
        const sanitised = sanitiseHtml(raw);
        expectSafe(sanitised);
        expect(sanitiseHtml(sanitised)).toBe(sanitised);
        const [, kept = "{}"] = /^<!-- wp:x (?:(\{.*\}) )?\/-->$/s.exec(sanitised) ?? [];
        for (const part of Object.entries(JSON.parse(kept)).flat()) {
          expect(faultsOf(String(part).replace(/<(?=[^a-z!?/])/gi, "&lt;"))).toEqual([]);
        }
      }),
      { numRuns: 2000 },
    );
  });

  it.each([
    ["goes on", '<!-- wp:x {"a":"--> \\u003cimg src=x onerror=alert(1)\\u003e","b":"<!-- "} /-->'],
    ["closes a block", '<!-- /wp:x {"a":"--> \\u003cimg src=x onerror=alert(1)\\u003e","b":"<!-- "} -->'],
  ])("keeps no comment that %s after its end for the parser of an editor", (_, raw) => {
    expect(listEditorBlocks(raw)).toHaveLength(1);
    expect(listEditorBlocks(sanitiseHtml(raw))).toEqual([]);
  });

  it("shows editors no other attributes than those it sanitised", () => {
    const piece = fc.constantFrom(
      ...["<!-- wp:x ", "<!-- /wp:x ", "<!--\n", "{", "}", " ", "/", "-->", " -->", '"', ",", ":", "\\"],
      ...['{"a":"', '","b":"', '"} -->', '"} /-->', '"}-->', "a", "<b>", "\\u003cimg src=x onerror=x\\u003e"],
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 14 }), (pieces) => {
        const faults: string[] = [];
        for (const attributes of listEditorBlocks(sanitiseHtml(pieces.join("")))) {
          JSON.parse(attributes, (name, value: unknown) => {
            for (const part of [name, value]) if (typeof part === "string") faults.push(...faultsOf(part));
            return value;
          });
        }
        expect(faults).toEqual([]);
      }),
      { numRuns: 20_000 },
    );
  });

  it("keeps every letter of a text without markup", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        fc.pre(!/[<>&\0\u00a0]/.test(text));
        expect(sanitiseHtml(text)).toBe(text);
      }),
    );
  });

  const repeated =
    (text: string, before = "", after = "") =>
    (size: number): string =>
      before + text.repeat(Math.floor(size / text.length)) + after;

  it.each<[string, (size: number) => string]>([
    ["nested tags", repeated("<div>")],
    ["a long attribute", repeated("x", '<p title="', '">x</p>')],
    ["a long style", repeated("url((", '<p style="', '">x</p>')],
    ["many styles", repeated("color:a(", '<p style="', '">x</p>')],
    ["a style of letters", repeated("a", '<p style="color:', '(">x</p>')],
    ["a long class", repeated("a ", '<p class="', '">x</p>')],
    ["comments in an address", repeated("<!---->", '<a href="', '">x</a>')],
    ["references in an address", repeated("&#1", '<a href="', '">x</a>')],
    ["tags that do not end", repeated("<a ")],
    ["tags in tags", repeated("<a")],
    ["comments that do not end", repeated("<!-- wp:x ")],
    [
      "many attributes",
      (size) => `<a ${Array.from({ length: size / 5 }, (_, n) => `a${n}=1`).join(" ")}>x</a>`,
    ],
    ["closing tags", repeated("</p>")],
    ["closing tags in deep ones", repeated("</b>", "<div>".repeat(500))],
    ["scripts that do not end", repeated("<script>")],
    ["ampersands", repeated("&")],
    ["blocks", repeated('<!-- wp:x {"a":"<b>"} -->')],
    ["a block with many tags", repeated('"<b>",', '<!-- wp:x {"a":[', "0]} -->")],
    ["short comments", repeated("<!--a-->")],
    ["comments of dashes", repeated("- ", "<!-- ", "-->")],
    ["formulas", repeated("<math><mi>x</mi></math>")],
    ["line breaks", repeated("<br>")],
    ["references", repeated("&copy;")],
    ["lone signs in a block", repeated("< & ", '<!-- wp:x {"a":"', '<i>"} -->')],
    ["a block of names", repeated('"<b>":0,', "<!-- wp:x {", '"a":0} -->')],
    ["a block of brackets", repeated("[", '<!-- wp:x {"a":', "} -->")],
    ["a deep block", (size) => `<!-- wp:x {"a":${"[".repeat(size / 5)}"<b>"${"]".repeat(size / 5)}} -->`],
    [
      "paragraphs",
      repeated('<p>Hello <b>world</b> & <a href="https://x.org/">link</a> and more text.</p>\n'),
    ],
  ])("takes half a megabyte of %s in linear time", async (_, textOf) => {
    await expectLinear(500_000, (size) => {
      expect(sanitiseHtml(textOf(size))).not.toMatch(/<script|<!---->/);
    });
  });
});

describe("a title of such an author", () => {
  it.each([
    ["w <script>alert(1)</script>x", "w alert(1)x"],
    ["<em>a</em> <b>b</b> <p>c</p> <img src=x onerror=1>", "<em>a</em> <b>b</b> c "],
    ['<a href="javascript:x" title="t" style="color:red" class="c">a</a>', '<a title="t">a</a>'],
    ["<!-- wp:x -->a<!--more-->", "a"],
    ['Say "hi" & go', 'Say "hi" &amp; go'],
  ])("%s", (raw, kept) => {
    expect(sanitiseTitle(raw)).toBe(kept);
    expectSafe(sanitiseTitle(raw));
  });
});

describe("a field without markup", () => {
  it.each([
    ["An <b>alt</b> text", "An alt text"],
    ["Hover <b>text</b>", "Hover text"],
    ["  a\r\n\tb \0 c\u0007 ", "a b c"],
    ["<script>alert(1)</script>x<style>y</style>", "x"],
    ["5 < 6", "5 &lt; 6"],
    ["a %41 b %4%411 c", "a b c"],
    ["100% sure", "100% sure"],
    ["<<b>script>alert(1)</script>", "&lt;script>alert(1)"],
    ["<img src=x onerror=alert(1)", "&lt;img src=x onerror=alert(1)"],
    ["ü 日本語 😀", "ü 日本語 😀"],
  ])("%j is %j", (raw, text) => {
    expect(stripAll(raw)).toBe(text);
  });

  it("has no tag, octet, line end or control character, and stays as it is the second time", () => {
    const parts = fc.array(
      fc.constantFrom(
        "<",
        ">",
        "b",
        "/",
        "%",
        "4",
        "1",
        " ",
        "\n",
        "\0",
        "<script>",
        "</script>",
        "<!--",
        "-->",
        "é",
        "\ud800",
      ),
      {
        maxLength: 30,
      },
    );
    fc.assert(
      fc.property(
        parts.map((all) => all.join("")),
        (raw) => {
          const text = stripAll(raw);
          expect(text).not.toMatch(/<|%[\da-f]{2}|\p{Cc}|^\s|\s$|\s\s/iu);
          expect(stripAll(text)).toBe(text);
        },
      ),
      { numRuns: 1000 },
    );
  });

  it.each([
    ["percent signs", (size: number) => "%".repeat(size / 2) + "41".repeat(size / 2)],
    ["angle brackets", (size: number) => "<".repeat(size)],
    ["comments", (size: number) => "<!--".repeat(size / 4)],
    ["scripts", (size: number) => "<script>".repeat(size / 8)],
  ])("takes a long one in linear time: %s", async (_, textOf) => {
    await expectLinear(1_000_000, (size) => stripAll(textOf(size)));
  });
});

describe("an address", () => {
  it.each([
    ...[
      "https://example.org/a?b=1&c=2",
      "/relative/path",
      "#anchor",
      "?a=1",
      "mailto:a@example.org",
      "ftp://example.org/x",
    ],
    ...[
      "https://example.org/ü",
      "tel:+49123",
      "//example.org/x",
      "HTTPS://EXAMPLE.org",
      "/a:b",
      "#a:b",
      "index.php?a=1",
    ],
  ])("%s stays", (url) => {
    expect(cleanUrl(url)).toBe(url);
  });

  it.each([
    ...[
      "javascript:alert(1)",
      "JaVaScRiPt:alert(1)",
      " javascript:alert(1)",
      "java\nscript:alert(1)",
      "java\0script:alert(1)",
    ],
    ...[
      "\u0001javascript:alert(1)",
      "java\u00adscript:alert(1)",
      "vbscript:x",
      "data:text/html,x",
      "file:///etc/passwd",
      "javascript&colon;alert(1)",
    ],
    ...[
      "javascript&#58;alert(1)",
      "&#x6a;avascript:x",
      "jav&Tab;ascript:x",
      "\\javascript:alert(1)",
      "<javascript:x",
      "",
      "  ",
      "blob:x",
      "unknown:x",
    ],
  ])("removes %j", (url) => {
    expect(cleanUrl(url)).toBe("");
  });

  it.each([
    ["example.org/x", "http://example.org/x"],
    [" /a b ", "/a%20b"],
    ['/a"onclick="x', "/aonclick=x"],
    ["/\\evil.example", "/evil.example"],
    ["https://example.org/<script>", "https://example.org/script"],
  ])("%j is %j", (url, clean) => {
    expect(cleanUrl(url)).toBe(clean);
  });

  it("is safe whatever it was, and stays as it is the second time", () => {
    const part = fc.constantFrom(
      ...[
        "java",
        "script",
        "javascript",
        ":",
        "&colon;",
        "&#58;",
        "&#x3a",
        "&",
        ";",
        "#",
        "/",
        "?",
        " ",
        "\t",
        "\0",
        "\\",
        "<",
        '"',
        "http",
        "x",
        ".",
        "%",
        "é",
      ],
    );
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 12 }).map((parts) => parts.join("")),
        (raw) => {
          const url = cleanUrl(raw);
          expect(isSafeUrl(url)).toBe(true);
          expect(url).not.toMatch(/^[\s\p{C}]*javascript[\s\p{C}]*:/iu);
          expect(url).not.toMatch(/["<>\\\s]/);
          expect(cleanUrl(url)).toBe(url);
        },
      ),
      { numRuns: 2000 },
    );
  });
});

describe("class names", () => {
  it("are letters, digits, dashes and underscores", () => {
    expect(cleanClasses(["bad class!", "<b>"])).toEqual(["badclass", "b"]);
    expect(cleanClasses(["me", "co-worker", "a_b", '"><x', "%41ü"])).toEqual([
      "me",
      "co-worker",
      "a_b",
      "x",
      "",
    ]);
    expect(cleanClasses([])).toEqual([""]);
  });
});
