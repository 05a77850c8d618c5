/** 64 KB of each dynamic block and short code, repeated, nested and full of brackets. */

import { expect, it } from "vitest";
import { callsOf } from "../../support/content-call.js";
import { contentSite } from "../../support/content-site.js";
import { countSteps } from "../../support/count-steps.js";
import { countTurns } from "../../support/count-turns.js";

const SIZE = 65_536;

const BLOCKS = (
  "archives block calendar categories footnotes home-link latest-posts navigation navigation-link page-list " +
  "post-author post-date post-excerpt post-featured-image post-template post-terms post-title query read-more " +
  "search site-logo site-tagline site-title social-link social-links tag-cloud"
).split(" ");
const SHORT_CODES = "audio caption embed gallery playlist video wp_caption unknown".split(" ");

const repeat =
  (part: string) =>
  (size: number): string =>
    part.repeat(Math.floor(size / part.length));

type Attack = [name: string, textOf: (size: number) => string];

const ATTACKS: Attack[] = [
  ...BLOCKS.flatMap((name): Attack[] => [
    [`${name}, repeated`, repeat(`<!-- wp:${name} {"postsToShow":100,"ref":1} /-->`)],
    [`${name}, nested`, repeat(`<!-- wp:${name} -->`)],
    [`${name} with brackets`, (size) => `<!-- wp:${name} {"a":"${"[".repeat(size - 100)}"} /-->`],
  ]),
  ...SHORT_CODES.flatMap((name): Attack[] => [
    [`[${name}], repeated`, repeat(`[${name}]`)],
    [`[${name}], nested`, repeat(`[${name} a="b"]x`)],
    [`[${name}], closed`, repeat(`[${name} ids="1"]x[/${name}]`)],
    [`[${name}] with brackets`, (size) => `[${name} ${"[".repeat(size - 100)}]`],
    [`[${name}] with attributes`, (size) => `[${name} ${repeat('a="b" ')(size - 100)}]`],
  ]),
  ["brackets", repeat("[")],
  ["elements outside of paragraphs", repeat("<div>\n\n<picture>\n")],
];

async function openSite() {
  const call = callsOf(contentSite());
  for (let at = 0; at < 20; at += 1) {
    await call("POST /posts", {
      as: "editor",
      body: { title: `"${at}"`, content: "word", status: "publish" },
    });
    await call("POST /categories", { as: "editor", body: { name: `c${at}` } });
  }
  const body = { title: "t", status: "publish" };
  return (content: string) => call("POST /posts", { as: "editor", body: { ...body, content } });
}

it.each(ATTACKS)("takes work in proportion to its size: %s", async (_, textOf) => {
  const write = await openSite();
  await write("first");
  const steps = async (size: number): Promise<number> => {
    let length = 0;
    const counted = await countSteps(async () => {
      const { status, body } = await write(textOf(size));
      expect(status).toBe(201);
      length = body.content.rendered.length;
    });
    expect(length).toBeLessThan(2 * 1_048_576);
    return counted;
  };
  const half = await steps(SIZE / 2);
  expect(await steps(SIZE)).toBeLessThan(3 * half + 2_000);
});

it.each([
  ["lists", repeat('<!-- wp:latest-posts {"postsToShow":100} /-->')(2_000), 20],
  ["paragraphs", repeat("a\n\n")(SIZE), 8],
  ["short codes", repeat('[caption width="9"]<img src="a"> b[/caption]')(SIZE), 8],
  ["dynamic blocks", repeat("<!-- wp:search /-->")(SIZE), 8],
])("lets other requests run while it renders %s", async (_, content, turns) => {
  const write = await openSite();
  expect(await countTurns(() => write(content))).toBeGreaterThanOrEqual(turns);
});
