/** Who asks, and what he may. */

import type { PostColumns, PostType, Taxonomy, User } from "../records/records.js";

/** What can be done to one post: the reference's meta capabilities, which depend on its author and status. */
export type PostAction = "read" | "edit" | "delete";

export interface Caller {
  /** `null`: anonymous. */
  readonly user: User | null;
  /** 0: anonymous. */
  readonly id: number;
  /** Whether one of his roles has it: `edit_posts`, `unfiltered_html` … */
  readonly has: (capability: string) => boolean;
  /**
   * Whether he may do it to this very post. `parent` is the post that an attachment with the status `inherit` belongs to; without it the attachment
   * counts as published. So does, for its author, a trashed post that does not tell what it was before.
   */
  readonly may: (action: PostAction, post: PostColumns, parent?: PostColumns) => boolean;
  /** A primitive capability of a type or taxonomy by its general name: `canOf("page", "publish_posts")` asks for `publish_pages`. */
  readonly canOf: (of: PostType | Taxonomy, capability: string) => boolean;
}
