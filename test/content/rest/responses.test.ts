import { describe, expect, it } from "vitest";
import type { Caller } from "../../../src/content/auth/caller.js";
import { createItem } from "../../../src/content/rest/serialise.js";
import type { RestServerOptions } from "../../../src/content/rest/server.js";
import type { HttpResponse } from "../../../src/http/types.js";
import {
  AS_EDITOR,
  ask,
  BASE,
  editor,
  httpRequest,
  nobody,
  notesRoutes,
  restServer,
  threeNotes,
} from "../../support/rest-host.js";

const make = (options: Partial<RestServerOptions> = {}, log: string[] = []) =>
  restServer(notesRoutes(threeNotes(), log), options);

const server = make();

describe("an item", () => {
  it("is sent with its links last, in the short form", () => {
    const links = { self: [{ href: "/1" }], "https://api.w.org/term": [{ href: "/t" }] };
    const { bytes, links: compact } = createItem({ id: 1 }, links);
    expect(Buffer.from(bytes()).toString()).toBe(
      JSON.stringify({
        id: 1,
        _links: {
          self: [{ href: "/1" }],
          "wp:term": [{ href: "/t" }],
          curies: [{ name: "wp", href: "https://api.w.org/{rel}", templated: true }],
        },
      }),
    );
    expect(bytes()).toBe(bytes());
    expect(Object.keys(compact)).toEqual(["self", "wp:term", "curies"]);
  });

  it("needs neither links nor curies", () => {
    expect(Buffer.from(createItem({ id: 1 }, {}).bytes()).toString()).toBe('{"id":1}');
    expect(Object.keys(createItem({}, { self: [{ href: "/" }] }).links)).toEqual(["self"]);
  });
});

describe("the body of an answer", () => {
  it("is the items as they are", async () => {
    const { json, text } = await ask(server, "/core/v2/notes");
    expect(json.map(({ id }: { id: number }) => id)).toEqual([1, 2, 3]);
    expect(text).toBe(JSON.stringify(json));
    expect((await ask(restServer(notesRoutes(new Map())), "/core/v2/notes")).text).toBe("[]");
  });

  it("holds the fields that are asked for in the query or the body, errors excepted", async () => {
    expect((await ask(server, "/core/v2/notes?_fields=id")).json).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }]);
    expect((await ask(server, "/core/v2/notes/1?_fields=bogus")).json).toEqual([]);
    const body = { title: "x", _fields: "id" };
    const created = await ask(make(), "/core/v2/notes", { method: "POST", headers: AS_EDITOR, body });
    expect(created.json).toEqual({ id: 4 });
    expect((await ask(server, "/core/v2/notes/9?_fields=id")).json.code).toBe("rest_note_invalid_id");
  });

  it("is an envelope with status and headers when that is asked for", async () => {
    const answer = await ask(server, "/core/v2/notes?_envelope&_fields=id");
    expect(answer.headers).not.toHaveProperty("x-wp-total");
    expect(answer.json).toEqual({
      body: [{ id: 1 }, { id: 2 }, { id: 3 }],
      status: 200,
      headers: expect.objectContaining({ "X-WP-Total": "3", Allow: "GET" }),
    });
    const error = await ask(server, "/core/v2/notes/9?_envelope=1");
    expect([error.status, error.json.status, error.json.body.code]).toEqual([
      200,
      404,
      "rest_note_invalid_id",
    ]);
  });

  it("is indented when that is asked for", async () => {
    expect((await ask(server, "/core/v2/authors/1?_pretty")).text).toBe(
      '{\n    "id": 1,\n    "context": null\n}',
    );
  });
});

describe("_embed", () => {
  it("puts what is linked into each record, as seen by the same caller in the context embed", async () => {
    const { json } = await ask(server, "/core/v2/notes/1?_embed");
    expect(json._embedded).toEqual({
      author: [{ id: 1, context: "embed" }],
      up: [{ code: "rest_note_invalid_id", message: expect.any(String), data: { status: 404 } }],
      "wp:term": [[{ id: 7, perPage: 100 }], []],
    });
    const list = await ask(server, "/core/v2/notes?_embed=wp:term");
    expect(list.json.map((note: { _embedded: object }) => Object.keys(note._embedded))).toEqual(
      Array(3).fill(["wp:term"]),
    );
  });

  it.each([
    ["_embed=author", ["author"]],
    ["_embed=author,wp:term", ["author", "wp:term"]],
    ["_embed[]=author&_embed[]=up", ["author", "up"]],
    ["_embed=1", ["author", "up", "wp:term"]],
    ["_embed=true&_fields=id,_links", ["author", "up", "wp:term"]],
    ["_embed=author&_fields=id,_links.up", ["author"]],
  ])("?%s embeds %j in a single record", async (query, relations) => {
    for (const envelope of ["", "&_envelope"]) {
      const { json } = await ask(server, `/core/v2/notes/1?${query}${envelope}`);
      const record = envelope === "" ? json : json.body;
      expect(Object.keys(record._embedded)).toEqual(relations);
    }
  });

  // A single record has its links beside the fields that are filtered; entries of a list within.
  it.each<[string, readonly string[], readonly string[]]>([
    ["id", ["id"], ["id"]],
    ["id,_links", ["id", "_links", "_embedded"], ["id", "_links", "_embedded"]],
    ["id,_links.author", ["id", "_links", "_embedded"], ["id", "_links", "_embedded"]],
    ["id,_embedded", ["id", "_links", "_embedded"], ["id"]],
    ["_embedded.author.name", ["_links", "_embedded"], []],
  ])("with _fields=%s has %j in a single record, and %j in a list", async (fields, single, listed) => {
    for (const envelope of ["", "&_envelope"]) {
      const read = async (path: string) => {
        const { json } = await ask(server, `${path}?_embed&_fields=${fields}${envelope}`);
        return envelope === "" ? json : json.body;
      };
      const record = await read("/core/v2/notes/1");
      const list = await read("/core/v2/notes");
      expect([Object.keys(record), Object.keys(list[0])]).toEqual([single, listed]);
      const isNarrow = fields.endsWith("_links.author");
      expect(Object.keys(record._embedded ?? {})).toHaveLength(fields === "id" ? 0 : 3);
      expect(Object.keys(list[0]._embedded ?? {})).toHaveLength(
        isNarrow ? 1 : listed.includes("_embedded") ? 3 : 0,
      );
    }
  });

  it.each(["_embed=nothing", "_embed=elsewhere", "_embed=self", "_embed&_fields=id", "_fields=_embedded"])(
    "?%s embeds nothing",
    async (query) => {
      expect((await ask(server, `/core/v2/notes/1?${query}`)).json).not.toHaveProperty("_embedded");
    },
  );

  it("asks for each address once", async () => {
    const log: string[] = [];
    await ask(make({}, log), "/core/v2/notes?_embed=author");
    expect(log).toEqual(["list", "author"]);
  });

  it("has a bound", async () => {
    const many = new Map(Array.from({ length: 40 }, (_, id) => [id, { id, title: "", rank: 0 }]));
    let permits = 0;
    const count = () => {
      permits += 1;
    };
    const routes = notesRoutes(many).map((route) =>
      route.path === "/tags"
        ? {
            ...route,
            endpoints: route.endpoints.map((one) => ({ ...one, permit: count })),
          }
        : route,
    );
    const links = Array.from({ length: 2000 }, (_, id) => ({
      href: `${BASE}/core/v2/tags?note=${id}`,
      embeddable: true,
    }));
    const linked = {
      namespace: "core/v2",
      path: "/linked",
      endpoints: [
        {
          methods: ["GET" as const],
          args: {},
          permit: () => {},
          handle: () => ({ status: 200, headers: {}, body: { json: {}, links: { all: links } } }),
        },
      ],
    };
    const { json } = await ask(restServer([...routes, linked]), "/core/v2/linked?_embed");
    expect(json._embedded.all).toHaveLength(2000);
    expect(permits).toBe(500);
  });
});

describe("_jsonp", () => {
  it("calls back with the answer to an anonymous GET", async () => {
    const answer = await ask(server, "/core/v2/notes/1?_jsonp=app.show&_fields=id");
    expect(answer.text).toBe('/**/app.show({"id":1})');
    expect(answer.headers["content-type"]).toBe("application/javascript; charset=UTF-8");
    expect((await ask(server, "/core/v2/notes/9?_jsonp=cb")).text).toMatch(
      /^\/\*\*\/cb\(\{"code":"rest_note/,
    );
    expect((await ask(server, "/core/v2/notes/1?_jsonp=")).json.id).toBe(1);
  });

  it("refuses what is no name", async () => {
    const names = ["bad-name!", "alert(1)//", "a;b", "x".repeat(200), "%E2%80%A8"].map(
      (name) => `_jsonp=${name}`,
    );
    for (const query of [...names, "_jsonp[a]=cb", "_jsonp[]=cb"]) {
      const answer = await ask(server, `/core/v2/notes/1?${query}`);
      expect(answer.status).toBe(400);
      expect(answer.json).toEqual({ code: "rest_callback_invalid", message: expect.any(String) });
      expect(answer.headers["content-type"]).toBe("application/javascript; charset=UTF-8");
    }
  });

  it("is never called with what somebody may see in person, nor after a write", async () => {
    const personal = await ask(server, "/core/v2/notes/1?_jsonp=cb", { headers: AS_EDITOR });
    expect([personal.status, personal.json.code]).toEqual([400, "rest_callback_disabled"]);
    const notes = threeNotes();
    const writing = restServer(notesRoutes(notes));
    const remove = { method: "DELETE", headers: AS_EDITOR };
    expect((await ask(writing, "/core/v2/notes/1?_jsonp=cb", remove)).status).toBe(400);
    expect(notes.size).toBe(3);
  });

  it("keeps line separators out of the script", async () => {
    const { text } = await ask(server, `/core/v2/kinds/a?_jsonp=cb&_envelope&x=1`);
    expect(text).toMatch(/^\/\*\*\/cb\(/);
    const notes = new Map([[1, { id: 1, title: "\u2028", rank: 0 }]]);
    expect((await ask(restServer(notesRoutes(notes)), "/core/v2/notes/1?_jsonp=cb")).text).not.toContain(
      "\u2028",
    );
  });
});

describe("the headers of an answer", () => {
  it("are those of WordPress", async () => {
    const { headers } = await ask(server, "/core/v2/notes");
    expect(headers).toMatchObject({
      "content-type": "application/json; charset=UTF-8",
      "x-content-type-options": "nosniff",
      "x-robots-tag": "noindex",
      "access-control-expose-headers": "X-WP-Total, X-WP-TotalPages, Link",
      "access-control-allow-headers":
        "Authorization, X-WP-Nonce, Content-Disposition, Content-MD5, Content-Type",
      "x-wp-total": "3",
      link: `<${BASE}/>; rel="https://api.w.org/", <${BASE}/next>; rel="next"`,
    });
    expect((await ask(server, "/core/v2/notes/1")).headers["link"]).toBe(
      `<${BASE}/>; rel="https://api.w.org/"`,
    );
  });

  it("let nobody keep an error, a write or a personal answer", async () => {
    const post = { method: "POST", headers: AS_EDITOR, body: { title: "x" } };
    for (const answer of [
      await ask(server, "/core/v2/notes/9"),
      await ask(server, "/core/v2/notes", { headers: AS_EDITOR }),
      await ask(make(), "/core/v2/notes", post),
      await ask(server, "/batch/v1", { method: "POST", body: { requests: [] } }),
      await ask(make({ authenticate: () => Promise.reject(new Error()) }), "/core/v2/notes"),
    ]) {
      expect(answer.headers["cache-control"]).toBe("no-cache, must-revalidate, max-age=0, no-store, private");
      expect(answer.headers["expires"]).toBe("Wed, 11 Jan 1984 05:00:00 GMT");
      expect(answer.headers["vary"]).toBe("Origin, Authorization");
    }
    const open = (await ask(server, "/core/v2/notes")).headers;
    expect(open).not.toHaveProperty("cache-control");
    expect(open).not.toHaveProperty("expires");
    expect(open["vary"]).toBe("Origin, Authorization");
  });

  const origins = { trusted: "https://app.example", foreign: "https://evil.example" };
  const corsOf = async (origin: string | undefined, more: Record<string, string> = {}, method = "GET") => {
    const headers = { ...(origin === undefined ? {} : { origin }), ...more };
    const answer = await ask(server, "/core/v2/notes", { method, headers });
    return {
      origin: answer.headers["access-control-allow-origin"],
      credentials: answer.headers["access-control-allow-credentials"],
    };
  };

  it("let any page read what is public, and only listed ones what is personal", async () => {
    for (const origin of [undefined, origins.foreign, "null"]) {
      expect(await corsOf(origin)).toEqual({ origin: "*", credentials: undefined });
      expect(await corsOf(origin, AS_EDITOR)).toEqual({ origin: undefined, credentials: undefined });
      expect(await corsOf(origin, {}, "POST")).toEqual({ origin: undefined, credentials: undefined });
    }
    const trusted = { origin: origins.trusted, credentials: "true" };
    expect(await corsOf(origins.trusted)).toEqual(trusted);
    expect(await corsOf(origins.trusted, AS_EDITOR)).toEqual(trusted);
    expect(await corsOf(origins.trusted, {}, "POST")).toEqual(trusted);
    const { headers } = await ask(server, "/core/v2/notes", { headers: { origin: origins.trusted } });
    expect(headers["vary"]).toBe("Origin");
    const personal = await ask(server, "/core/v2/notes", {
      headers: { origin: origins.trusted, ...AS_EDITOR },
    });
    expect(personal.headers["vary"]).toBe("Origin, Authorization");
    expect(headers["access-control-allow-methods"]).toBe("OPTIONS, GET, POST, PUT, PATCH, DELETE");
  });

  it("answer a preflight before anybody is asked who it is", async () => {
    const strict = make({ authenticate: () => Promise.reject(new Error()) });
    const preflight = (origin: string) =>
      strict.handle(
        httpRequest("/core/v2/notes", {
          method: "OPTIONS",
          headers: { origin, "access-control-request-method": "DELETE" },
        }),
      ) as Promise<HttpResponse>;
    const trusted = await preflight(origins.trusted);
    expect([trusted.status, trusted.body]).toEqual([204, null]);
    expect(trusted.headers).toMatchObject({
      "access-control-allow-origin": origins.trusted,
      "access-control-allow-credentials": "true",
      "access-control-allow-methods": expect.stringContaining("DELETE"),
      "access-control-allow-headers": expect.stringContaining("Authorization"),
      vary: "Origin",
    });
    const foreign = await preflight(origins.foreign);
    expect(foreign.headers).toMatchObject({
      "access-control-allow-origin": "*",
      "access-control-allow-methods": "GET, HEAD",
      "access-control-allow-headers": expect.not.stringContaining("Authorization"),
    });
    expect(foreign.headers).not.toHaveProperty("access-control-allow-credentials");
  });
});

describe("the validator of an answer", () => {
  const withTag = (target: string, tag: string, headers = {}, method = "GET") =>
    ask(server, target, { method, headers: { ...headers, "if-none-match": tag } });

  it("is weak, and spares a client what it has", async () => {
    const { headers } = await ask(server, "/core/v2/notes");
    const tag = headers["etag"] ?? "";
    expect(tag).toMatch(/^W\/"[\w-]+"$/);
    for (const given of [tag, tag.slice(2), `"x", ${tag}`, "*"]) {
      for (const method of ["GET", "HEAD"]) {
        const answer = await withTag("/core/v2/notes", given, {}, method);
        expect([answer.status, answer.text]).toEqual([304, ""]);
        expect(answer.headers).toMatchObject({ etag: tag, vary: headers["vary"], "x-wp-total": "3" });
        expect(answer.headers).not.toHaveProperty("content-type");
      }
    }
    expect((await withTag("/core/v2/notes", '"x"')).status).toBe(200);
  });

  it("changes with the answer, its totals and the caller's rights", async () => {
    const tagOf = async (target: string, headers = {}) =>
      (await ask(server, target, { headers })).headers["etag"];
    const tags = [
      await tagOf("/core/v2/notes"),
      await tagOf("/core/v2/notes", AS_EDITOR),
      await tagOf("/core/v2/notes?per_page=2"),
      await tagOf("/core/v2/notes?_fields=id"),
    ];
    expect(new Set(tags).size).toBe(4);
    expect(await tagOf("/core/v2/notes/9")).toBeUndefined();
  });

  it("is of no use for anything but reading", async () => {
    const options = await withTag("/core/v2/notes", "*", {}, "OPTIONS");
    expect(options.status).toBe(200);
    expect((await withTag("/core/v2/notes/9", "*")).status).toBe(404);
  });
});

describe("a whole answer", () => {
  const cached = (options: Partial<RestServerOptions> = {}) => {
    const log: string[] = [];
    const limits = { requestBytes: 1000, cacheBytes: 1_000_000 };
    return { log, server: make({ limits, ...options }, log) };
  };

  it("is handed out again to anybody anonymous, also for HEAD and 304, while nothing has changed", async () => {
    let stamp = 1;
    const { server, log } = cached({ stamp: () => stamp });
    const first = (await server.handle(httpRequest("/core/v2/notes"))) as HttpResponse;
    const second = (await server.handle(httpRequest("/core/v2/notes"))) as HttpResponse;
    expect(second).toBe(first);
    expect(Object.isFrozen(first) && Object.isFrozen(first.headers)).toBe(true);
    expect((await ask(server, "/core/v2/notes", { method: "HEAD" })).text).toBe("");
    const tag = first.headers["etag"] as string;
    expect((await ask(server, "/core/v2/notes", { headers: { "if-none-match": tag } })).status).toBe(304);
    expect(log).toEqual(["list"]);
    stamp = 2;
    await ask(server, "/core/v2/notes");
    expect(log).toEqual(["list", "list"]);
  });

  it("is one for each query, base URL and class of origins", async () => {
    const { server, log } = cached();
    await ask(server, "/core/v2/notes");
    await ask(server, "/core/v2/notes?per_page=1");
    const trusted = await ask(server, "/core/v2/notes", { headers: { origin: "https://app.example" } });
    await server.handle({ ...httpRequest("/core/v2/notes"), baseUrl: "https://other.example" });
    expect(log).toHaveLength(4);
    expect(trusted.headers["access-control-allow-credentials"]).toBe("true");
    const foreign = await ask(server, "/core/v2/notes", { headers: { origin: "https://evil.example" } });
    expect(foreign.headers["access-control-allow-origin"]).toBe("*");
    expect(log).toHaveLength(4);
  });

  it("is never shared with, or by, somebody who is known", async () => {
    const { server, log } = cached();
    await ask(server, "/core/v2/notes", { headers: AS_EDITOR });
    await ask(server, "/core/v2/notes", { headers: AS_EDITOR });
    const open = await ask(server, "/core/v2/notes");
    const personal = await ask(server, "/core/v2/notes", { headers: AS_EDITOR });
    expect(log).toHaveLength(4);
    expect([open.headers["allow"], personal.headers["allow"]]).toEqual(["GET", "GET, POST"]);
  });

  it("is asked for only after the caller was authenticated and the content brought up to date", async () => {
    let caller: Caller = nobody;
    const order: string[] = [];
    const { server } = cached({
      authenticate: () => {
        order.push("authenticate");
        return caller;
      },
      ready: async () => void order.push("ready"),
      stamp: () => order.push("stamp") * 0,
    });
    await ask(server, "/core/v2/notes");
    expect(order).toEqual(["authenticate", "ready", "stamp"]);
    caller = editor;
    expect((await ask(server, "/core/v2/notes")).headers["allow"]).toBe("GET, POST");
  });

  it("that was overtaken by a change while it was made is not handed out", async () => {
    let stamp = 1;
    const log: string[] = [];
    const routes = notesRoutes(threeNotes(), log).map((route) => ({
      ...route,
      endpoints: route.endpoints.map((endpoint) => ({
        ...endpoint,
        handle: async (request: Parameters<typeof endpoint.handle>[0]) => {
          const answer = await endpoint.handle(request);
          stamp = 2;
          return answer;
        },
      })),
    }));
    const server = restServer(routes, {
      limits: { requestBytes: 1000, cacheBytes: 1_000_000 },
      stamp: () => stamp,
    });
    await ask(server, "/core/v2/notes");
    await ask(server, "/core/v2/notes");
    expect(log).toEqual(["list", "list"]);
  });

  it("is not made of an error", async () => {
    const notes = threeNotes();
    const server = restServer(notesRoutes(notes), { limits: { requestBytes: 1000, cacheBytes: 1_000_000 } });
    expect((await ask(server, "/core/v2/notes/9?_envelope")).json.status).toBe(404);
    notes.set(9, { id: 9, title: "", rank: 0 });
    expect((await ask(server, "/core/v2/notes/9?_envelope")).json.status).toBe(200);
  });
});
