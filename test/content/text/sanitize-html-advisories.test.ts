/** The published attacks on the sanitiser that is used, against the rules that it is used with. */

import { Parser } from "htmlparser2";
import { describe, expect, it } from "vitest";
import { POST_TAGS, TITLE_TAGS } from "../../../src/content/text/allowed-tags.js";
import { renderContent } from "../../../src/content/text/render.js";
import { sanitiseHtml, sanitiseTitle } from "../../../src/content/text/sanitise-html.js";
import { expectLinear } from "../../support/cpu-time.js";
import { ADVISORIES, SLOW_TEXTS } from "../../support/sanitize-html-advisories.js";

const SAFE_URL = /^(?:https?|ftps?|mailto|tel|sms|fax|xmpp|ircs?|news|webcal|urn):$/;
const ADDRESS = new Set(["href", "src", "cite", "poster", "longdesc", "usemap", "data"]);
const PLAIN_NAME = /^(?!on|form|srcdoc|srcset|action|background|ping|xmlns|xlink|data-wp-)[a-z][a-z0-9_:-]*$/;

/** Returns the elements and attributes that are not allowed or could run something. */
function findElements(html: string, allowed: { readonly [tag: string]: string }): readonly string[] {
  const found: string[] = [];
  const parser = new Parser({
    onopentag(name, attributes) {
      if (!Object.hasOwn(allowed, name)) found.push(`<${name}>`);
      for (const [attribute, value] of Object.entries(attributes)) {
        if (!PLAIN_NAME.test(attribute)) found.push(`${name}[${attribute}]`);
        const { protocol } = new URL(ADDRESS.has(attribute) ? value : "", "https://site.test/");
        if (!SAFE_URL.test(protocol)) found.push(`${name}[${attribute}=${value}]`);
        if (attribute === "style" && /url\(|\/\*|\\|:.*:/.test(value)) found.push(value);
      }
    },
  });
  parser.end(html);
  return found;
}

const TAG = /<\/?[a-z][a-z0-9]*(?:\s+[a-z][a-z0-9_:-]*(?:="[^"<>]*"|='[^'<>]*')?)*\s*\/?>/g;

/** Also what two parsers could read in different ways: a bracket outside of a plain tag. */
function findExecutable(html: string, allowed: { readonly [tag: string]: string }): readonly string[] {
  const outside = html.replace(TAG, "");
  return [...findElements(html, allowed), ...(/[<>]/.test(outside) ? [outside] : [])];
}

it("finds what runs", () => {
  for (const html of [
    "<script>",
    "<img onerror=x>",
    '<a href="javascript:x">',
    "<p style='a:url(x)'>",
    "<xmp>",
    "<b",
  ]) {
    expect(findExecutable(html, POST_TAGS)).not.toEqual([]);
  }
});

describe.each(ADVISORIES)("%s", (_what, ...texts) => {
  it.each(texts)("leaves nothing executable of %s", (text) => {
    const around = [text, `<p>${text}</p>`, `<ul><li>${text}`, `<b title="a">${text}</b>`, `${text}${text}`];
    // As one of several pieces, and behind a tag that is open in all of them.
    const long = [`<div>${"<b>x</b>".repeat(600)}${text}${"<b>x</b>".repeat(600)}</div>`];
    for (const raw of [...around, ...long]) {
      const sanitised = sanitiseHtml(raw, { uploads: "https://site.test/uploads" });
      expect(findExecutable(sanitised, POST_TAGS)).toEqual([]);
      expect(findExecutable(sanitiseTitle(raw), TITLE_TAGS)).toEqual([]);
      expect(sanitiseHtml(sanitised, { uploads: "https://site.test/uploads" })).toBe(sanitised);
      expect(findExecutable(renderContent(raw, { isTrusted: false }), POST_TAGS)).toEqual([]);
    }
    expect(({} as { readonly onclick?: unknown }).onclick).toBeUndefined();
  });

  it.each(texts)("leaves nothing executable in a block of %s", (text) => {
    const block = `<!-- wp:x ${JSON.stringify({ a: text }).replaceAll("--", "\\u002d\\u002d")} /-->`;
    const kept = sanitiseHtml(block);
    const [, json = "{}"] = /^<!-- wp:x (?:(\{.*\}) )?\/-->$/s.exec(kept) ?? [];
    const { a = "" } = JSON.parse(json) as { readonly a?: string };
    expect(findElements(a, POST_TAGS)).toEqual([]);
  });
});

describe("a text that is slow to sanitise", () => {
  it.each(Object.entries(SLOW_TEXTS))("takes time in proportion to its length: %s", async (_what, make) => {
    await expectLinear(200_000, (length) => sanitiseHtml(make(length)));
  });
});
