import { describe, expect, it } from "vitest";
import type { ContentResponse } from "../../../src/content/service.js";
import { contentSite, idOf } from "../../support/content-site.js";

type Site = ReturnType<typeof contentSite>;
type Body = { readonly [name: string]: unknown };

const URL = "https://example.org/x";

const ask = (site: Site, method: string, path: string, body?: object): Promise<ContentResponse> =>
  site.request({
    method,
    path: `/core/v2${path}`,
    as: idOf("administrator"),
    ...(body && { body: body as never }),
  });

async function create(site: Site, body: Body, base = "/menu-items"): Promise<Body & { readonly id: number }> {
  const response = await ask(site, "POST", base, body);
  expect(response).toMatchObject({ status: 201 });
  return response.body as never;
}

const update = async (site: Site, id: number, body: Body): Promise<Body> =>
  (await ask(site, "PUT", `/menu-items/${id}`, body)).body as Body;

const titleOf = ({ title }: Body): unknown => (title as { readonly raw: string }).raw;

describe("a menu item that lacks something", () => {
  it("is refused for everything that it lacks at once", async () => {
    const site = contentSite();
    const codesOf = async (body: Body) => {
      const refused = (await ask(site, "POST", "/menu-items", body)).body as Body;
      const others = (refused["additional_errors"] ?? []) as readonly Body[];
      return [refused["code"], ...others.map(({ code }) => code)];
    };
    expect(await codesOf({})).toEqual(["rest_title_required", "rest_url_required"]);
    expect(await codesOf({ title: { raw: "" } })).toEqual(["rest_title_required", "rest_url_required"]);
    expect(await codesOf({ title: "t" })).toEqual(["rest_url_required"]);
    expect(await codesOf({ menus: 99 })).toEqual(["rest_title_required", "rest_url_required"]);
    expect(await codesOf({ title: "t", url: URL, menus: 99 })).toEqual(["invalid_menu_id"]);
    const { id } = await create(site, { title: "t", url: URL });
    const response = await ask(site, "PUT", `/menu-items/${id}`, { title: "", url: "" });
    expect(response.body).toMatchObject({
      code: "rest_title_required",
      additional_errors: [{ code: "rest_url_required", data: { status: 400 } }],
    });
  });

  it("keeps its title if the new one is null or an empty raw text", async () => {
    const site = contentSite();
    const { id } = await create(site, { title: "Kept", url: URL });
    for (const title of [null, { raw: "" }, {}]) {
      expect(titleOf(await update(site, id, { title }))).toBe("Kept");
    }
    expect(titleOf(await update(site, id, { title: " Trimmed " }))).toBe("Trimmed");
  });
});

describe("a menu item whose object contradicts its id", () => {
  it("has the label of its object, and is invalid if that is another taxonomy", async () => {
    const site = contentSite();
    const made = async (path: string, body: Body) =>
      ((await ask(site, "POST", path, body)).body as { readonly id: number }).id;
    const category = await made("/categories", { name: "News" });
    const page = await made("/pages", { title: "A page", status: "publish" });
    const term = { type: "taxonomy", object_id: category };
    expect(await create(site, { ...term, object: "category" })).toMatchObject({
      ...{ type_label: "Category", invalid: false, url: "http://localhost/category/news/" },
      _links: { "wp:menu-item-object": [{ taxonomy: "category" }] },
    });
    const wrong = await create(site, { ...term, object: "post_tag" });
    expect(wrong).toMatchObject({ type_label: "Tag", invalid: true, url: "" });
    expect(titleOf(wrong)).toBe(`#${category} (no title)`);
    expect(await create(site, { ...term, object: "nope" })).toMatchObject({
      type_label: "nope",
      invalid: true,
    });
    const post = { type: "post_type", object_id: page };
    expect(await create(site, { ...post, object: "post" })).toMatchObject({
      ...{ type_label: "Post", invalid: false },
      _links: { "wp:menu-item-object": [{ post_type: "page" }] },
    });
    expect(await create(site, { ...post, object: "nope" })).toMatchObject({
      type_label: "nope",
      invalid: true,
    });
  });
});

describe("a menu item without a title", () => {
  it.each([
    ["post", "Post Archives", "http://localhost"],
    ["page", "Page Archives", ""],
    ["attachment", "Post Archives", ""],
    ["wp_block", "All Patterns", ""],
  ])("that leads to the archive of the type %s has the archive's", async (object, title, url) => {
    const site = contentSite();
    const item = await create(site, { type: "post_type_archive", object });
    expect(titleOf(item)).toBe(title);
    expect(item).toMatchObject({ url, type_label: "Post Type Archive", invalid: false });
    // A client that sends back what it received does not give the item a title of its own.
    await update(site, item.id, { title });
    expect(titleOf(await update(site, item.id, { object: "page" }))).toBe("Page Archives");
  });

  it("follows the title of its target, or names its id if that has none", async () => {
    const site = contentSite();
    const page = await create(site, {}, "/pages");
    const item = await create(site, { type: "post_type", object_id: page.id });
    expect(titleOf(item)).toBe(`#${page.id} (no title)`);
    await update(site, item.id, { title: `#${page.id} (no title)` });
    await ask(site, "PUT", `/pages/${page.id}`, { title: "Named" });
    const { body } = await ask(site, "GET", `/menu-items/${item.id}`);
    expect(body).toMatchObject({ title: { rendered: "Named" } });
  });
});

describe("the place of a menu item", () => {
  it("is 1 in no menu, and the given one in a menu", async () => {
    const site = contentSite();
    const menu = await create(site, { name: "Main" }, "/menus");
    const item = await create(site, { title: "t", url: URL, menu_order: 4 });
    expect(item["menu_order"]).toBe(1);
    expect(await update(site, item.id, { menu_order: 9 })).toMatchObject({ menu_order: 1 });
    expect(await update(site, item.id, { menus: menu.id, menu_order: 9 })).toMatchObject({ menu_order: 9 });
    expect(await update(site, item.id, { title: "u" })).toMatchObject({ menu_order: 9 });
    expect(await create(site, { title: "t", url: URL, menus: menu.id, menu_order: 3 })).toMatchObject({
      menu_order: 3,
    });
  });

  it("is never below itself", async () => {
    const site = contentSite();
    const above = await create(site, { title: "a", url: URL });
    const item = await create(site, { title: "b", url: URL, parent: above.id });
    expect(await update(site, item.id, { parent: item.id })).toMatchObject({ parent: 0 });
    expect(await update(site, item.id, { parent: above.id })).toMatchObject({ parent: above.id });
  });
});
