import { describe, expect, it } from "vitest";
import type { RestServerOptions } from "../../../src/content/rest/server.js";
import type { RestRoute } from "../../../src/content/rest/types.js";
import {
  AS_EDITOR,
  AS_READER,
  type Ask,
  ask,
  notesRoutes,
  restServer,
  threeNotes,
} from "../../support/rest-host.js";

interface Host {
  readonly notes: ReturnType<typeof threeNotes>;
  readonly log: string[];
  readonly batch: (
    requests: unknown,
    more?: { readonly validation?: unknown; readonly headers?: Ask["headers"] },
  ) => ReturnType<typeof ask>;
}

function host(options: Partial<RestServerOptions> = {}, extra: readonly RestRoute[] = []): Host {
  const notes = threeNotes();
  const log: string[] = [];
  const server = restServer([...notesRoutes(notes, log), ...extra], options);
  return {
    notes,
    log,
    batch: (requests, { headers = AS_EDITOR, ...more } = {}) =>
      ask(server, "/batch/v1", { method: "POST", headers, body: { requests, ...more } }),
  };
}

const PATH = "/core/v2/notes";
const outcomes = ({ json }: Awaited<ReturnType<typeof ask>>): string[] =>
  json.responses.map((item: { status: number; body: { code?: string } } | null) =>
    item === null ? "null" : `${item.status} ${item.body.code ?? ""}`.trim(),
  );

describe("a batch", () => {
  it("answers each request in its place, with status, headers and body", async () => {
    const { batch, notes } = host();
    const answer = await batch([
      { path: `${PATH}?_fields=id,title&_embed`, body: { title: "one" } },
      { method: "PUT", path: `${PATH}/1?title=query`, body: { rank: 9 } },
      { method: "DELETE", path: `${PATH}/2` },
    ]);
    expect(answer.status).toBe(207);
    expect(answer.headers["allow"]).toBe("POST");
    expect(answer.json).not.toHaveProperty("failed");
    expect(answer.json.responses[0]).toEqual({
      status: 201,
      headers: expect.objectContaining({ Location: expect.stringContaining(`${PATH}/4`) }),
      body: { id: 4, title: { rendered: "<b>one</b>", raw: "one" } },
    });
    expect(outcomes(answer)).toEqual(["201", "200", "200"]);
    expect(notes.get(1)).toEqual({ id: 1, title: "query", rank: 9 });
    expect(notes.has(2)).toBe(false);
  });

  it("adds the links of a record to the fields that are asked for, and embeds nothing", async () => {
    const { batch } = host();
    const members = async (query: string): Promise<readonly string[]> => {
      const { json } = await batch([{ path: `${PATH}?${query}`, body: { title: "one" } }]);
      return Object.keys(json.responses[0].body);
    };
    expect(await members("_embed&_fields=id,_links.self")).toEqual(["id", "_links"]);
    expect(await members("_embed&_fields=id,_embedded")).toEqual(["id", "_links"]);
    expect(await members("_fields=id,_embedded")).toEqual(["id"]);
  });

  it("has a bound and a form", async () => {
    const { batch, log } = host();
    const item = { path: PATH, body: { title: "x" } };
    expect((await batch(Array(25).fill(item))).status).toBe(207);
    expect(log).toHaveLength(25);
    const refused: [unknown, unknown?][] = [
      [Array(26).fill(item)],
      [null],
      ["x"],
      [{ path: PATH }],
      [["x"]],
      [[null]],
      [[{}]],
      [[{ path: PATH, body: "x" }]],
      [[{ path: PATH, method: "GET" }]],
      [[item], "strict"],
    ];
    for (const [requests, validation] of refused) {
      const { status, json } = await batch(requests, validation === undefined ? {} : { validation });
      expect([status, json.data.status]).toEqual([400, 400]);
    }
    expect(log).toHaveLength(25);
    expect((await batch([])).json).toEqual({ responses: [] });
  });

  const bad = [
    [{ path: "http://" }, "400 parse_path_failed"],
    [{ path: "https://site.example/core/v2/notes", body: { title: "x" } }, "400 parse_path_failed"],
    [{ path: "//site.example/core/v2/notes", body: { title: "x" } }, "400 parse_path_failed"],
    [{ path: "core/v2/notes" }, "404 rest_no_route"],
    [{ path: "?x=1" }, "404 rest_no_route"],
    [{ path: "" }, "404 rest_no_route"],
    [{ path: `${PATH}/`, body: { title: "x" } }, "404 rest_no_route"],
    [{ path: `${PATH}#x`, body: { title: "x" } }, "404 rest_no_route"],
    [{ path: `${PATH}%3Ftitle=x` }, "404 rest_no_route"],
    [{ path: "/core/v2/%6eotes", body: { title: "x" } }, "404 rest_no_route"],
    [{ path: "/core/v2/x/../notes", body: { title: "x" } }, "404 rest_no_route"],
    [{ path: "/core/v2/%2e%2e/notes" }, "404 rest_no_route"],
    [{ path: "/other/v1/x" }, "404 rest_no_route"],
    [{ path: PATH, method: "DELETE" }, "404 rest_no_route"],
    [{ path: "/batch/v1", body: { requests: [] } }, "400 rest_batch_not_allowed"],
    [{ path: "/core/v2/plain" }, "400 rest_batch_not_allowed"],
    [{ path: PATH, body: { title: "x", rank: -1 } }, "400 rest_invalid_param"],
    [{ path: PATH, body: [] }, "400 rest_missing_callback_param"],
    [{ path: `${PATH}/1`, method: "PUT", body: { id: 2 } }, "400 rest_invalid_param"],
    [{ path: `${PATH}/1?id=2`, method: "DELETE" }, "400 rest_invalid_param"],
    [{ path: `${PATH}?${"a[]=1&".repeat(1001)}` }, "400 rest_invalid_query"],
  ] as const;
  const plain: RestRoute = {
    namespace: "core/v2",
    path: "/plain",
    endpoints: [
      {
        methods: ["POST"],
        args: {},
        permit: () => {},
        handle: () => ({ status: 200, headers: {}, body: { json: {} } }),
      },
    ],
  };
  const good = (title: string) => ({ path: PATH, body: { title } });

  it.each(bad)("answers %j with %s at its place, whichever that is", async (item, expected) => {
    for (const place of [0, 1, 2]) {
      const { batch, notes } = host({}, [plain]);
      const items: object[] = [good("a"), good("b")];
      items.splice(place, 0, item);
      const found = outcomes(await batch(items));
      expect(found).toEqual(["201", "201"].toSpliced(place, 0, expected));
      expect([...notes.values()].slice(3).map(({ title }) => title)).toEqual(["a", "b"]);
    }
  });

  it.each(bad)("that requires all to be valid does nothing beside %j", async (item, expected) => {
    for (const place of [0, 1, 2]) {
      const { batch, log } = host({}, [plain]);
      const items: object[] = [good("a"), good("b")];
      items.splice(place, 0, item);
      const answer = await batch(items, { validation: "require-all-validate" });
      expect(answer.status).toBe(207);
      expect(answer.json.failed).toBe("validation");
      expect(outcomes(answer)).toEqual(["null", "null"].toSpliced(place, 0, expected));
      expect(log).toEqual([]);
    }
  });

  it("that requires all to be valid runs when they are; rights are no part of that", async () => {
    const { batch } = host();
    const all = { validation: "require-all-validate" };
    const items = [
      good("a"),
      { method: "DELETE", path: `${PATH}/99` },
      { method: "DELETE", path: `${PATH}/1` },
    ];
    expect(outcomes(await batch(items, all))).toEqual(["201", "404 rest_note_invalid_id", "200"]);
    expect(outcomes(await batch(items, { ...all, headers: {} }))).toEqual([
      "401 rest_cannot_edit",
      "404 rest_note_invalid_id",
      "404 rest_note_invalid_id",
    ]);
  });

  it("gives each item the rights of its own route and method", async () => {
    const { batch, log } = host();
    const items = [
      good("a"),
      { method: "PATCH", path: `${PATH}/1`, body: {} },
      { method: "DELETE", path: `${PATH}/1` },
    ];
    expect(outcomes(await batch(items, { headers: AS_READER }))).toEqual(
      Array(3).fill("403 rest_cannot_edit"),
    );
    expect(log).toEqual([]);
  });

  it("takes nothing of an item's headers for who asks or what for", async () => {
    const { batch, notes } = host();
    const headers = {
      Authorization: "editor",
      Cookie: ["a=1", "b=2"],
      "X-HTTP-Method-Override": "DELETE",
      Host: "evil.example",
      "Transfer-Encoding": "chunked",
    };
    const item = { path: `${PATH}/1`, headers, body: { title: "x", _method: "DELETE" } };
    expect(
      outcomes(await batch([item, { ...item, path: `${PATH}/1?_method=DELETE` }], { headers: {} })),
    ).toEqual(Array(2).fill("401 rest_cannot_edit"));
    const written = await batch([item]);
    expect(outcomes(written)).toEqual(["200"]);
    expect(notes.size).toBe(3);
    expect(written.text).not.toContain("evil");
  });

  it("shows each item what the one before it has done", async () => {
    let fresh = 0;
    const { batch } = host({
      ready: () => {
        fresh += 1;
      },
    });
    const remove = { method: "DELETE", path: `${PATH}/1` };
    expect(outcomes(await batch([remove, remove]))).toEqual(["200", "404 rest_note_invalid_id"]);
    expect(fresh).toBe(3);
  });

  it("survives an item that fails in the host's code, and one whose storage is away", async () => {
    let calls = 0;
    const { batch } = host({
      ready: () => {
        calls += 1;
        if (calls === 2) throw new Error("x");
      },
    });
    expect(outcomes(await batch([good("a"), good("b")]))).toEqual(["500 rest_internal_error", "201"]);
  });

  it("is refused whole when its body is too large", async () => {
    const { batch } = host();
    expect((await batch(Array(25).fill(good("x".repeat(1000))))).status).toBe(413);
  });
});
