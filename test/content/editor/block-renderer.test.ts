import { afterEach, describe, expect, it, vi } from "vitest";
import type { EditorOptions, RenderBlock } from "../../../src/content/editor/editor-options.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { idOf } from "../../support/content-site.js";
import { type SocketSite, seenBy, socketSite } from "../../support/socket-calls.js";

const TODAY = "/core/v2/block-renderer/clinic/today?context=edit";
const TYPES = [
  {
    name: "clinic/today",
    isDynamic: true,
    attributes: {
      format: { type: "string", enum: ["long", "short"], default: "long" },
      count: { type: "integer" },
      note: { type: "rich-text" },
    },
  },
  { name: "clinic/still" },
];

let over: SocketSite | undefined;
const open = async (editor: EditorOptions, more: object = {}): Promise<SocketSite> => {
  over = await socketSite({ editor, ...more });
  return over;
};
afterEach(() => over?.close());

describe("/block-renderer", () => {
  it("renders a block with its attributes, by GET and by POST", async () => {
    const render = vi.fn<RenderBlock>(({ attributes }) => `<p>${JSON.stringify(attributes)}</p>`);
    const { call } = await open({ blockTypes: TYPES, renderBlock: render });
    const got = await call(`GET ${TODAY}&attributes[count]=3`, "contributor");
    expect([got.status, got.body]).toEqual([200, { rendered: '<p>{"format":"long","count":3}</p>' }]);
    const posted = await call(`POST ${TODAY}`, "author", {
      attributes: { format: "short", note: "<b>a</b>" },
    });
    expect(posted.body).toEqual({ rendered: '<p>{"format":"short","note":"<b>a</b>"}</p>' });
    expect(render.mock.lastCall?.[0]).toMatchObject({
      name: "clinic/today",
      post: null,
      content: "",
      user: { id: idOf("author") },
    });
  });

  it("is for the context edit alone, which must be asked for", async () => {
    const { call } = await open({ blockTypes: TYPES, renderBlock: () => "x" });
    const [path = ""] = TODAY.split("?");
    for (const query of ["", "?context=view"]) {
      const { status, body } = await call(`GET ${path}${query}`, "administrator");
      const { code, data } = body as { code: string; data: { params: object } };
      expect([status, code, Object.keys(data.params)]).toEqual([400, "rest_invalid_param", ["context"]]);
    }
  });

  it("refuses attributes that the type does not have, before anything is rendered", async () => {
    const render = vi.fn<RenderBlock>(() => "");
    const { call } = await open({ blockTypes: TYPES, renderBlock: render });
    for (const attributes of [{ other: 1 }, { format: "huge" }, { count: "many" }, "text", [1]]) {
      const answer = await call(`POST ${TODAY}`, "editor", { attributes });
      expect([answer.status, answer.body.code]).toEqual([400, "rest_invalid_param"]);
    }
    const many = Object.fromEntries(Array.from({ length: 1001 }, (_, at) => [`a${at}`, at]));
    const other = TODAY.replace("today", "unlisted");
    expect((await call(`POST ${other}`, "editor", { attributes: many })).status).toBe(400);
    expect(render).not.toHaveBeenCalled();
    expect((await call(`GET ${TODAY.replace("edit", "view")}`, "editor")).status).toBe(400);
  });

  it("knows no static block, no block that the host does not know, and none without the hook", async () => {
    const { call, inEachRole } = await open({
      blockTypes: TYPES,
      renderBlock: ({ name }) => (name === "clinic/free" ? "<i>free</i>" : null),
    });
    for (const name of ["clinic/still", "clinic/today", "clinic/gone"]) {
      const { status, body } = await call(`GET /core/v2/block-renderer/${name}?context=edit`, "editor");
      expect([status, body.code, body.message]).toEqual([404, "block_invalid", "Invalid block."]);
    }
    expect(await inEachRole("GET /core/v2/block-renderer/clinic/free?context=edit")).toEqual(
      seenBy("200", { anonymous: "401 block_cannot_read", subscriber: "403 block_cannot_read" }),
    );
    await over?.close();
    const without = await open({ blockTypes: TYPES });
    expect((await without.call(`GET ${TODAY}`, "editor")).body.code).toBe("block_invalid");
    const { body } = await without.call("OPTIONS /core/v2/block-renderer/a/b");
    expect(body.schema.title).toBe("rendered-block");
    expect(body.endpoints[0].methods).toEqual(["GET", "POST"]);
    expect(body.endpoints[0].args.context).toMatchObject({ enum: ["edit"], default: "view" });
  });

  it("shows the post to the host only if the caller may edit it", async () => {
    const { call, inEachRole } = await open({ renderBlock: ({ post }) => `${post?.title} ${post?.status}` });
    const { body } = await call("POST /core/v2/posts", "author", { title: "Secret" });
    const path = `GET /core/v2/block-renderer/a/b?context=edit&post_id=${body.id}`;
    expect(await inEachRole(path)).toEqual(
      seenBy("403 block_cannot_read", {
        anonymous: "401 block_cannot_read",
        author: "200",
        editor: "200",
        administrator: "200",
      }),
    );
    expect((await call(path, "author")).body).toEqual({ rendered: "Secret draft" });
    expect(
      (await call("GET /core/v2/block-renderer/a/b?context=edit&post_id=999", "editor")).body,
    ).toMatchObject({
      code: "block_cannot_read",
      message: "Sorry, you are not allowed to read blocks of this post.",
    });
  });

  it.each<[string, () => unknown]>([
    [
      "throws",
      () => {
        throw new Error("a secret of the host");
      },
    ],
    ["rejects", () => Promise.reject(new Error("a secret of the host"))],
    ["returns a number", () => 5],
    ["returns too much", () => "x".repeat(1_048_577)],
  ])("responds with 503 if the host's function %s", async (_, render) => {
    const warn = vi.fn<(fields: object, message: string) => void>();
    const logger = { debug() {}, info() {}, warn, error() {} };
    const { call } = await open({ renderBlock: render as RenderBlock }, { logger });
    const { status, body } = await call("GET /core/v2/block-renderer/a/b?context=edit", "editor");
    expect([status, body.code]).toEqual([503, "rest_block_unavailable"]);
    expect(JSON.stringify(body)).not.toContain("secret");
    expect(warn).toHaveBeenCalledOnce();
  });

  it("waits five seconds for the host's function", async () => {
    const clock = manualClock(Date.UTC(2026, 10, 21));
    let isAsked = (): void => {};
    const asked = new Promise<void>((resolve) => {
      isAsked = resolve;
    });
    const renderBlock: RenderBlock = () => {
      isAsked();
      return new Promise(() => {});
    };
    const { call } = await open({ renderBlock }, { clock });
    const answer = call("GET /core/v2/block-renderer/a/b?context=edit", "editor");
    await asked;
    await clock.advance(5_001);
    expect((await answer).body.code).toBe("rest_block_unavailable");
  });
});
