/** A REST server over a few made-up routes, and requests to it as somebody. */

import type { Caller } from "../../src/content/auth/caller.js";
import type { User } from "../../src/content/records/records.js";
import { RestError } from "../../src/content/rest/error.js";
import { createListLimits } from "../../src/content/rest/lists.js";
import { createItem } from "../../src/content/rest/serialise.js";
import { createRestServer, type RestServer, type RestServerOptions } from "../../src/content/rest/server.js";
import type { Item, RestEndpoint, RestRequest, RestRoute } from "../../src/content/rest/types.js";
import { systemClock } from "../../src/core/clock.js";
import { silentLogger } from "../../src/core/logger.js";
import type { HttpRequest, HttpResponse } from "../../src/http/types.js";
import type { JsonObject } from "../../src/schema/types.js";

export const BASE = "https://site.example/api";

function callerOf(user: User | null): Caller {
  const isEditor = user?.roles.includes("editor") === true;
  const answer = (): boolean => isEditor;
  return { user, id: user?.id ?? 0, has: answer, may: answer, canOf: answer, canEditSomething: answer };
}

const user = (id: number, role: string): User => ({ id, slug: role, name: role, roles: [role] });

export const nobody = callerOf(null);
export const editor = callerOf(user(2, "editor"));
const reader = callerOf(user(5, "subscriber"));

/** By the value of `Authorization`. */
const CALLERS: { readonly [name: string]: Caller } = { editor, reader };

export const AS_EDITOR = { authorization: "editor" };
export const AS_READER = { authorization: "reader" };

export interface Note {
  readonly id: number;
  title: string;
  rank: number;
}

/** A collection `notes` that everybody reads and editors write, with authors to embed. */
export function notesRoutes(notes: Map<number, Note>, log: string[] = []): readonly RestRoute[] {
  const editorsOnly = ({ caller }: RestRequest): void => {
    if (!caller.has("edit")) throw new RestError(caller.id === 0 ? 401 : 403, "rest_cannot_edit", "No.");
  };
  const existing = ({ values }: RestRequest): Note => {
    const note = notes.get(values["id"] as number);
    if (note === undefined) throw new RestError(404, "rest_note_invalid_id", "There is no such note.");
    return note;
  };
  const context = { type: "string", enum: ["view", "embed", "edit"], default: "view" } as const;
  const itemOf = ({ id, title, rank }: Note, { url, values }: RestRequest): Item =>
    createItem(
      values["context"] === "embed"
        ? { id }
        : { id, title: { rendered: `<b>${title}</b>`, raw: title }, rank },
      {
        self: [{ href: url(`/core/v2/notes/${id}`) }],
        author: [{ href: url("/core/v2/authors/1"), embeddable: true }],
        up: [{ href: url("/core/v2/notes/999"), embeddable: true }],
        "https://api.w.org/term": [
          { href: url(`/core/v2/tags?note=${id}`), embeddable: true, taxonomy: "tag" },
          { href: url(`/core/v2/tags?note=0`), embeddable: true, taxonomy: "other" },
        ],
        elsewhere: [{ href: "https://elsewhere.example/1", embeddable: true }],
      },
    );
  const writable = {
    title: { type: "string" },
    rank: { type: "integer", minimum: 0 },
  } as const;
  const update = (note: Note, { values, isGiven }: RestRequest): void => {
    log.push(`write ${note.id}`);
    if (isGiven("title")) note.title = values["title"] as string;
    if (isGiven("rank")) note.rank = values["rank"] as number;
  };

  const list: RestEndpoint = {
    methods: ["GET"],
    allowBatch: true,
    args: { context, per_page: { type: "integer", minimum: 1, maximum: 100, default: 10 } },
    permit({ values, caller }) {
      if (values["context"] === "edit" && !caller.has("edit")) {
        throw new RestError(401, "rest_forbidden_context", "No.");
      }
    },
    handle(request) {
      log.push("list");
      const items = [...notes.values()].slice(0, request.values["per_page"] as number);
      const headers = { "x-wp-total": String(notes.size), link: `<${BASE}/next>; rel="next"` };
      return { status: 200, headers, body: { items: items.map((note) => itemOf(note, request)) } };
    },
  };
  const create: RestEndpoint = {
    methods: ["POST"],
    allowBatch: true,
    args: { ...writable, title: { type: "string", required: true } },
    permit: editorsOnly,
    handle(request) {
      const note = { id: Math.max(0, ...notes.keys()) + 1, title: "", rank: 0 };
      update(note, request);
      notes.set(note.id, note);
      const headers = { location: request.url(`/core/v2/notes/${note.id}`) };
      return { status: 201, headers, body: { item: itemOf(note, request) } };
    },
  };
  const id = { type: "integer" } as const;
  const read: RestEndpoint = {
    methods: ["GET"],
    allowBatch: true,
    args: { id, context },
    permit: (request) => void existing(request),
    handle: (request) => ({ status: 200, headers: {}, body: { item: itemOf(existing(request), request) } }),
  };
  const change: RestEndpoint = {
    methods: ["POST", "PUT", "PATCH"],
    allowBatch: true,
    args: { id, ...writable },
    permit(request) {
      existing(request);
      editorsOnly(request);
    },
    async handle(request) {
      update(existing(request), request);
      return { status: 200, headers: {}, body: { item: itemOf(existing(request), request) } };
    },
  };
  const remove: RestEndpoint = {
    methods: ["DELETE"],
    allowBatch: true,
    args: { id, force: { type: "boolean", default: false } },
    permit: change.permit,
    handle(request) {
      const note = existing(request);
      log.push(`delete ${note.id}`);
      notes.delete(note.id);
      return { status: 200, headers: {}, body: { json: { deleted: true, previous: { id: note.id } } } };
    },
  };
  const json = (answer: (request: RestRequest) => RestRequest["values"]): RestEndpoint => ({
    methods: ["GET"],
    args: {},
    permit: () => {},
    handle: (request) => ({ status: 200, headers: {}, body: { json: answer(request) as JsonObject } }),
  });
  const authors = json(({ values, input }) => {
    log.push("author");
    return { id: values["id"] ?? null, context: input["context"] ?? null };
  });
  const tags: RestEndpoint = {
    ...json(() => ({})),
    args: { note: id, per_page: { type: "integer", maximum: 100, default: 10 } },
    handle: ({ values }) => ({
      status: 200,
      headers: {},
      body: {
        items: values["note"] === 0 ? [] : [createItem({ id: 7, perPage: values["per_page"] ?? null }, {})],
      },
    }),
  };
  const crash: RestEndpoint = {
    ...json(() => ({})),
    handle() {
      throw new TypeError("a secret of the host");
    },
  };
  const row = (path: string, endpoints: readonly RestEndpoint[]): RestRoute => ({
    namespace: "core/v2",
    path,
    endpoints,
  });
  return [
    {
      ...row("/notes", [list, create]),
      schema: { title: "note", type: "object", properties: { id: { type: "integer", readonly: true } } },
    },
    row("/notes/:id", [read, change, remove]),
    row("/notes/:parent/drafts/:id", [json(({ values }) => ({ ...values }))]),
    row("/authors/:id", [authors]),
    row("/tags", [tags]),
    row("/kinds/:kind(word)", [json(({ values }) => ({ ...values }))]),
    row("/kinds/all", [json(() => ({ all: true }))]),
    row("/crash", [crash]),
  ];
}

export const threeNotes = (): Map<number, Note> =>
  new Map([1, 2, 3].map((id) => [id, { id, title: `n${id}`, rank: id }]));

export function restServer(
  routes: readonly RestRoute[],
  options: Partial<RestServerOptions> = {},
): RestServer {
  return createRestServer({
    routes,
    openApi: () => ({}),
    describeSite: () => ({ name: "Clinic" }),
    authenticate: ({ headers }) => CALLERS[headers["authorization"] ?? ""] ?? nobody,
    ready: () => {},
    stamp: () => 1,
    cors: { origins: ["https://app.example"], allowedHeaders: [] },
    bodyPace: { clock: systemClock, ms: 10_000 },
    limits: { requestBytes: 10_000, cacheBytes: 0 },
    lists: createListLimits(1_048_576),
    unknownPaths: "answer",
    logger: silentLogger,
    ...options,
  });
}

export interface Ask {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object or list is sent as JSON, a text as it is. */
  readonly body?: unknown;
}

export const httpRequest = (
  target: string,
  { method = "GET", headers = {}, body }: Ask = {},
): HttpRequest => {
  const [path = "", query = ""] = target.split(/\?(.*)/s);
  const isText = typeof body === "string" || body === undefined;
  return {
    method,
    path,
    query,
    headers: body === undefined ? headers : { "content-type": "application/json", ...headers },
    body: body === undefined ? null : Buffer.from(isText ? body : JSON.stringify(body)),
    baseUrl: BASE,
  };
};

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly json: ReturnType<typeof JSON.parse>;
  readonly text: string;
}

export async function ask(server: RestServer, target: string, request: Ask = {}): Promise<Answer> {
  const response = (await server.handle(httpRequest(target, request))) as HttpResponse;
  const text = response.body === null ? "" : Buffer.from(response.body as Uint8Array).toString();
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  return { status: response.status, headers: response.headers as Answer["headers"], json, text };
}
