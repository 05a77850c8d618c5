/** A post as it is answered: its fields in one context, its links, and the cache of both as bytes. */

import { LRUCache } from "lru-cache";
import type { Context, Json } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import { type Collection, getCollection } from "../collections.js";
import { listAncestors } from "../query/page-tree.js";
import type { Post, PostColumns, Term } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import type { FieldSelection } from "../rest/field-selection.js";
import { createItem } from "../rest/item.js";
import type { Item, ItemLink, Links } from "../rest/types.js";
import type { Site } from "../site.js";
import { getTaxonomy } from "../terms/taxonomies.js";
import { listTermAncestors as termsAbove } from "../terms/term-fields.js";
import type { FieldView } from "./post-fields.js";
import { selectPostFields } from "./post-schema.js";

/** What an answer asks of an item beside the post. */
export interface RenderPostRequest {
  readonly context: Context;
  readonly caller: Caller;
  readonly url: (path: string) => string;
  /** True where the client gave the password of this post. */
  readonly isUnlocked?: boolean | undefined;
  readonly excerptLength?: number | undefined;
  /** The fields that are answered; default: all. Where a costly one is left out, the item is made without it, and is not cached. */
  readonly selection?: FieldSelection | undefined;
}

export interface PostRenderer {
  readonly of: (post: Post, request: RenderPostRequest) => Item;
  /** The same from the cache alone, by the id: no record is read. */
  readonly cached: (id: number, request: RenderPostRequest) => Item | undefined;
}

export interface PostRendererOptions {
  readonly library: ContentRepository;
  readonly site: Site;
  /** `core/v2` */
  readonly namespace: string;
  readonly cacheBytes: number;
}

const DEFAULT_EXCERPT_WORDS = 55;

/** Fields that take longer to render than all others together. */
const COSTLY: readonly string[] = ["content", "excerpt", "caption", "description"];

/** `undefined` where every field is made: what is made whole can be cached. */
function partOf({ selection }: RenderPostRequest, collection: Collection): FieldSelection | undefined {
  const isCostly = COSTLY.some((name) => collection.fields.includes(name) && selection?.has(name));
  return isCostly ? undefined : selection;
}

interface Cached {
  readonly item: Item;
  /** Of the post and of every record whose fields went into it: it is good as long as they are the same. */
  readonly versions: ReadonlyMap<string, number | undefined>;
}

export function createPostRenderer({
  library,
  site,
  namespace,
  cacheBytes,
}: PostRendererOptions): PostRenderer {
  const { index } = library;
  const shown = new Map<string, ReturnType<typeof selectPostFields>>();
  const fieldsFor = (collection: Collection, context: Context): ReturnType<typeof selectPostFields> => {
    const key = `${collection.base} ${context}`;
    const known = shown.get(key) ?? selectPostFields(collection, context);
    shown.set(key, known);
    return known;
  };
  const cache = new LRUCache<string, Cached>({
    maxSize: cacheBytes,
    sizeCalculation: ({ item }) => 200 + item.bytes().length,
  });

  /** The methods that the caller may use on the item: the reference tells editors so. */
  const allowed = (post: Post["id"], { caller }: RenderPostRequest): readonly string[] => {
    const columns = index.post(post);
    if (columns === undefined || caller.id === 0) return ["GET"];
    const canEdit = caller.may("edit", columns);
    const canDelete = caller.may("delete", columns);
    return ["GET", ...(canEdit ? ["POST", "PUT", "PATCH"] : []), ...(canDelete ? ["DELETE"] : [])];
  };

  /** `undefined` where the item is made for this caller alone, or is rarely asked for: it is not kept. */
  function cacheKey(id: number, request: RenderPostRequest): string | undefined {
    const { context, isUnlocked, excerptLength, url } = request;
    if (context === "edit" || isUnlocked || excerptLength !== undefined) return undefined;
    return `${library.loads()} ${id} ${context} ${allowed(id, request).length} ${url("")}`;
  }

  /** The records whose fields go into the item: its own, and those that its addresses and classes are made of. */
  function dependencies(post: Post, { taxonomies }: Collection): ReadonlyMap<string, number | undefined> {
    const postKey = (id: number): string => `post/${id}`;
    const withAbove = (columns: PostColumns): readonly string[] =>
      [columns.id, ...listAncestors(columns, index)].map(postKey);
    const termWithAbove = (term: Term): readonly string[] =>
      [term, ...termsAbove(term, index)].map(({ id }) => `term/${id}`);
    const targetPost = post.menuItem?.type === "post_type" ? index.post(post.menuItem.objectId) : undefined;
    const targetTerm = post.menuItem?.type === "taxonomy" ? index.term(post.menuItem.objectId) : undefined;
    const keys = [
      ...withAbove(post),
      ...taxonomies.flatMap((taxonomy) => {
        const named = post.terms[taxonomy] ?? [];
        return [...named, ...index.termsOf(post, taxonomy)].map((id) => `term/${id}`);
      }),
      ...(post.featuredMedia > 0 ? [postKey(post.featuredMedia)] : []),
      ...(post.target === "" ? [] : [post.target]),
      ...(targetPost ? withAbove(targetPost) : []),
      ...(targetTerm ? termWithAbove(targetTerm) : []),
    ];
    return new Map(keys.map((key) => [key, index.version(key)]));
  }

  function cached(id: number, request: RenderPostRequest): Item | undefined {
    const key = cacheKey(id, request);
    const found = key === undefined ? undefined : cache.get(key);
    if (found === undefined) return undefined;
    for (const [record, version] of found.versions) {
      if (index.version(record) !== version) return undefined;
    }
    return found.item;
  }

  function viewOf(post: Post, { context, isUnlocked, excerptLength }: RenderPostRequest): FieldView {
    return {
      post,
      collection: getCollection(post.type),
      site,
      index,
      isRevealed: context === "edit" || isUnlocked === true,
      excerptLength: excerptLength ?? DEFAULT_EXCERPT_WORDS,
    };
  }

  function make(post: Post, request: RenderPostRequest): Item {
    const collection = getCollection(post.type);
    const view = viewOf(post, request);
    const part = partOf(request, collection);
    const fields: { [name: string]: Json } = {};
    for (const { name, field, show } of fieldsFor(collection, request.context)) {
      if (part !== undefined && !part.has(name)) continue;
      const value = field.read(view);
      if (value !== undefined) fields[name] = show(value);
    }
    return createItem(fields, linksOf(post, collection, request));
  }

  function linksOf(post: Post, collection: Collection, request: RenderPostRequest): Links {
    const { context, caller, url } = request;
    const to = (path: string): string => url(`/${namespace}${path}`);
    const base = `/${collection.base}`;
    const self = to(`${base}/${post.id}`);
    const links: { [relation: string]: readonly ItemLink[] } = {
      self: [{ href: self, targetHints: { allow: allowed(post.id, request) } }],
      collection: [{ href: to(base) }],
      about: [{ href: to(`/types/${post.type}`) }],
    };
    if (collection.supports.includes("author") && post.author > 0) {
      links["author"] = [{ embeddable: true, href: to(`/users/${post.author}`) }];
    }
    if (collection.supports.includes("comments")) {
      links["replies"] = [{ embeddable: true, href: to(`/comments?post=${post.id}`) }];
    }
    if (collection.hasRevisions) {
      links["version-history"] = [{ count: post.revisions.length, href: `${self}/revisions` }];
      const newest = post.revisions.at(-1);
      if (newest !== undefined) {
        links["predecessor-version"] = [{ id: newest, href: `${self}/revisions/${newest}` }];
      }
    }
    const parent = index.post(post.parent);
    if (collection.isHierarchical && parent !== undefined) {
      links["up"] = [{ embeddable: true, href: to(`/${getCollection(parent.type).base}/${parent.id}`) }];
    }
    if (collection.type === "attachment" && parent !== undefined) {
      links["wp:attached-to"] = [
        {
          embeddable: true,
          post_type: parent.type,
          id: parent.id,
          href: to(`/${getCollection(parent.type).base}/${parent.id}`),
        },
      ];
    }
    const featured = index.post(post.featuredMedia);
    if (featured?.type === "attachment") {
      links["wp:featuredmedia"] = [{ embeddable: true, href: to(`/media/${featured.id}`) }];
    }
    if (collection.type !== "attachment" && collection.type !== "nav_menu_item") {
      links["wp:attachment"] = [{ href: to(`/media?parent=${post.id}`) }];
    }
    if (collection.taxonomies.length > 0) {
      links["wp:term"] = collection.taxonomies.map((taxonomy) => ({
        taxonomy,
        embeddable: true,
        href: to(`/${getTaxonomy(taxonomy).base}?post=${post.id}`),
      }));
    }
    const target = objectLink(post, to);
    if (target !== undefined) links["wp:menu-item-object"] = [target];
    if (context === "edit") Object.assign(links, actionLinks(collection, caller, self));
    return links;
  }

  /** The record that a menu item points at. */
  function objectLink({ menuItem }: Post, to: (path: string) => string): ItemLink | undefined {
    if (menuItem === null) return undefined;
    if (menuItem.type === "post_type") {
      const object = index.post(menuItem.objectId);
      return (
        object && {
          post_type: menuItem.type,
          embeddable: true,
          href: to(`/${getCollection(object.type).base}/${object.id}`),
        }
      );
    }
    const term = menuItem.type === "taxonomy" ? index.term(menuItem.objectId) : undefined;
    return (
      term && {
        taxonomy: menuItem.type,
        embeddable: true,
        href: to(`/${getTaxonomy(term.taxonomy).base}/${term.id}`),
      }
    );
  }

  /** An item with an excerpt of another length: the rest of it is not made again. */
  function withExcerpt({ fields, links }: Item, post: Post, request: RenderPostRequest): Item {
    const excerpt = fieldsFor(getCollection(post.type), request.context).find(
      ({ name }) => name === "excerpt",
    );
    const value = excerpt?.field.read(viewOf(post, request));
    return excerpt === undefined || value === undefined
      ? createItem(fields, links)
      : createItem({ ...fields, excerpt: excerpt.show(value) }, links);
  }

  const items: PostRenderer = {
    cached,
    of(post, request) {
      const { excerptLength, ...plain } = request;
      if (excerptLength !== undefined) return withExcerpt(items.of(post, plain), post, request);
      const known = cached(post.id, request);
      if (known !== undefined) return known;
      const item = make(post, request);
      const isPart = partOf(request, getCollection(post.type)) !== undefined;
      const key = isPart ? undefined : cacheKey(post.id, request);
      // A record that changed between reading and here must not be kept under its new version.
      if (key !== undefined && post.version === index.post(post.id)?.version) {
        cache.set(key, { item, versions: dependencies(post, getCollection(post.type)) });
      }
      return item;
    },
  };
  return items;
}

/** Relations that tell an editor what he may do with the post. */
function actionLinks(collection: Collection, caller: Caller, self: string): Links {
  const action = (name: string, isAllowed: boolean): [string, readonly ItemLink[]][] =>
    isAllowed ? [[`wp:action-${name}`, [{ href: self }]]] : [];
  const { type } = collection;
  return Object.fromEntries([
    ...action("publish", type !== "attachment" && caller.canOf(type, "publish_posts")),
    ...action("unfiltered-html", caller.has("unfiltered_html")),
    ...action(
      "sticky",
      type === "post" && caller.canOf(type, "edit_others_posts") && caller.canOf(type, "publish_posts"),
    ),
    ...action(
      "assign-author",
      collection.supports.includes("author") && caller.canOf(type, "edit_others_posts"),
    ),
    ...collection.taxonomies.flatMap((taxonomy) => {
      const { base, isHierarchical } = getTaxonomy(taxonomy);
      const create = isHierarchical ? "edit_terms" : "assign_terms";
      return [
        ...action(`create-${base}`, caller.canOf(taxonomy, create)),
        ...action(`assign-${base}`, caller.canOf(taxonomy, "assign_terms")),
      ];
    }),
  ]);
}
