// Makes a static website: reads the posts of a content host over HTTP with `wpapi`, a client
// written for WordPress, and writes HTML files. `node examples/static-site.js [folder]` ends by
// itself; without a folder it takes a temporary one.
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createContent } from "postbell/content";
import { memoryStorage } from "postbell/memory";
import { nodeAdapter } from "postbell/node";
import WPAPI from "wpapi";
import { users, writeSample } from "./support/sample-content.js";

const [given] = process.argv.slice(2).filter((argument) => !argument.startsWith("--"));
const folder = given ?? (await mkdtemp(join(tmpdir(), "postbell-site-")));

// 1. The host. With the namespace `wp`, clients of WordPress find what they look for where they
// look for it.
const server = createServer();
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${server.address().port}`;
const content = createContent({
  storage: memoryStorage(),
  site: { url, name: "A clinic by the sea" },
  namespace: "wp",
  authenticate: () => null,
  users,
});
await writeSample(content, "wp");
const serveContent = nodeAdapter(content, { prefix: "/wp-json" });
server.on("request", (request, response) => {
  serveContent(request, response, () => {
    // Any page of the website says in this header where its interface is.
    response.setHeader("Link", `<${url}/wp-json/>; rel="https://api.w.org/"`);
    response.end("<h1>The website</h1>");
  });
});

// 2. The client: it knows no more than the address of the website.
const site = await WPAPI.discover(url);
const { name } = await site.root().get();
const posts = [];
for (let request = site.posts().perPage(2).embed(); request; ) {
  const page = await request.get();
  posts.push(...page);
  request = page._paging.next;
}

// 3. The files. What is `rendered` is safe HTML already.
const html = (title, body) => `<!doctype html>\n<meta charset="utf-8">\n<title>${title}</title>\n${body}\n`;
for (const { slug, title, content: text, _embedded } of posts) {
  if (!/^[\w%-]+$/.test(slug)) throw new Error(`${slug} is no name for a folder`);
  await mkdir(join(folder, slug), { recursive: true });
  const body = `<h1>${title.rendered}</h1>\n<p>by ${_embedded.author[0].name}</p>\n${text.rendered}`;
  await writeFile(join(folder, slug, "index.html"), html(title.rendered, body));
}
const list = posts.map(({ slug, title }) => `<li><a href="${slug}/">${title.rendered}</a></li>`);
await writeFile(join(folder, "index.html"), html(name, `<h1>${name}</h1>\n<ul>\n${list.join("\n")}\n</ul>`));
console.log(`Done: ${posts.length} posts in ${folder}`);

server.close();
server.closeAllConnections();
