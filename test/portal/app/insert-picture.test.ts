import { expect, it } from "vitest";
import { insertPicture } from "../../../src/portal/app/content/records.js";
import type { RecordJson } from "../../../src/portal/content-shapes.js";

const picture = { id: 7, source_url: "/a.png?x=1&y=2", alt_text: 'the "heart"' } as RecordJson;
const FIGURE =
  '<figure class="wp-block-image"><img src="/a.png?x=1&amp;y=2" alt="the &quot;heart&quot;" class="wp-image-7"/></figure>';
const BLOCK = `<!-- wp:image {"id":7} -->\n${FIGURE}\n<!-- /wp:image -->`;

const paragraph = (text: string): string => `<!-- wp:paragraph -->\n<p>${text}</p>\n<!-- /wp:paragraph -->`;
const group = (inner: string): string =>
  `<!-- wp:group {"a":"b"} -->\n<div>${inner}</div>\n<!-- /wp:group -->`;

it("puts a picture behind the line of the caret, without a block where the text has none", () => {
  expect(insertPicture("First.\n\nSecond.", 3, picture)).toBe(`First.\n\n${FIGURE}\n\nSecond.`);
  expect(insertPicture("", 0, picture)).toBe(FIGURE);
});

it.each([
  ["in the text of a block", paragraph("one"), "one"],
  ["in a block within a block", group(paragraph("one")), "one"],
  ["within the beginning of a block", group(paragraph("one")), "wp:group"],
  ["within the end of a block", paragraph("one"), "/wp:paragraph"],
  ["within a block without a content", '<!-- wp:more {"a":1} /-->', "wp:more"],
])("puts a picture behind the outermost block if the caret stands %s", (_, first, mark) => {
  const text = `${first}\n\n${paragraph("last")}`;
  const place = text.indexOf(mark) + 2;
  expect(insertPicture(text, place, picture)).toBe(`${first}\n\n${BLOCK}\n\n${paragraph("last")}`);
});

it("puts a picture at the end if the block around the caret has no end", () => {
  const text = "<!-- wp:group --><p>one</p>";
  expect(insertPicture(text, 22, picture)).toBe(`${text}\n\n${BLOCK}`);
});
