/** Finds published posts and pages, by relevance if there is a text and else the newest first. */

import type { Caller } from "../auth/caller.js";
import { type Collection, collections, getCollection } from "../collections.js";
import { resolveEditable } from "../posts/list-visibility.js";
import { postPath } from "../posts/post-links.js";
import type { PostQuery, VisibilityScope } from "../query/types.js";
import type { Post, PostType } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import type { Site } from "../site.js";
import type { SearchHandler, SearchQuery, SearchResult } from "./search-handler.js";

type SearchedType = Exclude<PostType, "attachment">;

/** Every public type but media: WordPress has no search results for these. */
const TYPES: readonly SearchedType[] = Object.values<Collection>(collections).flatMap(
  ({ type, isViewable }) => (isViewable && type !== "attachment" ? [type] : []),
);

/** The protected posts whose texts the caller may edit, and so search, in every one of `types`. */
function resolveSearchedScope(types: readonly PostType[], caller: Caller): VisibilityScope | undefined {
  const scopes = types.map((type) => resolveEditable(["publish"], { type, caller }).publish);
  return scopes.includes(undefined) ? undefined : (scopes.find((scope) => scope !== "all") ?? "all");
}

/** As in WordPress, posts are searched if every given subtype is of another type. */
function toPostQuery({ text, subtypes, include, exclude, offset, limit, caller }: SearchQuery): PostQuery {
  const [type = "post", ...alsoTypes] = subtypes as readonly SearchedType[];
  const scope = resolveSearchedScope([type, ...alsoTypes], caller);
  return {
    type,
    alsoTypes,
    visibility: { publish: "all" },
    ...(include.length > 0 ? { include } : {}),
    ...(exclude.length > 0 ? { exclude } : {}),
    ...(text === ""
      ? {}
      : {
          search: {
            text,
            columns: ["title", "content", "excerpt"],
            isExact: false,
            seesProtected: caller.id !== 0,
            searchedProtected: scope === undefined ? {} : { publish: scope },
          },
        }),
    orderBy: text === "" ? "date" : "relevance",
    order: "desc",
    offset,
    limit,
  };
}

export function createPostSearch({
  repository,
  site,
}: {
  readonly repository: Pick<ContentRepository, "index" | "posts" | "texts">;
  readonly site: Pick<Site, "render" | "link">;
}): SearchHandler {
  const { index } = repository;

  const toResult = async (post: Post): Promise<SearchResult> => ({
    fields: {
      id: post.id,
      title: await site.render.title(post),
      url: site.link(post, index),
      type: "post",
      subtype: post.type,
    },
    self: postPath(post),
    about: `/types/${getCollection(post.type).type}`,
  });

  return {
    type: "post",
    subtypes: TYPES,
    async find(query) {
      const { ids, total } = await index.find(toPostQuery(query), repository.texts);
      const posts = await repository.posts(ids);
      // Posts that were removed or hidden since the query are left out.
      const isShown = (post: Post | undefined): post is Post => post?.status === "publish";
      return { results: await Promise.all(posts.filter(isShown).map(toResult)), total };
    },
  };
}
