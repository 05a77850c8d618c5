import { describe, expect, it } from "vitest";
import { contentSite, idOf } from "../../support/content-site.js";

const CONTENT = "<!-- wp:paragraph -->\n<p>a</p>\n<!-- /wp:paragraph -->";

async function patternSite() {
  const site = contentSite();
  const ask = (method: string, path: string, more: object = {}) =>
    site.request({ method, path: `/core/v2${path}`, as: idOf("editor"), ...more });
  const { body } = await ask("POST", "/blocks", {
    body: {
      title: "t",
      content: CONTENT,
      status: "publish",
      meta: { wp_pattern_sync_status: "unsynced" },
    },
  });
  return { ask, path: `/blocks/${(body as { readonly id: number }).id}` };
}

describe("an embedded pattern", () => {
  it("shows an empty list for the title, whose raw text it hides, and no sync status", async () => {
    const { ask, path } = await patternSite();
    const { body } = await ask("GET", path, { query: { context: "embed" } });
    expect(body).toMatchObject({ title: [], wp_pattern_sync_status: "" });
    expect(body).not.toHaveProperty("content");
    expect(body).not.toHaveProperty("meta");
    const list = await ask("GET", "/blocks", { query: { context: "embed" } });
    expect(list.body).toMatchObject([{ title: [], wp_pattern_sync_status: "" }]);
  });

  it("has its stored texts and its sync status elsewhere", async () => {
    const { ask, path } = await patternSite();
    for (const context of ["view", "edit"]) {
      expect((await ask("GET", path, { query: { context } })).body).toMatchObject({
        title: { raw: "t" },
        content: { raw: CONTENT },
        wp_pattern_sync_status: "unsynced",
      });
    }
  });

  it("is described by OpenAPI as it is sent", async () => {
    const { body } = await contentSite().request({ method: "GET", path: "/openapi.json", as: null });
    const { components } = body as { readonly components: { readonly schemas: Record<string, object> } };
    const { schemas } = components;
    expect(schemas["wp_block.embed"]).toMatchObject({
      properties: { title: { type: "array", maxItems: 0 } },
    });
    expect(schemas["post.embed"]).toMatchObject({ properties: { title: { type: "object" } } });
  });
});

describe("a pattern with a password", () => {
  it("hides its stored text from callers who may not edit it, unless they know the password", async () => {
    const { ask, path } = await patternSite();
    await ask("PUT", path, { body: { password: "open" } });
    const read = async (role: "author" | "editor", query: object) =>
      (await ask("GET", path, { as: idOf(role), query })).body;
    expect(await read("author", {})).toMatchObject({ content: { raw: "", protected: true } });
    expect(await read("author", { password: "wrong" })).not.toMatchObject({ content: { raw: CONTENT } });
    expect(await read("author", { password: "open" })).toMatchObject({ content: { raw: CONTENT } });
    expect(await read("editor", { context: "edit" })).toMatchObject({ content: { raw: CONTENT } });
    const { body } = await ask("GET", "/blocks", { as: idOf("contributor") });
    expect(body).toMatchObject([{ content: { raw: "", protected: true } }]);
  });
});
