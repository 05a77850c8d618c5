/** `/settings` over a real socket: who reads and writes it, what a host allows, and who sees it. */

import { describe, expect, it } from "vitest";
import type { ContentOptions } from "../../../src/content/content-options.js";
import { createContent } from "../../../src/content/service.js";
import { isPostbellError } from "../../../src/core/errors.js";
import { silentLogger } from "../../../src/core/logger.js";
import type { JsonObject } from "../../../src/schema/types.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { contentSite } from "../../support/content-site.js";
import { CALLERS, serveContent } from "../../support/content-socket.js";
import { CONTENT_STORAGES } from "../../support/content-storages.js";

const as = "administrator";
const INITIAL = {
  title: "Example",
  description: "",
  url: "http://localhost",
  email: null,
  timezone: "",
  date_format: "F j, Y",
  time_format: "g:i a",
  start_of_week: 1,
  language: "en_US",
  use_smilies: true,
  default_category: 1,
  default_post_format: "0",
  posts_per_page: 10,
  show_on_front: "posts",
  page_on_front: 0,
  page_for_posts: 0,
  default_ping_status: "open",
  default_comment_status: "open",
  site_logo: null,
  site_icon: 0,
};
const OTHERS = CALLERS.filter((role) => role !== "administrator");
const writable = ["title", "description", "posts_per_page", "email", "site_logo"] as const;

const serve = (settings: ContentOptions["settings"], options: Partial<ContentOptions> = {}) =>
  serveContent(contentSite({ settings, ...options }));

describe("settings", () => {
  it("are shown to administrators only", async () => {
    const { call } = await serve(undefined);
    for (const as of OTHERS) {
      const { status, body } = await call("GET /settings", { as });
      expect([status, body.code], as).toEqual([as ? 403 : 401, "rest_forbidden"]);
    }
    const whole = await call("GET /settings", { as });
    expect([whole.status, whole.headers["allow"]]).toEqual([200, "GET, POST, PUT, PATCH"]);
    expect(whole.body).toEqual(INITIAL);
    expect(Object.keys(whole.body)).toEqual(Object.keys(INITIAL));
    const { body } = await call("GET /settings?_fields=title,url", { as });
    expect(body).toEqual({ title: "Example", url: "http://localhost" });
  });

  it("come from the site and from the host's values", async () => {
    const { call } = await serve(
      { values: { email: "site@example.org", language: "de_DE", posts_per_page: 20, site_icon: 7 } },
      { site: { url: "http://localhost", name: "Clinic", description: "Care", timezone: "Europe/Berlin" } },
    );
    expect((await call("GET /settings", { as })).body).toEqual({
      ...INITIAL,
      ...{ title: "Clinic", description: "Care", timezone: "Europe/Berlin" },
      ...{ email: "site@example.org", language: "de_DE", posts_per_page: 20, site_icon: 7 },
    });
  });

  it("are described to clients", async () => {
    const { call } = await serve({ writable });
    const { body } = await call("OPTIONS /settings", { as });
    expect(body.methods).toEqual(["GET", "POST", "PUT", "PATCH"]);
    expect(Object.keys(body.schema.properties)).toEqual(Object.keys(INITIAL));
    expect(Object.keys(body.endpoints[1].args)).toEqual(Object.keys(INITIAL));
    expect(body.schema.properties.default_ping_status.enum).toEqual(["open", "closed"]);
    expect(body.endpoints[1].args.language).not.toHaveProperty("default");
  });
});

describe("writing settings", () => {
  it("is for administrators, whatever the host allows", async () => {
    const { call } = await serve({ writable });
    for (const as of OTHERS) {
      const { status, body } = await call("PUT /settings", { as, body: { title: "New" } });
      expect([status, body.code], as).toEqual([as ? 403 : 401, "rest_forbidden"]);
      const empty = await call("POST /settings", { as, body: {} });
      expect([empty.status, empty.body.code], as).toEqual([as ? 403 : 401, "rest_forbidden"]);
    }
    const { status, body } = await call("PUT /settings", { as, body: { title: "New" } });
    expect([status, body.title]).toEqual([200, "New"]);
  });

  it("is refused by default, with the name of the setting", async () => {
    const { call } = await serve(undefined);
    for (const name of ["title", "url", "timezone", "default_category"]) {
      const given = name === "default_category" ? 9 : name === "url" ? "http://x.org" : "Elsewhere/City";
      const { status, body } = await call("POST /settings", { as, body: { [name]: given } });
      expect([status, body.code, body.data.key]).toEqual([403, "rest_cannot_update", name]);
      expect(body.message).toBe(`Sorry, you are not allowed to edit the ${name} option.`);
    }
    expect((await call("GET /settings", { as })).body).toEqual(INITIAL);
  });

  it("stores nothing if one of several settings is refused", async () => {
    const { call } = await serve({ writable: ["title"] });
    const both = { title: "New", posts_per_page: 5 };
    expect((await call("POST /settings", { as, body: both })).status).toBe(403);
    expect((await call("GET /settings", { as })).body.title).toBe("Example");
  });

  it("accepts everything that was read, and shows what changed", async () => {
    const { call } = await serve(
      { writable: ["description"] },
      { site: { url: "http://localhost", name: "A & B" } },
    );
    const { body: read } = await call("GET /settings", { as });
    const { status, body } = await call("PATCH /settings", { as, body: { ...read, description: "New" } });
    expect([status, body]).toEqual([200, { ...read, description: "New" }]);
  });

  it("decide if smilies are shown as emoji, also in cached responses", async () => {
    const { call } = await serve({ writable: ["use_smilies"] });
    const body = { title: ":)", content: "a :)", excerpt: ":)", status: "publish" };
    const { id } = (await call("POST /posts", { as, body })).body;
    const shown = async () => {
      const { title, content, excerpt } = (await call(`GET /posts/${id}`)).body;
      return [title.rendered, content.rendered, excerpt.rendered];
    };
    expect(await shown()).toEqual([":)", "<p>a 🙂</p>\n", "<p>🙂</p>\n"]);
    await call("POST /settings", { as, body: { use_smilies: false } });
    expect(await shown()).toEqual([":)", "<p>a :)</p>\n", "<p>:)</p>\n"]);
  });

  it("checks and cleans the values", async () => {
    const { call } = await serve({ writable: [...writable, "page_on_front", "date_format"] });
    for (const [name, value] of Object.entries({
      title: ["a"],
      posts_per_page: "many",
      email: "nobody",
      default_ping_status: "maybe",
      description: "a".repeat(1_001),
    })) {
      const { status, body } = await call("POST /settings", { as, body: { [name]: value } });
      expect([status, body.code, Object.keys(body.data.params)]).toEqual([400, "rest_invalid_param", [name]]);
    }
    const body = {
      title: "<b>R&D</b>",
      posts_per_page: 0,
      page_on_front: "-3",
      date_format: "<i>d.m.Y</i>",
    };
    expect((await call("POST /settings", { as, body })).body).toMatchObject({
      title: "&lt;b&gt;R&amp;D&lt;/b&gt;",
      posts_per_page: 1,
      page_on_front: 3,
      date_format: "d.m.Y",
    });
  });

  it("resets a setting with null", async () => {
    const { call } = await serve({ writable, values: { email: "site@example.org" } });
    await call("POST /settings", { as, body: { email: "other@example.org", site_logo: 4, title: "New" } });
    const reset = await call("POST /settings", { as, body: { email: null, site_logo: null } });
    expect(reset.body).toMatchObject({ email: "site@example.org", site_logo: null, title: "New" });
  });

  it("appears in the index and in embeds", async () => {
    const site = contentSite({ settings: { writable: [...writable, "show_on_front"] } });
    const { call } = await serveContent(site);
    const index = () => site.request({ method: "GET", path: "/", as: null });
    expect((await index()).body).toMatchObject({ name: "Example", description: "", site_logo: 0 });
    const body = { title: "Orchard", description: "Fruit", show_on_front: "page", site_logo: 3 };
    await call("POST /settings", { as, body });
    expect((await index()).body).toMatchObject({
      name: "Orchard",
      description: "Fruit",
      show_on_front: "page",
      site_logo: 3,
    });
    const { body: post } = await call("POST /posts", { as, body: { title: "a", status: "publish" } });
    const embed = await site.request({
      ...{ method: "GET", path: "/oembed/1.0/embed", as: null },
      query: { url: post.link },
    });
    expect(embed.body).toMatchObject({ provider_name: "Orchard" });
  });
});

describe("the hook settings.write", () => {
  it("gets clean changes and the user, and may change what is stored", async () => {
    const calls: unknown[] = [];
    const { call } = await serve({
      writable,
      write: (changes, { user }) => {
        calls.push([changes, user.slug]);
        return { title: `${changes.title}!`, posts_per_page: "7", default_ping_status: "closed" } as never;
      },
    });
    const { body } = await call("POST /settings", { as, body: { title: "<b>New</b>", description: "" } });
    expect(calls).toEqual([[{ title: "&lt;b&gt;New&lt;/b&gt;" }, "administrator"]]);
    // Settings that clients may not write are not taken from the hook either.
    expect(body).toMatchObject({
      title: "&lt;b&gt;New&lt;/b&gt;!",
      posts_per_page: 7,
      default_ping_status: "open",
    });
    await call("POST /settings", { as, body: { title: "&lt;b&gt;New&lt;/b&gt;!" } });
    expect(calls).toHaveLength(1);
  });

  it("fails without a leak, and nothing is stored", async () => {
    const errors: unknown[] = [];
    const logger = { ...silentLogger, error: (fields: object) => errors.push(fields) };
    for (const write of [
      () => {
        throw new Error("secret");
      },
      () => Promise.reject(new Error("secret")),
      () => ({ title: 5 }) as never,
    ]) {
      const { call } = await serve({ writable, write }, { logger });
      const { status, body } = await call("POST /settings", { as, body: { title: "New" } });
      expect([status, body.code]).toEqual([503, "rest_settings_unavailable"]);
      expect(JSON.stringify(body)).not.toContain("secret");
      expect((await call("GET /settings", { as })).body.title).toBe("Example");
    }
    expect(errors).toHaveLength(3);
  });

  it("has five seconds", async () => {
    const clock = manualClock(0);
    const path = "/core/v2/settings";
    let answer: Promise<{ readonly status: number }> | undefined;
    await new Promise<void>((asked) => {
      const write = (): Promise<never> => {
        asked();
        return new Promise(() => {});
      };
      const site = contentSite({ clock, settings: { writable, write } });
      answer = site.request({ method: "POST", path, as: 1, body: { title: "New" } });
    });
    await clock.advance(5_001);
    expect((await answer)?.status).toBe(503);
  });
});

describe.each(CONTENT_STORAGES)("written settings on %s", (_, open) => {
  it("are seen by every process at once, and kept", async () => {
    const storage = open();
    const settings = { writable };
    const first = await serve(settings, { storage });
    const second = await serve(settings, { storage });
    await Promise.all([
      first.call("POST /settings", { as, body: { title: "One" } }),
      second.call("POST /settings", { as, body: { description: "Two" } }),
    ]);
    for (const { call } of [first, second, await serve(undefined, { storage })]) {
      expect((await call("GET /settings", { as })).body).toMatchObject({ title: "One", description: "Two" });
    }
  });
});

describe("the option settings", () => {
  it.each([
    [{ values: { title: "A" } }, "settings.values.title"],
    [{ values: { url: "http://x.org" } }, "settings.values.url"],
    [{ values: { posts_per_page: "many" } }, "settings.values.posts_per_page"],
    [{ values: { unknown: 1 } }, "settings.values.unknown"],
    [{ writable: ["url"] }, "settings.writable"],
    [{ writable: "title" }, "settings.writable"],
    [{ write: 5 }, "settings.write"],
  ])("refuses %j", (settings, field) => {
    const create = () =>
      createContent({
        storage: memoryStorage(),
        site: { url: "http://localhost", name: "Example" },
        authenticate: () => null,
        users: [],
        settings: settings as never,
      });
    expect(create).toThrow(
      expect.toSatisfy((error) => isPostbellError(error, "invalid_option") && error.field === field),
    );
  });
});

describe("the settings for comments and pings", () => {
  it("act on new posts, but not on pages and on those that exist", async () => {
    const content = contentSite({
      settings: { writable: ["default_comment_status", "default_ping_status"] },
    });
    const send = async (path: string, body: JsonObject) =>
      (await content.request({ method: "POST", path: `/core/v2/${path}`, body, as: 1 })).body as JsonObject;
    const { id } = await send("posts", { title: "Before" });
    await send("settings", { default_comment_status: "closed", default_ping_status: "closed" });
    const closed = { comment_status: "closed", ping_status: "closed" };
    expect(await send("posts", { title: "After" })).toMatchObject(closed);
    expect(await send("posts", { title: "Given", comment_status: "open" })).toMatchObject({
      comment_status: "open",
    });
    expect(await send(`posts/${Number(id)}`, { title: "Changed" })).toMatchObject({
      comment_status: "open",
      ping_status: "open",
    });
  });
});
