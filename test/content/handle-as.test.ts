/** `handleAs`: the HTTP interface on behalf of a user whom the host knows already. */

import { describe, expect, it } from "vitest";
import type { HttpRequest, HttpResponse } from "../../src/http/types.js";
import { memoryFiles } from "../../storage/files/index.js";
import { contentSite, credentials, idOf } from "../support/content-site.js";

const requestOf = (request: Partial<HttpRequest>): HttpRequest => ({
  method: "GET",
  path: "/core/v2/users/me",
  query: "context=edit",
  headers: {},
  body: null,
  baseUrl: "https://example.org/api",
  ...request,
});

const jsonOf = (response: HttpResponse | undefined) =>
  JSON.parse(Buffer.from(response?.body as Uint8Array).toString());

describe("handleAs", () => {
  it("answers as the user it is told, whatever the request says of its sender", async () => {
    const site = contentSite();
    const request = requestOf({ headers: { authorization: credentials("administrator") } });
    expect(jsonOf(await site.handleAs({ request, as: idOf("author") }))).toMatchObject({
      id: idOf("author"),
      roles: ["author"],
    });
  });

  it("does not ask the host's authenticate", async () => {
    const site = contentSite({
      authenticate: () => {
        throw new Error("asked");
      },
    });
    expect((await site.handle(requestOf({})))?.status).toBe(401);
    expect((await site.handleAs({ request: requestOf({}), as: idOf("editor") }))?.status).toBe(200);
  });

  it("answers 401 where nobody has the id", async () => {
    const response = await contentSite().handleAs({ request: requestOf({}), as: 99 });
    expect(response?.status).toBe(401);
    expect(jsonOf(response)).toMatchObject({ code: "rest_not_logged_in" });
  });

  it("takes an upload as it arrives, with the user's rights", async () => {
    const site = contentSite({ files: memoryFiles() });
    let pieces = 0;
    async function* bytes() {
      for (const piece of ["one ", "two ", "three"]) {
        pieces += 1;
        yield Buffer.from(piece);
      }
    }
    const upload = (): HttpRequest =>
      requestOf({
        method: "POST",
        path: `/${site.namespace}/media`,
        query: "",
        headers: {
          "content-type": "application/octet-stream",
          "content-disposition": 'attachment; filename="notes.txt"',
        },
        body: bytes(),
      });
    expect((await site.handleAs({ request: upload(), as: idOf("contributor") }))?.status).toBe(403);
    expect(pieces).toBe(0);
    const response = await site.handleAs({ request: upload(), as: idOf("author") });
    expect(response?.status).toBe(201);
    expect(jsonOf(response)).toMatchObject({ author: idOf("author"), filesize: 13, mime_type: "text/plain" });
  });

  it.each([
    ["restoreRevision", { postId: 1, revision: 2, as: 1 }, "did you mean 'revisionId'?"],
    ["preview", { post: 1, content: "x", as: 1 }, "did you mean 'postId'?"],
    ["handleAs", { request: requestOf({}), user: 1 }, "it takes 'request', 'as'."],
    ["handleAs", undefined, "handleAs() takes an object with request, as."],
    ["handleAs", { as: 1 }, "handleAs() takes request, in the form that adapters pass."],
    ["handleAs", { request: requestOf({}) }, "handleAs() takes as: the id of a user"],
    ["request", { method: "GET", path: "/core/v2/posts" }, "request() takes as: the id of a user"],
    ["preview", { content: "x" }, "preview() takes as: the id of a user"],
    [
      "restoreRevision",
      { postId: 1, revisionId: 2, as: "1" },
      "restoreRevision() takes as: the id of a user",
    ],
    ["preview", 12, "preview() takes an object with postId, content, as."],
  ] as const)("refuses another argument: %s", async (name, argument, message) => {
    const site = contentSite();
    await expect(site[name](argument as never)).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining(message) as string,
    });
  });

  it("leaves paths alone that are not the interface's", async () => {
    expect(
      await contentSite().handleAs({ request: requestOf({ path: "/elsewhere" }), as: idOf("editor") }),
    ).toBeUndefined();
  });
});
