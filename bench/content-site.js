// The website that the benchmarks of content are made on: posts of a few sentences. A list of ten
// has 16 kB.

import { systemClock } from "postbell";
import { createContent } from "postbell/content";
import { memoryStorage } from "postbell/memory";

export const AUTHORS = 10;
export const CATEGORIES = 50;
/** Of a user who may do everything. */
export const EDITOR = 1;
export const CREDENTIALS = "Bearer benchmark";
/** Pages, beside the posts. */
const PAGE_SHARE = 0.1;
const COMMIT = 1_000;
const FIRST_DATE = Date.UTC(2010, 0, 1);
const HOUR_MS = 3_600_000;

const at = (index) => FIRST_DATE + index * HOUR_MS;

/** Of post number `index`: they are an hour apart. */
export const dateOf = (index) => new Date(at(index)).toISOString().slice(0, 19);

const times = (index) => ({
  date: at(index),
  dateGmt: at(index),
  modified: at(index),
  modifiedGmt: at(index),
});

/** As it is stored: see `PostColumns`. */
const post = (index, categories) => ({
  ...times(index),
  title: `Post number ${index}`,
  slug: `post-${index}`,
  status: index % 20 === 19 ? "draft" : "publish",
  author: 1 + (index % AUTHORS),
  terms: { category: [categories[index % CATEGORIES]] },
  content: `Lorem ipsum ${index} `.repeat(8),
  excerpt: `Of number ${index}`,
});

const page = (index) => ({
  ...times(index),
  title: `Page number ${index}`,
  slug: `page-${index}`,
  menuOrder: (index * 7919) % 1_000,
  content: "Lorem ipsum ".repeat(8),
  excerpt: "",
});

const image = (index) => ({
  ...times(index),
  title: `Image number ${index}`,
  slug: `image-${index}`,
  content: "",
  excerpt: "",
});

/** A PNG of one pixel. */
const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

async function uploadPixel(content) {
  const response = await content.handle({
    ...{ method: "POST", path: "/core/v2/media", query: "", baseUrl: "http://localhost" },
    headers: {
      authorization: CREDENTIALS,
      "content-type": "image/png",
      "content-disposition": 'attachment; filename="pixel.png"',
    },
    body: PIXEL,
  });
  if (response.status !== 201) throw new Error(`the upload got ${response.status}`);
  return JSON.parse(Buffer.from(response.body).toString()).id;
}

const silent = { debug() {}, info() {}, warn() {}, error() {} };

/**
 * Copies of a record, written past the service: creating each post by a request would take minutes.
 */
async function writeCopies(store, id, count, change) {
  const [seed] = await store.read([`post/${id}`]);
  const columns = JSON.parse(seed.columns);
  const body = JSON.parse(seed.body);
  const first = await store.allocate("post", count);
  for (let start = 0; start < count; start += COMMIT) {
    const writes = Array.from({ length: Math.min(COMMIT, count - start) }, (_, offset) => {
      const { title, slug, content, excerpt, ...more } = change(start + offset);
      const own = { ...columns, ...more, id: first + start + offset, title, slug };
      const record = {
        columns: JSON.stringify(own),
        body: JSON.stringify({ ...body, content, excerpt }),
        unique: [`slug/${own.type}/${slug}`],
      };
      return { key: `post/${own.id}`, expectedVersion: 0, record };
    });
    const { ok } = await store.commit(writes);
    if (!ok) throw new Error("the posts of the benchmark could not be written");
  }
}

/**
 * A content service with `posts` posts, a tenth as many pages, and `media` images. `ask` throws
 * where the answer is no 2xx.
 */
export async function makeSite(posts, { storage = memoryStorage(), media = 0, ...options } = {}) {
  const content = createContent({
    ...options,
    storage,
    site: { url: "http://localhost", name: "Benchmark" },
    authenticate: ({ headers }) => (headers.authorization === CREDENTIALS ? { id: EDITOR } : null),
    users: Array.from({ length: AUTHORS }, (_, index) => ({
      id: index + 1,
      slug: `user-${index + 1}`,
      name: `User ${index + 1}`,
      roles: ["administrator"],
    })),
  });
  const ask = async (method, path, body, as = EDITOR, query = {}) => {
    const answer = await content.request({ method, path, query, body, as });
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const categories = [];
  for (let index = 0; index < CATEGORIES; index++) {
    categories.push((await ask("POST", "/core/v2/categories", { name: `Category ${index}` })).id);
  }
  const store = storage.content({ clock: systemClock, logger: silent });
  const seedOf = async (collection) =>
    (await ask("POST", `/core/v2/${collection}`, { title: "Seed", status: "publish" })).id;
  await writeCopies(store, await seedOf("posts"), posts, (index) => post(index, categories));
  await writeCopies(store, await seedOf("pages"), Math.ceil(posts * PAGE_SHARE), page);
  if (media > 0) await writeCopies(store, await uploadPixel(content), media, image);
  return { content, categories, ask };
}
