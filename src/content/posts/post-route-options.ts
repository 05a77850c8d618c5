/** The options of post routes, which the assembly of the content service provides. */

import type { Post } from "../records/records.js";
import type { ContentRepository, Transaction } from "../repository/content-repository.js";
import type { ListLimits } from "../rest/list-limits.js";
import type { Site } from "../site.js";
import type { Users } from "../users/users.js";
import type { Passwords } from "./post-passwords.js";
import type { PostRenderer } from "./post-renderer.js";

/**
 * Adds a revision of a changed post to the transaction, if the post type has revisions and the
 * post differs from its newest one. Returns the post to store. `author`: who changed it.
 */
export type KeepRevision = (transaction: Transaction, post: Post, author: number) => Promise<Post>;

export interface PostRoutesOptions {
  readonly repository: ContentRepository;
  readonly site: Site;
  readonly renderer: PostRenderer;
  readonly users: Users;
  /** `core/v2` */
  readonly namespace: string;
  readonly passwords: Passwords;
  readonly keepRevision: KeepRevision;
  readonly lists: ListLimits;
}
