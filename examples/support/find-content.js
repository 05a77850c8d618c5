// Requests of examples/editor-host.js to the content service in the same process, with the same
// permissions as over HTTP. `as` is the id of a user, or null for a visitor.
const COLLECTIONS = { post: "posts", page: "pages" };

export function createFinder(content, root) {
  const ask = async (as, method, path, { body, query } = {}) =>
    (await content.request({ as, method, path: `/wp/v2${path}`, body, query, baseUrl: root })).body;
  const list = async (as, path, query) => {
    const found = await ask(as, "GET", path, { query });
    return Array.isArray(found) ? found : [];
  };

  /** The post or page with this id, if the user may see it in this context. */
  async function byId(as, id, context = "view") {
    if (!/^\d{1,15}$/.test(id)) return undefined;
    for (const collection of Object.values(COLLECTIONS)) {
      const found = await ask(as, "GET", `/${collection}/${id}`, { query: { context } });
      if (found.id !== undefined) return found;
    }
  }

  return {
    ask,
    byId,
    /** The same, with what this user has typed since the last save. */
    async preview(as, id) {
      const post = await byId(as, id);
      if (!post) return undefined;
      const autosaves = await list(as, `/${COLLECTIONS[post.type]}/${post.id}/autosaves`);
      const newer = autosaves.find(({ author, modified }) => author === as && modified > post.modified);
      return newer ? { ...post, title: newer.title, content: newer.content } : post;
    },
    /** The published post or page at this path of the website. */
    async byPath(path) {
      const slug = path.split("/").findLast(Boolean) ?? "";
      for (const collection of Object.values(COLLECTIONS)) {
        const found = await list(null, `/${collection}`, { slug });
        const shown = found.find(({ link }) => new URL(link).pathname === path);
        if (shown) return shown;
      }
    },
    /** The posts or pages that the user may edit, the newest first. */
    editable: (as, collection) =>
      list(as, `/${collection}`, { status: "any", per_page: 100, context: "edit" }),
  };
}
