/** Renders the Markdown of the repository as pages: links, diagrams, the README's first screen. */

import { renderMermaidSVG } from "beautiful-mermaid";
import type { MarkdownRenderer } from "vitepress";
import { toPictureSource, toSiteLink } from "./pages.js";

interface Environment {
  path: string;
  /** The file before it is moved to its place on the site. The search index has none. */
  realPath?: string;
}

const FIRST_SCREEN = /^# .+\n\n(.+)\n\n([\s\S]+?)(?=^## )/m;

/** The README's first screen: its first paragraph, and what follows up to the first heading. */
export function readFirstScreen(readme: string): { tagline: string; body: string } {
  const [, tagline, body] = FIRST_SCREEN.exec(readme) ?? [];
  if (tagline === undefined || body === undefined) throw new Error("README.md has no first screen");
  return { tagline: tagline.replaceAll("`", ""), body };
}

/** Names an anchor as GitHub does. */
export const slugify = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");

/** The theme's style sheet has the diagram's own style, with the colours of the page. */
function renderDiagram(source: string): string {
  const svg = renderMermaidSVG(source, { bg: "var(--vp-c-bg)", fg: "var(--vp-c-text-1)", padding: 8 });
  return `<div class="diagram">${svg.replace(/<style>[\s\S]*?<\/style>/, "")}</div>`;
}

type Token = ReturnType<MarkdownRenderer["parse"]>[number];

function renderToken(token: Token, file: string): void {
  const href = token.attrGet("href");
  if (token.type === "link_open" && href !== null) token.attrSet("href", toSiteLink(href, file));
  const source = token.attrGet("src");
  if (token.type === "image" && source !== null) token.attrSet("src", toPictureSource(source, file));
  if (token.type === "fence") {
    // The rest says how a test runs the block.
    token.info = token.info.split(" ")[0] ?? "";
    if (token.info === "mermaid") {
      token.type = "html_block";
      token.content = renderDiagram(token.content);
    }
  }
  for (const child of token.children ?? []) renderToken(child, file);
}

export function extendMarkdown(md: MarkdownRenderer): void {
  md.disable("emoji");
  md.core.ruler.before("normalize", "first-screen", (state) => {
    const { path, realPath = path } = state.env as Environment;
    if (/[\\/]README\.md$/.test(realPath) && FIRST_SCREEN.test(state.src) && !/[\\/]docs[\\/]/.test(realPath))
      state.src = readFirstScreen(state.src).body;
  });
  md.core.ruler.push("repository", (state) => {
    const { path, realPath = path } = state.env as Environment;
    for (const token of state.tokens) renderToken(token, realPath);
  });
}
