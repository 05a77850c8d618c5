/** Lists the posts of a type. */

import type { PostColumns } from "../records/records.js";
import { parseFields } from "../rest/field-selection.js";
import type { ListLimit } from "../rest/list-limits.js";
import { pageHeaders } from "../rest/paging.js";
import { readContext } from "../rest/record-fields.js";
import type { Item, RestRequest, RestResponse } from "../rest/types.js";
import { createPostQuery } from "./list-query.js";
import { type RenderPostRequest, readExcerptLength } from "./post-renderer.js";
import type { PostResource } from "./post-resource.js";
import type { PostRoutesOptions } from "./post-route-options.js";
import { readPassword } from "./read-post.js";

/** Whole records that a list loads before it renders them. */
const BATCH = 25;

interface ListedPosts {
  readonly ids: readonly number[];
  readonly view: RenderPostRequest;
  /** The password that the client gave. */
  readonly password: string | undefined;
}

export function createListPosts(
  { type: { collection }, permissions }: PostResource,
  { repository, site, renderer, passwords, lists, namespace }: PostRoutesOptions,
): (request: RestRequest) => Promise<RestResponse> {
  const { index } = repository;
  const toQuery = createPostQuery(collection, site);

  async function renderPosts({ ids, view, password }: ListedPosts, { add }: ListLimit): Promise<void> {
    const action = view.context === "edit" ? "edit" : "read";
    const isVisible = (post: PostColumns | undefined): post is PostColumns =>
      post !== undefined && permissions.may(view.caller, action, post);
    const getCached = (id: number): Item | undefined => {
      const post = index.post(id);
      const isTried = password !== undefined && post?.hasPassword === true;
      return isVisible(post) && !isTried ? renderer.getCached(id, view) : undefined;
    };
    // A password is tried on all posts at once or on none.
    const step = password === undefined ? BATCH : Math.max(ids.length, 1);
    for (let start = 0; start < ids.length; start += step) {
      const slice = ids.slice(start, start + step);
      const cached = slice.map(getCached);
      const loaded = cached.includes(undefined) ? await repository.posts(slice) : [];
      // Posts that were removed or hidden since the query are left out.
      const posts = loaded.flatMap((post) => (isVisible(post) ? [post] : []));
      const unlocked = password === undefined ? undefined : passwords.open(posts, password);
      const byId = new Map(posts.map((post) => [post.id, post]));
      for (const [at, known] of cached.entries()) {
        const post = byId.get(slice[at] ?? 0);
        const item =
          known ?? (post && (await renderer.render(post, { ...view, isUnlocked: unlocked?.has(post.id) })));
        if (item !== undefined) await add(item);
      }
    }
  }

  return async (request) => {
    const { values, caller, url, query: given } = request;
    const { ids, total } = await index.find(toQuery(values, caller), repository.texts);
    const selection = parseFields(request.given["_fields"]);
    const view = {
      context: readContext(request),
      caller,
      url,
      selection,
      excerptLength: readExcerptLength(values),
    };
    // An editor of a post sees its texts without the password.
    const password = view.context === "edit" ? undefined : readPassword(given);
    return {
      status: 200,
      headers: pageHeaders({ values, total, given, url: url(`/${namespace}/${collection.base}`) }),
      body: {
        items: await lists.collect(selection, (limit) => renderPosts({ ids, view, password }, limit)),
      },
    };
  };
}
