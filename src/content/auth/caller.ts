/** The caller of a request and the questions that permission checks ask about him. */

import type { PostColumns, PostType, Taxonomy, User } from "../records/records.js";

/** An action on one post. In WordPress a meta capability, which depends on author and status. */
export type PostAction = "read" | "edit" | "delete";

export interface Caller {
  /** `null`: anonymous. */
  readonly user: User | null;
  /** 0: anonymous. */
  readonly id: number;
  /** True if one of his roles has the capability: `edit_posts`, `unfiltered_html` … */
  readonly has: (capability: string) => boolean;
  /**
   * True if he may do it to this post. `parent` is the post that an attachment with the status
   * `inherit` belongs to; without it the attachment counts as published. For its author, so does a
   * trashed post whose earlier status is unknown.
   */
  readonly may: (action: PostAction, post: PostColumns, parent?: PostColumns) => boolean;
  /**
   * True if he has a capability of a type or taxonomy, given by its general name:
   * `canOf("page", "publish_posts")` checks `publish_pages`.
   */
  readonly canOf: (of: PostType | Taxonomy, capability: string) => boolean;
}

export const isAnonymous = ({ id, user }: Caller): boolean => id === 0 && user === null;
