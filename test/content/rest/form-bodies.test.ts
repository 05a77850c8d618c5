/** Every route that takes JSON takes forms too. */

import { describe, expect, it } from "vitest";
import { contentSite, credentials } from "../../support/content-site.js";

type Fields = readonly (readonly [name: string, value: string])[];

const ROUTES: readonly (readonly [method: string, path: string, fields: Fields, expected: object])[] = [
  [
    "POST",
    "/core/v2/posts",
    [
      ["title", "T"],
      ["tags[]", "1"],
      ["meta[footnotes]", "[]"],
    ],
    { title: { raw: "T" } },
  ],
  [
    "PUT",
    "/core/v2/posts/1",
    [
      ["title[raw]", "T"],
      ["sticky", "1"],
    ],
    { title: { raw: "T" }, sticky: true },
  ],
  ["PATCH", "/core/v2/posts/1", [["content", "a & b"]], { content: { raw: "a & b" } }],
  ["POST", "/core/v2/posts/1/autosaves", [["title", "T"]], { title: { raw: "T" } }],
  [
    "POST",
    "/core/v2/pages",
    [
      ["title", "T"],
      ["menu_order", "3"],
    ],
    { menu_order: 3 },
  ],
  [
    "POST",
    "/core/v2/blocks",
    [
      ["title", "T"],
      ["content", "c"],
    ],
    { title: { raw: "T" } },
  ],
  [
    "POST",
    "/core/v2/menu-items",
    [
      ["title", "T"],
      ["url", "https://a.example/"],
    ],
    { title: { raw: "T" } },
  ],
  ["POST", "/core/v2/tags", [["name", "Tag"]], { name: "Tag" }],
  ["POST", "/core/v2/categories", [["name", "Ward"]], { name: "Ward" }],
  ["POST", "/core/v2/settings", [["title", "New"]], { title: "New" }],
  [
    "POST",
    "/core/v2/users/me",
    [["meta[persisted_preferences][core][fullscreenMode]", "x"]],
    { meta: { persisted_preferences: { core: { fullscreenMode: "x" } } } },
  ],
  [
    "POST",
    "/batch/v1",
    [
      ["requests[0][path]", "/core/v2/posts"],
      ["requests[0][body][title]", "T"],
    ],
    { responses: [{ status: 201 }] },
  ],
];

async function send(method: string, path: string, body: FormData | URLSearchParams) {
  const content = contentSite({ settings: { writable: ["title"] } });
  await content.request({ method: "POST", path: "/core/v2/posts", body: { title: "First" }, as: 1 });
  const request = new Request("http://localhost", { method: "POST", body });
  const response = await content.handle({
    ...{ method, path, query: "context=edit", baseUrl: "http://localhost/api" },
    headers: {
      authorization: credentials("administrator"),
      "content-type": request.headers.get("content-type") ?? "",
    },
    body: new Uint8Array(await request.arrayBuffer()),
  });
  const json: unknown = JSON.parse(Buffer.from((response?.body ?? "") as Uint8Array).toString());
  return { status: response?.status, json };
}

describe("a form", () => {
  it.each(ROUTES)("is the body of %s %s, URL-encoded or as multipart form data", async (...route) => {
    const [method, path, fields, expected] = route;
    const form = new FormData();
    for (const [name, value] of fields) form.append(name, value);
    for (const body of [form, new URLSearchParams(fields as [string, string][])]) {
      const { status, json } = await send(method, path, body);
      expect([200, 201, 207], JSON.stringify(json)).toContain(status);
      expect(json).toMatchObject(expected);
    }
  });

  it("with a file is refused where no file is taken", async () => {
    const form = new FormData();
    form.append("title", "T");
    form.append("picture", new Blob(["x"]), "a.png");
    expect(await send("POST", "/core/v2/posts", form)).toMatchObject({
      status: 400,
      json: {
        code: "rest_invalid_multipart",
        message: 'Only uploads of media take a file; the field "picture" has one.',
      },
    });
  });
});
