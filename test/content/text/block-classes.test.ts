import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addBlockClass } from "../../../src/content/text/blocks.js";
import { sanitiseHtml } from "../../../src/content/text/sanitise-html.js";
import { expectLinear } from "../../support/cpu-time.js";

const paragraph = (html: string): string => addBlockClass("core/paragraph", html);

describe("the class of a block", () => {
  it.each([
    ["<p>a</p>", '<p class="wp-block-paragraph">a</p>'],
    ['<p id="i">a</p>', '<p class="wp-block-paragraph" id="i">a</p>'],
    ['<p id="i" class="x  y">a</p>', '<p id="i" class="x y wp-block-paragraph">a</p>'],
    ["<p class>a</p>", '<p class="wp-block-paragraph">a</p>'],
    ["<p class=''>a</p>", '<p class="wp-block-paragraph">a</p>'],
    ["<p class = x>a</p>", '<p class="x wp-block-paragraph">a</p>'],
    ['<p/class="x"/>a</p>', '<p/class="x wp-block-paragraph"/>a</p>'],
    [`<p class='x"y'>a</p>`, '<p class="x&quot;y wp-block-paragraph">a</p>'],
    ['<p class="a wp-block-paragraph b">a</p>', '<p class="a wp-block-paragraph b">a</p>'],
    ['<p data-class="x">a</p>', '<p class="wp-block-paragraph" data-class="x">a</p>'],
    ['<p title="a>b" class="x">a</p>', '<p title="a>b" class="x wp-block-paragraph">a</p>'],
    [
      '<p title="never closed class=x>a</p>',
      '<p class="wp-block-paragraph" title="never closed class=x>a</p>',
    ],
    ["<!-- <p>no</p> --><p>a</p>", '<!-- <p>no</p> --><p class="wp-block-paragraph">a</p>'],
    ["<pre>a</pre></p>", "<pre>a</pre></p>"],
  ])("goes into the first element of %s", (html, expected) => {
    expect(paragraph(html)).toBe(expected);
  });

  it("is not looked for in the value of another attribute, where it would end that value", () => {
    const html = '<p title="a class=x onmouseover=alert(1) ">b</p>';
    expect(paragraph(html)).toBe(html.replace("<p", '<p class="wp-block-paragraph"'));
  });

  it("leaves sanitised HTML as safe as it was, whatever its attributes hold", () => {
    const part = fc.constantFrom(
      "class=",
      " class=x ",
      " ",
      '"',
      "'",
      "=",
      "/",
      ">",
      "<",
      "onclick=a()",
      "\u00a0",
      "&",
    );
    const value = fc.array(part, { maxLength: 8 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(value, value, fc.constantFrom('"', "'", ""), (title, lang, quote) => {
        const safe = sanitiseHtml(
          `<p title=${quote}${title}${quote} lang="${lang}" class=${quote}k${quote}>t</p>`,
        );
        const rendered = paragraph(safe);
        expect(sanitiseHtml(rendered)).toBe(rendered);
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    ["attributes", "a "],
    ["values that are never closed", 'a="'],
    ["equals signs", " ="],
  ])("is found in linear time among %s", async (_, part) => {
    await expectLinear(1_000_000, (size) => paragraph(`<p ${part.repeat(size / part.length)}>`));
  });
});
