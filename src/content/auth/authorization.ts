/** Makes of a user the caller whom every rule asks what he may. Pure: a decision looks at the post in hand and at nothing else. */

import type { PostColumns, PostStatus, User } from "../records/records.js";
import type { Caller, PostAction } from "./caller.js";
import { canEditSomething, capabilityNames, listImplied } from "./capabilities.js";
import type { Roles } from "./roles.js";

/**
 * The caller for a user, or for `null` an anonymous one, who has no capability. Roles that `roles` does not have give nothing.
 *
 * What may be done to a post follows the reference's map_meta_cap and what its REST interface lets be read.
 */
export function createAuthorization({ roles }: { readonly roles: Roles }): (user: User | null) => Caller {
  const anonymous = callerWith(null, []);
  return (user) => {
    if (user === null) return anonymous;
    return callerWith(
      user,
      user.roles.flatMap((name) => roles.get(name) ?? []),
    );
  };
}

function callerWith(user: User | null, granted: readonly ReadonlySet<string>[]): Caller {
  const id = user?.id ?? 0;
  const has = (capability: string): boolean => {
    const name = listImplied.get(capability) ?? capability;
    return granted.some((capabilities) => capabilities.has(name));
  };
  const canOf: Caller["canOf"] = (of, capability) => {
    const name = capabilityNames[of][capability];
    return name !== undefined && has(name);
  };
  const may: Caller["may"] = (action, post, parent) => {
    const isOwn = id !== 0 && post.author === id;
    const hasAll = (capabilities: readonly string[]): boolean =>
      capabilities.every((capability) => canOf(post.type, capability));
    if (action !== "read") return hasAll(neededTo(action, post, isOwn));

    if (post.type === "nav_menu_item" && !canEditSomething({ has })) return false;
    const status = post.status === "inherit" ? (parent?.status ?? "publish") : post.status;
    // Patterns are for those who write; all else that is published is for everybody.
    if (status === "publish") return post.type !== "wp_block" || canOf("wp_block", "read");
    if (isOwn && canOf(post.type, "read")) return true;
    if (hasAll(status === "private" ? ["read_private_posts"] : neededTo("edit", post, isOwn))) return true;
    return post.status === "inherit" && parent !== undefined && may("read", parent);
  };
  return Object.freeze({ user, id, has, may, canOf });
}

/** The general capabilities that it takes, all of them. */
function neededTo(verb: Exclude<PostAction, "read">, post: PostColumns, isOwn: boolean): readonly string[] {
  if (isOwn) return [isPublished(statusForOwner(post)) ? `${verb}_published_posts` : `${verb}_posts`];
  const others = `${verb}_others_posts`;
  if (isPublished(post.status)) return [others, `${verb}_published_posts`];
  return post.status === "private" ? [others, `${verb}_private_posts`] : [others];
}

const isPublished = (status: PostStatus): boolean => status === "publish" || status === "future";

/** What its author could not do before it went to the trash, he cannot do there. */
function statusForOwner({ status, beforeTrash }: PostColumns): PostStatus {
  if (status !== "trash") return status;
  if (beforeTrash === undefined) return "publish";
  return beforeTrash?.status ?? "draft";
}
