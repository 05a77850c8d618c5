/** The host of the block editor, over real sockets. The editor's own packages are not needed. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "../..");
const PASSWORD = "correct horse";
const ROLES = ["administrator", "editor", "author", "contributor", "subscriber"] as const;
type Role = (typeof ROLES)[number];

interface Host {
  readonly url: string;
  readonly close: () => Promise<void>;
}

async function start(editorFolder?: string): Promise<Host> {
  const child: ChildProcess = spawn(process.execPath, [join(root, "examples/editor-host.js")], {
    env: { ...process.env, PORT: "0", EDITOR_PASSWORD: PASSWORD, EDITOR_FOLDER: editorFolder },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  for await (const chunk of child.stdout ?? []) {
    output += String(chunk);
    if (output.includes("The editor ")) break;
  }
  return {
    url: /The website +(http:\S+)\//.exec(output)?.[1] ?? `not found in: ${output}`,
    async close() {
      child.kill();
      if (child.exitCode === null) await once(child, "exit");
    },
  };
}

let host: Host;
beforeAll(async () => {
  host = await start();
});
afterAll(() => host.close());

interface Call {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
}

/** Sends a request and follows no redirect. `body` is the parsed JSON, or the text. */
async function send(path: string, { method = "GET", headers = {}, body }: Call = {}, at = host) {
  const isForm = body instanceof URLSearchParams;
  const response = await fetch(new URL(path, `${at.url}/`), {
    method,
    redirect: "manual",
    headers: { ...(body === undefined || isForm ? {} : { "content-type": "application/json" }), ...headers },
    body: body === undefined ? null : isForm ? body : JSON.stringify(body),
  });
  const text = await response.text();
  const isJson = /^application\/json/.test(response.headers.get("content-type") ?? "");
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: (isJson ? JSON.parse(text) : undefined) as ReturnType<typeof JSON.parse>,
  };
}

async function signIn(role: Role, at = host) {
  const form = new URLSearchParams({ log: role, pwd: PASSWORD });
  const response = await send("/wp-login.php", { method: "POST", body: form }, at);
  expect(response.status).toBe(302);
  const cookie = response.headers.get("set-cookie")?.split(";")[0] ?? "";
  const renewed = await send("/wp-admin/admin-ajax.php?action=rest-nonce", { headers: { cookie } }, at);
  return { cookie, nonce: renewed.text };
}

/** The headers of a signed-in editor's requests, or none for a visitor. */
async function headersOf(role: Role | undefined): Promise<Record<string, string>> {
  if (role === undefined) return {};
  const { cookie, nonce } = await signIn(role);
  return { cookie, "x-wp-nonce": nonce };
}

const write = async (role: Role | undefined, body: unknown) =>
  send("/wp-json/wp/v2/posts", { method: "POST", headers: await headersOf(role), body });

describe("discovery", () => {
  it("leads from the first page to the interface, also for HEAD", async () => {
    const head = await send("/", { method: "HEAD" });
    expect(head.headers.get("link")).toBe(`<${host.url}/wp-json/>; rel="https://api.w.org/"`);
    const { text } = await send("/");
    expect(text).toContain(`<link rel="https://api.w.org/" href="${host.url}/wp-json/">`);
    expect(await send("/wp-json/")).toMatchObject({ status: 200, body: { url: host.url } });
  });

  it("leads from the page of a post to the post and to its oEmbed forms", async () => {
    const page = await send("/a-new-doctor/");
    expect(page.text).toContain("Dr Chalmers has joined us.");
    const rest = /<([^>]+)>; rel="alternate"; title="JSON"/.exec(page.headers.get("link") ?? "")?.[1] ?? "";
    expect((await send(rest)).body).toMatchObject({ slug: "a-new-doctor" });
    const embeds = [...page.text.matchAll(/type="([^"]+oembed)" href="([^"]+)"/g)];
    const answers = await Promise.all(embeds.map(([, , href = ""]) => send(href.replaceAll("&amp;", "&"))));
    expect(embeds.map(([, type]) => type)).toEqual(["application/json+oembed", "text/xml+oembed"]);
    expect(answers[0]?.body).toMatchObject({ type: "rich", title: "A new doctor" });
    expect(answers[1]?.text).toContain("<title>A new doctor</title>");
  });

  it("finds the interface without pretty URLs, to read and to write", async () => {
    const byRoute = await send("/?rest_route=/wp/v2/posts&slug=flu-season&_fields=id,_links");
    expect(byRoute.body).toHaveLength(1);
    expect(byRoute.body).toEqual((await send("/wp-json/wp/v2/posts?slug=flu-season&_fields=id,_links")).body);
    const headers = await headersOf("author");
    const written = { method: "POST", headers, body: { title: "By route" } };
    expect(await send("/index.php?rest_route=%2Fwp%2Fv2%2Fposts", written)).toMatchObject({
      status: 201,
      body: { title: { raw: "By route" } },
    });
    expect(await send("/?rest_route=/wp/v2/nothing")).toMatchObject({
      status: 404,
      body: { code: "rest_no_route" },
    });
  });
});

describe("sign-in", () => {
  it("lets each of the six roles do what WordPress lets it do", async () => {
    const statuses = async (role: Role | undefined) => {
      const headers = await headersOf(role);
      const me = await send("/wp-json/wp/v2/users/me", { headers });
      const draft = await write(role, { title: "A draft" });
      const published = await write(role, { title: "News", status: "publish" });
      return [me.status, draft.status, published.status];
    };
    const table = await Promise.all([...ROLES, undefined].map(async (role) => [role, await statuses(role)]));
    expect(table).toEqual([
      ["administrator", [200, 201, 201]],
      ["editor", [200, 201, 201]],
      ["author", [200, 201, 201]],
      ["contributor", [200, 201, 403]],
      ["subscriber", [200, 403, 403]],
      [undefined, [401, 401, 401]],
    ]);
  });

  it("refuses a wrong password, an unknown name, and a form on another site", async () => {
    const attempt = async (log: string, pwd: string, headers: Record<string, string> = {}) => {
      const body = new URLSearchParams({ log, pwd });
      const answer = await send("/wp-login.php", { method: "POST", body, headers });
      return [answer.status, answer.headers.get("set-cookie")];
    };
    expect(await attempt("editor", "wrong")).toEqual([403, null]);
    expect(await attempt("nobody", PASSWORD)).toEqual([403, null]);
    expect(await attempt("editor", PASSWORD, { origin: "https://evil.example" })).toEqual([403, null]);
    expect(await attempt("editor", PASSWORD, { "sec-fetch-site": "cross-site" })).toEqual([403, null]);
    expect(await attempt("editor", PASSWORD, { origin: host.url })).toEqual([
      302,
      expect.stringMatching(/^session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/),
    ]);
  });

  it("ends with the form that carries the nonce, and not without", async () => {
    const { cookie, nonce } = await signIn("author");
    const signOut = (_wpnonce: string) =>
      send("/wp-login.php?action=logout", {
        method: "POST",
        headers: { cookie },
        body: new URLSearchParams({ _wpnonce }),
      });
    const nonceStatus = async () =>
      (await send("/wp-admin/admin-ajax.php?action=rest-nonce", { headers: { cookie } })).status;
    await signOut("");
    expect(await nonceStatus()).toBe(200);
    await signOut(nonce);
    expect(await nonceStatus()).toBe(400);
  });
});

describe("nonces", () => {
  const me = (headers: Record<string, string>, query = "") =>
    send(`/wp-json/wp/v2/users/me${query}`, { headers });

  it("make a cookie count, in the header or in the query", async () => {
    const { cookie, nonce } = await signIn("author");
    expect((await me({ cookie })).status).toBe(401);
    expect((await me({ cookie, "x-wp-nonce": nonce })).body).toMatchObject({ slug: "author" });
    expect((await me({ cookie }, `?_wpnonce=${nonce}`)).body).toMatchObject({ slug: "author" });
  });

  it("are refused in the form that makes clients renew them, and the renewed one is accepted", async () => {
    const { cookie } = await signIn("author");
    const stale = { status: 403, body: { code: "rest_cookie_invalid_nonce", data: { status: 403 } } };
    const ofOther = (await signIn("author")).nonce;
    for (const nonce of ["0123456789", ofOther]) {
      expect(await me({ cookie, "x-wp-nonce": nonce })).toMatchObject(stale);
      expect(await me({ "x-wp-nonce": nonce })).toMatchObject(stale);
    }
    const write = (nonce: string) =>
      send("/wp-json/wp/v2/posts", {
        method: "POST",
        headers: { cookie, "x-wp-nonce": nonce },
        body: { title: "After a long session" },
      });
    expect(await write("0123456789")).toMatchObject(stale);
    const renewed = await send("/wp-admin/admin-ajax.php?action=rest-nonce", { headers: { cookie } });
    expect(renewed.headers.get("cache-control")).toBe("no-store");
    expect((await write(renewed.text)).status).toBe(201);
  });

  it("are given to nobody who is not signed in", async () => {
    expect(await send("/wp-admin/admin-ajax.php?action=rest-nonce")).toMatchObject({
      status: 400,
      text: "0",
    });
  });
});

describe("the website", () => {
  it("shows an author what was typed since the last save, and the others what was saved", async () => {
    const headers = await headersOf("author");
    const text = { title: "Hours", content: "Saved.", status: "publish", date: "2020-01-01T00:00:00" };
    const { body } = await send("/wp-json/wp/v2/posts", { method: "POST", headers, body: text });
    const path = `/wp-json/wp/v2/posts/${body.id}`;
    const autosave = { method: "POST", headers, body: { title: "Hours", content: "Typed." } };
    const { body: saved } = await send(`${path}/autosaves`, autosave);
    expect(saved.preview_link).toBe(`${host.url}/hours/?preview_id=${body.id}&preview=true`);
    const shown = async (role?: Role) => {
      const page = await send(saved.preview_link, { headers: role ? await headersOf(role) : {} });
      return [page.status, /(Saved|Typed)\./.exec(page.text)?.[1], page.headers.get("cache-control")];
    };
    expect(await shown("author")).toEqual([200, "Typed", "no-store"]);
    expect(await shown("editor")).toEqual([200, "Saved", "no-store"]);
    expect(await shown()).toEqual([200, "Saved", "no-store"]);
    expect((await send("/hours/")).text).toContain("Saved.");
  });

  it("shows a draft to those who may read it, and leads to the address of what is published", async () => {
    const { body } = await write("author", { title: "Not yet", content: "Soon." });
    const status = async (role?: Role) =>
      (await send(`/?p=${body.id}&preview=true`, { headers: role ? await headersOf(role) : {} })).status;
    expect(await Promise.all([status("author"), status("editor"), status("contributor"), status()])).toEqual([
      200, 200, 404, 404,
    ]);
    const preview = await send(`/?p=${body.id}`, { headers: await headersOf("author") });
    expect(preview.text).toContain("Soon.");
    expect(preview.text).not.toContain("oembed");
    expect(preview.headers.get("cache-control")).toBe("no-store");
    const published = (await send("/wp-json/wp/v2/posts?slug=flu-season")).body[0];
    expect((await send(`/?p=${published.id}`)).headers.get("location")).toBe(`${host.url}/flu-season/`);
    expect((await send("/nothing/")).status).toBe(404);
  });
});

describe("the editor's pages", () => {
  it("are for those who are signed in", async () => {
    for (const path of [
      "/wp-admin/",
      "/wp-admin/edit.php",
      "/wp-admin/post.php?post=2",
      "/wp-admin/post-new.php",
    ]) {
      const { status, headers } = await send(path);
      expect([path, status, headers.get("location")]).toEqual([path, expect.any(Number), "/wp-login.php"]);
    }
    const { text } = await send("/wp-admin/edit.php", { headers: await headersOf("editor") });
    expect(text).toMatch(/post\.php\?post=\d+&amp;action=edit">A new doctor</);
  });

  it("write no draft for a link on another site", async () => {
    const headers = await headersOf("editor");
    const made = async (site: string) =>
      (await send("/wp-admin/post-new.php", { headers: { ...headers, "sec-fetch-site": site } })).headers.get(
        "location",
      );
    expect(await made("cross-site")).toBe("/wp-admin/edit.php");
    expect(await made("same-origin")).toMatch(/^\/wp-admin\/post\.php\?post=\d+&action=edit$/);
  });

  it("say that the editor is not installed, and how to install it", async () => {
    const answer = await send("/wp-admin/post.php?post=2&action=edit", {
      headers: await headersOf("editor"),
    });
    expect(answer.status).toBe(501);
    expect(answer.text).toContain("docs/guides/edit-with-gutenberg.md");
  });

  it("hand an installed editor the post, its interface and a valid nonce", async () => {
    const folder = mkdtempSync(join(tmpdir(), "postbell-test-"));
    writeFileSync(join(folder, "block-editor.js"), "document.title = 'bundled';");
    const withEditor = await start(folder);
    try {
      const { cookie } = await signIn("editor", withEditor);
      const { body: posts } = await send("/wp-json/wp/v2/posts?slug=flu-season", {}, withEditor);
      const page = await send(
        `/wp-admin/post.php?post=${posts[0].id}&action=edit`,
        { headers: { cookie } },
        withEditor,
      );
      expect(page.headers.get("content-security-policy")).toMatch(
        /script-src 'self';.*frame-ancestors 'self'/,
      );
      const config = JSON.parse(/id="editor-config">(.*?)<\/script>/.exec(page.text)?.[1] ?? "{}");
      expect(config).toMatchObject({ postType: "post", postId: posts[0].id, userId: 2 });
      const me = await send(`${config.root}wp/v2/users/me`, {
        headers: { cookie, "x-wp-nonce": config.nonce },
      });
      expect(me.body).toMatchObject({ slug: "editor" });
      expect((await send(config.nonceEndpoint, { headers: { cookie } })).text).toBe(config.nonce);
      expect((await send("/editor/block-editor.js", {}, withEditor)).text).toContain("bundled");
      expect((await send("/wp-admin/post.php?post=999", { headers: { cookie } }, withEditor)).status).toBe(
        404,
      );
    } finally {
      await withEditor.close();
      rmSync(folder, { recursive: true });
    }
  });
});
