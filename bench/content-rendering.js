// `node bench/content-rendering.js`: the CPU time of responses whose contents are rendered again,
// because a record of the site changes before each. In-process, without HTTP.
import { pathToFileURL } from "node:url";
import { createContent } from "postbell/content";
import { memoryStorage } from "postbell/memory";
import { print } from "./content-load.js";
import { median, spread } from "./support.js";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const CALLS = Number(process.env.BENCH_CALLS ?? 100);
const ADMIN = 1;

const PARAGRAPH =
  '<!-- wp:paragraph --><p>Some "quoted" words -- and a line\'s end.</p><!-- /wp:paragraph -->';
const BLOCKS = [
  '<!-- wp:latest-posts {"postsToShow":5} /-->',
  "<!-- wp:archives /-->",
  "<!-- wp:categories /-->",
  "<!-- wp:tag-cloud /-->",
  "<!-- wp:page-list /-->",
  "<!-- wp:post-title /-->",
  "<!-- wp:post-date /-->",
  "<!-- wp:site-title /-->",
  "<!-- wp:search /-->",
  '<!-- wp:query {"query":{"perPage":5}} --><!-- wp:post-template --><!-- wp:post-title /--><!-- /wp:post-template --><!-- /wp:query -->',
];
const CLASSIC = `<h2>Title</h2>\n${'One line\nand "another" of a paragraph.\n\n'.repeat(20)}`;

async function openSite() {
  const content = createContent({
    storage: memoryStorage(),
    site: { url: "https://example.org", name: "Bench" },
    authenticate: () => null,
    users: [{ id: ADMIN, slug: "admin", name: "Admin", roles: ["administrator"] }],
  });
  const call = async (method, path, body, query) => {
    const request = { method, path: `/core/v2${path}`, as: ADMIN };
    if (body !== undefined) request.body = body;
    if (query !== undefined) request.query = query;
    const response = await content.request(request);
    if (response.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(response.body)}`);
    return response.body;
  };
  const write = async (text, date = "2026-01-01T00:00:00") =>
    (await call("POST", "/posts", { title: 'A "title"', content: text, status: "publish", date })).id;
  for (let at = 0; at < 100; at += 1) await write(PARAGRAPH.repeat(20));
  // The oldest, so that it is in no list of ten.
  const oldest = "2001-01-01T00:00:00";
  const ids = {
    blocks: await write(PARAGRAPH.repeat(20)),
    classic: await write(CLASSIC),
    dynamic: await write(BLOCKS.join("\n"), oldest),
  };
  return { call, ids };
}

/** By name, the request that is measured and the one that changes its record before it. */
const listCases = ({ call, ids }) => {
  const single = (id, query) => ({
    change: () => call("POST", `/posts/${id}`, { excerpt: String(Math.random()) }),
    ask: () => call("GET", `/posts/${id}`, undefined, query),
  });
  return {
    "list of ten, one changed": { ...single(ids.blocks), ask: () => call("GET", "/posts") },
    "single post of blocks": single(ids.blocks),
    "single post without blocks": single(ids.classic),
    "single post, context=edit": single(ids.blocks, { context: "edit" }),
    "page with ten dynamic blocks": single(ids.dynamic),
  };
};

/** Returns the median CPU time of one call by name, in µs. */
export async function measureRendering() {
  const cases = Object.entries(listCases(await openSite()));
  const results = cases.map(() => []);
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const [index, [, { change, ask }]] of cases.entries()) {
      let micros = 0;
      for (let at = 0; at < CALLS; at += 1) {
        await change();
        const before = process.cpuUsage();
        await ask();
        const { user, system } = process.cpuUsage(before);
        micros += user + system;
      }
      // The first round only warms up.
      if (round > 0) results[index].push(micros / CALLS);
    }
  }
  return cases.map(([name], index) => ({
    name,
    "µs of CPU time": Math.round(median(results[index])),
    spread: spread(results[index], 0),
  }));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) print(await measureRendering());
