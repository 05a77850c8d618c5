/** Application passwords: signing in with them, their routes, and attacks on both. */

import { createServer } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import WPAPI from "wpapi";
import { nodeAdapter } from "../../adapters/node.js";
import type { ApplicationPasswordOptions } from "../../src/content/content-options.js";
import { createApplicationPasswords } from "../../src/content/hosting/application-passwords.js";
import { createContent } from "../../src/content/service.js";
import type { HttpRequest } from "../../src/http/types.js";
import type { JsonObject } from "../../src/schema/types.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { contentSite, idOf, ROLES, type Role } from "../support/content-site.js";
import { CONTENT_STORAGES } from "../support/content-storages.js";
import { describedBy } from "../support/described-answers.js";
import { listen } from "../support/hosts.js";

const BASE_URL = "https://www.example.org/api";
const ADDRESS = "203.0.113.7";
const DAY_MS = 86_400_000;
const START = Date.UTC(2026, 10, 27);

const basic = (name: string, password: string): string =>
  `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}`;

/** A site whose users sign in with application passwords alone. */
function openSite(options: Partial<ApplicationPasswordOptions> = {}) {
  const storage = options.storage ?? memoryStorage();
  const passwords = createApplicationPasswords({
    storage,
    findUser: (name) => {
      const role = ROLES.find((known) => known === name);
      return role === undefined ? null : { id: idOf(role) };
    },
    getAddress: ({ headers }) => headers["x-client"] ?? ADDRESS,
    ...options,
  });
  const site = contentSite({
    storage,
    applicationPasswords: passwords,
    authenticate: (request) => passwords.authenticate(request),
    ...(options.clock && { clock: options.clock }),
  });
  const { problems } = describedBy(site.openApi({ baseUrl: BASE_URL }));

  /** A request over HTTP, compared with the OpenAPI document: `call("GET /posts", { as })`. */
  async function call(
    line: string,
    { as, body, headers = {}, baseUrl = BASE_URL }: Partial<CallOptions> = {},
  ) {
    const [method = "", target = ""] = line.split(" ");
    const [path = "", query = ""] = target.split("?");
    const request: HttpRequest = {
      ...{ method, path: `/core/v2${path}`, query, baseUrl },
      headers: {
        ...(as && { authorization: as }),
        ...(body && { "content-type": "application/json" }),
        ...headers,
      },
      body: body ? Buffer.from(JSON.stringify(body)) : null,
    };
    const response = await site.handle(request);
    expect(problems(request, response), line).toEqual([]);
    const text = Buffer.from((response?.body ?? "") as string).toString();
    return { status: response?.status, headers: response?.headers ?? {}, body: JSON.parse(text || "null") };
  }
  /** Creates a password in the process, and returns the header that uses it. */
  async function signIn(role: Role) {
    const { password, uuid } = await passwords.create(idOf(role), { name: "Test", appId: "" });
    return { as: basic(role, password), password, uuid };
  }
  return { storage, passwords, site, call, signIn };
}

interface CallOptions {
  readonly as: string;
  readonly body: JsonObject;
  readonly headers: Record<string, string>;
  readonly baseUrl: string;
}

const OWN = "/users/me/application-passwords";

describe.each(CONTENT_STORAGES)("application passwords on %s", (_, open) => {
  it("are created, listed, renamed, used and revoked over the routes", async () => {
    const { call, signIn } = openSite({ storage: open() });
    const { as } = await signIn("author");
    const app_id = "5b8a1c52-2f1e-4e7f-9d44-0d4f1c0a7e11";
    const created = await call(`POST ${OWN}`, { as, body: { name: " My <b>editor</b> ", app_id } });
    expect(created.status).toBe(201);
    const { uuid, password } = created.body;
    expect(password).toMatch(/^([A-Za-z0-9]{4} ){5}[A-Za-z0-9]{4}$/);
    expect(Object.keys(created.body)).toEqual([
      ...["uuid", "app_id", "name", "password", "created", "last_used", "last_ip", "_links"],
    ]);
    expect(created.body).toMatchObject({ app_id, name: "My editor", last_used: null, last_ip: null });
    const self = `${BASE_URL}/core/v2/users/${idOf("author")}/application-passwords/${uuid}`;
    expect(created.headers["location"]).toBe(self);
    expect(created.body._links.self[0].href).toBe(self);

    const other = { as: basic("author", password) };
    const me = await call("GET /users/me", other);
    expect(me.body.slug).toBe("author");
    const introspected = await call(`GET ${OWN}/introspect`, other);
    expect(introspected.body).toMatchObject({ uuid, last_ip: ADDRESS });
    expect(introspected.body).not.toHaveProperty("password");

    const list = await call(`GET ${OWN}?context=edit`, { as });
    expect(list.body.map(({ name }: { name: string }) => name)).toEqual(["Test", "My editor"]);
    expect(JSON.stringify(list.body)).not.toMatch(/password"|hash|selector|scrypt/);
    expect(Object.keys((await call(`GET ${OWN}/${uuid}?context=embed`, { as })).body)).toEqual([
      ...["uuid", "app_id", "name", "_links"],
    ]);
    const renamed = await call(`PUT ${OWN}/${uuid}`, { as, body: { name: "New name" } });
    expect([renamed.status, renamed.body.name, renamed.body.app_id]).toEqual([200, "New name", app_id]);
    expect((await call("GET /users/me", other)).status).toBe(200);

    const deleted = await call(`DELETE ${OWN}/${uuid}`, { as });
    expect(deleted.body).toMatchObject({ deleted: true, previous: { uuid, name: "New name" } });
    expect((await call("GET /users/me", other)).body.code).toBe("incorrect_password");
    expect((await call(`GET ${OWN}/${uuid}`, { as })).body.code).toBe("rest_application_password_not_found");
    expect((await call(`DELETE ${OWN}`, { as })).body).toEqual({ deleted: true, count: 1 });
    expect((await call(`GET ${OWN}`, { as })).status).toBe(401);
  });

  it("that are revoked are refused at once, also by a process that has just accepted them", async () => {
    const storage = open();
    const [first, second] = [openSite({ storage }), openSite({ storage })];
    const { as, uuid } = await first.signIn("editor");
    for (const { call } of [first, second]) expect((await call("GET /users/me", { as })).status).toBe(200);
    await first.passwords.revoke(idOf("editor"), uuid);
    for (const { call } of [first, second]) expect((await call("GET /users/me", { as })).status).toBe(401);
  });

  it("stay within 100 for a user, whoever creates them at the same time", async () => {
    const storage = open();
    const sites = [openSite({ storage }), openSite({ storage })];
    const stored = Array.from({ length: 98 }, (_, at) => ({
      uuid: `${at}`,
      name: "Old",
      selector: "",
      hash: "",
    }));
    const store = storage.content({ clock: manualClock(START), logger: console });
    const record = { columns: null, body: JSON.stringify(stored), unique: [] };
    const key = `application-passwords/${idOf("author")}`;
    await store.commit([{ key, expectedVersion: 0, record }]);
    const results = await Promise.allSettled(
      sites.flatMap(({ signIn }) => [signIn("author"), signIn("author")]),
    );
    expect(results.map(({ status }) => status).sort()).toEqual([
      ...["fulfilled", "fulfilled", "rejected", "rejected"],
    ]);
    expect(await sites[1]?.passwords.list(idOf("author"))).toHaveLength(100);
    const { call, signIn } = sites[0] as (typeof sites)[0];
    const { as } = await signIn("administrator");
    const more = await call(`POST /users/${idOf("author")}/application-passwords`, {
      ...{ as, body: { name: "One more" } },
    });
    expect([more.status, more.body.code]).toEqual([400, "application_password_limit_reached"]);
  });
});

describe("who may do what", () => {
  it("administrators manage those of others; everybody else is refused, whether the user exists or not", async () => {
    const { call, signIn } = openSite();
    const { uuid } = await signIn("author");
    const paths = [`GET `, `POST `, `DELETE `, `GET /${uuid}`, `PUT /${uuid}`, `DELETE /${uuid}`];
    const callers = [undefined, (await signIn("editor")).as, (await signIn("subscriber")).as];
    for (const user of [idOf("author"), 4_711, 0]) {
      for (const as of callers) {
        for (const line of paths) {
          const [method, below = ""] = line.split(" ");
          const options = { ...(as && { as }), ...(method === "GET" ? {} : { body: { name: "x" } }) };
          const { status, body } = await call(
            `${method} /users/${user}/application-passwords${below}`,
            options,
          );
          expect([status, body.code], `${line} ${user}`).toEqual([
            as === undefined ? 401 : 403,
            expect.stringMatching(/^rest_cannot_(list|create|read|edit|delete)_application_passwords?$/),
          ]);
        }
      }
    }
    const { as } = await signIn("administrator");
    const path = `/users/${idOf("author")}/application-passwords`;
    expect((await call(`GET ${path}`, { as })).body).toHaveLength(1);
    expect((await call(`DELETE ${path}/${uuid}`, { as })).status).toBe(200);
    expect((await call(`POST ${path}`, { as, body: { name: "For the author" } })).status).toBe(201);
    const unknown = await call("GET /users/4711/application-passwords", { as });
    expect([unknown.status, unknown.body.code]).toEqual([404, "rest_user_invalid_id"]);
  });

  it("the uuid of another user, or a forged one, is not found", async () => {
    const { call, signIn } = openSite();
    const { uuid } = await signIn("editor");
    const { as } = await signIn("author");
    for (const forged of [uuid, "5b8a1c52-2f1e-4e7f-9d44-0d4f1c0a7e11", "__proto__", "constructor", "0"]) {
      for (const method of ["GET", "PUT", "DELETE"]) {
        const { status } = await call(`${method} ${OWN}/${forged}`, { as });
        expect(status, `${method} ${forged}`).toBe(404);
      }
    }
    expect((await call(`GET ${OWN}/${"a".repeat(5_000)}`, { as })).status).toBeGreaterThanOrEqual(400);
  });

  it("introspect shows a password only to the request that uses it", async () => {
    const { call, site, signIn } = openSite();
    const { as, uuid } = await signIn("author");
    expect(
      (await call(`GET /users/${idOf("author")}/application-passwords/introspect`, { as })).body.uuid,
    ).toBe(uuid);
    expect((await call(`GET ${OWN}/introspect`)).status).toBe(401);
    const other = await call(`GET /users/${idOf("editor")}/application-passwords/introspect`, { as });
    expect([other.status, other.body.code]).toEqual([
      ...[403, "rest_cannot_introspect_app_password_for_non_authenticated_user"],
    ]);
    const inside = await site.request({
      method: "GET",
      path: `/core/v2${OWN}/introspect`,
      as: idOf("author"),
    });
    expect([inside.status, inside.body]).toMatchObject([404, { code: "rest_no_authenticated_app_password" }]);
  });

  it("names and ids are checked", async () => {
    const { call, signIn } = openSite();
    const { as } = await signIn("author");
    for (const body of [
      {},
      { name: "" },
      { name: "<b></b>" },
      { name: " \u0000 " },
      { name: "x".repeat(256) },
    ]) {
      expect((await call(`POST ${OWN}`, { as, body })).status, JSON.stringify(body)).toBe(400);
    }
    for (const app_id of ["x", "x".repeat(100_000), 7]) {
      expect((await call(`POST ${OWN}`, { as, body: { name: "a", app_id } })).status).toBe(400);
    }
    for (const name of ["x".repeat(255), "💡".repeat(120), "__proto__"]) {
      expect((await call(`POST ${OWN}`, { as, body: { name, app_id: "" } })).body.name).toBe(name);
    }
    expect((await call(`GET ${OWN}`, { as })).body).toHaveLength(4);
  });
});

describe("attacks on signing in", () => {
  it("malformed headers are refused without a hint, and reach nobody", async () => {
    let asked = 0;
    const { call, signIn } = openSite({
      failuresPerMinute: 0,
      findUser: (name) => {
        asked += 1;
        return name === "author" ? { id: idOf("author") } : null;
      },
    });
    const { password } = await signIn("author");
    const wrong = await call("GET /users/me", { as: basic("author", "A".repeat(24)) });
    const unknown = await call("GET /users/me", { as: basic("nobody", "A".repeat(24)) });
    expect([wrong.status, wrong.body.code]).toEqual([401, "incorrect_password"]);
    expect(unknown.body).toEqual(wrong.body);
    asked = 0;
    const headers = [
      ...[
        "Basic ",
        "basic !!!!",
        "Basic ====",
        "Basic YQ",
        `Basic ${Buffer.from("author").toString("base64")}`,
      ],
      ...[`Basic ${"A".repeat(1_048_576)}`, basic(`author\0`, password), basic("", password)],
      ...[basic("author", ""), basic("author", `${password}x`), basic("author", password.slice(1))],
      ...[basic("author", `${password}\0`), basic("x".repeat(256), password), basic("author:x", password)],
      ...[
        `Basic ${Buffer.from([0xff, 0xfe, 0x3a, 0x41]).toString("base64")}`,
        basic("ä".repeat(2_000), password),
      ],
      `${basic("author", password)}, ${basic("author", password)}`,
    ];
    for (const as of headers) {
      const { status, body } = await call("GET /users/me", { as });
      expect([status, body], as.slice(0, 60)).toEqual([401, wrong.body]);
    }
    expect(asked).toBe(0);
    expect((await call("GET /users/me", { as: "Bearer abc" })).body.code).toBe("rest_not_logged_in");
    expect((await call("GET /posts")).status).toBe(200);
  });

  it("names in any script work, and spaces in the password do not matter", async () => {
    const { call, passwords } = openSite({
      findUser: (name) => (name === "Åsa 心" ? { id: idOf("author") } : null),
    });
    const { password } = await passwords.create(idOf("author"), { name: "Test", appId: "" });
    const as = basic("Åsa 心", password.replace(/(.{4})/g, "$1  "));
    expect((await call("GET /users/me", { as })).body.slug).toBe("author");
  });

  it("failures are limited for each address and each name from it, and nobody else is locked out", async () => {
    const clock = manualClock(START);
    const { call, signIn } = openSite({ clock, failuresPerMinute: 3 });
    const { as } = await signIn("author");
    const guess = (client: string, name = "author") =>
      call("GET /users/me", { as: basic(name, "A".repeat(24)), headers: { "x-client": client } });
    for (let at = 0; at < 3; at += 1) expect((await guess("198.51.100.1")).status).toBe(401);
    const limited = await guess("198.51.100.1", "editor");
    expect([limited.status, limited.body.code]).toEqual([429, "rest_too_many_passwords"]);
    const right = (client: string) => call("GET /users/me", { as, headers: { "x-client": client } });
    expect((await right("198.51.100.1")).status).toBe(429);
    expect((await right("198.51.100.2")).status).toBe(200);
    for (let at = 0; at < 20; at += 1) expect((await right("198.51.100.2")).status).toBe(200);
    await clock.advance(60_000);
    expect((await guess("198.51.100.1")).status).toBe(401);
    expect((await right("198.51.100.1")).status).toBe(200);
  });

  it("plain HTTP is refused, unless the host allows it", async () => {
    const baseUrl = "http://www.example.org";
    const guarded = openSite();
    const { as } = await guarded.signIn("author");
    const refused = await guarded.call("GET /users/me", { as, baseUrl });
    expect([refused.status, refused.body.code]).toEqual([401, "application_passwords_disabled"]);
    const open = openSite({ allowHttp: true, storage: guarded.storage });
    expect((await open.call("GET /users/me", { as, baseUrl })).status).toBe(200);
  });

  it("nothing that is stored or logged contains the password", async () => {
    const lines: unknown[] = [];
    const log = (...given: unknown[]): void => void lines.push(given);
    const { storage, call, signIn } = openSite({
      logger: { debug: log, info: log, warn: log, error: log },
      findUser: (name) => {
        if (name === "broken") throw new Error("the directory does not respond");
        return { id: idOf("author") };
      },
    });
    const { as, password } = await signIn("author");
    await call("GET /users/me", { as });
    expect((await call("GET /users/me", { as: basic("broken", password) })).status).toBe(503);
    const store = storage.content({ clock: manualClock(START), logger: console });
    const [record] = await store.read([`application-passwords/${idOf("author")}`]);
    expect(record?.body).toMatch(/"hash":"scrypt\$16384\$8\$1\$/);
    expect(record?.columns).toBeNull();
    for (const text of [record?.body, JSON.stringify(lines)]) expect(text).not.toContain(password.slice(4));
    expect(lines).toHaveLength(1);
  });
});

describe("the use of a password", () => {
  it("is stored at most once a day", async () => {
    const clock = manualClock(START);
    const { call, passwords, signIn } = openSite({ clock });
    const { as } = await signIn("author");
    const lastUse = async () => {
      await call("GET /posts", { as, headers: { "x-client": `client ${clock.now()}` } });
      return (await passwords.list(idOf("author")))[0];
    };
    const first = await lastUse();
    expect(first?.lastUsedAt).toBe(Math.floor(clock.now()));
    await clock.advance(DAY_MS - 1_000);
    expect(await lastUse()).toEqual(first);
    await clock.advance(2_000);
    const next = await lastUse();
    expect([next?.lastUsedAt, next?.lastIp]).toEqual([Math.floor(clock.now()), `client ${clock.now()}`]);
  });

  it("needs no second hash for some minutes: the right password passes while failures are limited", async () => {
    const clock = manualClock(START);
    const { call, signIn } = openSite({ clock, failuresPerMinute: 1, getAddress: () => undefined });
    const { as } = await signIn("author");
    expect((await call("GET /users/me", { as })).status).toBe(200);
    const wrong = { as: basic("author", "A".repeat(24)) };
    expect((await call("GET /users/me", wrong)).status).toBe(401);
    expect((await call("GET /users/me", wrong)).status).toBe(429);
    expect((await call("GET /users/me", { as })).status).toBe(200);
    await clock.advance(300_000);
    expect((await call("GET /users/me", wrong)).status).toBe(401);
    expect((await call("GET /users/me", { as })).status).toBe(429);
  });
});

it("without the helper there are no such routes, and the index names no authentication", async () => {
  const site = contentSite();
  const { status, body } = await site.request({ method: "GET", path: `/core/v2${OWN}`, as: 1 });
  expect([status, body]).toMatchObject([404, { code: "rest_no_route" }]);
  const index = await site.request({ method: "GET", path: "/", as: null });
  expect((index.body as JsonObject)["authentication"]).toEqual([]);
});

it("the index names the authorization page if there is one", async () => {
  const authentication = async (options: Partial<ApplicationPasswordOptions>) => {
    const { body } = await openSite(options).site.request({ method: "GET", path: "/", as: null });
    return (body as JsonObject)["authentication"];
  };
  const authorization = "https://www.example.org/authorize";
  expect(await authentication({})).toEqual({ "application-passwords": { endpoints: {} } });
  expect(await authentication({ authorizationUrl: authorization })).toEqual({
    "application-passwords": { endpoints: { authorization } },
  });
});

it("the client wpapi signs in with a password, writes, and is refused once it is revoked", async () => {
  const storage = memoryStorage();
  const { passwords } = openSite({ storage, allowHttp: true });
  const content = createContent({
    storage,
    ...{ namespace: "wp", applicationPasswords: passwords },
    site: { name: "Example", url: "http://localhost" },
    users: [{ id: idOf("author"), slug: "author", name: "Ada", roles: ["author"] }],
    authenticate: (request) => passwords.authenticate(request),
  });
  const host = await listen(createServer(nodeAdapter(content)));
  onTestFinished(() => host.close());
  const { password } = await passwords.create(idOf("author"), { name: "wpapi", appId: "" });
  const spaced = password.replace(/(.{4})(?=.)/g, "$1 ");
  const client = new WPAPI({ endpoint: host.origin, username: "author", password: spaced });
  const post = await client.posts().create({ title: "Written by a program", status: "publish" });
  expect(post).toMatchObject({ status: "publish", author: idOf("author") });
  await passwords.revoke(idOf("author"));
  await expect(client.posts().create({ title: "Too late" })).rejects.toMatchObject({
    code: "incorrect_password",
  });
});

it.each([
  ["storage", undefined],
  ["storage", {}],
  ["findUser", undefined],
  ["findUser", "x"],
  ["getAddress", 1],
  ["allowHttp", "yes"],
  ["authorizationUrl", "javascript:alert(1)"],
  ["failuresPerMinute", -1],
  ["unknown", 1],
])("refuses the option %s = %j", (field, given) => {
  const options = { storage: memoryStorage(), findUser: () => null, [field]: given };
  expect(() => createApplicationPasswords(options)).toThrow(
    expect.objectContaining({ code: "invalid_option", field }),
  );
});
