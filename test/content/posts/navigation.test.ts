import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type SocketSite, seenBy, socketSite } from "../../support/socket-calls.js";

let over: SocketSite;
const MENU = '<!-- wp:navigation-link {"label":"Home"} /-->';

beforeEach(async () => {
  over = await socketSite();
});
afterEach(() => over.close());

const make = async (body: object, as: "administrator" | "editor" = "administrator"): Promise<number> => {
  const { status, body: made } = await over.call("POST /core/v2/navigation", as, body);
  expect(status).toBe(201);
  return made.id;
};

describe("navigation menus", () => {
  it("are written by administrators alone", async () => {
    const body = { title: "Main", content: MENU, status: "publish" };
    expect(await over.inEachRole("POST /core/v2/navigation", body)).toEqual(
      seenBy("403 rest_cannot_create", { anonymous: "401 rest_cannot_create", administrator: "201" }),
    );
    const id = await make(body);
    expect(await over.inEachRole(`PUT /core/v2/navigation/${id}`, { title: "Other" })).toEqual(
      seenBy("403 rest_cannot_edit", { anonymous: "401 rest_cannot_edit", administrator: "200" }),
    );
    expect(await over.inEachRole(`DELETE /core/v2/navigation/${id}`)).toEqual(
      seenBy("403 rest_cannot_delete", { anonymous: "401 rest_cannot_delete", administrator: "200" }),
    );
    expect((await over.call(`GET /core/v2/navigation/${id}`, "administrator")).body.status).toBe("trash");
    const gone = await over.call(`DELETE /core/v2/navigation/${id}?force=true`, "administrator");
    expect(gone).toMatchObject({ status: 200, body: { deleted: true } });
  });

  it("are read by everybody once they are published", async () => {
    const shown = await make({ title: "Main", content: MENU, status: "publish" });
    const draft = await make({ title: "Secret", content: MENU });
    expect(await over.inEachRole(`GET /core/v2/navigation/${shown}`)).toEqual(seenBy("200"));
    expect(await over.inEachRole(`GET /core/v2/navigation/${draft}`)).toEqual(
      seenBy("403 rest_forbidden", { anonymous: "401 rest_forbidden", administrator: "200" }),
    );
    for (const role of ["anonymous", "editor"] as const) {
      const { body } = await over.call("GET /core/v2/navigation", role);
      expect(body.map(({ id }: { id: number }) => id)).toEqual([shown]);
    }
    expect(await over.inEachRole("GET /core/v2/navigation?status=draft")).toEqual(
      seenBy("400 rest_invalid_param", { administrator: "200" }),
    );
    expect(await over.inEachRole("GET /core/v2/navigation?context=edit")).toEqual(
      seenBy("403 rest_forbidden_context", { anonymous: "401 rest_forbidden_context", administrator: "200" }),
    );
    expect(await over.inEachRole(`GET /core/v2/navigation/${shown}?context=edit`)).toEqual(
      seenBy("403 rest_forbidden_context", { anonymous: "401 rest_forbidden_context", administrator: "200" }),
    );
  });

  it("have the fields of WordPress", async () => {
    const id = await make({ title: "Main", content: MENU, status: "publish" });
    const read = async (context: string) =>
      (await over.call(`GET /core/v2/navigation/${id}?context=${context}`, "administrator")).body;
    const view = await read("view");
    expect(Object.keys(view).sort()).toEqual(
      [
        ...["id", "date", "date_gmt", "guid", "modified", "modified_gmt", "slug", "status", "type", "link"],
        ...["title", "content", "template", "_links"],
      ].sort(),
    );
    expect(view.link).toBe(`http://localhost/?post_type=wp_navigation&p=${id}`);
    expect(Object.keys(view.content)).toEqual(["rendered", "protected"]);
    const embed = await read("embed");
    expect(embed).toMatchObject({
      status: "publish",
      title: { raw: "Main", rendered: "Main" },
      content: { raw: MENU, block_version: 1, protected: false },
    });
    const edit = await read("edit");
    expect(Object.keys(edit)).toContain("password");
    expect(edit._links["version-history"][0].href).toMatch(new RegExp(`/navigation/${id}/revisions$`));
    expect(edit._links["wp:action-publish"]).toHaveLength(1);
  });

  it("show nothing of a protected menu to who embeds it", async () => {
    const id = await make({ title: "Main", content: MENU, status: "publish", password: "p" });
    const { body } = await over.call(`GET /core/v2/navigation/${id}?context=embed`);
    expect(body.content).toEqual({ raw: "", rendered: "", protected: true, block_version: 1 });
    const opened = await over.call(`GET /core/v2/navigation/${id}?context=embed&password=p`);
    expect(opened.body.content.raw).toBe(MENU);
  });

  it("may be empty, since they have no excerpt", async () => {
    expect((await over.call("POST /core/v2/navigation", "administrator", {})).status).toBe(201);
    expect((await over.call("POST /core/v2/blocks", "administrator", {})).body.code).toBe("empty_content");
  });

  it("have revisions and autosaves without an excerpt, and with meta", async () => {
    const id = await make({ title: "Main", content: MENU, status: "publish" });
    await over.call(`PUT /core/v2/navigation/${id}`, "administrator", { content: "Two" });
    await over.call(`PUT /core/v2/navigation/${id}`, "administrator", { content: "Three" });
    const { body: revisions } = await over.call(`GET /core/v2/navigation/${id}/revisions`, "administrator");
    expect(revisions.length).toBeGreaterThan(0);
    expect(Object.keys(revisions[0])).not.toContain("excerpt");
    expect(revisions[0].meta).toEqual([]);
    expect(await over.inEachRole(`GET /core/v2/navigation/${id}/revisions`)).toEqual(
      seenBy("403 rest_cannot_read", { anonymous: "401 rest_cannot_read", administrator: "200" }),
    );
    const saved = await over.call(`POST /core/v2/navigation/${id}/autosaves`, "administrator", {
      content: "Four",
    });
    expect(saved).toMatchObject({ status: 200, body: { content: { raw: "Four" }, parent: id } });
    expect(
      await over.inEachRole(`POST /core/v2/navigation/${id}/autosaves`, { content: "Five" }),
    ).toMatchObject({
      anonymous: expect.stringMatching(/^401 /),
      editor: expect.stringMatching(/^403 /),
      administrator: "200",
    });
  });

  it("are described by OPTIONS, the index and the types", async () => {
    const { body } = await over.call("OPTIONS /core/v2/navigation");
    expect(body.schema.title).toBe("wp_navigation");
    expect(body.schema.properties.content.properties.raw.context).toEqual(["edit", "embed"]);
    expect(body.schema.properties.excerpt).toBeUndefined();
    const read = await over.call("OPTIONS /core/v2/navigation/1");
    expect(Object.keys(read.body.endpoints[0].args)).toEqual(["id", "context", "password"]);
    expect(Object.keys((await over.call("GET /")).body.routes)).toContain("/core/v2/navigation");
    const { body: type } = await over.call("GET /core/v2/types/wp_navigation?context=edit", "administrator");
    expect(type).toMatchObject({
      rest_base: "navigation",
      viewable: false,
      supports: { title: true, editor: true, revisions: true },
      capabilities: { read: "read", edit_posts: "edit_theme_options", publish_posts: "edit_theme_options" },
    });
  });
});
