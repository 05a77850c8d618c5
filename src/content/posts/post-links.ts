/** The links of a post: to itself, its author, parent, terms, revisions and an editor's actions. */

import type { Caller } from "../auth/caller.js";
import type { SiteIndex } from "../query/site-index.js";
import { type Collection, getCollection } from "../records/content-model.js";
import type { Post, PostColumns } from "../records/records.js";
import type { ItemLink, Links } from "../rest/types.js";
import type { LinkView, PostTypeHandler } from "./post-type-handler.js";

/**
 * Describes the operations that a caller may use on a post. Nothing else in an item depends on the
 * caller, so items are cached by it.
 */
export interface AllowedOperations {
  methods: string[];
  /** Empty unless the context is `edit`. */
  actions: string[];
  /** False if the caller may not read the featured media: then no link names it. */
  canReadFeatured: boolean;
}

type MutableLinks = { [relation: string]: ItemLink[] };

/** Returns the path of a post of any type: `/pages/3`. */
export const postPath = ({ type, id }: PostColumns, { model }: SiteIndex): string =>
  `/${getCollection(model, type).base}/${id}`;

export function listPostLinks(
  post: Post,
  type: PostTypeHandler,
  view: LinkView,
  allowed: AllowedOperations,
): Links {
  const { collection } = type;
  const { index, to } = view;
  const self = to(postPath(post, index));
  const links: MutableLinks = {
    self: [{ href: self, targetHints: { allow: allowed.methods } }],
    collection: [{ href: to(`/${collection.base}`) }],
    about: [{ href: to(`/types/${post.type}`) }],
  };
  addPeople(links, post, collection, to);
  addRevisions(links, post, collection, self);
  addParent(links, post, collection.isHierarchical, view);
  const featured = allowed.canReadFeatured ? findFeatured(post, index) : undefined;
  if (featured !== undefined) {
    links["wp:featuredmedia"] = [{ embeddable: true, href: to(postPath(featured, index)) }];
  }
  if (collection.hasAttachments) links["wp:attachment"] = [{ href: to(`/media?parent=${post.id}`) }];
  if (collection.taxonomies.length > 0) {
    links["wp:term"] = collection.taxonomies.map(({ taxonomy, base }) => ({
      taxonomy,
      embeddable: true,
      href: to(`/${base}?post=${post.id}`),
    }));
  }
  if (type.listLinks !== undefined) Object.assign(links, type.listLinks(post, view));
  for (const action of allowed.actions) links[`wp:action-${action}`] = [{ href: self }];
  return links;
}

function addPeople(links: MutableLinks, post: Post, { supports }: Collection, to: LinkView["to"]): void {
  if (supports.includes("author") && post.author > 0) {
    links["author"] = [{ embeddable: true, href: to(`/users/${post.author}`) }];
  }
  if (supports.includes("comments")) {
    links["replies"] = [{ embeddable: true, href: to(`/comments?post=${post.id}`) }];
  }
}

function addRevisions(links: MutableLinks, post: Post, { hasRevisions }: Collection, self: string): void {
  if (!hasRevisions) return;
  links["version-history"] = [{ count: post.revisions.length, href: `${self}/revisions` }];
  const newest = post.revisions.at(-1);
  if (newest !== undefined) {
    links["predecessor-version"] = [{ id: newest, href: `${self}/revisions/${newest}` }];
  }
}

function addParent(links: MutableLinks, post: Post, isHierarchical: boolean, { index, to }: LinkView): void {
  const parent = isHierarchical ? index.post(post.parent) : undefined;
  if (parent !== undefined) links["up"] = [{ embeddable: true, href: to(postPath(parent, index)) }];
}

function findFeatured({ featuredMedia }: Post, index: SiteIndex): PostColumns | undefined {
  const featured = index.post(featuredMedia);
  return featured?.type === "attachment" ? featured : undefined;
}

/** True if the caller may read the featured media, or if it is missing. */
export function mayReadFeatured(post: Post, caller: Caller, index: SiteIndex): boolean {
  const featured = findFeatured(post, index);
  return featured === undefined || caller.may("read", featured, index.post(featured.parent));
}

/**
 * Returns the actions on posts of a type that an editor is allowed. Links and cache keys follow
 * from them.
 */
export function listActions({ collection, fields }: PostTypeHandler, caller: Caller): string[] {
  const { type, supports, taxonomies } = collection;
  const action = (name: string, isAllowed: boolean): string[] => (isAllowed ? [name] : []);
  const canEditOthers = caller.canOf(type, "edit_others_posts");
  const canPublish = caller.canOf(type, "publish_posts");
  return [
    ...action("publish", type !== "attachment" && canPublish),
    ...action("unfiltered-html", caller.has("unfiltered_html")),
    ...action("sticky", fields.has("sticky") && canEditOthers && canPublish),
    ...action("assign-author", supports.includes("author") && canEditOthers),
    ...taxonomies.flatMap(({ taxonomy, base, isHierarchical }) => {
      const create = isHierarchical ? "edit_terms" : "assign_terms";
      return [
        ...action(`create-${base}`, caller.canOf(taxonomy, create)),
        ...action(`assign-${base}`, caller.canOf(taxonomy, "assign_terms")),
      ];
    }),
  ];
}
