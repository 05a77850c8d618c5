/** Long texts are sanitised in pieces and rendered in steps, with the result of one pass. */

import fc from "fast-check";
import { Parser } from "htmlparser2";
import { describe, expect, it } from "vitest";
import { excerptSteps, makeExcerpt } from "../../../src/content/text/excerpt.js";
import { contentSteps, renderContent } from "../../../src/content/text/render.js";
import { sanitiseHtml, sanitiseSteps } from "../../../src/content/text/sanitise-html.js";
import type { Steps } from "../../../src/core/next-turn.js";
import { HOSTILE_TEXTS } from "../../support/hostile-texts.js";

const uploads = "https://example.org/uploads";

const PARTS = [
  ...["<p>", "</p>", "<b>", "</b>", "<table>", "</table>", "<tr>", "<td>", "<li>", "<br>", "</br>"],
  ...["<x-y>", "</x-y>", "<form>", "</form>", "<svg>", "</svg>", "<math>", "<mi/>", "<mrow/>", "</math>"],
  ...["<mi>", "</mi>"],
  ...['<div class="a">', "<div onclick=a>", "</div>", "<a href=javascript:a>", '<a href="b">', "</a>"],
  ...[`<object type="application/pdf" data="${uploads}/a.pdf">`, "<object>", "</object>"],
  ...["text", " ", "&am", "p;", "&copy;", "&", "<", ">", "\u00a0", "\n\n"],
];

interface Outline {
  readonly text: string;
  readonly names: string;
  readonly depth: number;
}

/** The text, and the names of the allowed elements, as one parser reads them without a pause. */
function outline(html: string): Outline {
  let text = "";
  let names = "";
  let open = 0;
  let depth = 0;
  const parser = new Parser({
    ontext(part) {
      text += part;
    },
    onopentag(name) {
      open += 1;
      depth = Math.max(depth, open);
      // A stray `</p>`, of a paragraph that another one closed, makes an empty paragraph.
      if (/^(?:b|table|tr|td|li|br|math|mi|mrow|div|a)$/.test(name)) names += `${name} `;
    },
    onclosetag() {
      open -= 1;
    },
  });
  parser.end(html);
  return { text, names, depth };
}

/** Several times the parts of one piece, with elements that are open where two pieces meet. */
const longHtml = fc
  .array(fc.constantFrom(...PARTS), { minLength: 20, maxLength: 60 })
  .map((parts) => parts.join("").repeat(60));

describe("a long text", () => {
  it("keeps every element and every letter that one pass keeps", () => {
    fc.assert(
      fc.property(longHtml, (html) => {
        const { text, names, depth } = outline(html);
        fc.pre(depth <= 512);
        const sanitised = sanitiseHtml(html, { uploads });
        const kept = outline(sanitised);
        expect([kept.text === text, kept.names === names]).toEqual([true, true]);
        expect(sanitiseHtml(sanitised, { uploads }) === sanitised).toBe(true);
      }),
      { numRuns: 150 },
    );
  });

  it.each(["<td><tr>", "<p>\n\n", "<b><i></b>", "<table><tr><td>x</table>", "<x-y><p></p></x-y>"])(
    "is not escaped as a whole: %j",
    (part) => {
      const sanitised = sanitiseHtml(part.repeat(3_000));
      expect(sanitised).not.toContain("&lt;");
      expect(sanitiseHtml(sanitised)).toBe(sanitised);
    },
  );

  it("keeps an object of the site that is open over several pieces", () => {
    const html = `<object data="${uploads}/a.pdf" type="application/pdf">${"<b>x</b>".repeat(2_000)}</object>`;
    expect(sanitiseHtml(html, { uploads })).toBe(html);
    expect(sanitiseHtml(html)).toBe("<b>x</b>".repeat(2_000));
  });
});

function countSteps(steps: Steps<unknown>): number {
  let count = 1;
  while (steps.next().done !== true) count += 1;
  return count;
}

const WORK: {
  readonly [name: string]: readonly [(text: string) => Steps<string>, (text: string) => string];
} = {
  sanitising: [(text) => sanitiseSteps(text), (text) => sanitiseHtml(text)],
  "rendering a trusted text": [
    (text) => contentSteps(text, { isTrusted: true }),
    (text) => renderContent(text, { isTrusted: true }),
  ],
  rendering: [
    (text) => contentSteps(text, { isTrusted: false }),
    (text) => renderContent(text, { isTrusted: false }),
  ],
  "making an excerpt": [(text) => excerptSteps(text, 55), (text) => makeExcerpt(text)],
};

describe.each(Object.entries(WORK))("%s", (name, [inSteps, atOnce]) => {
  const TAGS = ["<td><tr>", "<p>\n\n", "<b><i></b>", "<br>", "<p>a", "<img src=a>", '<i class="a">b</i>'];
  const parts = name === "making an excerpt" ? TAGS.slice(0, 4) : TAGS;

  it.each(parts)("takes twice the steps for a text of twice the length: %j", (part) => {
    const fill = (length: number): string => part.repeat(length / part.length);
    const [half, whole] = [countSteps(inSteps(fill(32_768))), countSteps(inSteps(fill(65_536)))];
    expect(half).toBeGreaterThan(3);
    expect(whole).toBeGreaterThan(1.7 * half);
  });

  it.each(Object.keys(HOSTILE_TEXTS))("gives the same result as without a pause: %s", (hostile) => {
    const text = HOSTILE_TEXTS[hostile]?.(20_000) ?? "";
    const steps = inSteps(text);
    let result = steps.next();
    while (result.done !== true) result = steps.next();
    expect(result.value).toBe(atOnce(text));
  });
});
