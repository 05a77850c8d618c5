// `node bench/editor.js`: the first page of the block editor. Its requests were recorded from a
// session of an editor who opened a post. They are sent to a small site and to a large one, each
// time after a change, so that no response is cached. Absolute figures are those of the machine.
import { memoryFiles } from "postbell/files";
import { CREDENTIALS, makeSite } from "./content-site.js";
import { median, spread } from "./support.js";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5) * 8;
const LARGE = Number(process.env.BENCH_EDITOR_POSTS ?? 20_000);
const SITES = { small: [100, 20], large: [LARGE, LARGE / 4] };

const SITE_FIELDS =
  "description,gmt_offset,home,image_max_bit_depth,image_sizes,image_size_threshold,image_strip_meta,name," +
  "site_icon,site_icon_url,site_logo,timezone_string,url,page_for_posts,page_on_front,show_on_front";

/** `ID` is the id of the post. All but two respond with 200; those are 404, as in the session. */
const REQUESTS = [
  "GET /users/me?context=edit",
  "GET /users/me",
  "GET /types?context=view",
  "GET /taxonomies?context=view",
  "OPTIONS /settings",
  "GET /block-patterns/categories",
  "GET /templates/lookup?slug=front-page",
  "OPTIONS /media",
  "OPTIONS /pages",
  "OPTIONS /blocks",
  "OPTIONS /posts",
  "GET /posts/ID?context=edit",
  "OPTIONS /settings",
  "GET /taxonomies?context=edit",
  `GET .?_fields=${encodeURIComponent(SITE_FIELDS)}`,
  "GET /types/post?context=edit",
  "GET /themes?context=edit&status=active",
  "GET /global-styles/themes/default?context=view",
  "GET /global-styles/themes/default/variations?context=view",
  "GET /posts/ID/autosaves?context=edit",
  "GET /templates/lookup?slug=single-post-flu-season",
  "GET /media?context=edit&per_page=50&page=1&status=inherit&search=&_embed=author%2Cwp%3Aattached-to&media_type%5B0%5D=image",
  "GET /users/1?context=view&_fields=id%2Cname",
  // The panels beside a post request these.
  "GET /categories?per_page=100&orderby=name&order=asc&_fields=id%2Cname%2Cparent&context=view",
  "GET /posts?context=edit&per_page=20&status%5B0%5D=any&_fields=id%2Ctitle%2Cstatus",
  "GET /pages?per_page=100&context=edit&orderby=menu_order&order=asc&_fields=id%2Ctitle%2Cparent",
];

async function open([posts, media]) {
  const site = await makeSite(posts, { media, files: memoryFiles() });
  const { id } = await site.ask("POST", "/core/v2/posts", { title: "Flu season", status: "publish" });
  const requests = REQUESTS.map((text) => {
    const [method, target] = text.replace("ID", id).split(" ");
    const [path, query = ""] = target.split("?");
    return { method, path: path === "." ? "/" : `/core/v2${path}`, query };
  });
  return { ...site, id, requests };
}

async function send({ content }, { method, path, query }) {
  const headers = { authorization: CREDENTIALS };
  const response = await content.handle({
    ...{ method, path, query, headers, body: null, baseUrl: "http://localhost" },
  });
  if (response.status >= 500 || (response.status >= 400 && !path.includes("global-styles")))
    throw new Error(`${method} ${path}: ${response.status} ${Buffer.from(response.body).toString()}`);
}

/** Processor time, which other programs disturb less than the clock. */
function cpuMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/**
 * Returns the milliseconds of each request, sent one after the other, and the processor time of all
 * at once.
 */
async function measure(site, round) {
  const title = `Flu season ${round}`;
  await site.ask("POST", `/core/v2/posts/${site.id}`, { title });
  const each = [];
  for (const request of site.requests) {
    const start = performance.now();
    await send(site, request);
    each.push(performance.now() - start);
  }
  await site.ask("POST", `/core/v2/posts/${site.id}`, { title: `${title}!` });
  const start = cpuMs();
  await Promise.all(site.requests.map((request) => send(site, request)));
  return { each, page: cpuMs() - start };
}

const sites = { small: await open(SITES.small), large: await open(SITES.large) };
const results = { small: [], large: [] };
for (let round = 0; round <= ROUNDS; round++) {
  const names = Object.keys(sites);
  for (const name of round % 2 === 0 ? names : names.reverse()) {
    const result = await measure(sites[name], round);
    // The first rounds only warm up.
    if (round > ROUNDS / 8) results[name].push(result);
  }
}
const pages = (name) => results[name].map(({ page }) => page);
const ms = (values) => `${median(values).toFixed(2)} ms (${spread(values)})`;
console.log(
  `\nThe block editor's first page, ${REQUESTS.length} requests at once, after a change: processor time`,
);
for (const [name, [posts, media]] of Object.entries(SITES))
  console.log(`${name}, ${posts} posts and ${media} media: ${ms(pages(name))}`);
const ratio = median(pages("large")) / median(pages("small"));
console.log(`large / small: ${ratio.toFixed(2)}`);
console.table(
  REQUESTS.map((request, index) => {
    const of = (name) => median(results[name].map(({ each }) => each[index])).toFixed(3);
    return { request: request.slice(0, 60), "small, ms": of("small"), "large, ms": of("large") };
  }),
);
await Promise.all(Object.values(sites).map(({ content }) => content.stop()));
