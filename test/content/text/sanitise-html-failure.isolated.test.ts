import { expect, it, vi } from "vitest";
import { renderContent, renderExcerpt, renderTitle } from "../../../src/content/text/render.js";
import { sanitiseHtml, sanitiseTitle } from "../../../src/content/text/sanitise-html.js";

vi.mock("htmlparser2", () => ({
  Parser: class {
    end(): void {
      throw new Error("a fault of the parser");
    }
  },
}));

const hostile = '<b>x</b><img src=x onerror="alert(1)">';

it("shows markup as text when the parser fails, and passes nothing through", () => {
  const escaped = '&lt;b&gt;x&lt;/b&gt;&lt;img src=x onerror="alert(1)"&gt;';
  expect(sanitiseHtml(hostile)).toBe(escaped);
  expect(sanitiseTitle(hostile)).toBe(escaped);
  for (const render of [renderTitle, renderContent, renderExcerpt]) {
    expect(render(hostile, { isTrusted: false })).not.toMatch(/<(?!\/?p>)/);
  }
});

it("does not need the parser for a trusted author or for text without markup", () => {
  expect(renderTitle("<em>x</em>", { isTrusted: true })).toBe("<em>x</em>");
  expect(renderContent("plain text", { isTrusted: false })).toBe("<p>plain text</p>\n");
});
