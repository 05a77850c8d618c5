import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EditorOptions } from "../../../src/content/editor/editor-options.js";
import { POST_FORMATS } from "../../../src/content/records/records.js";
import { contentSite } from "../../support/content-site.js";
import { type SocketSite, seenBy, socketSite } from "../../support/socket-calls.js";

const PATTERN = {
  name: "clinic/hours",
  title: "Opening hours",
  content: "<!-- wp:paragraph --><p>9–17</p><!-- /wp:paragraph -->",
  viewportWidth: 600,
  inserter: false,
  categories: ["buttons", "clinic"],
  blockTypes: ["core/paragraph"],
  source: "theme",
} as const;

const TODAY = {
  name: "clinic/today",
  title: "Today",
  isDynamic: true,
  attributes: { format: { type: "string", default: "long" } },
  supports: { align: true },
  editorScriptHandles: ["clinic-today"],
} as const;

let over: SocketSite;
const open = async (editor?: EditorOptions): Promise<SocketSite> => {
  await over?.close();
  over = await socketSite(editor === undefined ? {} : { editor });
  return over;
};

beforeEach(async () => {
  over = await socketSite();
});
afterEach(() => over.close());

describe("/themes", () => {
  it("describes one theme, which supports what an editor offers", async () => {
    const { status, body, headers } = await over.call(
      "GET /core/v2/themes?status=active&context=edit",
      "author",
    );
    expect([status, headers["x-wp-total"], headers["x-wp-totalpages"], body.length]).toEqual([
      200,
      "1",
      "1",
      1,
    ]);
    const [theme] = body;
    expect(Object.keys(theme)).toEqual([
      ...["stylesheet", "template", "requires_php", "requires_wp", "textdomain", "version", "screenshot"],
      ...["author", "author_uri", "description", "name", "tags", "theme_uri", "status", "theme_supports"],
      ...["is_block_theme", "stylesheet_uri", "template_uri"],
      ...["default_template_types", "default_template_part_areas", "_links"],
    ]);
    expect(theme).toMatchObject({
      stylesheet: "default",
      status: "active",
      is_block_theme: false,
      name: { raw: "Default", rendered: "Default" },
      stylesheet_uri: "http://localhost/themes/default",
      theme_supports: {
        formats: POST_FORMATS,
        "align-wide": true,
        "responsive-embeds": true,
        "post-thumbnails": true,
        "editor-color-palette": false,
        "custom-logo": false,
      },
    });
    expect(Object.keys(theme.theme_supports)).toHaveLength(24);
    expect(theme._links).toEqual({
      self: [{ href: `${over.origin}/core/v2/themes/default` }],
      collection: [{ href: `${over.origin}/core/v2/themes` }],
    });
  });

  it("shows the host's theme, with the features that it replaces", async () => {
    const palette = [{ name: "Sea", slug: "sea", color: "#047" }];
    await open({
      theme: {
        ...{ stylesheet: "clinic", name: "A & B", author: "Ada", authorUri: "https://ada.example/" },
        tags: ["blue", "wide"],
        supports: { "editor-color-palette": palette, formats: ["aside"], "align-wide": false },
      },
    });
    const { body } = await over.call("GET /core/v2/themes/clinic", "editor");
    expect(body).toMatchObject({
      name: { raw: "A & B", rendered: "A &amp; B" },
      author: { raw: "Ada", rendered: '<a href="https://ada.example/">Ada</a>' },
      tags: { raw: ["blue", "wide"], rendered: "blue, wide" },
      textdomain: "clinic",
    });
    expect(body.theme_supports).toMatchObject({
      "editor-color-palette": palette,
      formats: ["standard", "aside"],
      "align-wide": false,
      "title-tag": true,
    });
  });

  it("has WordPress's errors and schema", async () => {
    const refused = { anonymous: "401 rest_cannot_view_themes", administrator: "200" };
    expect(await over.inEachRole("GET /core/v2/themes")).toEqual(
      seenBy("403 rest_cannot_view_themes", refused),
    );
    expect(await over.inEachRole("GET /core/v2/themes?status=active,inactive")).toEqual(
      seenBy("403 rest_cannot_view_themes", refused),
    );
    expect(await over.inEachRole("GET /core/v2/themes?status=active")).toEqual(
      seenBy("200", {
        anonymous: "401 rest_cannot_view_active_theme",
        subscriber: "403 rest_cannot_view_active_theme",
      }),
    );
    expect((await over.call("GET /core/v2/themes?status=gone", "editor")).body.code).toBe(
      "rest_invalid_param",
    );
    expect((await over.call("GET /core/v2/themes/gone", "administrator")).body).toMatchObject({
      code: "rest_theme_not_found",
      message: "Theme not found.",
    });
    expect((await over.call("GET /core/v2/themes?status=inactive", "administrator")).body).toEqual([]);
    const { body } = await over.call("OPTIONS /core/v2/themes");
    expect(body.endpoints[0].args.status.items.enum).toEqual(["active", "inactive"]);
    expect(body.schema.properties.theme_supports.properties.html5.type).toEqual(["boolean", "array"]);
    const fields = await over.call(
      "GET /core/v2/themes?status=active&_fields=stylesheet,theme_supports.formats",
      "author",
    );
    expect(fields.body).toEqual([{ stylesheet: "default", theme_supports: { formats: POST_FORMATS } }]);
    const head = await over.call("HEAD /core/v2/themes?status=active", "author");
    expect([head.status, head.body, head.headers["x-wp-total"]]).toEqual([200, undefined, "1"]);
  });
});

describe("/block-patterns", () => {
  it("is empty unless the host lists patterns", async () => {
    for (const path of ["patterns", "categories"]) {
      const answer = await over.call(`GET /core/v2/block-patterns/${path}`, "contributor");
      expect([answer.status, answer.body]).toEqual([200, []]);
      expect(await over.inEachRole(`GET /core/v2/block-patterns/${path}`)).toEqual(
        seenBy("200", { anonymous: "401 rest_cannot_view", subscriber: "403 rest_cannot_view" }),
      );
    }
  });

  it("lists them with WordPress's fields, and those alone that the host gave", async () => {
    await open({ patterns: [PATTERN], patternCategories: [{ name: "clinic", label: "Clinic" }] });
    const { body } = await over.call("GET /core/v2/block-patterns/patterns", "author");
    expect(body).toEqual([
      {
        ...{ name: "clinic/hours", title: "Opening hours", content: PATTERN.content },
        ...{ viewport_width: 600, inserter: false, block_types: ["core/paragraph"], source: "theme" },
        categories: ["call-to-action", "clinic"],
      },
    ]);
    expect((await over.call("GET /core/v2/block-patterns/categories?_fields=label", "author")).body).toEqual([
      { label: "Clinic" },
    ]);
    const { body: options } = await over.call("OPTIONS /core/v2/block-patterns/patterns");
    expect([options.schema.title, options.endpoints[0].args]).toEqual(["block-pattern", {}]);
  });
});

describe("/block-types", () => {
  it("lists the host's types with the members of block.json under WordPress's names", async () => {
    await open({ blockTypes: [TODAY, { name: "other/box" }] });
    const { body } = await over.call("GET /core/v2/block-types", "contributor");
    expect(body.map(({ name }: { name: string }) => name)).toEqual(["clinic/today", "other/box"]);
    expect(body[0]).toMatchObject({
      ...{ is_dynamic: true, api_version: 1, title: "Today", icon: null, supports: { align: true } },
      ...{ editor_script_handles: ["clinic-today"], editor_script: "clinic-today", style: null },
      attributes: { ...TODAY.attributes, lock: { type: "object" }, metadata: { type: "object" } },
      ...{ provides_context: [], variations: [], styles: [], parent: null },
    });
    expect(body[0]._links).toEqual({
      collection: [{ href: `${over.origin}/core/v2/block-types` }],
      self: [{ href: `${over.origin}/core/v2/block-types/clinic/today` }],
      up: [{ href: `${over.origin}/core/v2/block-types/clinic` }],
      "wp:render-block": [{ href: `${over.origin}/core/v2/block-renderer/clinic/today?context=edit` }],
      curies: expect.anything(),
    });
    expect(body[1]._links["wp:render-block"]).toBeUndefined();
    for (const path of ["block-types/other", "block-types?namespace=other"]) {
      const { body: some } = await over.call(`GET /core/v2/${path}`, "contributor");
      expect(some.map(({ name }: { name: string }) => name)).toEqual(["other/box"]);
    }
    expect((await over.call("GET /core/v2/block-types/other/box", "author")).body.name).toBe("other/box");
  });

  it("is for who writes, and knows no other type", async () => {
    const path = "GET /core/v2/block-types/other/gone";
    expect(await over.inEachRole(path)).toEqual(
      seenBy("404 rest_block_type_invalid", {
        anonymous: "401 rest_block_type_cannot_view",
        subscriber: "403 rest_block_type_cannot_view",
      }),
    );
    expect((await over.call("OPTIONS /core/v2/block-types/a/b")).body.schema.title).toBe("block-type");
  });
});

describe("/templates", () => {
  it("has none, and finds none", async () => {
    for (const base of ["templates", "template-parts"]) {
      expect((await over.call(`GET /core/v2/${base}`, "author")).body).toEqual([]);
      const found = await over.call(`GET /core/v2/${base}/lookup?slug=single&is_custom=false`, "author");
      expect([found.status, found.body]).toEqual([200, {}]);
      expect(await over.inEachRole(`GET /core/v2/${base}/lookup?slug=single`)).toEqual(
        seenBy("200", {
          anonymous: "401 rest_cannot_manage_templates",
          subscriber: "403 rest_cannot_manage_templates",
        }),
      );
      expect((await over.call(`GET /core/v2/${base}/lookup`, "author")).body).toMatchObject({
        code: "rest_missing_callback_param",
        data: { params: ["slug"] },
      });
    }
  });
});

describe("the option `editor`", () => {
  const long = "x".repeat(10_001);
  it.each<[string, unknown, string, string]>([
    ["theme", [], "editor.theme", "editor.theme must be an object"],
    ["theme", { name: 5 }, "editor.theme", "editor.theme.name is not of type string"],
    ["theme", { color: "red" }, "editor.theme", "must not have the property color"],
    ["theme", { stylesheet: "a/b" }, "editor.theme.stylesheet", "letters, digits"],
    ["theme", { supports: { sparkle: true } }, "editor.theme", "must not have the property sparkle"],
    [
      "theme",
      { supports: { formats: ["poem"] } },
      "editor.theme",
      "editor.theme.supports.formats[0] is not one of",
    ],
    ["patterns", "none", "editor.patterns", "editor.patterns must be a list"],
    ["patterns", [{ name: "a/b", content: "" }], "editor.patterns", "must have the property title"],
    ["patterns", [{ ...PATTERN, title: long }], "editor.patterns", "editor.patterns[0].title"],
    ["patterns", Array(1001).fill(PATTERN), "editor.patterns", "1000"],
    [
      "patterns",
      [{ ...PATTERN, content: "x".repeat(8_388_608) }],
      "editor.patterns",
      "at most 8388608 characters",
    ],
    ["patternCategories", [{ name: "a" }], "editor.patternCategories", "must have the property label"],
    ["blockTypes", [{ name: "Box" }], "editor.blockTypes[0].name", "must be a name such as"],
    ["blockTypes", [TODAY, TODAY], "editor.blockTypes[1].name", "another block type"],
    ["blockTypes", [{ name: "a/b", attributes: { c: "string" } }], "editor.blockTypes", "attributes.c"],
    ["blockTypes", [{ name: "a/b", title: 1n }], "editor.blockTypes", "plain data"],
    ["renderBlock", "no", "editor.renderBlock", "a function"],
    ["themes", [], "editor.themes", "no option 'editor.themes'"],
  ])("refuses a wrong value of %s", (name, given, field, message) => {
    expect(() => contentSite({ editor: { [name]: given } as EditorOptions })).toThrow(
      expect.objectContaining({ code: "invalid_option", field, message: expect.stringContaining(message) }),
    );
  });

  it("is copied: later changes of the host's objects have no effect", async () => {
    const category = { name: "a", label: "A" };
    await open({ patternCategories: [category] });
    category.label = "B";
    expect((await over.call("GET /core/v2/block-patterns/categories", "author")).body).toEqual([
      { name: "a", label: "A" },
    ]);
  });

  it("leaves the namespace of the editor's own routes to them", () => {
    expect(() => contentSite({ namespace: "wp-block-editor" })).toThrow(/namespace/);
  });
});
