import { beforeEach, describe, expect, it } from "vitest";
import { type Call, callsOf } from "../../support/content-call.js";
import { contentSite, type ROLES } from "../../support/content-site.js";

let call: Call;

beforeEach(() => {
  call = callsOf(contentSite());
});

const code = ({ status, body }: { status: number; body: { code?: string } }): string =>
  `${status} ${body.code}`;
const edit = { context: "edit" } as const;

describe("/types", () => {
  it("names every collection by its type, with where to find it", async () => {
    const { status, body } = await call("GET /types");
    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual([
      "post",
      "page",
      "attachment",
      "nav_menu_item",
      "wp_block",
      "wp_navigation",
    ]);
    const bases = {
      post: "posts",
      page: "pages",
      attachment: "media",
      nav_menu_item: "menu-items",
      wp_block: "blocks",
      wp_navigation: "navigation",
    };
    for (const [type, base] of Object.entries(bases)) {
      expect(body[type]).toMatchObject({ slug: type, rest_base: base, rest_namespace: "core/v2" });
      expect(body[type]._links["wp:items"]).toEqual([{ href: `http://localhost/core/v2/${base}` }]);
    }
    const { _links, ...page } = body.page;
    expect(page).toEqual({
      description: "",
      hierarchical: true,
      has_archive: false,
      name: "Pages",
      slug: "page",
      icon: "dashicons-admin-page",
      taxonomies: [],
      rest_base: "pages",
      rest_namespace: "core/v2",
      template: [],
      template_lock: false,
    });
  });

  it("tells an editor what a client needs to edit", async () => {
    const { body } = await call("GET /types/post", { as: "author", query: edit });
    expect(body).toMatchObject({
      capabilities: { create_posts: "edit_posts", publish_posts: "publish_posts" },
      labels: { singular_name: "Post", item_published: "Post published." },
      supports: { title: true, editor: true, "post-formats": true },
      viewable: true,
      visibility: { show_ui: true, show_in_nav_menus: true },
      taxonomies: ["category", "post_tag"],
    });
    expect((await call("GET /types/post", { query: { context: "embed" } })).body).toEqual({
      name: "Posts",
      slug: "post",
      icon: "dashicons-admin-post",
      rest_base: "posts",
      rest_namespace: "core/v2",
      template: [],
      template_lock: false,
      _links: expect.anything(),
    });
  });

  it("shows for editing what the caller may edit", async () => {
    const listed = async (as: (typeof ROLES)[number]) =>
      Object.keys((await call("GET /types", { as, query: edit })).body).join();
    expect(await listed("administrator")).toBe("post,page,attachment,nav_menu_item,wp_block,wp_navigation");
    expect(await listed("editor")).toBe("post,page,attachment,wp_block");
    expect(await listed("contributor")).toBe("post,attachment,wp_block");
    expect(code(await call("GET /types", { as: "subscriber", query: edit }))).toBe("403 rest_cannot_view");
    expect(code(await call("GET /types", { query: edit }))).toBe("401 rest_cannot_view");
    expect(code(await call("GET /types/page", { as: "author", query: edit }))).toBe(
      "403 rest_forbidden_context",
    );
  });

  it("refuses WordPress's own types, and permits asking for an unknown one", async () => {
    expect(code(await call("GET /types/revision"))).toBe("401 rest_cannot_read_type");
    expect(code(await call("GET /types/revision", { as: "administrator" }))).toBe(
      "403 rest_cannot_read_type",
    );
    expect((await call("GET /types/nope")).headers["Allow"]).toBe("GET");
  });

  it("names the capabilities of one post", async () => {
    const { body } = await call("GET /types/wp_block", { as: "author", query: { context: "edit" } });
    expect(body.capabilities).toMatchObject({
      ...{ edit_post: "edit_block", read_post: "read_block", delete_post: "delete_block" },
      publish_posts: "publish_blocks",
    });
  });

  it.each(["constructor", "__proto__", "POST"])("has no type %s", async (type) => {
    expect(code(await call(`GET /types/${type}`))).toBe("404 rest_type_invalid");
  });

  it("names the namespace that the site has", async () => {
    const wp = callsOf(contentSite({ namespace: "wp" }), "wp/v2");
    const { body } = await wp("GET /types/post");
    expect(body.rest_namespace).toBe("wp/v2");
    expect(body._links.collection).toEqual([{ href: "http://localhost/wp/v2/types" }]);
  });
});

describe("/statuses", () => {
  it.each(["inherit", "auto-draft", "request-failed", "dp-rewrite-republish"])(
    "refuses everybody a status inside of WordPress: %s",
    async (status) => {
      expect(code(await call(`GET /statuses/${status}`))).toBe("401 rest_cannot_read_status");
      for (const as of ["administrator", "contributor"] as const) {
        expect(code(await call(`GET /statuses/${status}`, { as }))).toBe("403 rest_cannot_read_status");
      }
    },
  );

  it("shows strangers what is public, and who writes every one", async () => {
    expect(Object.keys((await call("GET /statuses")).body)).toEqual(["publish"]);
    expect(Object.keys((await call("GET /statuses", { as: "subscriber" })).body)).toEqual(["publish"]);
    const { body } = await call("GET /statuses", { as: "contributor", query: edit });
    expect(Object.keys(body)).toEqual(["publish", "future", "draft", "pending", "private", "trash"]);
    const { _links, ...draft } = body.draft;
    expect(draft).toEqual({
      name: "Draft",
      private: false,
      protected: true,
      public: false,
      queryable: false,
      show_in_list: true,
      slug: "draft",
      date_floating: true,
    });
    expect(_links.archives).toEqual([{ href: "http://localhost/core/v2/posts?status=draft" }]);
    expect(body.publish._links.archives).toEqual([{ href: "http://localhost/core/v2/posts" }]);
  });

  it("answers one of them to who may see it", async () => {
    expect((await call("GET /statuses/publish")).body).toMatchObject({ name: "Published", public: true });
    expect(code(await call("GET /statuses/draft"))).toBe("401 rest_cannot_read_status");
    expect(code(await call("GET /statuses/draft", { as: "subscriber" }))).toBe("403 rest_cannot_read_status");
    expect((await call("GET /statuses/draft", { as: "contributor" })).status).toBe(200);
    expect(code(await call("GET /statuses/nothing"))).toBe("404 rest_status_invalid");
    expect(code(await call("GET /statuses", { query: edit }))).toBe("401 rest_cannot_view");
  });
});

describe("/taxonomies", () => {
  it("refuses everybody WordPress's own, and permits asking for an unknown one", async () => {
    for (const name of ["post_format", "link_category"]) {
      expect(code(await call(`GET /taxonomies/${name}`))).toBe("401 rest_forbidden");
      const query = { context: "edit" };
      expect(code(await call(`GET /taxonomies/${name}`, { as: "administrator", query }))).toBe(
        "403 rest_forbidden",
      );
    }
    const unknown = await call("GET /taxonomies/nope");
    expect([code(unknown), unknown.headers["Allow"]]).toEqual(["404 rest_taxonomy_invalid", "GET"]);
  });

  it("names every taxonomy, with where to find its terms", async () => {
    const { body } = await call("GET /taxonomies");
    expect(Object.keys(body)).toEqual(["category", "post_tag", "nav_menu", "wp_pattern_category"]);
    const { _links, ...category } = body.category;
    expect(category).toEqual({
      name: "Categories",
      slug: "category",
      description: "",
      types: ["post"],
      hierarchical: true,
      rest_base: "categories",
      rest_namespace: "core/v2",
    });
    expect(_links["wp:items"]).toEqual([{ href: "http://localhost/core/v2/categories" }]);
  });

  it("is narrowed to those of a type", async () => {
    const listed = async (type: string) =>
      Object.keys((await call("GET /taxonomies", { query: { type } })).body).join();
    expect(await listed("post")).toBe("category,post_tag");
    expect(await listed("nav_menu_item")).toBe("nav_menu");
    expect(await listed("page")).toBe("");
  });

  it("tells an editor its labels and capabilities", async () => {
    const { body } = await call("GET /taxonomies/post_tag", { as: "contributor", query: edit });
    expect(body).toMatchObject({
      capabilities: { assign_terms: "assign_post_tags" },
      labels: { singular_name: "Tag", add_new_item: "Add Tag" },
      visibility: { public: true, show_ui: true },
      show_cloud: true,
    });
    expect(code(await call("GET /taxonomies/nav_menu", { as: "editor", query: edit }))).toBe(
      "403 rest_forbidden_context",
    );
    expect(Object.keys((await call("GET /taxonomies", { as: "editor", query: edit })).body)).not.toContain(
      "nav_menu",
    );
    expect(code(await call("GET /taxonomies", { query: edit }))).toBe("401 rest_cannot_view");
    expect(code(await call("GET /taxonomies/toString"))).toBe("404 rest_taxonomy_invalid");
  });
});
