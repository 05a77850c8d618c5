/** The requests that the portal forwards to the content service, and those that it does not. */

import { describe, expect, it } from "vitest";
import type { HttpRequest, HttpResponse } from "../../src/http/types.js";
import { createPortal, type PortalOptions } from "../../src/portal/index.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { memoryFiles } from "../../storage/files/index.js";
import { contentSite, credentials, idOf, type Role } from "../support/content-site.js";

const PAGE = { "x-postbell-portal": "1", "content-type": "application/json" };

function portalOf({
  site,
  ...options
}: Partial<PortalOptions> & { site?: Parameters<typeof contentSite>[0] } = {}) {
  const content = contentSite({ files: memoryFiles(), ...site });
  let role: Role | undefined;
  const portal = createPortal({
    content,
    ...options,
    authorize: () => ({ name: "Somebody", userId: role === undefined ? undefined : idOf(role) }),
  });
  const ask = async (
    as: Role | undefined,
    line: string,
    { body, headers = {} }: { body?: object | string; headers?: Record<string, string> } = {},
  ) => {
    role = as;
    const [method = "", address = ""] = line.split(" ");
    const [path = "", query = ""] = address.split("?");
    const request: HttpRequest = {
      method,
      path: `/api/content${path}`,
      query,
      headers: { ...(method === "GET" ? {} : PAGE), host: "localhost", ...headers },
      body: body === undefined ? null : Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
      baseUrl: "http://localhost",
    };
    const unanswered: HttpResponse = { status: 404, headers: {}, body: null };
    const response = (await portal.handle(request)) ?? unanswered;
    const { body: bytes } = response;
    const text = bytes === null ? "" : await new Response(bytes as Uint8Array<ArrayBuffer>).text();
    const json = String(response.headers["content-type"]).includes("json");
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: json ? JSON.parse(text) : undefined,
    };
  };
  return { content, ask };
}

const draft = { title: "A draft", status: "draft" };

describe("the console's API", () => {
  it("asks in the name of the visitor's user, with his rights", async () => {
    const { ask } = portalOf();
    const created = await ask("author", "POST /posts", { body: draft });
    expect(created).toMatchObject({
      status: 201,
      json: { body: { author: idOf("author"), status: "draft" } },
    });
    const { id } = created.json.body;
    expect(await ask("contributor", `GET /posts/${id}?context=edit`)).toMatchObject({
      status: 403,
      json: { error: { code: "rest_forbidden_context" } },
    });
    expect(await ask("contributor", `POST /posts/${id}`, { body: { title: "Mine" } })).toMatchObject({
      status: 403,
    });
    expect(await ask("editor", `GET /posts/${id}?context=edit`)).toMatchObject({
      status: 200,
      json: { body: { title: { raw: "A draft" } }, allow: expect.arrayContaining(["POST", "DELETE"]) },
    });
  });

  it("lets credentials and other words about the sender have no effect", async () => {
    const { ask } = portalOf();
    const headers = { authorization: credentials("administrator"), cookie: "session=admin" };
    expect(await ask("subscriber", "POST /posts", { body: draft, headers })).toMatchObject({ status: 403 });
  });

  it("is closed to a visitor without a user", async () => {
    const { ask } = portalOf();
    for (const line of [
      "GET /posts",
      "POST /posts",
      "GET /users/me",
      "GET /file?name=a.png",
      "POST /posts/1/revisions/2/restore",
    ]) {
      expect(await ask(undefined, line, { body: {} })).toMatchObject({
        status: 404,
        json: { error: { code: "not_found" } },
      });
    }
  });

  it("answers no other route of the content service", async () => {
    const { content, ask } = portalOf();
    const known = Object.keys(content.openApi()["paths"] as object).map((path) =>
      path.replace("/core/v2", ""),
    );
    const open = [];
    for (const path of known) {
      const filled = path.replaceAll(/\{\w+\}/g, "1");
      const { status, json } = await ask("administrator", `GET ${filled}`);
      if (status !== 404 || json !== undefined) open.push(path);
    }
    const own = ["posts", "pages", "media"].flatMap((base) => [`/${base}`, `/${base}/{id}`]);
    const revisions = ["posts", "pages"].flatMap((base) => [
      `/${base}/{parent}/revisions`,
      `/${base}/{parent}/revisions/{id}`,
    ]);
    expect(open.sort()).toEqual([...own, ...revisions, "/users/me"].sort());
  });

  it("lets no request stand for another one", async () => {
    const { ask } = portalOf();
    const { id } = (await ask("editor", "POST /posts", { body: { ...draft, status: "publish" } })).json.body;
    const override = { headers: { "x-http-method-override": "DELETE" }, body: {} };
    for (const parameter of ["_method=DELETE", "%5Fmethod=DELETE", ".method=DELETE", "_method[]=DELETE"]) {
      expect(await ask("editor", `POST /posts/${id}?${parameter}&force=true`, override)).toMatchObject({
        json: { body: { id, status: "publish" } },
      });
    }
    const script = await ask("editor", `GET /posts/${id}?_jsonp=alert`);
    expect(script.headers["content-type"]).toMatch(/^application\/json/);
    expect(script.json).toMatchObject({ body: { id } });
  });

  it("refuses to write over a newer state", async () => {
    const { ask } = portalOf();
    const { id } = (await ask("editor", "POST /posts", { body: draft })).json.body;
    const headers = { "if-unmodified-since": new Date(0).toUTCString() };
    expect(await ask("editor", `POST /posts/${id}`, { body: { title: "Mine" }, headers })).toMatchObject({
      status: 412,
      json: { error: { code: "rest_precondition_failed" } },
    });
  });

  it("names the field at fault and says what is wrong with it", async () => {
    const { ask } = portalOf();
    expect(await ask("editor", "POST /posts", { body: { ...draft, status: "shouted" } })).toMatchObject({
      status: 400,
      json: {
        error: {
          code: "rest_invalid_param",
          field: "status",
          message: expect.stringContaining("status is not"),
        },
      },
    });
  });

  it("restores a revision with the user's rights", async () => {
    const { content, ask } = portalOf();
    const { id } = (await ask("author", "POST /posts", { body: draft })).json.body;
    for (const title of ["Second", "Third"]) await ask("author", `POST /posts/${id}`, { body: { title } });
    const revisions = (await ask("author", `GET /posts/${id}/revisions?context=edit`)).json.body;
    const second = revisions.find((revision: { title: { raw: string } }) => revision.title.raw === "Second");
    const restore = `POST /posts/${id}/revisions/${second.id}/restore`;
    expect(await ask("contributor", restore, { body: {} })).toMatchObject({
      status: 403,
      json: { error: { code: "rest_cannot_edit" } },
    });
    const headers = { "if-unmodified-since": new Date(0).toUTCString() };
    expect(await ask("author", restore, { body: {}, headers })).toMatchObject({
      status: 412,
      json: { error: { code: "rest_precondition_failed" } },
    });
    expect(await ask("author", restore, { body: {} })).toMatchObject({ status: 200 });
    expect(await ask("author", "POST /posts/99/revisions/98/restore", { body: {} })).toMatchObject({
      status: 404,
    });
    const { body } = await content.request({
      method: "GET",
      path: `/core/v2/posts/${id}`,
      query: { context: "edit" },
      as: idOf("author"),
    });
    expect(body).toMatchObject({ title: { raw: "Second" } });
  });

  it("serves files of the site so that nothing in them can run here", async () => {
    const { content, ask } = portalOf();
    const upload = await content.handleAs({
      request: {
        method: "POST",
        path: "/core/v2/media",
        query: "",
        headers: { "content-type": "text/plain", "content-disposition": 'attachment; filename="notes.txt"' },
        body: Buffer.from("Ward notes"),
        baseUrl: "http://localhost",
      },
      as: idOf("author"),
    });
    const { source_url: address } = JSON.parse(Buffer.from(upload?.body as Uint8Array).toString());
    const name = address.split("/uploads/")[1];
    const file = await ask("subscriber", `GET /file?name=${encodeURIComponent(name)}`);
    expect(file).toMatchObject({
      status: 200,
      text: "Ward notes",
      headers: {
        "content-security-policy": "default-src 'none'; sandbox",
        "x-content-type-options": "nosniff",
        "content-disposition": "attachment",
        "cache-control": expect.stringContaining("private"),
      },
    });
    for (const other of ["..%2f..%2fetc%2fpasswd", "", "nothing.png"]) {
      expect(await ask("subscriber", `GET /file?name=${other}`)).toMatchObject({ status: 404 });
    }
  });
});

const FORM = {
  "content-type": "application/x-www-form-urlencoded",
  "sec-fetch-site": "same-origin",
};
const formOf = (content: string): string => new URLSearchParams({ content }).toString();

describe("the preview of a content", () => {
  const created = async (made: ReturnType<typeof portalOf>): Promise<number> =>
    (await made.ask("author", "POST /posts", { body: draft })).json.body.id;

  it("is rendered as it would be served, and stores nothing", async () => {
    const made = portalOf();
    const id = await created(made);
    const body = formOf('Dr. "Who"\r\n\r\n<strong>Monday</strong>');
    const { status, text, headers } = await made.ask("author", `POST /posts/${id}/preview`, {
      body,
      headers: FORM,
    });
    expect([status, headers["content-type"]]).toEqual([200, "text/html; charset=utf-8"]);
    expect(text).toContain("<p>Dr. &#8220;Who&#8221;</p>\n<p><strong>Monday</strong></p>");
    const stored = await made.ask("author", `GET /posts/${id}?context=edit`);
    expect(stored.json.body.content.raw).toBe("");
    expect((await made.ask("author", `GET /posts/${id}/revisions`)).json.body).toEqual([]);
  });

  it("forbids scripts, frames, forms and other origins, and may be framed by the portal only", async () => {
    const made = portalOf({
      frameAncestors: ["https://app.example.com"],
      site: { site: { url: "http://localhost", name: "x", uploads: "https://cdn.example.org/files" } },
    });
    const id = await created(made);
    const { headers } = await made.ask("author", `POST /posts/${id}/preview`, {
      body: formOf("x"),
      headers: FORM,
    });
    expect(headers["content-security-policy"]).toBe(
      "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src 'self' https://cdn.example.org; media-src 'self' https://cdn.example.org; base-uri 'none'; form-action 'none'; frame-ancestors 'self' https://app.example.com",
    );
    expect(headers).toMatchObject({
      "referrer-policy": "no-referrer",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    });
  });

  it("keeps nothing hostile, also of an administrator's text", async () => {
    const made = portalOf();
    const id = await created(made);
    const hostile = `<script>bad()</script><img src=x onerror=bad()><iframe src="https://evil.example"></iframe><base href="https://evil.example"><meta http-equiv=refresh content="0;url=https://evil.example"><form action="https://evil.example"><input></form><a href="javascript:bad()">x</a>`;
    const { text } = await made.ask("administrator", `POST /posts/${id}/preview`, {
      body: formOf(hostile),
      headers: FORM,
    });
    const shown = text.slice(text.indexOf("</style>"));
    expect(shown).not.toMatch(/<script|onerror|<iframe|<base|<meta|<form|javascript:/);
    expect(shown).toContain("<img");
  });

  it.each([
    ["another origin", { ...FORM, "sec-fetch-site": "cross-site" }],
    ["another site of the domain", { ...FORM, "sec-fetch-site": "same-site" }],
    ["no browser", { "content-type": FORM["content-type"] }],
    [
      "an old browser on another page",
      { "content-type": FORM["content-type"], origin: "https://evil.example" },
    ],
  ])("is not for a form of %s", async (_, headers) => {
    const made = portalOf();
    const id = await created(made);
    const bare = Object.fromEntries(Object.entries({ ...headers, "x-postbell-portal": undefined }));
    const answer = await made.ask("author", `POST /posts/${id}/preview`, {
      body: formOf("x"),
      headers: bare as Record<string, string>,
    });
    expect(answer).toMatchObject({ status: 403, json: { error: { code: "foreign_request" } } });
  });

  it("lets a form change nothing else", async () => {
    const made = portalOf();
    const id = await created(made);
    for (const path of [
      `/posts/${id}`,
      `/posts/${id}/preview/`,
      `/posts/${id}/revisions/1/restore`,
      "/posts/preview",
    ]) {
      const headers = { ...FORM, "x-postbell-portal": undefined } as unknown as Record<string, string>;
      expect(await made.ask("author", `POST ${path}`, { body: formOf("x"), headers })).toMatchObject({
        status: expect.toSatisfy((status) => status === 403 || status === 404),
      });
    }
    expect((await made.ask("author", `GET /posts/${id}?context=edit`)).json.body.title.raw).toBe("A draft");
  });

  it("is refused in the frame, in words, to whoever may not edit, and for what is too long", async () => {
    const made = portalOf();
    const id = await created(made);
    for (const [role, path, content, status, text] of [
      ["subscriber", `/posts/${id}`, "x", 403, "not allowed to edit"],
      ["author", "/posts/999", "x", 404, "Invalid post ID"],
      ["author", "/posts/abc", "x", 404, "Invalid post ID"],
      ["administrator", `/posts/${id}`, "a".repeat(70_000), 413, "at most 65536 characters"],
      ["author", `/posts/${id}`, "a".repeat(1_100_000), 413, "larger than 1048576 bytes"],
    ] as const) {
      const answer = await made.ask(role, `POST ${path}/preview`, { body: formOf(content), headers: FORM });
      expect(answer).toMatchObject({ status, text: expect.stringContaining(text) });
      expect(answer.headers["content-security-policy"]).toMatch(/^sandbox; default-src 'none'/);
    }
    const json = await made.ask("author", `POST /posts/${id}/preview`, { body: { content: "x" } });
    expect(json).toMatchObject({ status: 403 });
  });
});

describe("the address of the host's editor", () => {
  const editorOf = async (editUrl: PortalOptions["editUrl"], role: Role = "author") => {
    const errors: unknown[] = [];
    const logger = { ...console, error: (fields: unknown) => errors.push(fields) } as never;
    const made = portalOf({ editUrl, logger });
    const { id } =
      (await made.ask("author", "POST /pages", { body: draft })).json?.body ??
      (await made.ask("editor", "POST /pages", { body: draft })).json.body;
    const answer = await made.ask(role, `GET /pages/${id}/editor`);
    return { ...answer, id, errors: errors.length };
  };

  it("is asked for one record, with what the host needs to find it", async () => {
    const asked: unknown[] = [];
    const answer = await editorOf((record) => {
      asked.push(record);
      return `https://www.example.org/edit?post=${record.id}`;
    }, "editor");
    expect(answer).toMatchObject({
      status: 200,
      json: { url: `https://www.example.org/edit?post=${answer.id}` },
      errors: 0,
    });
    expect(asked).toEqual([{ id: answer.id, type: "page", slug: "", status: "draft", title: "A draft" }]);
  });

  it.each<[string, unknown]>([
    ["a script", "javascript:alert(1)"],
    ["a script in disguise", " \tjava\nscript:alert(1)"],
    ["a document", "data:text/html,<script>alert(1)</script>"],
    ["a path", "/edit"],
    ["another protocol", "ftp://example.org"],
    ["something long", `https://example.org/${"a".repeat(3_000)}`],
    ["no text", 12],
    ["an object", { href: "https://example.org" }],
  ])("is not %s: that is logged, and there is no link", async (_, given) => {
    const answer = await editorOf(() => given as string, "editor");
    expect(answer).toMatchObject({ status: 200, json: { url: null }, errors: 1 });
  });

  it("is missing if the host throws, rejects or returns null", async () => {
    const throws = (): never => {
      throw new Error("no editor");
    };
    expect(await editorOf(throws, "editor")).toMatchObject({ json: { url: null }, errors: 1 });
    const rejects = () => Promise.reject(new Error("no editor"));
    expect(await editorOf(rejects, "editor")).toMatchObject({ json: { url: null }, errors: 1 });
    expect(await editorOf(() => null, "editor")).toMatchObject({ json: { url: null }, errors: 0 });
    expect(await editorOf(undefined, "editor")).toMatchObject({ json: { url: null }, errors: 0 });
  });

  it("is not asked for on behalf of whoever may not edit the record", async () => {
    let calls = 0;
    const count = (): string => {
      calls += 1;
      return "https://example.org/";
    };
    expect(await editorOf(count, "subscriber")).toMatchObject({ status: 403 });
    expect(calls).toBe(0);
  });

  it("is given up after five seconds", async () => {
    const clock = manualClock(0);
    const made = portalOf({ editUrl: () => new Promise<string>(() => {}), clock, logger: false });
    const { id } = (await made.ask("editor", "POST /posts", { body: draft })).json.body;
    const answer = made.ask("editor", `GET /posts/${id}/editor`);
    await expect.poll(() => clock.advance(5_000).then(() => "advanced")).toBe("advanced");
    for (let turn = 0; turn < 20; turn += 1) await clock.advance(1_000);
    expect(await answer).toMatchObject({ json: { url: null } });
  });
});

it("says which zone the site's dates are in", async () => {
  const zoneOf = async (timezone?: string) => {
    const made = portalOf({
      site: { site: { url: "http://localhost", name: "x", ...(timezone && { timezone }) } },
    });
    return (await made.ask("subscriber", "GET /site")).json;
  };
  expect(await zoneOf("Europe/Berlin")).toEqual({ zone: "Europe/Berlin" });
  expect(await zoneOf()).toEqual({ zone: "UTC" });
});
