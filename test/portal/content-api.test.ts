/** The requests that the portal forwards to the content service, and those that it does not. */

import { describe, expect, it } from "vitest";
import type { HttpRequest, HttpResponse } from "../../src/http/types.js";
import { createPortal } from "../../src/portal/index.js";
import { memoryFiles } from "../../storage/files/index.js";
import { contentSite, credentials, idOf, type Role } from "../support/content-site.js";

const PAGE = { "x-postbell-portal": "1", "content-type": "application/json" };

function portalOf() {
  const content = contentSite({ files: memoryFiles() });
  let role: Role | undefined;
  const portal = createPortal({
    content,
    authorize: () => ({ name: "Somebody", userId: role === undefined ? undefined : idOf(role) }),
  });
  const ask = async (
    as: Role | undefined,
    line: string,
    { body, headers = {} }: { body?: object; headers?: Record<string, string> } = {},
  ) => {
    role = as;
    const [method = "", address = ""] = line.split(" ");
    const [path = "", query = ""] = address.split("?");
    const request: HttpRequest = {
      method,
      path: `/api/content${path}`,
      query,
      headers: { ...(method === "GET" ? {} : PAGE), host: "localhost", ...headers },
      body: body === undefined ? null : Buffer.from(JSON.stringify(body)),
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
    const upload = await content.handleAs(
      {
        method: "POST",
        path: "/core/v2/media",
        query: "",
        headers: { "content-type": "text/plain", "content-disposition": 'attachment; filename="notes.txt"' },
        body: Buffer.from("Ward notes"),
        baseUrl: "http://localhost",
      },
      idOf("author"),
    );
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
