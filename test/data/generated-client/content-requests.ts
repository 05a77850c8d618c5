/**
 * Requests of a client that is generated from the OpenAPI document of a site. The test generates
 * `./content-types.js`, compiles this file with it and runs it.
 */

import createClient from "openapi-fetch";
import type { paths } from "./content-types.js";

/** Returns what the requests found, or throws at the first that failed. */
export async function useContent(baseUrl: string, authorization: string) {
  const client = createClient<paths>({
    baseUrl,
    headers: { authorization },
    querySerializer: { array: { style: "form", explode: false } },
  });
  const found = <T>({ data, error }: { readonly data?: T; readonly error?: unknown }): T => {
    if (data === undefined) throw new Error(JSON.stringify(error));
    return data;
  };

  const news = found(await client.POST("/core/v2/categories", { body: { name: "News" } }));
  const sea = found(await client.POST("/core/v2/tags", { body: { name: "Sea" } }));
  const plain = found(
    await client.POST("/core/v2/posts", {
      body: { title: "One", content: "Text", status: "publish", categories: [news.id] },
    }),
  );
  const object = found(
    await client.POST("/core/v2/posts", {
      body: {
        title: { raw: "Two" },
        excerpt: { raw: "Short" },
        status: "publish",
        date: null,
        categories: [news.id],
        tags: [sea.id],
        meta: { footnotes: "" },
      },
    }),
  );

  type Filters = NonNullable<paths["/core/v2/posts"]["get"]["parameters"]["query"]>;
  const titles = async (query: Filters) =>
    found(await client.GET("/core/v2/posts", { params: { query } })).map(({ title }) => title.rendered);
  const lists = {
    one: await titles({ include: plain.id }),
    several: await titles({ include: [plain.id, object.id], orderby: "include" }),
    slugs: await titles({ slug: ["one", "two"], order: "asc", orderby: "slug" }),
    status: await titles({ status: ["publish", "draft"], tags: sea.id }),
    category: await titles({ categories: [news.id], tags_exclude: [sea.id] }),
    both: await titles({ "categories[terms]": [news.id], "categories[operator]": "AND", per_page: 1 }),
    later: await titles({ after: "2026-01-01T00:00:00", before: "2026-01-02T00:00:00Z" }),
  };

  const edited = found(
    await client.POST("/core/v2/posts/{id}", {
      params: { path: { id: plain.id } },
      body: { title: plain.title, content: "Another text" },
    }),
  );
  const embedded = found(
    await client.GET("/core/v2/posts/{id}", {
      params: { path: { id: plain.id }, query: { context: "edit", _fields: "id,title", _embed: "author" } },
    }),
  );

  const form = found(
    await client.POST("/core/v2/media", {
      body: { file: new Blob(["A text"], { type: "text/plain" }), title: "In a form", caption: "Caption" },
      bodySerializer: (body) => {
        const data = new FormData();
        if (body instanceof Blob) return data;
        data.set("file", body.file, "form.txt");
        data.set("title", String(body.title));
        data.set("caption[raw]", String(body.caption));
        return data;
      },
    }),
  );
  const alone = found(
    await client.POST("/core/v2/media", {
      params: { header: { "Content-Disposition": 'attachment; filename="alone.txt"' } },
      headers: { "content-type": "text/plain" },
      body: new Blob(["Another text"]),
      bodySerializer: (body) => body,
    }),
  );

  const menu = found(await client.POST("/core/v2/menus", { body: { name: "Main" } }));
  const item = found(
    await client.POST("/core/v2/menu-items", {
      body: { title: "Home", url: "https://example.org/", status: "publish", menus: menu.id },
    }),
  );
  const items = found(await client.GET("/core/v2/menu-items", { params: { query: { menus: menu.id } } }));
  const several = found(
    await client.GET("/core/v2/menu-items", { params: { query: { menus: [menu.id, 999] } } }),
  );

  const batch = found(
    await client.POST("/batch/v1", {
      body: {
        validation: "require-all-validate",
        requests: [
          { path: "/core/v2/posts", body: { title: "Three" } },
          { method: "DELETE", path: `/core/v2/posts/${object.id}` },
        ],
      },
    }),
  );
  const embed = found(
    await client.GET("/oembed/1.0/embed", {
      params: { query: { url: plain.link, format: "json", maxwidth: 300 } },
    }),
  );
  const me = found(await client.GET("/core/v2/users/me"));
  const missing = await client.GET("/core/v2/posts/{id}", { params: { path: { id: 999_999 } } });

  return {
    lists,
    edited: edited.title,
    embedded,
    uploads: [form.title, alone.slug, form.source_url] as const,
    items: [item.menus, items.length, several.length] as const,
    batch: batch.responses.map((one) => one?.status),
    embed: typeof embed === "string" ? undefined : embed.title,
    me: me.slug,
    missing: missing.error?.code,
  };
}

/** The compiler refuses what the document does. Never called. */
export async function misuseContent(client: ReturnType<typeof createClient<paths>>): Promise<void> {
  // @ts-expect-error The status does not exist.
  await client.POST("/core/v2/posts", { body: { status: "published" } });
  // @ts-expect-error The raw title is a string.
  await client.POST("/core/v2/posts", { body: { title: { raw: 5 } } });
  // @ts-expect-error A category needs a name.
  await client.POST("/core/v2/categories", { body: { slug: "a" } });
  // @ts-expect-error An id is a number.
  await client.GET("/core/v2/posts", { params: { query: { include: ["a"] } } });
  // @ts-expect-error The path does not exist.
  await client.GET("/core/v2/articles");
  const { error } = await client.GET("/core/v2/posts");
  // @ts-expect-error An error has no such member.
  if (error?.reason === "rest_no_route") throw error;
}
