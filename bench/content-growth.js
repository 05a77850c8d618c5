// One site of the growth benchmark, in a process of its own: a message with `posts` makes it, each
// further one times every kind of list.
import { once } from "node:events";
import { AUTHORS, CATEGORIES, CREDENTIALS, dateOf, makeSite } from "./content-site.js";

/** Requests of each kind in a pass, each with other parameters; and passes, each after a change. */
const VARIANTS = 20;
const PASSES = 5;

const heap = () => {
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
};

const [{ posts }] = await once(process, "message");
process.once("disconnect", () => process.exit(0));

const before = heap();
const { content, categories, ask } = await makeSite(posts);
process.send?.({ heapPerPost: (heap() - before) / posts });

const idOf = new Map();
for (let page = 1; page <= VARIANTS; page++) {
  for (const { id, slug } of await ask("GET", "/core/v2/posts", undefined, null, { page }))
    idOf.set(slug, id);
}
const ids = [...idOf.values()];
const slugs = [...idOf.keys()];

/**
 * Name → what variant n asks for, all within the same number of posts whatever the size of the
 * site.
 */
const LISTS = {
  "newest ten": { path: "/core/v2/posts", query: (n) => ({ offset: n }) },
  "page 50": { path: "/core/v2/posts", query: (n) => ({ page: 50 + n }) },
  "by category": { path: "/core/v2/posts", query: (n) => ({ categories: categories[n % CATEGORIES] }) },
  "by author and dates": {
    path: "/core/v2/posts",
    query: (n) => ({ author: 1 + (n % AUTHORS), after: dateOf(posts - 700), before: dateOf(posts - 1 - n) }),
  },
  "by slug": { path: "/core/v2/posts", query: (n) => ({ slug: slugs[n] }) },
  "by include": { path: "/core/v2/posts", query: (n) => ({ include: ids.slice(n, n + 10).join(",") }) },
  "drafts, as an editor": {
    path: "/core/v2/posts",
    query: (n) => ({ status: "draft", offset: n }),
    headers: { authorization: CREDENTIALS },
  },
  "pages by menu order": {
    path: "/core/v2/pages",
    query: (n) => ({ orderby: "menu_order", order: "asc", offset: n }),
  },
  "search in texts": {
    path: "/core/v2/posts",
    query: (n) => ({ search: `number ${posts - 20 - n}` }),
    // It reads every text.
    variants: 3,
    passes: 1,
  },
};

let changes = 0;
/** Makes every answer that is kept whole out of date. */
const change = () => ask("POST", `/core/v2/posts/${ids[0]}`, { excerpt: `Change ${changes++}` });

async function timeAll() {
  const micros = {};
  for (const [name, list] of Object.entries(LISTS)) {
    const { path, query, headers = {}, variants = VARIANTS, passes = PASSES } = list;
    let elapsed = 0;
    for (let pass = 0; pass < passes; pass++) {
      await change();
      const start = performance.now();
      for (let n = 0; n < variants; n++) {
        const { status } = await content.handle({
          method: "GET",
          path,
          query: new URLSearchParams(query(n)).toString(),
          headers,
          body: null,
          baseUrl: "http://localhost",
        });
        if (status !== 200) throw new Error(`${name}: ${status}`);
      }
      elapsed += performance.now() - start;
    }
    micros[name] = (elapsed * 1_000) / (variants * passes);
  }
  return micros;
}

for (;;) {
  await once(process, "message");
  process.send?.({ micros: await timeAll() });
}
