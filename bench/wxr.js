// Importing a WXR file into memory storage, against bare sax parsing of the same bytes: `node
// bench/wxr.js`. One round: the rows are long enough.

import { createContent } from "postbell/content";
import { memoryStorage } from "postbell/memory";
import sax from "sax";

const posts = Number(process.env.BENCH_ITEMS ?? 20_000);
const text = "<p>heart pulse clinic ward nurse dose scan fever bone lung vein cell</p>\n".repeat(20);

function* file() {
  yield `<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><wp:wxr_version>1.2</wp:wxr_version><wp:base_blog_url>https://old.example.org</wp:base_blog_url>`;
  for (let id = 1; id <= posts; id += 1) {
    const date = new Date(Date.UTC(2015, 0, 1) + ((id * 7919) % 4000) * 86_400_000)
      .toISOString()
      .slice(0, 10);
    yield `<item><title><![CDATA[Post ${id}]]></title><dc:creator><![CDATA[anna]]></dc:creator><content:encoded><![CDATA[${text}]]></content:encoded><excerpt:encoded><![CDATA[]]></excerpt:encoded><wp:post_id>${id}</wp:post_id><wp:post_date><![CDATA[${date} 10:00:00]]></wp:post_date><wp:post_date_gmt><![CDATA[${date} 10:00:00]]></wp:post_date_gmt><wp:comment_status><![CDATA[open]]></wp:comment_status><wp:ping_status><![CDATA[open]]></wp:ping_status><wp:post_name><![CDATA[post-${id}]]></wp:post_name><wp:status><![CDATA[publish]]></wp:status><wp:post_parent>0</wp:post_parent><wp:menu_order>0</wp:menu_order><wp:post_type><![CDATA[post]]></wp:post_type><wp:post_password><![CDATA[]]></wp:post_password><wp:is_sticky>0</wp:is_sticky><category domain="category" nicename="ward-${id % 9}"><![CDATA[Ward ${id % 9}]]></category></item>\n`;
  }
  yield "</channel></rss>";
}

async function* bytes() {
  for (const part of file()) yield Buffer.from(part);
}

let size = 0;
for (const part of file()) size += Buffer.byteLength(part);

let peak = 0;
const look = () => {
  peak = Math.max(peak, process.memoryUsage().heapUsed);
};

async function timed(run) {
  globalThis.gc?.();
  peak = 0;
  const watch = setInterval(look, 20);
  const start = performance.now();
  await run();
  const seconds = (performance.now() - start) / 1000;
  look();
  clearInterval(watch);
  return seconds;
}

const row = (name, seconds) =>
  console.log(
    `${name.padEnd(34)} ${(size / 1e6 / seconds).toFixed(1).padStart(7)} MB/s ${Math.round(posts / seconds)
      .toString()
      .padStart(8)} posts/s   peak heap ${Math.round(peak / 1e6)} MB`,
  );

const site = () =>
  createContent({
    storage: memoryStorage(),
    site: { url: "http://localhost", name: "" },
    authenticate: () => null,
    users: [{ id: 1, slug: "anna", name: "Anna", roles: ["administrator"] }],
  });

console.log(`${posts} posts, ${(size / 1e6).toFixed(1)} MB`);
const bare = await timed(async () => {
  const parser = sax.parser(true);
  const decoder = new TextDecoder();
  for await (const part of bytes()) parser.write(decoder.decode(part, { stream: true }));
  parser.close();
});
row("sax alone", bare);
const content = site();
row("import, texts sanitised", await timed(() => content.import(bytes(), { as: 1 })));
row("repeated import without changes", await timed(() => content.import(bytes(), { as: 1 })));
const trusting = site();
const trusted = await timed(() => trusting.import(bytes(), { as: 1, trust: true }));
row("import, texts unchanged", trusted);
const exporting = await timed(async () => {
  for await (const _ of trusting.export());
});
row("export", exporting);
console.log(`import against sax: ${(bare / trusted).toFixed(2)}`);
