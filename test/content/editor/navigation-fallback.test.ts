import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type SocketSite, seenBy, socketSite } from "../../support/socket-calls.js";

const FALLBACK = "/wp-block-editor/v1/navigation-fallback";
let over: SocketSite;

beforeEach(async () => {
  over = await socketSite();
});
afterEach(() => over.close());

const make = async (path: string, body: object) =>
  (await over.call(`POST /core/v2${path}`, "administrator", body)).body;
const fallback = async () => (await over.call(`GET ${FALLBACK}?_embed=true`, "administrator")).body;

describe("/navigation-fallback", () => {
  it("makes a list of the pages for a site without menus, once", async () => {
    const [first, second] = await Promise.all([fallback(), fallback()]);
    expect(first).toMatchObject({
      id: expect.any(Number),
      _links: { self: [{ embeddable: true, href: `${over.origin}/core/v2/navigation/${first.id}` }] },
      _embedded: {
        self: [
          {
            status: "publish",
            slug: "navigation",
            title: { raw: "Navigation" },
            content: { raw: "<!-- wp:page-list /-->" },
          },
        ],
      },
    });
    expect(second.id).toBe(first.id);
    expect((await over.call("GET /core/v2/navigation")).body).toHaveLength(1);
  });

  it("finds the newest published menu", async () => {
    await make("/navigation", { title: "Old", status: "publish", date: "2020-01-01T00:00:00" });
    const { id } = await make("/navigation", {
      title: "New",
      status: "publish",
      date: "2021-01-01T00:00:00",
    });
    await make("/navigation", { title: "Draft" });
    expect((await fallback()).id).toBe(id);
  });

  it("converts a classic menu to blocks: that called primary, else the newest", async () => {
    const page = await make("/pages", { title: "About --> us", status: "publish" });
    const menu = await make("/menus", { name: "Primary" });
    await make("/menus", { name: "Newer" });
    const about = await make("/menu-items", {
      ...{ type: "post_type", object: "page", object_id: page.id, menus: menu.id, status: "publish" },
      ...{ menu_order: 1, classes: ["wide"] },
    });
    await make("/menu-items", {
      ...{ title: 'A "b"', url: "https://example.org/?a=1&b=2", menus: menu.id, status: "publish" },
      ...{ menu_order: 2, parent: about.id, target: "_blank", xfn: ["me"] },
    });
    await make("/menu-items", { title: "Draft", url: "/", menus: menu.id, status: "draft", menu_order: 3 });
    const { _embedded } = await fallback();
    const [{ title, slug, content }] = _embedded.self;
    expect([title.raw, slug]).toEqual(["Primary", "primary"]);
    const [opening = "", inner = "", closing = "", ...rest] = content.raw.split(/(?<=-->)/);
    expect([closing, rest]).toEqual(["<!-- /wp:navigation-submenu -->", []]);
    expect(JSON.parse(opening.slice("<!-- wp:navigation-submenu ".length, -" -->".length))).toEqual({
      ...{ className: "wide", id: page.id, kind: "post-type", label: "About --> us", type: "page" },
      url: page.link,
    });
    expect(inner).toBe(
      '<!-- wp:navigation-link {"kind":"custom","label":"A \\u0022b\\u0022","opensInNewTab":true,"rel":"me","type":"custom","url":"https://example.org/?a=1\\u0026b=2"} /-->',
    );
  });

  it("shows nobody the title of a page that is not public", async () => {
    const menu = await make("/menus", { name: "Primary" });
    const point = async (page: object, more: object = {}) => {
      const { id } = await make("/pages", page);
      const target = { type: "post_type", object: "page", object_id: id };
      return make("/menu-items", { ...target, menus: menu.id, status: "publish", ...more });
    };
    const draft = await point({ title: "Secret draft" });
    await point({ title: "Public", status: "publish" });
    await point({ title: "Secret plan", status: "private" });
    await point({ title: "Secret launch", status: "future", date: "2100-01-01T00:00:00" });
    await point({ title: "Below the draft", status: "publish" }, { parent: draft.id });
    await fallback();
    const { body } = await over.call("GET /core/v2/navigation?context=embed");
    const labels = [...body[0].content.raw.matchAll(/"label":"([^"]*)"/g)].map(([, label]) => label);
    expect(labels).toEqual(["Public"]);
  });

  it("is for who may make menus and edits posts", async () => {
    expect(await over.inEachRole(`GET ${FALLBACK}`)).toEqual(
      seenBy("403 rest_cannot_create", { anonymous: "401 rest_cannot_create", administrator: "200" }),
    );
    const { body } = await over.call(`OPTIONS ${FALLBACK}`, "editor");
    expect([body.schema.title, body.endpoints[0].args]).toEqual(["navigation-fallback", {}]);
    expect((await over.call("GET /core/v2/navigation")).body).toHaveLength(1);
    expect((await over.call("GET /")).body.namespaces).toContain("wp-block-editor/v1");
  });

  it("makes nothing for OPTIONS and for who is refused", async () => {
    await over.call(`OPTIONS ${FALLBACK}`, "administrator");
    await over.call(`GET ${FALLBACK}`, "editor");
    expect((await over.call("GET /core/v2/navigation")).body).toEqual([]);
  });
});
