/** Decides which authors' posts a caller may list, by status. */

import type { Context } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import type { Collection } from "../collections.js";
import type { PostQuery, Visibility, VisibilityScope } from "../query/types.js";
import type { PostColumns, PostStatus, PostType } from "../records/records.js";
import { RestError } from "../rest/error.js";

/** The statuses that `any` stands for: those that WordPress includes in searches. */
export const ANY_STATUS: readonly PostStatus[] = ["publish", "future", "draft", "pending", "private"];
/** Statuses of posts that media can belong to. */
const PARENT_STATUSES: readonly PostStatus[] = [...ANY_STATUS, "trash", "auto-draft"];

/** No user has this id: it stands for any author but the caller. */
const OTHER_AUTHOR = -1;

/** Finds the scope by asking about a post of another author and one of the caller. */
function findScope(caller: Caller, may: (author: number) => boolean): VisibilityScope | undefined {
  if (may(OTHER_AUTHOR)) return "all";
  return caller.id !== 0 && may(caller.id) ? { author: caller.id } : undefined;
}

const toVisibility = (
  statuses: readonly PostStatus[],
  findScopeOf: (status: PostStatus) => VisibilityScope | undefined,
): Visibility => {
  const visibility: { [status in PostStatus]?: VisibilityScope } = {};
  for (const status of statuses) {
    const scope = findScopeOf(status);
    if (scope !== undefined) visibility[status] = scope;
  }
  return visibility;
};

/** Permissions depend on these columns alone. */
const probe = (type: PostType, status: PostStatus, author: number): PostColumns =>
  ({ type, status, author }) as PostColumns;

/** Returns whose posts of each status the caller may list. */
export function resolveVisibility(
  statuses: readonly PostStatus[],
  { context, type, caller }: { readonly context: Context; readonly type: PostType; readonly caller: Caller },
): Pick<PostQuery, "visibility" | "inherited"> {
  const action = context === "edit" ? "edit" : "read";
  const isInheriting = type === "attachment" && action === "read" && statuses.includes("inherit");
  const mayByStatus = (status: PostStatus) => (author: number) =>
    caller.may(action, probe(type, status, author));
  if (!isInheriting) {
    return { visibility: toVisibility(statuses, (status) => findScope(caller, mayByStatus(status))) };
  }
  const mayReadBelow = (author: number, status: PostStatus, parentAuthor: number): boolean =>
    caller.may("read", probe(type, "inherit", author), probe("post", status, parentAuthor));
  // The status `inherit` alone admits media that the caller may read below any post.
  const mayReadBelowAny = (author: number): boolean =>
    PARENT_STATUSES.every((status) => mayReadBelow(author, status, OTHER_AUTHOR));
  return {
    visibility: toVisibility(statuses, (status) =>
      findScope(caller, status === "inherit" ? mayReadBelowAny : mayByStatus(status)),
    ),
    inherited: toVisibility(PARENT_STATUSES, (status) =>
      findScope(caller, (author) => mayReadBelow(OTHER_AUTHOR, status, author)),
    ),
  };
}

/** Returns whose posts of each status the caller may edit. */
export const resolveEditable = (
  statuses: readonly PostStatus[],
  { type, caller }: { readonly type: PostType; readonly caller: Caller },
): Visibility =>
  toVisibility(statuses, (status) =>
    findScope(caller, (author) => caller.may("edit", probe(type, status, author))),
  );

/**
 * Refuses statuses that the caller may not list, whoever the author is.
 *
 * @throws RestError 400 `rest_invalid_param`
 */
export function assertStatusesAllowed(
  statuses: readonly string[],
  { type, list }: Collection,
  caller: Caller,
): void {
  const isAllowed = (status: string): boolean =>
    status === list.status ||
    caller.canOf(type, "edit_posts") ||
    (status === "private" && caller.canOf(type, "read_private_posts"));
  if (statuses.every(isAllowed)) return;
  const message = "Status is forbidden.";
  throw new RestError(400, "rest_invalid_param", "Invalid parameter(s): status", {
    data: {
      params: { status: message },
      details: {
        status: { code: "rest_forbidden_status", message, data: { status: caller.id === 0 ? 401 : 403 } },
      },
    },
  });
}
