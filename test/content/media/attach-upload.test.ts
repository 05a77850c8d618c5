/** Uploads over HTTP that name a post, and those that a client sends without the usual headers. */

import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nodeAdapter } from "../../../adapters/node.js";
import { memoryFiles } from "../../../storage/files/index.js";
import { callsOf } from "../../support/content-call.js";
import { contentSite, credentials, type Role } from "../../support/content-site.js";
import { listen } from "../../support/hosts.js";
import { type Reply, type Sent, send } from "../../support/http-client.js";
import { stored } from "../../support/image-site.js";

const files = memoryFiles();
const site = contentSite({ files });
const call = callsOf(site);
let host: Awaited<ReturnType<typeof listen>>;
const ids = { own: 0, other: 0, page: 0, media: 0 };

const TEXT = { "content-type": "text/plain", "content-disposition": "attachment; filename=a.txt" };

const upload = (as: Role | undefined, query: string, sent: Sent = {}): Promise<Reply> =>
  send(host.origin, `/core/v2/media${query}`, {
    method: "POST",
    ...sent,
    headers: { ...(as && { authorization: credentials(as) }), ...(sent.headers ?? TEXT) },
    body: sent.body ?? "Some text.",
  });

const toResult = ({ status, json, headers }: Reply): unknown[] => [
  status,
  (json as { code?: string }).code,
  headers.allow,
];

beforeAll(async () => {
  host = await listen(createServer(nodeAdapter(site)));
  const create = async (as: Role, path: string): Promise<number> =>
    (await call(`POST ${path}`, { as, body: { title: "A post", status: "publish" } })).body.id;
  ids.own = await create("author", "/posts");
  ids.other = await create("editor", "/posts");
  ids.page = await create("editor", "/pages");
  ids.media = ((await upload("editor", "")).json as { id: number }).id;
});
afterAll(() => host.close());

describe("an upload to a post", () => {
  test.each([
    ["author", "own"],
    ["editor", "own"],
    ["administrator", "other"],
    ["administrator", "page"],
  ] as const)("by the %s belongs to it (%s)", async (as, target) => {
    const { status, json } = await upload(as, `?post=${ids[target]}`);
    expect([status, json]).toMatchObject([201, { post: ids[target] }]);
  });

  test.each([
    ["author", "other"],
    ["author", "page"],
  ] as const)("that the %s may not edit is refused, and nothing is stored (%s)", async (as, target) => {
    const before = await stored(files);
    expect(toResult(await upload(as, `?post=${ids[target]}`))).toEqual([403, "rest_cannot_edit", "GET"]);
    expect(await stored(files)).toEqual(before);
  });

  test.each(["999999999", "-1", "9007199254740991"])(
    "of the id %s is refused as one of a stranger",
    async (id) => {
      const before = await stored(files);
      expect(toResult(await upload("administrator", `?post=${id}`))).toEqual([
        403,
        "rest_cannot_edit",
        "GET",
      ]);
      expect(await stored(files)).toEqual(before);
    },
  );

  test("that is a media item itself is refused after the permission", async () => {
    const query = `?post=${ids.media}`;
    expect(toResult(await upload("editor", query))).toEqual([400, "rest_invalid_param", "GET, POST"]);
    expect(toResult(await upload("author", query))).toEqual([403, "rest_cannot_edit", "GET"]);
  });

  test("with an invalid id is an invalid parameter, and allows no upload", async () => {
    expect(toResult(await upload("administrator", "?post=x"))).toEqual([400, "rest_invalid_param", "GET"]);
  });

  test("with the id 0 belongs to no post", async () => {
    const { status, json } = await upload("author", "?post=0");
    expect([status, json]).toMatchObject([201, { post: null }]);
  });

  test.each([
    ["contributor", 403],
    ["subscriber", 403],
    [undefined, 401],
  ] as const)(
    "by somebody who may not upload (%s) is refused for that, whatever the post",
    async (as, status) => {
      for (const id of [ids.own, ids.media, 999_999_999])
        expect(toResult(await upload(as, `?post=${id}`))).toEqual([status, "rest_cannot_create", "GET"]);
    },
  );

  test("cannot be made of an item that names a missing post later", async () => {
    const path = `/core/v2/media/${ids.media}`;
    const headers = { authorization: credentials("author"), "content-type": "application/json" };
    const moved = await send(host.origin, path, { method: "POST", headers, body: `{"post":${ids.own}}` });
    expect(toResult(moved)).toEqual([403, "rest_cannot_edit", "GET"]);
  });
});

describe("an upload of JSON", () => {
  const JSON_TYPE = { "content-type": "application/json" };

  test.each(["{}", '{"title":"x"}'])("without a disposition names no file: %s", async (body) => {
    const [status, code] = toResult(await upload("editor", "", { headers: JSON_TYPE, body }));
    expect([status, code]).toEqual([400, "rest_upload_no_content_disposition"]);
  });

  test("without data says so, of known length or not", async () => {
    for (const headers of [JSON_TYPE, {}, { ...TEXT, "transfer-encoding": "chunked" }]) {
      const [status, code] = toResult(await upload("editor", "", { headers, body: "" }));
      expect([headers, status, code]).toEqual([headers, 400, "rest_upload_no_data"]);
    }
  });

  test("with a disposition is a file like any other", async () => {
    const named = (name: string): Sent => ({
      headers: { ...JSON_TYPE, "content-disposition": `attachment; filename="${name}"` },
      body: '{"title":"x"}',
    });
    const { status, json } = await upload("editor", "", named("data.txt"));
    expect([status, json]).toMatchObject([201, { mime_type: "text/plain", title: { raw: "data" } }]);
    const refused = await upload("editor", "", named("data.json"));
    expect(toResult(refused).slice(0, 2)).toEqual([400, "rest_upload_sideload_error"]);
  });
});

describe("a list of media", () => {
  test("is filtered by media types that WordPress knows, and by no other name", async () => {
    const list = async (query: string): Promise<string[]> => {
      const { json } = await send(host.origin, `/core/v2/media?per_page=100&${query}`);
      return [...new Set((json as { mime_type: string }[]).map(({ mime_type: type }) => type))].sort();
    };
    const csv = { ...TEXT, "content-disposition": "attachment; filename=a.csv" };
    expect((await upload("editor", "", { headers: csv })).status).toBe(201);
    const ALL = ["text/csv", "text/plain"];
    for (const name of ["text/bogus", "text", "text/", "TEXT/CSV", "*/*", "__proto__", "constructor"])
      expect([name, await list(`mime_type=${name}`)]).toEqual([name, ALL]);
    expect(await list("mime_type=text/bogus,text/csv")).toEqual(["text/csv"]);
    expect(await list("mime_type[]=bogus&media_type=text")).toEqual(ALL);
    expect(await list("mime_type=bogus&media_type=video")).toEqual([]);
    expect(await list("mime_type=video/x-flv")).toEqual([]);
  });
});

describe("the title of an upload", () => {
  // The file gets a number if others have its name.
  const fromFile = expect.stringMatching(/^a(-\d+)?$/);
  test.each([
    ["", fromFile],
    ["?title=", fromFile],
    ["?title=0", fromFile],
    ["?title[raw]=0", fromFile],
    ["?title=Given", "Given"],
  ])("is the file's name unless the query has one: %j", async (query, raw) => {
    expect((await upload("author", query)).json).toMatchObject({ title: { raw } });
  });
});
