/** The caller of a request, and what he may do. */

import type { CapabilityNames, ContentModel } from "../records/content-model.js";
import type { PostColumns, PostStatus, PostType, Taxonomy, User } from "../records/records.js";
import { impliedBy } from "./capabilities.js";
import type { Roles } from "./roles.js";

/** An action on one post. In WordPress a meta capability, which depends on author and status. */
export type PostAction = "read" | "edit" | "delete";

export interface Caller {
  /** `null`: anonymous. */
  user: User | null;
  /** 0: anonymous. */
  id: number;
  /** True if one of his roles has the capability: `edit_posts`, `unfiltered_html` … */
  has: (capability: string) => boolean;
  /**
   * True if he may do it to this post. `parent` is the post that an attachment with the status
   * `inherit` belongs to; without it the attachment counts as published. For its author, so does a
   * trashed post whose earlier status is unknown.
   */
  may: (action: PostAction, post: PostColumns, parent?: PostColumns) => boolean;
  /**
   * True if he has a capability of a type or taxonomy, named by its general name:
   * `canOf("page", "publish_posts")` checks `publish_pages`.
   */
  canOf: (of: PostType | Taxonomy, capability: string) => boolean;
  /**
   * True if he may edit posts of some type. Then he can see menus and their items too, because an
   * editor shows navigation.
   */
  canEditSomething: () => boolean;
}

export const isAnonymous = ({ id, user }: Caller): boolean => id === 0 && user === null;

// Decides what a user may do. Pure: a decision depends on the user, his roles and the post
// only.

/**
 * Returns a function that makes the caller of a request from its user; `null` stands for an
 * anonymous caller, who has no capability. Roles that are not in `roles` give no capability.
 *
 * The rules for posts are those of WordPress: its map_meta_cap, and the reading rules of its REST
 * API.
 */
export function createAuthorization({
  roles,
  model,
}: {
  roles: Roles;
  model: ContentModel;
}): (user: User | null) => Caller {
  const { types, taxonomies } = model;
  const table: KnownCapabilities = {
    names: new Map([...types, ...taxonomies].map(([of, { capabilities }]) => [of, capabilities])),
    editing: [
      ...new Set([...types.values()].flatMap(({ capabilities }) => capabilities["edit_posts"] ?? [])),
    ],
  };
  const anonymous = createCaller(null, [], table);
  return (user) => {
    if (user === null) return anonymous;
    const granted = user.roles.flatMap((name) => roles.get(name) ?? []);
    return createCaller(user, granted, table);
  };
}

interface KnownCapabilities {
  /** By type or taxonomy. */
  names: Map<PostType | Taxonomy, CapabilityNames>;
  /** Those that allow editing posts of one type or several. */
  editing: string[];
}

function createCaller(
  user: User | null,
  granted: Set<string>[],
  { names, editing }: KnownCapabilities,
): Caller {
  const id = user?.id ?? 0;
  const has = (capability: string): boolean => {
    const name = impliedBy.get(capability) ?? capability;
    return granted.some((capabilities) => capabilities.has(name));
  };
  const canOf: Caller["canOf"] = (of, capability) => {
    const name = names.get(of)?.[capability];
    return name !== undefined && has(name);
  };
  const canEditSomething = (): boolean => editing.some(has);
  const isOwn = ({ author }: PostColumns): boolean => id !== 0 && author === id;
  const hasAll = ({ type }: PostColumns, capabilities: string[]): boolean =>
    capabilities.every((capability) => canOf(type, capability));

  function canReadUnpublished(post: PostColumns, status: PostStatus): boolean {
    if (isOwn(post) && canOf(post.type, "read")) return true;
    return hasAll(
      post,
      status === "private" ? ["read_private_posts"] : listNeeded("edit", post, isOwn(post)),
    );
  }

  function canRead(post: PostColumns, parent: PostColumns | undefined): boolean {
    if (post.type === "nav_menu_item" && !canEditSomething()) return false;
    const isInheriting = post.status === "inherit";
    const status = isInheriting ? (parent?.status ?? "publish") : post.status;
    // Some types, such as patterns, are only for callers who write; others are for everybody.
    if (status === "publish") return names.get(post.type)?.["read"] === "read" || canOf(post.type, "read");
    if (canReadUnpublished(post, status)) return true;
    return isInheriting && parent !== undefined && canRead(parent, undefined);
  }

  const may: Caller["may"] = (action, post, parent) =>
    action === "read" ? canRead(post, parent) : hasAll(post, listNeeded(action, post, isOwn(post)));
  return Object.freeze({ user, id, has, may, canOf, canEditSomething });
}

/** Returns the general capabilities that an action needs, all of them. */
function listNeeded(action: Exclude<PostAction, "read">, post: PostColumns, isOwn: boolean): string[] {
  if (isOwn) return [isPublished(getStatusForOwner(post)) ? `${action}_published_posts` : `${action}_posts`];
  const others = `${action}_others_posts`;
  if (isPublished(post.status)) return [others, `${action}_published_posts`];
  return post.status === "private" ? [others, `${action}_private_posts`] : [others];
}

const isPublished = (status: PostStatus): boolean => status === "publish" || status === "future";

/** Returns the status before the trash: it decides what the author may do to a trashed post. */
function getStatusForOwner({ status, beforeTrash }: PostColumns): PostStatus {
  if (status !== "trash") return status;
  if (beforeTrash === undefined) return "publish";
  return beforeTrash?.status ?? "draft";
}
