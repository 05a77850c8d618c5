// A website with the WordPress block editor: what a host adds to the content service so that the
// editor and other clients of WordPress work. It signs people in, hands out nonces, serves the
// editor and the website. `EDITOR_FOLDER=… node examples/editor-host.js` names the folder with the
// bundled editor, which is under the GPL and not part of this example; the rest works without it.
// docs/guides/edit-with-gutenberg.md explains the steps.
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import express from "express";
import { createContent, createNonces, discoveryLinks, rewriteRestRoute } from "postbell/content";
import { expressAdapter } from "postbell/express";
import { memoryFiles } from "postbell/files";
import { memoryStorage } from "postbell/memory";
import { createPortal } from "postbell/portal";
import { AVATAR, editorPage, listPage, noEditorPage, signInPage, sitePage } from "./support/editor-pages.js";
import { createFinder } from "./support/find-content.js";
import { writeSample } from "./support/sample-content.js";

const folder = process.env.EDITOR_FOLDER;
const hasEditor = folder !== undefined && existsSync(join(folder, "block-editor.js"));
const password = process.env.EDITOR_PASSWORD ?? randomBytes(9).toString("base64url");

const app = express().disable("x-powered-by");
const server = createServer(app);
await new Promise((resolve, reject) => {
  server.once("error", reject);
  server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", resolve);
});
const url = `http://127.0.0.1:${server.address().port}`;
const root = `${url}/wp-json`;

// 1. People, and who of them is signed in. Everybody has the same password here; in earnest, use
// your own sign-in, and limit how often it can be tried.
const users = ["administrator", "editor", "author", "contributor", "subscriber"].map((role, index) => ({
  id: index + 1,
  slug: role,
  name: `The ${role}`,
  roles: [role],
  avatarUrls: { 96: `${url}/avatar.svg` },
}));
const sessions = new Map();
const digest = (text) => createHash("sha256").update(text).digest();

function findSession(cookies = "") {
  const id = /(?:^|; )session=([\w-]+)/.exec(cookies)?.[1];
  return sessions.get(id);
}

// 2. The content service. A cookie counts only together with a nonce, which no page of another
// site can know. The editor answers a stale nonce by getting a new one and repeating the request.
const nonces = createNonces({ secret: randomBytes(32) });
const STALE_NONCE = { status: 403, code: "rest_cookie_invalid_nonce", message: "Cookie check failed" };
const content = createContent({
  storage: memoryStorage(),
  files: memoryFiles(),
  site: { url, name: "A clinic by the sea" },
  namespace: "wp",
  unknownPaths: "answer",
  users,
  authenticate({ headers, query }) {
    const nonce = headers["x-wp-nonce"] ?? new URLSearchParams(query).get("_wpnonce");
    if (nonce === null) return null;
    const session = findSession(headers.cookie);
    return session && nonces.verify(nonce, session.id) ? { id: session.user.id } : STALE_NONCE;
  },
});
await writeSample(content, "wp");
await content.start();

// Clients of a site without pretty URLs ask for /?rest_route=/wp/v2/posts.
app.use((request, _response, next) => {
  const target = rewriteRestRoute(request.url, "/wp-json");
  if (target !== undefined) request.url = request.originalUrl = target;
  next();
});
app.use("/wp-json", expressAdapter(content));
app.use("/uploads", expressAdapter(content.uploads));

// The portal lists, schedules and trashes the same content, and links to the editor.
const portal = createPortal({
  content,
  authorize({ headers }) {
    const user = findSession(headers.cookie)?.user;
    return user ? { name: user.name, userId: user.id } : null;
  },
  editUrl: ({ id }) => (hasEditor ? `${url}/wp-admin/post.php?post=${id}&action=edit` : null),
});
app.use("/portal", expressAdapter(portal));

// 3. Sign-in, sign-out and nonces, at the addresses that clients of WordPress know.
const COOKIE = { httpOnly: true, sameSite: "lax", secure: url.startsWith("https:") };
const isForeign = ({ headers }) =>
  !["same-origin", "none", undefined].includes(headers["sec-fetch-site"]) ||
  ![url, undefined].includes(headers.origin);

app.get("/wp-login.php", (_request, response) => response.send(signInPage({})));
app.post("/wp-login.php", express.urlencoded({ extended: false }), (request, response) => {
  const { log, pwd, _wpnonce } = request.body ?? {};
  const session = findSession(request.headers.cookie);
  if (request.query.action === "logout") {
    if (session && nonces.verify(_wpnonce, session.id)) sessions.delete(session.id);
    return response.redirect("/wp-login.php");
  }
  const user = users.find(({ slug }) => slug === log);
  const isRight = timingSafeEqual(digest(`${pwd}`), digest(password));
  if (!user || !isRight || isForeign(request))
    return response.status(403).send(signInPage({ message: "Name or password are wrong." }));
  const id = randomBytes(32).toString("base64url");
  sessions.set(id, { id, user });
  response.cookie("session", id, COOKIE).redirect("/wp-admin/");
});
app.get("/wp-admin/admin-ajax.php", (request, response) => {
  const session = findSession(request.headers.cookie);
  response.set("Cache-Control", "no-store").type("text/plain");
  if (!session || request.query.action !== "rest-nonce") return response.status(400).send("0");
  response.send(nonces.create(session.id));
});

// 4. The lists and the editor, for those who are signed in. Nobody may put them in a frame, and
// they run no script but the bundle.
const find = createFinder(content, root);
const collectionOf = (query) => (query.post_type === "page" ? "pages" : "posts");
const ADMIN_POLICY =
  "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src * data: blob:; " +
  "media-src * blob:; frame-src 'self' blob: data: https:; object-src 'none'; base-uri 'self'; " +
  "form-action 'self'; frame-ancestors 'self'";

app.use("/wp-admin", (request, response, next) => {
  request.session = findSession(request.headers.cookie);
  response.set({ "Cache-Control": "no-store", "Content-Security-Policy": ADMIN_POLICY });
  if (request.session) next();
  else response.redirect("/wp-login.php");
});
app.get("/wp-admin", (_request, response) => response.redirect("/wp-admin/edit.php"));
app.get("/wp-admin/edit.php", async ({ session, query }, response) => {
  const collection = collectionOf(query);
  const posts = await find.editable(session.user.id, collection);
  response.send(listPage({ user: session.user, collection, posts, nonce: nonces.create(session.id) }));
});
app.get("/wp-admin/post-new.php", async (request, response) => {
  const { session, query } = request;
  if (isForeign(request)) return response.redirect("/wp-admin/edit.php");
  const draft = { title: "New", status: "draft" };
  const { id, message } = await find.ask(session.user.id, "POST", `/${collectionOf(query)}`, { body: draft });
  if (id === undefined) response.status(403).type("text/plain").send(message);
  else response.redirect(`/wp-admin/post.php?post=${id}&action=edit`);
});
app.get("/wp-admin/post.php", async ({ session, query }, response) => {
  if (!hasEditor) return response.status(501).send(noEditorPage({ folder }));
  const post = await find.byId(session.user.id, query.post, "edit");
  if (!post) return response.status(404).type("text/plain").send("You cannot edit this.");
  response.send(
    editorPage({
      root: `${root}/`,
      nonce: nonces.create(session.id),
      nonceEndpoint: `${url}/wp-admin/admin-ajax.php?action=rest-nonce`,
      postType: post.type,
      postId: post.id,
      userId: session.user.id,
    }),
  );
});
if (hasEditor) app.use("/editor", express.static(folder, { index: false }));

// 5. The website. Its pages say where the interface is, and how a post is embedded.
const SITE_POLICY = "script-src 'none'; object-src 'none'; base-uri 'none'";
function show(response, title, body, post) {
  const { header, html } = discoveryLinks({ root, post });
  response.set({ Link: header, "Content-Security-Policy": SITE_POLICY });
  response.send(sitePage({ title, links: html, body: `<h1>${title}</h1>\n${body}` }));
}
app.get("/avatar.svg", (_request, response) => response.type("svg").send(AVATAR));
app.use(async ({ path, query, headers }, response) => {
  const id = query.preview_id ?? query.p ?? query.page_id;
  if (path === "/" && id === undefined) {
    const posts = await find.ask(null, "GET", "/posts");
    const items = posts.map(({ link, title }) => `<li><a href="${link}">${title.rendered}</a></li>`);
    return show(response, "A clinic by the sea", `<ul>${items.join("\n")}</ul>`);
  }
  const user = findSession(headers.cookie)?.user.id ?? null;
  const post = id === undefined ? await find.byPath(path) : await find.preview(user, id);
  if (!post) return response.status(404).type("text/plain").send("There is nothing here.");
  const { title, content, link, _links } = post;
  if (id === undefined) show(response, title.rendered, content.rendered, { link, self: _links.self[0].href });
  else if (post.status === "publish" && query.preview === undefined) response.redirect(link);
  // A preview is for this user alone, and nobody embeds it.
  else show(response.set("Cache-Control", "no-store"), title.rendered, content.rendered);
});

process.once("SIGINT", () => void close());
process.once("SIGTERM", () => void close());
async function close() {
  await content.stop();
  server.close();
  server.closeAllConnections();
}
console.log(`
The website    ${url}/
Sign in        ${url}/wp-login.php as ${users.map(({ slug }) => slug).join(", ")}
Password       ${password}
The editor     ${hasEditor ? folder : "is not installed: see docs/guides/edit-with-gutenberg.md"}
`);
