/** The site of the guides and of the API reference: `npm run docs` builds it, into `site`. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitepress";
import { buildFavicon } from "../../src/portal/theme.js";
import { extendMarkdown, readFirstScreen, slugify } from "./markdown.js";
import { rewrites, root, sidebar } from "./pages.js";

const BASE = "/postbell/";

/** VitePress itself checks the pages that links lead to, but not the headings. */
function checkAnchors(folder: string): void {
  const pages = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".html"))
    .map((name) => {
      const html = readFileSync(join(folder, name), "utf8");
      const route = BASE + name.replaceAll("\\", "/").replace(/(?:(^|\/)index)?\.html$/, "$1");
      return { route, html, anchors: new Set([...html.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id)) };
    });
  const anchors = new Map(pages.map((page) => [page.route, page.anchors]));
  const broken = pages.flatMap(({ route, html }) =>
    [...html.matchAll(/\shref="([^":#]*)#([^"]+)"/g)]
      .filter(([, to = "", id = ""]) => !anchors.get(to === "" ? route : to)?.has(decodeURIComponent(id)))
      .map(([, to, id]) => `${route}: ${to}#${id}`),
  );
  if (broken.length > 0) throw new Error(`Links to headings that do not exist:\n${broken.join("\n")}`);
}

const icon = `data:image/svg+xml,${encodeURIComponent(buildFavicon({ accent: "#0b57b5" }))}`;
const home = readFirstScreen(readFileSync(join(root, "README.md"), "utf8"));

export default defineConfig({
  title: "Postbell",
  description: home.tagline,
  lang: "en",
  head: [["link", { rel: "icon", href: icon }]],
  base: BASE,
  srcDir: root,
  outDir: join(root, "site"),
  cacheDir: join(root, "node_modules/.cache/vitepress"),
  cleanUrls: true,
  srcExclude: [
    "{src,storage,adapters,test,examples,bench,scripts,dist,coverage,site}/**",
    "{CODE_OF_CONDUCT,THIRD_PARTY_NOTICES}.md",
  ],
  rewrites,
  ignoreDeadLinks: "localhostLinks",
  markdown: { attrs: { disable: true }, anchor: { slugify }, config: extendMarkdown },
  transformPageData: ({ relativePath }) => {
    if (relativePath.startsWith("api/")) return { frontmatter: { editLink: false } };
    if (relativePath !== "index.md") return undefined;
    const actions = [
      { theme: "brand", text: "Mount it in your server", link: "/guides/mount" },
      { theme: "alt", text: "All guides", link: "/guides/" },
      { theme: "alt", text: "API reference", link: "/api/" },
    ];
    return {
      frontmatter: {
        layout: "home",
        hero: { name: "Postbell", text: "Webhooks for Node", tagline: home.tagline, actions },
      },
    };
  },
  buildEnd: ({ outDir }) => checkAnchors(outDir),
  themeConfig: {
    nav: [
      { text: "Guides", link: "/guides/" },
      { text: "Options", link: "/options" },
      { text: "API", link: "/api/" },
    ],
    sidebar,
    outline: [2, 3],
    search: { provider: "local" },
    socialLinks: [{ icon: "github", link: "https://github.com/postbell/postbell" }],
    editLink: { pattern: "https://github.com/postbell/postbell/edit/main/:path", text: "Edit this page" },
  },
});
