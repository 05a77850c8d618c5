/** The interface of a kind of things that `/search` finds: posts, terms, post formats. */

import type { JsonObject } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import { resolveEditable } from "../posts/list-posts.js";
import { postPath } from "../posts/post-links.js";
import type { PostQuery, VisibilityScope } from "../query/types.js";
import { type ContentModel, getTaxonomy } from "../records/content-model.js";
import type { Post, PostType, Taxonomy, Term } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import type { Site } from "../site.js";
import { termLink } from "../terms/term-fields.js";
import { listTerms } from "../terms/term-list.js";

export interface SearchQuery {
  /** Empty: finds everything. */
  text: string;
  /** Those of the handler's subtypes that the client asked for; empty if it asked for none. */
  subtypes: string[];
  /** Ids; empty: no such limit. `include` overrides `exclude`. */
  include: number[];
  exclude: number[];
  offset: number;
  limit: number;
  caller: Caller;
}

export interface SearchResult {
  fields: JsonObject;
  /** The path of the record below the namespace, such as `/posts/3`. Absent: it has no route. */
  self?: string;
  /** The path that describes its type, such as `/types/post`. */
  about?: string;
}

export interface SearchResults {
  /** Those of the requested page. */
  results: SearchResult[];
  /** Of all pages. */
  total: number;
}

/** Finds what everybody may see of one kind; the results are the same for every caller. */
export interface SearchHandler {
  /** The value of the argument `type`. */
  type: "post" | "term" | "post-format";
  /** The values of the argument `subtype` that belong to this type. */
  subtypes: string[];
  find: (query: SearchQuery) => SearchResults | Promise<SearchResults>;
}

// Finds the terms of public taxonomies by name and slug, in the order of their names.

const listSearchedTaxonomies = ({ taxonomies }: ContentModel): Taxonomy[] =>
  [...taxonomies.values()].flatMap(({ taxonomy, isViewable }) => (isViewable ? [taxonomy] : []));

export function createTermSearch({
  repository: { index },
  site,
}: {
  repository: ContentRepository;
  site: Site;
}): SearchHandler {
  const searched = listSearchedTaxonomies(index.model);

  function toResult(term: Term): SearchResult {
    const { id, taxonomy, name } = term;
    const definition = getTaxonomy(index.model, taxonomy);
    return {
      // As in WordPress, a term has no subtype.
      fields: { id, title: name, url: termLink(term, definition, site, index), type: taxonomy },
      self: `/${definition.base}/${id}`,
      about: `/taxonomies/${taxonomy}`,
    };
  }

  return {
    type: "term",
    subtypes: searched,
    find({ text, subtypes, include, exclude, offset, limit }) {
      // WordPress searches even private taxonomies if every subtype is of another type.
      const wanted = subtypes.length > 0 ? subtypes : searched;
      const all = wanted.flatMap((taxonomy) => index.terms(taxonomy));
      const found = listTerms(
        all,
        {
          orderBy: "name",
          order: "asc",
          hideEmpty: false,
          ...(text === "" ? {} : { search: text }),
          ...(include.length > 0 ? { include } : { exclude }),
        },
        { all, countOf: () => 0 },
      );
      return { results: found.slice(offset, offset + limit).map(toResult), total: found.length };
    },
  };
}

// Finds published posts and pages, by relevance if there is a text and else the newest first.

/** Every public type but media: WordPress has no search results for these. */
const listSearchedTypes = ({ types }: ContentModel): PostType[] =>
  [...types.values()].flatMap(({ type, isViewable }) => (isViewable && type !== "attachment" ? [type] : []));

/** The protected posts whose texts the caller may edit, and so search, in every one of `types`. */
function resolveSearchedScope(types: PostType[], caller: Caller): VisibilityScope | undefined {
  const scopes = types.map((type) => resolveEditable(["publish"], { type, caller }).publish);
  return scopes.includes(undefined) ? undefined : (scopes.find((scope) => scope !== "all") ?? "all");
}

/** As in WordPress, posts are searched if every given subtype is of another type. */
function toPostQuery({ text, subtypes, include, exclude, offset, limit, caller }: SearchQuery): PostQuery {
  const [type = "post", ...alsoTypes] = subtypes;
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
  repository: ContentRepository;
  site: Site;
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
    self: postPath(post, index),
    about: `/types/${post.type}`,
  });

  return {
    type: "post",
    subtypes: listSearchedTypes(index.model),
    async find(query) {
      const { ids, total } = await index.find(toPostQuery(query), repository.texts);
      const posts = await repository.posts(ids);
      // Posts that were removed or hidden since the query are left out.
      const isShown = (post: Post | undefined): post is Post => post?.status === "publish";
      return { results: await Promise.all(posts.filter(isShown).map(toResult)), total };
    },
  };
}
