/** The preferences of the editor, which users write about themselves over a real socket. */

import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../src/schema/types.js";
import { contentSite, idOf, ROLES } from "../../support/content-site.js";
import { CALLERS, serveContent } from "../../support/content-socket.js";
import { CONTENT_STORAGES } from "../../support/content-storages.js";

const preferences = (fixed: boolean) => ({
  core: { fixedToolbar: fixed, openPanels: ["post-status"], isComplementaryAreaVisible: true },
  _modified: "2026-11-23T08:00:00.000Z",
});
const toBody = (persisted_preferences: unknown) =>
  ({ meta: { persisted_preferences } }) as unknown as JsonObject;
const ME = "/users/me?context=edit";

describe.each(CONTENT_STORAGES)("preferences on %s", (_, open) => {
  it("are stored for every user, who alone reads them", async () => {
    const site = contentSite({ storage: open() });
    const { call } = await serveContent(site);
    for (const [at, as] of ROLES.entries()) {
      const before = await call(`GET ${ME}`, { as });
      expect(before.body.meta, as).toEqual({ persisted_preferences: [] });
      expect(before.headers["allow"]).toBe("GET, POST, PUT, PATCH");
      const method = ["POST", "PUT", "PATCH"][at % 3];
      const { status, body } = await call(`${method} /users/me`, { as, body: toBody(preferences(at > 1)) });
      expect([status, body.id, body.slug], as).toEqual([200, idOf(as), as]);
      expect(body.meta).toEqual({ persisted_preferences: preferences(at > 1) });
    }
    for (const [at, as] of ROLES.entries()) {
      expect((await call(`GET ${ME}`, { as })).body.meta.persisted_preferences).toEqual(preferences(at > 1));
      expect((await call("GET /users/me", { as })).body.meta).toEqual([]);
    }
    const other = await call(`GET /users/${idOf("author")}?context=edit`, { as: "administrator" });
    expect([other.status, other.body.meta]).toEqual([200, []]);
    const list = await call("GET /users?context=edit", { as: "administrator" });
    expect(list.body.map(({ meta }: { meta: unknown }) => meta)).toEqual(ROLES.map(() => []));
  });

  it("replace each other whole, and survive concurrent writers in several processes", async () => {
    const storage = open();
    const [first, second] = [contentSite({ storage }), contentSite({ storage })];
    const calls = [(await serveContent(first)).call, (await serveContent(second)).call];
    const answers = await Promise.all(
      Array.from({ length: 12 }, async (_, n) =>
        calls[n % 2]?.("POST /users/me", { as: n < 6 ? "author" : "editor", body: toBody({ n }) }),
      ),
    );
    expect(answers.map((answer) => answer?.status)).toEqual(Array(12).fill(200));
    for (const as of ["author", "editor"] as const) {
      const seen = await Promise.all(calls.map(async (call) => (await call(`GET ${ME}`, { as })).body.meta));
      expect(seen[0]).toEqual(seen[1]);
      expect(Object.keys(seen[0].persisted_preferences)).toEqual(["n"]);
    }
    // Nothing else of the site is disturbed: the other process lists what was created meanwhile.
    await calls[0]?.("POST /posts", { as: "author", body: { title: "a", status: "publish" } });
    expect((await calls[1]?.("GET /posts"))?.body).toHaveLength(1);
  });

  it("are removed with null, and stay if nothing is said of them", async () => {
    const { call } = await serveContent(contentSite({ storage: open() }));
    const as = "contributor";
    await call("POST /users/me", { as, body: toBody(preferences(true)) });
    for (const body of [{}, { meta: {} }, { meta: { other: 1 } }, { meta: null }, { meta: [] }]) {
      const { body: shown } = await call("POST /users/me", { as, body });
      expect(shown.meta.persisted_preferences, JSON.stringify(body)).toEqual(preferences(true));
    }
    const { body } = await call("POST /users/me", { as, body: toBody(null) });
    expect(body.meta).toEqual({ persisted_preferences: [] });
  });
});

it("leave the cached responses of everybody else as they are", async () => {
  const content = contentSite();
  const { call } = await serveContent(content);
  await call("POST /posts", { as: "author", body: { title: "a", status: "publish" } });
  const request = { method: "GET", path: "/core/v2/posts", query: "", headers: {}, body: null };
  const read = () => content.handle({ ...request, baseUrl: "http://localhost" });
  const cached = await read();
  await call("POST /users/me", { as: "subscriber", body: toBody(preferences(true)) });
  expect(read()).toBe(cached);
  await call("POST /posts", { as: "author", body: { title: "b", status: "publish" } });
  expect(read()).not.toBe(cached);
});

describe("an update of a user", () => {
  it("is for the user himself, by either path", async () => {
    const { call } = await serveContent(contentSite());
    const own = idOf("author");
    const expected = (as: (typeof CALLERS)[number]): readonly unknown[] => {
      if (as === "author") return [200, undefined, { b: "author" }, "GET, POST, PUT, PATCH"];
      if (as === "administrator") return [403, "rest_cannot_edit", undefined, "GET"];
      return as
        ? [404, "rest_user_invalid_id", undefined, undefined]
        : [401, "rest_cannot_edit", undefined, undefined];
    };
    for (const as of CALLERS) {
      const me = await call("POST /users/me", { as, body: toBody({ a: 1 }) });
      expect([me.status, me.body.code], as).toEqual(as ? [200, undefined] : [401, "rest_not_logged_in"]);
      const { status, body, headers } = await call(`PUT /users/${own}`, {
        as,
        body: toBody({ b: as ?? "" }),
      });
      const result = [status, body.code, body.meta?.persisted_preferences, headers["allow"]];
      expect(result, as).toEqual(expected(as));
    }
    const { body } = await call(`PUT /users/${own}`, { as: "author", body: toBody({ b: "author" }) });
    expect(body._links.self[0].targetHints.allow).toEqual(["GET", "POST", "PUT", "PATCH"]);
    await call("POST /posts", { as: "author", body: { title: "a", status: "publish" } });
    for (const as of CALLERS.filter((role) => role !== "author")) {
      const { status, body } = await call(`PATCH /users/${own}`, { as, body: toBody({}) });
      expect([status, body.code], as).toEqual([as ? 403 : 401, "rest_cannot_edit"]);
    }
  });

  it("changes nothing that the host keeps, and accepts what is equal", async () => {
    const { call } = await serveContent(contentSite());
    for (const as of ROLES) {
      const { body: read } = await call(`GET ${ME}`, { as });
      const { status, body } = await call("POST /users/me", { as, body: { ...read, ...toBody({ a: 1 }) } });
      expect([status, body.meta.persisted_preferences], as).toEqual([200, { a: 1 }]);
      for (const [field, value] of Object.entries({
        name: "Other",
        email: "other@example.org",
        url: "http://example.org",
        description: "Other",
        slug: "other",
        roles: ["administrator", "editor"],
        password: "secret",
        username: "other",
        locale: "de_DE",
      })) {
        const refused = await call("POST /users/me", { as, body: { [field]: value, ...toBody({ b: 2 }) } });
        expect([refused.status, refused.body.code], field).toEqual([400, "rest_user_invalid_argument"]);
        expect(Object.keys(refused.body.data.params)).toEqual([field]);
        expect(JSON.stringify(refused.body)).not.toContain("secret");
      }
      expect((await call(`GET ${ME}`, { as })).body.meta.persisted_preferences).toEqual({ a: 1 });
    }
  });

  it("is bounded in size and depth, and checks the types that are known", async () => {
    const { call } = await serveContent(contentSite());
    const as = "subscriber";
    let deep: unknown = "end";
    for (let level = 0; level < 17; level += 1) deep = { deep };
    for (const [value, status, code] of [
      ["text", 400, "rest_invalid_type"],
      [{ _modified: "yesterday" }, 400, "rest_invalid_date"],
      [{ a: "b".repeat(65_536) }, 413, "rest_text_too_large"],
      [deep, 400, "rest_invalid_param"],
    ] as const) {
      const { body, ...answer } = await call("POST /users/me", { as, body: toBody(value) });
      expect([answer.status, body.code]).toEqual([status, code]);
    }
    const { status } = await call("POST /users/me", { as, body: { meta: "text" } });
    expect(status).toBe(400);
    const large = { a: "b".repeat(65_000), ["__proto__x"]: { constructor: 1 } };
    const { body } = await call("POST /users/me", { as, body: toBody(large) });
    expect(body.meta.persisted_preferences).toEqual(large);
  });

  it("is described to clients", async () => {
    const { call } = await serveContent(contentSite());
    const { body } = await call("OPTIONS /users/me", { as: "subscriber" });
    expect(body.methods).toEqual(["GET", "POST", "PUT", "PATCH"]);
    expect(Object.keys(body.endpoints[1].args)).toEqual(
      "username name first_name last_name email url description locale nickname slug roles password meta".split(
        " ",
      ),
    );
    const { persisted_preferences } = body.schema.properties.meta.properties;
    expect(persisted_preferences).toMatchObject({
      type: "object",
      context: ["edit"],
      additionalProperties: true,
    });
  });
});
