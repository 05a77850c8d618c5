/**
 * Random requests of everybody to every route, with values that fit and values that are meant to
 * break something. The seed is told when a run fails; `FUZZ_SEED` repeats it, `FUZZ_SECONDS` makes
 * it longer.
 */

import { randomInt } from "node:crypto";
import { validateHeaderName, validateHeaderValue } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ContentStorage } from "../../src/content/store.js";
import type { HttpRequest, RequestBody } from "../../src/http/types.js";
import type { Json, JsonObject, Schema } from "../../src/schema/types.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { memoryFiles } from "../../storage/files/index.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { streamed } from "../support/bad-json.js";
import { stopComparing } from "../support/compared-service.js";
import { contentSite, credentials, idOf, ROLES, type Role } from "../support/content-site.js";
import { expectAtMost } from "../support/cpu-time.js";
import { heapUsed } from "../support/heap.js";
import { chanceOf, hostileText, hostileValue, plausibleValue, queryText } from "../support/hostile.js";

// These answers are held to rules of their own: what is asked here is mostly nothing that a
// document describes, and the heap is weighed.
stopComparing();

const SECONDS = Number(process.env["FUZZ_SECONDS"] ?? 3);
const SEED = Number(process.env["FUZZ_SEED"] ?? randomInt(2 ** 31));
const NOON = Date.UTC(2026, 10, 21, 12);
/**
 * For one request, in references of `expectAtMost`. Generous, because the engine collects garbage
 * at any time.
 */
const MAX_REFERENCES = 200;
/** Of each run, however slow the machine is. */
const MIN_REQUESTS = 100;
/** The growth that is allowed: the change log of the storage, and code that the engine compiled. */
const HEAP_SLACK_BYTES = 16 * 1024 * 1024;
const BASE_URL = "http://localhost";

/** Errors of routes that a site without an image editor or embeds has, and of what has no trash. */
const DOCUMENTED = ["rest_trash_not_supported", "rest_image_editing_unavailable"];

interface Operation {
  readonly path: string;
  readonly method: string;
  readonly args: { readonly [name: string]: Schema };
}

/** Remembers what is stored, records that no list shows included. */
function watched(storage: ContentStorage): { readonly storage: ContentStorage; readonly keys: Set<string> } {
  const keys = new Set<string>();
  return {
    keys,
    storage: {
      content(context) {
        const store = storage.content(context);
        return {
          ...store,
          async commit(writes, basis) {
            const result = await store.commit(writes, basis);
            if (result.ok) {
              for (const { key, record } of writes) {
                if (record === null) keys.delete(key);
                else keys.add(key);
              }
            }
            return result;
          },
        };
      },
      close: () => storage.close(),
    },
  };
}

function siteUnder(seed: number) {
  const chance = chanceOf(seed);
  const clock = manualClock(NOON, { seed });
  const { storage, keys } = watched(memoryStorage());
  const files = memoryFiles();
  const problems: unknown[] = [];
  const options = {
    storage,
    files,
    clock,
    limits: { cacheBytes: 1_048_576, requestBytes: 65_536, uploadBytes: 16_384, revisions: 3 },
    cors: { origins: ["https://app.example.org"] },
    // No name has an address, so nothing leaves this machine.
    embeds: { destinations: { resolve: async () => [] } },
    logger: {
      debug() {},
      info() {},
      warn() {},
      error: (details: unknown) => void problems.push(details),
    },
  };
  return {
    chance,
    clock,
    storage,
    files,
    keys,
    problems,
    site: contentSite(options),
    fresh: () => contentSite(options),
  };
}

type World = ReturnType<typeof siteUnder>;

async function operationsOf({ site }: World): Promise<readonly Operation[]> {
  const { body } = await site.request({ method: "GET", path: "/", as: null });
  const routes = (
    body as { routes: { [path: string]: { endpoints: { methods: string[]; args: object }[] } } }
  ).routes;
  return Object.entries(routes).flatMap(([path, { endpoints }]) =>
    endpoints.flatMap(({ methods, args }) =>
      methods.map((method) => ({ path, method, args: args as Operation["args"] })),
    ),
  );
}

/** Without one of these most writes are refused before anything interesting happens. */
const TEXT_NAMES = new Set(["title", "content", "force"]);

const GLOBAL_NAMES = [
  "__proto__",
  "constructor",
  "_fields",
  "_embed",
  "_envelope",
  "_pretty",
  "_jsonp",
  "_method",
  "id",
  "context",
  "password",
  "guid",
  "modified",
];

/** Makes requests. Remembers the ids that it has seen, so that most paths lead somewhere. */
function requests(world: World, operations: readonly Operation[]) {
  const { chance } = world;
  const names = [...GLOBAL_NAMES, ...new Set(operations.flatMap(({ args }) => Object.keys(args)))];
  let ids: number[] = [1];
  const idsOf = new Map<string, number[]>();

  function pathOf({ path }: Operation): string {
    const filled = path.replace(/\(\?P<(\w+)>(\[[^\]]*\])\+\)/g, (_, name: string, kind: string) => {
      if (kind === "[\\d]") {
        const own = idsOf.get(path.split("/")[3] ?? "") ?? ids;
        return chance.once(12)
          ? chance.pick(["0", "007", "99999999999999999999", "1"])
          : String(chance.pick(own));
      }
      return chance.pick(
        { type: ["post", "page"], status: ["publish", "draft"] }[name] ?? ["category", "nav_menu"],
      );
    });
    if (!chance.once(25)) return filled;
    const twist = chance.pick([
      "/",
      "//",
      "/..",
      "%00",
      "%2e%2e/",
      "%zz",
      "?",
      "/%F0%9F",
      "/constructor",
      "/__proto__",
    ]);
    const at = chance.int(filled.length + 1);
    return filled.slice(0, at) + twist + filled.slice(at);
  }

  /**
   * Values for some of the arguments: all of them plausible in a third of the requests, and in the
   * others one or more are not.
   */
  function valuesFor({ path, args }: Operation, density: number): JsonObject {
    const values: { [name: string]: Json } = {};
    const put = (name: string, value: Json): void => {
      Object.defineProperty(values, name, { value, enumerable: true, configurable: true, writable: true });
    };
    const isCalm = chance.once(3);
    for (const [name, schema] of Object.entries(args)) {
      const isInPath = path.includes(`<${name}>`);
      const isWanted =
        schema["required" as never] === true || TEXT_NAMES.has(name)
          ? !chance.once(10)
          : chance.once(density);
      if (isInPath ? isCalm || !chance.once(20) : !isWanted) continue;
      put(name, isCalm || !chance.once(8) ? plausibleValue(schema, chance, ids) : hostileValue(chance));
    }
    if (isCalm) return values;
    if (chance.once(3)) put(chance.pick(names), hostileValue(chance));
    if (chance.once(15)) put(hostileText(chance), hostileValue(chance));
    return values;
  }

  interface Sent {
    readonly body: RequestBody;
    readonly headers: Record<string, string>;
  }
  const sent = (body: Buffer | string, type: string, more: Record<string, string> = {}): Sent => ({
    body: Buffer.from(body),
    headers: { "content-type": type, ...more },
  });

  function bodyFor(operation: Operation): Sent {
    const values = operation.path === "/batch/v1" ? batchFor() : valuesFor(operation, 3);
    const text = JSON.stringify(values);
    switch (chance.int(20)) {
      case 0:
        return sent(hostileText(chance), "application/json");
      case 1:
        return sent(Buffer.from([0xff, 0xfe, 0x7b, 0, 0x7d, 0]), "application/json");
      case 2:
        return sent(queryText(values), "application/x-www-form-urlencoded");
      case 3:
        return sent(hostileText(chance), chance.pick(["text/plain", "image/png", "", "multipart/form-data"]));
      case 4:
        return { body: { parsed: values }, headers: { "content-type": "application/json" } };
      case 5:
        return { ...sent("", "application/json"), body: streamed(Buffer.from(text)) };
      case 6:
        return sent(JSON.stringify(hostileValue(chance)), "application/json");
      case 7:
        return { body: null, headers: {} };
      default:
        return operation.path.endsWith("/media")
          ? upload(values)
          : sent(text, "application/json; charset=utf-8");
    }
  }

  const FILES: readonly (readonly [name: string, type: string, bytes: Buffer])[] = [
    [
      "a.png",
      "image/png",
      Buffer.from("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0", "latin1"),
    ],
    [
      "a.png",
      "image/png",
      Buffer.from("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff\xff\xff\xff\xff\xff\xff\xff", "latin1"),
    ],
    ["a.gif", "image/gif", Buffer.from("GIF89a\x01\0\x01\0\0\0\0;", "latin1")],
    ["a.jpg", "image/jpeg", Buffer.from("\xff\xd8\xff\xe1\xff\xffExif\0\0II*\0\xff\xff\xff\xff", "latin1")],
    ["a.txt", "text/plain", Buffer.from("some text")],
    ["a.txt", "text/plain", Buffer.alloc(20_000, "x")],
    ["a.svg", "image/svg+xml", Buffer.from("<svg onload=alert(1)>")],
    ["a.php.jpg", "image/jpeg", Buffer.from("<?php echo 1;")],
    ["a.pdf", "application/pdf", Buffer.from("%PDF-1.4")],
  ];

  /** A file with a name that fits it or does not, in a form with the values or alone. */
  function upload(values: JsonObject): Sent {
    const [own, type, bytes] = chance.pick(FILES);
    const name = chance.once(3) ? hostileText(chance) : own;
    if (chance.once(2)) {
      const disposition = chance.once(6) ? hostileText(chance) : `attachment; filename="${name}"`;
      return sent(bytes, chance.once(6) ? hostileText(chance) : type, { "content-disposition": disposition });
    }
    const boundary = chance.once(10) ? "" : "b";
    const parts = Object.entries(values).map(
      ([field, value]) =>
        `--b\r\nContent-Disposition: form-data; name="${field}"\r\n\r\n${JSON.stringify(value)}\r\n`,
    );
    const head = `--b\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\nContent-Type: ${type}\r\n\r\n`;
    const whole = Buffer.concat([Buffer.from(parts.join("") + head), bytes, Buffer.from("\r\n--b--\r\n")]);
    const body = chance.once(10) ? whole.subarray(0, chance.int(whole.length)) : whole;
    return sent(body, `multipart/form-data; boundary=${boundary}`);
  }

  function batchFor(): JsonObject {
    if (chance.once(8)) return { requests: hostileValue(chance), validation: hostileValue(chance) };
    const items = Array.from({ length: chance.int(5) }, (): JsonObject => {
      const operation = chance.pick(operations);
      return {
        path: chance.once(10) ? hostileText(chance) : pathOf(operation),
        ...(chance.once(8) ? {} : { method: operation.method === "GET" ? "POST" : operation.method }),
        ...(chance.once(6) ? { body: hostileValue(chance) } : { body: valuesFor(operation, 3) }),
        ...(chance.once(10)
          ? { headers: { authorization: credentials("administrator"), [hostileText(chance)]: "a" } }
          : {}),
      };
    });
    return { requests: items, ...(chance.once(4) ? { validation: "require-all-validate" } : {}) };
  }

  function queryFor(operation: Operation, isRead: boolean): string {
    if (chance.once(30)) return hostileText(chance);
    if (!isRead && !chance.once(4)) return "";
    const more: string[] = [];
    if (chance.once(12))
      more.push(
        chance.pick([
          "_embed",
          "_embed=author,up",
          "_envelope",
          "_pretty",
          "_jsonp=a.b",
          "_fields=id,title.raw",
        ]),
      );
    if (chance.once(20))
      more.push(
        chance.pick([
          "__proto__[polluted]=1",
          "constructor[prototype][polluted]=1",
          "a[b][c][d]=1",
          "&&=&",
          "[]=1",
        ]),
      );
    return [queryText(valuesFor(operation, isRead ? 6 : 8)), ...more].filter((part) => part !== "").join("&");
  }

  return {
    next(): HttpRequest {
      const operation = chance.pick(operations);
      const isOdd = chance.once(20);
      const method = isOdd
        ? chance.pick(["HEAD", "HEAD", "OPTIONS", "TRACE", "POST", "DELETE"])
        : operation.method;
      const isRead = ["GET", "HEAD", "OPTIONS"].includes(method);
      const { body, headers }: Sent =
        isRead && !chance.once(20) ? { body: null, headers: {} } : bodyFor(operation);
      const role = chance.pick([...ROLES, undefined, "administrator", "editor"] as const);
      if (role !== undefined) headers["authorization"] = credentials(role);
      if (chance.once(15))
        headers["x-http-method-override"] = chance.pick([
          "DELETE",
          "PUT",
          "GET",
          "OPTIONS",
          "a b",
          "__proto__",
        ]);
      if (chance.once(15))
        headers["origin"] = chance.pick(["https://app.example.org", "https://evil.example", "null", ""]);
      if (chance.once(20)) headers["if-none-match"] = chance.pick(["*", 'W/"a"', ",,,", '"']);
      return {
        method,
        path: pathOf(operation),
        query: queryFor(operation, isRead),
        headers,
        body,
        baseUrl: BASE_URL,
      };
    },
    learn(path: string, json: unknown): void {
      const { id } = (json ?? {}) as { id?: unknown };
      if (typeof id !== "number" || !Number.isSafeInteger(id)) return;
      const base = path.split("/")[3] ?? "";
      ids = [...ids, id].slice(-40);
      idsOf.set(base, [...(idsOf.get(base) ?? []), id].slice(-20));
    },
  };
}

class Wrong extends Error {}

/** Errors are JSON in WordPress's form; 5xx are the documented ones. */
function checkOutcome(status: number, json: unknown): void {
  if (!Number.isInteger(status) || status < 200 || status > 599) throw new Wrong(`the status ${status}`);
  if (status < 400) return;
  const { code, message, data } = (json ?? {}) as {
    code?: unknown;
    message?: unknown;
    data?: { status?: unknown };
  };
  if (typeof code !== "string" || typeof message !== "string") throw new Wrong("an error in another form");
  if (data?.status !== status && code !== "rest_callback_invalid")
    throw new Wrong("an error that tells another status");
  if (status >= 500 && !(status === 501 && DOCUMENTED.includes(code))) throw new Wrong(`${status} ${code}`);
}

function checkAnswer(request: HttpRequest, status: number, headers: object, text: string): unknown {
  for (const [name, value] of Object.entries(headers)) {
    validateHeaderName(name);
    for (const one of [value].flat()) validateHeaderValue(name, one as string);
  }
  if (request.method === "HEAD" || status === 304 || status === 204) {
    if (text !== "") throw new Wrong("a body where none belongs");
    if (status >= 500 && status !== 501) throw new Wrong(`the status ${status}`);
    return undefined;
  }
  const isScript = String((headers as { "content-type"?: string })["content-type"]).includes("javascript");
  const isXml = String((headers as { "content-type"?: string })["content-type"]).startsWith("text/xml");
  if (isXml && status === 200) return text;
  const json: unknown = JSON.parse(
    isScript && text.startsWith("/**/") ? text.slice(text.indexOf("(") + 1, -1) : text,
  );
  checkOutcome(status, json);
  const {
    body,
    status: inner,
    responses,
  } = (json ?? {}) as { body?: unknown; status?: unknown; responses?: unknown };
  if (typeof inner === "number" && body !== undefined) checkOutcome(inner, body);
  const list = responses ?? (body as { responses?: unknown } | undefined)?.responses;
  if (Array.isArray(list)) {
    for (const one of list) if (one !== null) checkOutcome(one.status, one.body);
  }
  return json;
}

const shown = ({ method, path, query, headers, body }: HttpRequest): string => {
  const content =
    body === null
      ? ""
      : body instanceof Uint8Array
        ? Buffer.from(body).toString()
        : "parsed" in body
          ? JSON.stringify(body.parsed)
          : "(streamed)";
  return `${method} ${path}?${query} ${JSON.stringify(headers)} ${content}`.slice(0, 3_000);
};

interface Fuzz {
  readonly world: World;
  readonly run: (seconds: number) => Promise<void>;
}

async function fuzzOf(seed: number): Promise<Fuzz> {
  const world = siteUnder(seed);
  const { site, chance, clock, problems } = world;
  const maker = requests(world, await operationsOf(world));
  let count = 0;
  let last: HttpRequest | undefined;

  async function one(): Promise<void> {
    count += 1;
    const request = maker.next();
    last = request;
    const response = await expectAtMost(MAX_REFERENCES, () => site.handle(request));
    if (response !== undefined) {
      const { status, headers, body } = response;
      const text =
        body === null ? "" : typeof body === "string" ? body : Buffer.from(body as Uint8Array).toString();
      maker.learn(request.path, checkAnswer(request, status, headers, text));
    }
    if (problems.length > 0)
      throw new Wrong(`something logged: ${String((problems[0] as { error?: Error }).error?.stack)}`);
    if (({} as { polluted?: unknown }).polluted !== undefined) throw new Wrong("a changed prototype");
    if (chance.once(50)) await clock.advance(chance.int(60_000));
  }

  return {
    world,
    async run(seconds) {
      const end = performance.now() + seconds * 1000;
      const least = count + MIN_REQUESTS;
      try {
        while (performance.now() < end || count < least) {
          await one();
          // Others get their turn, and unhandled rejections are found out about.
          if (count % 64 === 0) await new Promise((resolve) => setImmediate(resolve));
        }
      } catch (error) {
        const what = last === undefined ? "" : shown(last);
        throw new Error(`FUZZ_SEED=${seed}, request ${count}: ${String(error)}\n${what}`, { cause: error });
      }
    },
  };
}

type Site = World["site"];

const LISTS = ["posts", "pages", "media", "menu-items", "blocks", "navigation"];
const TERMS = ["categories", "tags", "menus", "wp_pattern_category"];

const get = async (site: Site, as: Role | null, base: string, query: JsonObject) => {
  const answer = await site.request({ method: "GET", path: `/core/v2/${base}`, as: as && idOf(as), query });
  return { status: answer.status, total: answer.headers["X-WP-Total"], body: answer.body };
};

/** Every list that a role can ask for. */
async function listsOf(site: Site): Promise<readonly unknown[]> {
  const answers: unknown[] = [];
  const queries: JsonObject[] = [
    {},
    { orderby: "title", order: "asc" },
    { orderby: "modified", per_page: 3, page: 2 },
    { search: "a" },
    { search: "end -apple", search_columns: "post_title" },
    { status: "any" },
    { status: "trash" },
    { status: "any", context: "edit", per_page: 100 },
    { author: "1,2", orderby: "slug" },
    { before: "2026-11-21T12:10:00", offset: 1 },
  ];
  for (const as of [null, ...ROLES]) {
    for (const base of LISTS) for (const query of queries) answers.push(await get(site, as, base, query));
    for (const base of TERMS) answers.push(await get(site, as, base, { per_page: 100, orderby: "count" }));
    answers.push(await get(site, as, "users", {}));
  }
  return answers;
}

/** Each as whoever may: patterns that are private are their authors' alone. */
async function removeEverything({ site, keys }: World): Promise<void> {
  const bases = { post: LISTS, term: TERMS };
  for (const as of ROLES) {
    for (const key of [...keys]) {
      const [kind = "", id = ""] = key.split("/");
      for (const base of bases[kind as keyof typeof bases] ?? []) {
        if (!keys.has(key)) break;
        await site.request({
          method: "DELETE",
          path: `/core/v2/${base}/${id}`,
          as: idOf(as),
          query: { force: true },
        });
      }
    }
  }
}

describe(`random requests (FUZZ_SEED=${SEED})`, () => {
  const rejections: unknown[] = [];
  const onRejection = (reason: unknown): void => void rejections.push(reason);
  beforeAll(() => void process.on("unhandledRejection", onRejection));
  afterAll(() => void process.off("unhandledRejection", onRejection));

  it(
    "get no 5xx and no broken answer, leave the index as the storage is, and nothing on the heap",
    async () => {
      const { world, run } = await fuzzOf(SEED);
      const { site, fresh, keys } = world;
      await run(SECONDS / 3);
      await removeEverything(world);
      const before = heapUsed();
      await run((SECONDS * 2) / 3);
      expect(rejections).toEqual([]);

      expect(await listsOf(site)).toEqual(await listsOf(fresh()));

      await removeEverything(world);
      // Settings, menu locations and preferences have no route that removes them.
      const isKept = (key: string): boolean =>
        key === "site/1" || key === "term/1" || /^(?:option|user)\//.test(key);
      expect([...keys].filter((key) => !isKept(key))).toEqual([]);
      const left: string[] = [];
      for await (const { name } of world.files.list()) left.push(name);
      expect(left).toEqual([]);
      expect(heapUsed() - before).toBeLessThan(HEAP_SLACK_BYTES);
    },
    SECONDS * 10_000 + 30_000,
  );
});
