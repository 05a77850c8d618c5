import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PostbellError } from "../../../src/core/errors.js";
import type { Logger } from "../../../src/core/logger.js";
import {
  AS_EDITOR,
  AS_READER,
  type Ask,
  ask,
  editor,
  httpRequest,
  nobody,
  notesRoutes,
  restServer,
  threeNotes,
} from "../../support/rest-host.js";

const server = restServer(notesRoutes(threeNotes()));

const codeOf = async (target: string, request?: Ask): Promise<string> => {
  const { status, json } = await ask(server, target, request);
  expect(json?.data?.status ?? status).toBe(status);
  return `${status} ${json?.code ?? ""}`.trim();
};

describe("a path", () => {
  it("is found with its parameters, a literal segment before a parameter", async () => {
    expect((await ask(server, "/core/v2/notes/2")).json.id).toBe(2);
    expect((await ask(server, "/core/v2/notes/4/drafts/5")).json).toEqual({ id: 5, parent: 4 });
    expect((await ask(server, "/core/v2/kinds/a-b_C1")).json).toEqual({ kind: "a-b_C1" });
    expect((await ask(server, "/core/v2/kinds/all")).json).toEqual({ all: true });
  });

  it("tolerates one trailing slash and is decoded once", async () => {
    expect(await codeOf("/core/v2/notes/")).toBe("200");
    expect(await codeOf("/core/v2/notes/%32")).toBe("200");
    expect(await codeOf("/core/v2/%6eotes/2")).toBe("200");
    expect((await ask(server, "")).json.name).toBe("Clinic");
  });

  it.each([
    "/nope",
    "/core",
    "/core/v2/nope",
    "//",
    "//core/v2/notes",
    "/core/v2//notes",
    "/core/v2/notes//",
    "/core/v2/notes/1abc",
    "/core/v2/notes/1%00",
    "/core/v2/notes/%D9%A1",
    "/core/v2/notes/1e0",
    "/core/v2/notes/-1",
    "/core/v2/notes/1.0",
    "/core/v2/notes/%2531",
    "/core/v2/notes%2F1",
    "/core/v2/notes/%zz",
    "/core/v2/kinds/%zz",
    "/core/v2/kinds/a.b",
    "/core/v2/notes/1/none",
    "/core/v2/__proto__",
    "/core/v2/notes/../notes",
    "/CORE/v2/notes",
    "/core/V2/notes",
    "/core/v2/\u212Ainds/all",
    "/core/v2/%E2%84%AAinds/all",
    "/oembed/1.0/EMBED",
  ])("%s is no route", async (path) => {
    expect(await codeOf(path)).toBe("404 rest_no_route");
    expect((await ask(server, path)).headers).not.toHaveProperty("allow");
  });

  it("ignores the case of a path below the namespace, but not of its parameters", async () => {
    const paths = ["/core/v2/NOTES/2", "/core/v2/Notes/4/DRAFTS/5", "/core/v2/KINDS/Big"];
    const answers = await Promise.all(paths.map(async (path) => (await ask(server, path)).json));
    expect(answers).toMatchObject([{ id: 2 }, { id: 5, parent: 4 }, { kind: "Big" }]);
  });

  it("without a namespace ignores the case of all its letters", async () => {
    const batch = { method: "POST", headers: AS_EDITOR, body: { requests: [] } };
    expect((await ask(server, "/BATCH/V1", batch)).status).toBe(207);
    const item = { method: "PUT", path: "/core/v2/NOTES/2", body: { title: "n2" } };
    const { json } = await ask(server, "/batch/v1", { ...batch, body: { requests: [item] } });
    expect(json.responses).toMatchObject([{ status: 200, body: { id: 2 } }]);
  });

  it("in another case obeys the same limits as the usual spelling", async () => {
    const refused = await ask(server, "/core/v2/NOTES/2", { method: "PUT", body: { title: "x" } });
    expect([refused.status, refused.json.code]).toEqual([401, "rest_cannot_edit"]);
    const other = await ask(server, "/core/v2/NOTES/2?id=3", { headers: AS_EDITOR });
    expect([other.status, other.json.code]).toEqual([400, "rest_invalid_param"]);
  });

  it("may name a record that cannot exist", async () => {
    for (const id of ["0", "99999999999999999999", "9".repeat(400)]) {
      expect(await codeOf(`/core/v2/notes/${id}`)).toBe("404 rest_note_invalid_id");
    }
  });

  it("of no namespace is left to the host, unless the server answers for all", async () => {
    const passing = restServer(notesRoutes(threeNotes()), { unknownPaths: "pass" });
    for (const path of ["/nope", "/health", "/corex/v2/notes", "/notes"]) {
      expect(await passing.handle(httpRequest(path))).toBeUndefined();
    }
    for (const path of ["/core/nope", "/batch/nope", "/core"]) {
      expect((await passing.handle(httpRequest(path)))?.status).toBe(404);
    }
    expect((await passing.handle(httpRequest("/")))?.status).toBe(200);
  });

  it("of another namespace of WordPress is answered where the server stands in for WordPress", async () => {
    const routes = notesRoutes(threeNotes());
    const asWordPress = restServer(
      routes.map((route) => ({ ...route, namespace: route.namespace.replace("core", "wp") })),
      { unknownPaths: "pass" },
    );
    for (const path of ["/wp-site-health/v1/tests", "/wp-abilities/v1", "/wp-x/v1/", "/wp%2Dx/v12/a/b"]) {
      const { status, body } = (await asWordPress.handle(httpRequest(path))) ?? {};
      expect([path, status]).toEqual([path, 404]);
      expect(JSON.parse(Buffer.from(body as Uint8Array).toString())).toMatchObject({
        code: "rest_no_route",
        data: { status: 404 },
      });
    }
    const ofTheHost = [
      "/wp-admin/post.php",
      "/wp-content/v1.png",
      "/wp-login.php",
      "/wp-json/wp/v2",
      "/wp-x",
    ];
    for (const path of [...ofTheHost, "/wpx/v1", "/x/wp-y/v1", "/wp-/v1", "/wp-a/v1x", "/wp-%zz/v1"]) {
      expect([path, await asWordPress.handle(httpRequest(path))]).toEqual([path, undefined]);
    }
    const asCore = restServer(routes, { unknownPaths: "pass" });
    expect(await asCore.handle(httpRequest("/wp-site-health/v1/tests"))).toBeUndefined();
  });

  it("never brings the server down, whatever it is", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: "binary" }),
        fc.string({ unit: "binary" }),
        fc.constantFrom("GET", "HEAD", "POST", "OPTIONS", "DELETE", "TRACE"),
        async (path, query, method) => {
          const { status } = await ask(server, `/core/v2/${path}?${query}`, { method });
          expect(status).toBeLessThan(500);
        },
      ),
    );
  });
});

describe("a parameter of the server itself", () => {
  it("may have any shape", async () => {
    for (const name of ["_fields", "_embed", "_envelope", "_jsonp", "_pretty", "_method", "id", "context"]) {
      for (const shape of ["", "=", "=x", "[]=x", "[a]=x", "[][]=x", "[a][b]=x", "[0]=id&y[2]=x"]) {
        for (const method of ["GET", "POST", "OPTIONS"]) {
          const target = `/core/v2/notes?${name}${shape}`;
          expect([target, (await ask(server, target, { method })).status < 500]).toEqual([target, true]);
        }
      }
    }
  });
});

describe("a method", () => {
  it("that the path does not have is no route", async () => {
    expect(await codeOf("/core/v2/notes", { method: "DELETE", headers: AS_EDITOR })).toBe(
      "404 rest_no_route",
    );
    expect(await codeOf("/core/v2/notes/1", { method: "TRACE" })).toBe("404 rest_no_route");
    expect(await codeOf("/", { method: "POST", body: {} })).toBe("404 rest_no_route");
  });

  it("may be replaced on POST, by the query before the header", async () => {
    const notes = threeNotes();
    const overriding = restServer(notesRoutes(notes));
    const post = (query: string, header?: string) =>
      ask(overriding, `/core/v2/notes/1${query}`, {
        method: "POST",
        headers: { ...AS_EDITOR, ...(header === undefined ? {} : { "x-http-method-override": header }) },
      });
    expect((await post("?_method=get", "DELETE")).json.id).toBe(1);
    expect(notes.size).toBe(3);
    expect((await post("?_method=BOGUS")).json.code).toBe("rest_no_route");
    expect((await post("", "delete")).json.deleted).toBe(true);
    expect(notes.size).toBe(2);
  });

  it("may be replaced on POST by HEAD, whose response has no body", async () => {
    const head = await restServer(notesRoutes(threeNotes())).handle({
      ...{ method: "POST", path: "/core/v2/notes/1", query: "_method=head", baseUrl: "" },
      ...{ headers: AS_EDITOR, body: null },
    });
    expect(head?.status).toBe(200);
    expect(Buffer.from((head?.body ?? []) as Uint8Array)).toHaveLength(0);
    expect(head?.headers["allow"]).toContain("GET");
  });

  it("stays what it is on GET and HEAD, and where a body asks for another", async () => {
    const notes = threeNotes();
    const overriding = restServer(notesRoutes(notes));
    const headers = { ...AS_EDITOR, "x-http-method-override": "DELETE" };
    for (const method of ["GET", "HEAD"]) {
      expect((await ask(overriding, "/core/v2/notes/1?_method=DELETE", { method, headers })).status).toBe(
        200,
      );
    }
    const body = { _method: "DELETE", title: "x" };
    expect(
      (await ask(overriding, "/core/v2/notes/1", { method: "POST", headers: AS_EDITOR, body })).status,
    ).toBe(200);
    expect(notes.size).toBe(3);
  });

  it("HEAD is answered like GET, without the body", async () => {
    const get = await ask(server, "/core/v2/notes");
    const head = await ask(server, "/core/v2/notes", { method: "HEAD" });
    expect(head.text).toBe("");
    expect(head.headers).toEqual({ ...get.headers, "content-length": String(Buffer.byteLength(get.text)) });
    expect((await ask(server, "/core/v2/notes/9", { method: "HEAD" })).status).toBe(404);
  });
});

describe("the parameters of a request", () => {
  const write = (target: string, body: unknown, headers: Ask["headers"] = AS_EDITOR) =>
    ask(restServer(notesRoutes(threeNotes())), target, { method: "POST", headers, body });

  it("count in the body before the query, and null does not hide one", async () => {
    expect((await write("/core/v2/notes/1?title=query", { title: "body" })).json.title.raw).toBe("body");
    expect((await write("/core/v2/notes/1?title=query", { title: null })).json.title.raw).toBe("query");
    expect((await write("/core/v2/notes/1?title=query", {})).json.title.raw).toBe("query");
  });

  it("that are missing are reported first, then all invalid ones together", async () => {
    expect((await write("/core/v2/notes", { rank: -1 })).json).toMatchObject({
      code: "rest_missing_callback_param",
      data: { status: 400, params: ["title"] },
    });
    const { json } = await write("/core/v2/notes", { title: [], rank: -1 });
    expect(json.code).toBe("rest_invalid_param");
    expect(Object.keys(json.data.params)).toEqual(["title", "rank"]);
    expect(json.data.details.rank.code).toBe("rest_out_of_bounds");
  });

  it("are judged before the rights of the caller", async () => {
    expect((await write("/core/v2/notes", { title: "x", rank: -1 }, {})).status).toBe(400);
    expect((await write("/core/v2/notes", { title: "x" }, {})).status).toBe(401);
    expect((await write("/core/v2/notes", { title: "x" }, AS_READER)).status).toBe(403);
    expect((await write("/core/v2/notes/99", { title: "x" }, {})).status).toBe(404);
  });

  it.each([
    ["?id=1", {}, 200],
    ["?id=01", { id: "1" }, 200],
    ["", { id: 1 }, 200],
    ["", { id: null }, 200],
    ["?id=2", {}, 400],
    ["?id=1", { id: 2 }, 400],
    ["?id=2", { id: 1 }, 400],
    ["?id=abc", {}, 400],
    ["?id=1.5", {}, 400],
    ["?id=1x", {}, 400],
    ["?id=", {}, 400],
    ["?id[]=1", {}, 400],
    ["", { id: 1.5 }, 400],
    ["", { id: [] }, 400],
    ["", { id: true }, 400],
    ["", { id: 0 }, 400],
  ])("leave the id of the path alone: %s %j", async (query, body, status) => {
    for (const headers of [AS_EDITOR, {}]) {
      const answer = await write(`/core/v2/notes/1${query}`, body, headers);
      expect(answer.status).toBe(status === 200 && headers !== AS_EDITOR ? 401 : status);
      if (status !== 400) continue;
      expect(answer.json.code).toBe("rest_invalid_param");
      expect(Object.keys(answer.json.data.params)).toEqual(["id"]);
    }
  });

  it("are refused for a differing id before existence is looked at", async () => {
    expect((await write("/core/v2/notes/99?id=1", {})).status).toBe(400);
    expect(await codeOf("/core/v2/notes/4/drafts/5?parent=6")).toBe("400 rest_invalid_param");
    expect(await codeOf("/core/v2/kinds/a?kind=b")).toBe("400 rest_invalid_param");
    expect(await codeOf("/core/v2/kinds/a?kind=a")).toBe("200");
  });

  it("leave no trace on prototypes", async () => {
    await ask(server, "/core/v2/notes?__proto__[x]=1&constructor[prototype][x]=1");
    await write(
      "/core/v2/notes/1?__proto__[x]=1",
      '{"__proto__":{"x":1},"constructor":{"prototype":{"x":1}}}',
    );
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });

  it("are refused in numbers and depths that nobody needs", async () => {
    const many = Array.from({ length: 5000 }, (_, index) => `p${index}=1`).join("&");
    expect(await codeOf(`/core/v2/notes?${many}`)).toBe("400 rest_invalid_query");
    expect(await codeOf(`/core/v2/notes?a${"[b]".repeat(1000)}=1`)).toBe("400 rest_invalid_query");
  });
});

describe("Allow", () => {
  const allowOf = async (target: string, request?: Ask): Promise<string | undefined> =>
    (await ask(restServer(notesRoutes(threeNotes())), target, request)).headers["allow"];

  it("names the methods of the path that this caller may use", async () => {
    expect(await allowOf("/core/v2/notes")).toBe("GET");
    expect(await allowOf("/core/v2/notes", { headers: AS_EDITOR })).toBe("GET, POST");
    expect(await allowOf("/core/v2/notes/1", { headers: AS_READER })).toBe("GET");
    expect(await allowOf("/core/v2/notes/1", { headers: AS_EDITOR })).toBe("GET, POST, PUT, PATCH, DELETE");
  });

  it("is on errors of the path too, unless nothing is allowed", async () => {
    const post = { method: "POST", body: { rank: -1 } };
    expect(await allowOf("/core/v2/notes", post)).toBe("GET");
    expect(await allowOf("/core/v2/notes", { method: "POST", body: "{bad" })).toBe("GET");
    expect(await allowOf("/core/v2/notes/1", { ...post, headers: AS_EDITOR })).toBe(
      "GET, POST, PUT, PATCH, DELETE",
    );
    expect(await allowOf("/core/v2/notes/99", { headers: AS_EDITOR })).toBeUndefined();
    expect(await allowOf("/core/v2/notes?context=edit&per_page=0")).toBeUndefined();
    expect(await allowOf("/core/v2/notes?context=edit")).toBeUndefined();
  });

  it("is told after the answer: a deleted record allows nothing", async () => {
    const remove = { method: "DELETE", headers: AS_EDITOR };
    expect(await allowOf("/core/v2/notes/1", remove)).toBeUndefined();
  });
});

describe("a failure", () => {
  const failing = (error: unknown, logger?: Logger) =>
    restServer(notesRoutes(threeNotes()), {
      ready: () => {
        throw error;
      },
      ...(logger ? { logger } : {}),
    });

  it("of the storage is 503 with Retry-After", async () => {
    for (const code of ["storage_unavailable", "storage_full"] as const) {
      const answer = await ask(failing(new PostbellError(code, "redis://secret")), "/core/v2/notes");
      expect(answer.status).toBe(503);
      expect(answer.headers["retry-after"]).toMatch(/^\d+$/);
      expect(answer.text).not.toContain("secret");
    }
  });

  it("of the host's code is 500, logged, and says nothing", async () => {
    const logged: unknown[] = [];
    const log = (...args: readonly unknown[]): void => void logged.push(args);
    const logger: Logger = { debug: log, info: log, warn: log, error: log };
    const crashing = restServer(notesRoutes(threeNotes()), { logger });
    for (const answer of [
      await ask(crashing, "/core/v2/crash"),
      await ask(failing(new Error("x"), logger), "/"),
    ]) {
      expect(answer.status).toBe(500);
      expect(answer.json).toEqual({
        code: "rest_internal_error",
        message: expect.not.stringContaining("secret"),
        data: { status: 500 },
      });
    }
    expect(logged).toHaveLength(2);
  });

  it("of authentication is 401, with nothing done", async () => {
    const log: string[] = [];
    const strict = restServer(notesRoutes(threeNotes(), log), {
      authenticate: () => {
        throw new Error("bad token abc");
      },
    });
    for (const target of ["/core/v2/notes", "/nope"]) {
      const answer = await ask(strict, target);
      expect(answer.status).toBe(401);
      expect(answer.json.data.status).toBe(401);
      expect(answer.text).not.toContain("abc");
    }
    expect(log).toEqual([]);
  });
});

describe("a request from inside the process", () => {
  const baseUrl = "https://other.example";

  it("is answered as over HTTP, on behalf of the caller, with links below its base", async () => {
    const { status, headers, body } = await server.dispatch({
      method: "post",
      path: "/core/v2/notes/",
      query: { _fields: "id,_links.self" },
      body: { title: "x" },
      caller: editor,
      baseUrl,
    });
    expect(status).toBe(201);
    expect(headers["Location"]).toBe(`${baseUrl}/core/v2/notes/4`);
    expect(body).toMatchObject({ id: 4, _links: { self: [{ href: `${baseUrl}/core/v2/notes/4` }] } });
    const refused = await server.dispatch({
      method: "POST",
      path: "/core/v2/notes",
      body: { title: "x" },
      caller: nobody,
      baseUrl,
    });
    expect(refused.status).toBe(401);
  });

  it("gets a copy that it may change", async () => {
    const read = () => server.dispatch({ method: "GET", path: "/core/v2/notes/1", caller: nobody, baseUrl });
    const first = (await read()).body as { title: { raw: string } };
    first.title.raw = "changed";
    expect((await read()).body).toMatchObject({ title: { raw: "n1" } });
  });

  it("embeds too", async () => {
    const { body } = await server.dispatch({
      method: "GET",
      path: "/core/v2/notes/1",
      query: "_embed=author",
      caller: nobody,
      baseUrl,
    });
    expect(body).toMatchObject({ _embedded: { author: [{ id: 1, context: "embed" }] } });
  });
});
