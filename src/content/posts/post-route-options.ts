/** What the routes of posts are made from. The assembly of the content service provides it. */

import type { Post } from "../records/records.js";
import type { Transaction } from "../repository/content-repository.js";

/**
 * Adds a revision of a changed post to the transaction, if the post type has revisions and the
 * post differs from its newest one. Returns the post to store. `author`: who changed it.
 */
export type KeepRevision = (transaction: Transaction, post: Post, author: number) => Promise<Post>;
