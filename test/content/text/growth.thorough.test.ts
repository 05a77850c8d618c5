import { describe, expect, it } from "vitest";
import { createProviderTable } from "../../../src/content/embeds/providers.js";
import { readForeign, sandboxEmbed } from "../../../src/content/embeds/safe.js";
import { titleFromFileName, toBaseName } from "../../../src/content/media/file-name.js";
import { createSearchMatch, parseSearch } from "../../../src/content/query/search.js";
import { splitBlocks } from "../../../src/content/text/blocks.js";
import { parseDate } from "../../../src/content/text/dates.js";
import { makeExcerpt } from "../../../src/content/text/excerpt.js";
import { cleanClasses, stripAll, stripTags, tokenise } from "../../../src/content/text/markup.js";
import { fold } from "../../../src/content/text/normalise.js";
import { paragraphs } from "../../../src/content/text/paragraphs.js";
import { renderContent } from "../../../src/content/text/render.js";
import { sanitiseHtml, sanitiseTitle } from "../../../src/content/text/sanitise-html.js";
import { toSlug } from "../../../src/content/text/slug.js";
import { cleanStyle } from "../../../src/content/text/style-attribute.js";
import { texturise } from "../../../src/content/text/typography.js";
import { cleanUrl, isSafeUrl, isScriptUrl } from "../../../src/content/text/urls.js";
import { escapeXml } from "../../../src/content/wxr/export.js";
import { termSlugKey } from "../../../src/content/wxr/identity.js";
import { unserializePhp } from "../../../src/content/wxr/php-serialize.js";
import { readFileName, readParameters } from "../../../src/http/content-disposition.js";
import { checkFormat, cleanUri } from "../../../src/schema/formats.js";
import { growthOf, isLinear } from "../../support/growth.js";

/** Texts that grow: a part that is repeated, with a beginning and an end around it. */
const SHAPES: readonly (readonly [part: string, before?: string, after?: string])[] = [
  ...([
    "<",
    "< ",
    "<a",
    "<a ",
    "<b>",
    "<b></b>",
    "<br>",
    "</b>",
    "</p>",
    "</ ",
    "<p>",
    "<table><tr><td>",
  ] as const),
  ...([
    "<!--",
    "<!---->",
    "<!-- wp:",
    "<!-- wp:a /-->",
    "<!--more ",
    "<script>",
    "<script></style>",
  ] as const),
  ...([
    "&",
    "&#",
    "&amp;",
    "&#58;",
    ">",
    "\u00a0",
    "'\"",
    "-",
    "...",
    "\n",
    "a\n\n",
    " ",
    "\t\u00a0",
  ] as const),
  ...([
    "[gallery",
    "[gallery ",
    "[caption]x[/caption]",
    "%41",
    "%%%4141",
    "%C3%A9",
    "é",
    "\ufdfa",
    "Σ'",
    "\ufdd00\ufdd1",
  ] as const),
  ...(["a", ".", "a.", "/", "../", "-a ", ",", '"a" ', "\ud83d\ude00", "\ud800"] as const),
].map((part) => [part]);

const SURROUNDED: typeof SHAPES = [
  ["a", "<"],
  ["/", "http://example.org/", "a"],
  ["\u0315\u0316", "a"],
  ["\u0315\uff9e", "a"],
  [" ", '<p style="background:url(', 'a">'],
  [" ", "background:url(", "a"],
  ["calc(", '<p style="width:', '">'],
  ["color:red;", '<p style="', '">'],
  ["calc(", "width:"],
  [" ", "<br"],
  [" ", "<!-- wp:a ", "-->"],
  ['"<",', '<!-- wp:a {"a":[', '""]} /-->'],
  ["&colon;", '<a href="', '">'],
  ["</x><i></i>", "<b>".repeat(400)],
  ["&lt;", '<a title="', '">'],
  [" ", "a", "b"],
  ["\n ", "a", "b"],
  ["i:0;", "a:9999999:{"],
  ["a-", "a@"],
  ["9", "2026-01-01T00:00:00."],
];

const fill = (n: number, [part, before = "", after = ""]: (typeof SHAPES)[number]): string =>
  before + part.repeat(Math.ceil(n / part.length)) + after;

const TEXTS = [...SHAPES, ...SURROUNDED];

const FUNCTIONS: { readonly [name: string]: (text: string) => unknown } = {
  sanitiseHtml,
  sanitiseTitle,
  tokenise: (text) => [...tokenise(text)],
  stripTags,
  stripAll,
  cleanClasses: (text) => cleanClasses([text]),
  paragraphs,
  texturise,
  splitBlocks,
  makeExcerpt: (text) => makeExcerpt(text),
  renderContent: (text) => renderContent(text, { isTrusted: true }),
  slugOf: toSlug,
  fold,
  parseSearch,
  matchOf: (text) => {
    const part = text.slice(0, text.length / 2);
    const asked = { text: `"${part}b${part}"`, columns: [], isExact: false };
    const match = createSearchMatch(asked, { hasFiles: true, isRanked: true });
    const found = { content: text + text, excerpt: text, file: text };
    return [match.byText(fold(text), found), match.rank(fold(text), found)];
  },
  cleanStyle,
  cleanUrl,
  isSafeUrl,
  isScriptUrl,
  parseDate,
  baseNameOf: toBaseName,
  titleOf: titleFromFileName,
  readParameters,
  fileNameOf: (text) => readFileName(`attachment; filename="${text}"`),
  unserializePhp,
  escapeXml,
  termSlugOf: (text) => termSlugKey({ slug: "", name: text }),
  cleanUri,
  checkFormat: (text) =>
    (["date-time", "email", "ip", "uuid", "hex-color"] as const).map((format) =>
      checkFormat(text, format, "a"),
    ),
  safeEmbed: (text) =>
    sandboxEmbed(
      { type: "rich", title: text, author_name: text, html: `<blockquote>${text}</blockquote>`, width: text },
      {
        page: "https://example.org/",
        ...{ maxWidth: 600, maxHeight: undefined, isKnown: true },
        ...{ isAllowed: () => false, isOwn: () => false },
      },
    ),
  readForeign: (text) => readForeign(Buffer.from(`<oembed><title>${text}</title></oembed>`), "text/xml"),
  createProviderTable: (text) =>
    createProviderTable([{ pages: ["https://example.org/*a*a*a*a*b"], endpoint: "e" }])(
      new URL(`https://example.org/${encodeURIComponent(Buffer.from(text).toString())}`),
    ),
};

describe("growthOf", () => {
  // Cubic, since what else runs on the machine may make quadratic work look linear once.
  it("tells steep work from linear work", () => {
    const make = (n: number): string => "/".repeat(n);
    expect(isLinear(growthOf(200, make, (text) => /\/+\/+$/.test(`${text}a`)))).toBe(false);
    expect(isLinear(growthOf(2_000, make, (text) => text.replaceAll("/", "a")))).toBe(true);
  });

  it("finds steep work that takes next to no time at first", () => {
    const spend = (count: number): void => {
      let sum = 0;
      for (let at = 0; at < count; at++) sum = (sum * 31 + at) % 1_000_003;
      expect(sum).toBeGreaterThanOrEqual(0);
    };
    const work = (n: number): void => spend((n / 100) ** 3);
    expect(isLinear(growthOf(2_000, (n) => n, work))).toBe(false);
  });
});

/** Where texts of this length take too little time to be judged, `growthOf` tries longer ones. */
const LENGTH = 5_000;

describe.each(Object.entries(FUNCTIONS))("the time of %s", (_name, work) => {
  it("grows with the length of hostile texts", () => {
    const tooSlow = TEXTS.flatMap((shape) => {
      const growth = growthOf(LENGTH, (n) => fill(n, shape), work);
      return isLinear(growth) ? [] : [{ shape, growth }];
    });
    expect(tooSlow).toEqual([]);
  }, 120_000);
});
