import { describe, expect, it } from "vitest";
import type { ContentResponse } from "../../../src/content/service.js";
import { contentSite, idOf } from "../../support/content-site.js";

type Site = ReturnType<typeof contentSite>;
type Body = { readonly [name: string]: unknown };

const ask = (site: Site, method: string, path: string, body: unknown): Promise<ContentResponse> =>
  site.request({ method, path: `/core/v2${path}`, as: idOf("administrator"), body: body as never });

const EMPTY: readonly Body[] = [
  {},
  { title: "" },
  { title: "", content: "", excerpt: "" },
  { title: 5 },
  { title: ["a"] },
  { title: " " },
  { title: { raw: "0" } },
  { title: null, content: 7, excerpt: false },
];

/** PHP takes a text of one zero for an empty one. It is stored where a post may be empty. */
const ZEROES: readonly Body[] = [{ title: "0" }, { content: "0" }, { title: "0", excerpt: { raw: 0 } }];

describe.each(["/posts", "/blocks"])("an empty item of %s, which have title, content and excerpt", (base) => {
  it.each([...EMPTY, ...ZEROES].map((body) => [JSON.stringify(body), body] as const))(
    "is refused: %s",
    async (_, body) => {
      expect(await ask(contentSite(), "POST", base, body)).toMatchObject({
        status: 400,
        body: { code: "empty_content" },
      });
    },
  );

  it("cannot result from an update either", async () => {
    const site = contentSite();
    const { body } = await ask(site, "POST", base, { title: "t", excerpt: "e" });
    const path = `${base}/${(body as { readonly id: number }).id}`;
    expect((await ask(site, "PUT", path, { title: "" })).status).toBe(200);
    expect(await ask(site, "PUT", path, { excerpt: "" })).toMatchObject({
      status: 400,
      body: { code: "empty_content" },
    });
  });
});

describe("an empty page", () => {
  it.each(EMPTY.map((body) => [JSON.stringify(body), body] as const))("is created: %s", async (_, body) => {
    expect(await ask(contentSite(), "POST", "/pages", body)).toMatchObject({
      status: 201,
      body: { title: { raw: "" }, content: { raw: "" }, excerpt: { raw: "" } },
    });
  });

  it("can be saved and autosaved as it is", async () => {
    const site = contentSite();
    const { body } = await ask(site, "POST", "/pages", {});
    const path = `/pages/${(body as { readonly id: number }).id}`;
    expect((await ask(site, "PUT", path, { status: "publish" })).status).toBe(200);
    expect((await ask(site, "POST", `${path}/autosaves`, { content: "" })).status).toBe(200);
  });

  it("is no reason to accept a body that is not an object", async () => {
    expect(await ask(contentSite(), "POST", "/pages", [])).toMatchObject({ status: 400 });
  });
});

describe("the raw text of a title", () => {
  it("is kept if it is a number, and ignored if it is empty", async () => {
    const site = contentSite();
    const { body } = await ask(site, "POST", "/posts", { title: { raw: 5 } });
    expect(body).toMatchObject({ title: { raw: "5" } });
    const path = `/posts/${(body as { readonly id: number }).id}`;
    for (const raw of ["", "0", 0]) {
      expect((await ask(site, "PUT", path, { title: { raw } })).body).toMatchObject({ title: { raw: "5" } });
    }
  });
});

describe("a page in /types", () => {
  it("has no support for excerpts, which is why it may be empty", async () => {
    const { body } = await contentSite().request({
      method: "GET",
      path: "/core/v2/types/page",
      query: { context: "edit" },
      as: idOf("administrator"),
    });
    const { supports } = body as { readonly supports: Body };
    expect(supports).toMatchObject({ title: true, editor: true });
    expect(supports).not.toHaveProperty("excerpt");
  });
});
