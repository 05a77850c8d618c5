/**
 * Sends requests that follow from the OpenAPI document to each operation, as everybody: what the
 * document allows is not refused as invalid, and what it does not allow is, by name.
 */

import { createServer } from "node:http";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nodeAdapter } from "../../adapters/node.js";
import type { HttpRequest } from "../../src/http/types.js";
import type { Json, JsonObject } from "../../src/schema/types.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { memoryFiles } from "../../storage/files/index.js";
import { takeDifferences } from "../support/compared-service.js";
import { contentSite, credentials, idOf, ROLES, type Role } from "../support/content-site.js";
import { textOf } from "../support/described-answers.js";
import {
  type BodyForm,
  type DescribedOperation,
  describedOperations,
  type OperationArgument,
  writeRequest,
} from "../support/described-operations.js";
import { allowedValues, refusedValues } from "../support/described-values.js";
import { listen } from "../support/hosts.js";

const SEED = Number(process.env["FUZZ_SEED"] ?? 15);
/** For each operation. */
const RUNS = Number(process.env["FUZZ_RUNS"] ?? 20);
const NOON = Date.UTC(2026, 10, 21, 12);
const BASE_URL = "http://localhost";

type Site = ReturnType<typeof contentSite>;

const createSite = (): Site =>
  contentSite({
    clock: manualClock(NOON, { seed: SEED }),
    files: memoryFiles(),
    // No name has an address, so nothing leaves this machine.
    embeds: { destinations: { resolve: async () => [] } },
  });

const EVERYBODY: readonly (Role | null)[] = [null, ...ROLES];

/** Ids that records have, and some that lead nowhere. */
const IDS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0, 99];

/** Creates records of each kind. */
async function seed(site: Site): Promise<void> {
  const create = async (path: string, body: JsonObject, role: Role = "administrator"): Promise<number> => {
    const { body: created } = await site.request({
      method: "POST",
      path: `/core/v2/${path}`,
      body,
      as: idOf(role),
    });
    return (created as { readonly id: number }).id;
  };
  const post = await create("posts", { title: "Public", content: "Text", status: "publish" }, "author");
  await create(`posts/${post}`, { content: "Another text" }, "author");
  await create("posts", { title: "Draft" }, "contributor");
  await create("posts", { title: "Private", status: "private" });
  await create("posts", { title: "Protected", status: "publish", password: "secret" }, "editor");
  const page = await create("pages", { title: "Page", status: "publish" });
  await create("pages", { title: "Child", status: "publish", parent: page });
  await create(`pages/${page}/autosaves`, { title: "Page, changed" });
  await create("blocks", { title: "Pattern", content: "Text", status: "publish" });
  await create("tags", { name: "Tag" });
  await create("wp_pattern_category", { name: "Kind" });
  await site.handle({
    method: "POST",
    path: "/core/v2/media",
    query: "",
    baseUrl: BASE_URL,
    body: Buffer.from("Some text"),
    headers: {
      authorization: credentials("administrator"),
      "content-type": "text/plain",
      "content-disposition": 'attachment; filename="a.txt"',
    },
  });
  const menu = await create("menus", { name: "Menu" });
  await create("menu-items", { title: "Item", url: "/", status: "publish", menus: menu });
}

/** The ids of each list, by the path that they follow: those of `/core/v2/posts/` and so on. */
async function findIds(site: Site): Promise<ReadonlyMap<string, readonly number[]>> {
  const found = new Map<string, readonly number[]>();
  const lists = OPERATIONS.filter(({ method, path }) => method === "GET" && !path.endsWith("}"));
  for (const { path, args } of lists.sort((one, other) => one.path.length - other.path.length)) {
    const query: JsonObject = args.some(({ name }) => name === "status") ? { status: "any" } : {};
    const [before = "", after = ""] = path.split(/\{\w+\}/);
    const parents = path.includes("{") ? (found.get(before) ?? []) : [""];
    for (const parent of parents) {
      const at = `${before}${parent}${after}`;
      const { body } = await site.request({ method: "GET", path: at, query, as: idOf("administrator") });
      const ids = (Array.isArray(body) ? (body as readonly { readonly id?: number }[]) : [])
        .map(({ id }) => id)
        .filter((id) => id !== undefined);
      if (ids.length > 0) found.set(`${path}/`, [...(found.get(`${path}/`) ?? []), ...ids]);
    }
  }
  return found;
}

interface Response {
  readonly status: number;
  readonly json: unknown;
}

type SentRequest = Omit<HttpRequest, "baseUrl" | "body"> & { readonly body: Buffer | null };
type Send = (request: SentRequest) => Promise<Response>;

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

const sendInProcess =
  (site: Site): Send =>
  async (request) => {
    const response = await site.handle({ ...request, baseUrl: BASE_URL });
    if (response === undefined) throw new Error("The path is not one of the service.");
    return { status: response.status, json: parse(textOf(response.body)) };
  };

const sendTo =
  (origin: string): Send =>
  async ({ method, path, query, headers, body }) => {
    const url = `${origin}${path}${query === "" ? "" : `?${query}`}`;
    const response = await fetch(url, {
      method,
      headers: { ...headers },
      body: body && new Uint8Array(body),
    });
    return { status: response.status, json: parse(await response.text()) };
  };

const asRole = (request: SentRequest, role: Role | null): SentRequest =>
  role === null ? request : { ...request, headers: { ...request.headers, authorization: credentials(role) } };

interface RandomRequest {
  readonly values: JsonObject;
  readonly role: Role | null;
  readonly form: BodyForm;
}

/** Half of the requests come from those who may do the most. */
const roles = fc.oneof(fc.constantFrom(...EVERYBODY), fc.constantFrom("administrator", "editor"));

const randomRequests = (
  { args, path }: DescribedOperation,
  ids: ReadonlyMap<string, readonly number[]>,
): fc.Arbitrary<RandomRequest> =>
  fc.record({
    values: fc.record(
      Object.fromEntries(
        args.map(({ name, schema, place }) => {
          const own = place === "path" ? ids.get(path.slice(0, path.indexOf(`{${name}}`))) : undefined;
          return [name, allowedValues(schema, own ?? IDS)];
        }),
      ),
      { requiredKeys: args.filter(({ isRequired }) => isRequired).map(({ name }) => name) },
    ) as fc.Arbitrary<JsonObject>,
    role: roles,
    form: fc.constantFrom("json", "json", "form"),
  });

interface ErrorBody {
  readonly code: string;
  readonly data?: {
    readonly params?: { readonly [name: string]: string } | readonly string[];
    readonly details?: { readonly [name: string]: { readonly code: string } };
  };
}

/** The arguments that a response calls invalid or missing. */
function refusedArguments({ status, json }: Response): readonly string[] {
  const { code, data: { params = {}, details = {} } = {} } = json as ErrorBody;
  if (status !== 400 || !["rest_invalid_param", "rest_missing_callback_param"].includes(code)) return [];
  const names = Array.isArray(params) ? (params as readonly string[]) : Object.keys(params);
  // A value that only some may ask for is refused as invalid, as in WordPress.
  return names.filter((name) => !details[name]?.code.startsWith("rest_forbidden"));
}

/** True for the errors of a site that has no image editor, and no trash for terms. */
const isUnavailable = ({ status, json }: Response): boolean =>
  status === 501 && /_unavailable$|_not_supported$/.test((json as ErrorBody).code);

/** Which pages may be fetched depends on their hosts, which no schema describes. */
const isPolicy = ({ path }: SentRequest, name: string): boolean =>
  name === "url" && path === "/wp-block-editor/v1/url-details";

function assertAllowed(request: SentRequest, response: Response): void {
  const differences = takeDifferences();
  const isWrong = response.status >= 500 && !isUnavailable(response);
  const refused = refusedArguments(response).filter((name) => !isPolicy(request, name));
  if (!isWrong && refused.length === 0 && differences.length === 0) return;
  const { method, path, query, body } = request;
  const shown = `${method} ${path}?${query} ${body?.toString() ?? ""}`.slice(0, 2_000);
  throw new Error(`${shown}\n${response.status} ${JSON.stringify(response.json)}\n${differences.join("\n")}`);
}

interface Target {
  readonly send: Send;
  readonly ids: ReadonlyMap<string, readonly number[]>;
}

const DOCUMENT = createSite().openApi() as JsonObject;
const OPERATIONS = describedOperations(DOCUMENT);
const named = OPERATIONS.map((operation) => [`${operation.method} ${operation.path}`, operation] as const);

describe(`requests that the document allows (FUZZ_SEED=${SEED})`, () => {
  const succeeded = new Map<string, number>();

  const assertAll = async (
    [name, operation]: (typeof named)[number],
    { send, ids, numRuns }: Target & { readonly numRuns: number },
  ): Promise<void> => {
    const property = fc.asyncProperty(randomRequests(operation, ids), async ({ values, role, form }) => {
      const request = asRole(writeRequest(operation, values, form), role);
      const response = await send(request);
      assertAllowed(request, response);
      if (response.status < 300) succeeded.set(name, (succeeded.get(name) ?? 0) + 1);
    });
    await fc.assert(property, { seed: SEED, numRuns });
  };

  it.each(named)("are not refused as invalid by %s", async (name, operation) => {
    const site = createSite();
    await seed(site);
    const target = { send: sendInProcess(site), ids: await findIds(site) };
    await assertAll([name, operation], { ...target, numRuns: RUNS });
  });

  it("succeed often enough to tell something", () => {
    const silent = named.map(([name]) => name).filter((name) => !succeeded.has(name));
    expect(silent.length).toBeLessThan(OPERATIONS.length * 0.4);
    const total = [...succeeded.values()].reduce((sum, count) => sum + count, 0);
    expect(total).toBeGreaterThan((OPERATIONS.length * RUNS) / 4);
  });

  it("are not refused through a socket either", async () => {
    const site = createSite();
    await seed(site);
    const host = await listen(createServer(nodeAdapter(site)));
    const target = { send: sendTo(host.origin), ids: await findIds(site) };
    for (const one of named) await assertAll(one, { ...target, numRuns: 1 });
    await host.close();
  });
});

describe("requests that the document does not allow", () => {
  /** The name under which the service knows `categories[terms]`. */
  const argumentName = ({ name }: OperationArgument): string => name.replace(/\[.*$/, "");

  const requiredOnly = ({ args }: DescribedOperation): fc.Arbitrary<JsonObject> =>
    fc.record(
      Object.fromEntries(
        args
          .filter(({ isRequired }) => isRequired)
          .map(({ name, schema }) => [name, allowedValues(schema, IDS)]),
      ),
    ) as fc.Arbitrary<JsonObject>;

  /** Like WordPress, reads any value of these: the document offers those that have a meaning. */
  const LENIENT: ReadonlySet<string> = new Set([
    "/oembed/1.0/embed format",
    "/oembed/1.0/embed maxwidth",
    "/oembed/1.0/proxy maxwidth",
    "/oembed/1.0/proxy maxheight",
  ]);

  it.each(named)("are refused by %s, which names the argument", async (_, operation) => {
    const site = createSite();
    const send = sendInProcess(site);
    const accepted: string[] = [];
    const [base = {}] = fc.sample(requiredOnly(operation), { seed: SEED, numRuns: 1 });
    const cases = operation.args
      .filter(({ name, place }) => place !== "path" && !LENIENT.has(`${operation.path} ${name}`))
      .flatMap((argument) =>
        refusedValues(argument.schema, argument.place === "query").map((value) => ({ argument, value })),
      );
    for (const [index, { argument, value }] of cases.entries()) {
      const values: { [name: string]: Json } = { ...base, [argument.name]: value };
      const role = operation.takesFile
        ? "administrator"
        : (EVERYBODY[index % EVERYBODY.length] as Role | null);
      const response = await send(asRole(writeRequest(operation, values, "json"), role));
      const { params = {} } = (response.json as ErrorBody).data ?? {};
      if (response.status === 400 && argumentName(argument) in params) continue;
      accepted.push(`${argument.name}=${JSON.stringify(value).slice(0, 100)}: ${response.status}`);
    }
    expect(accepted).toEqual([]);
  });
});
