/**
 * The members that the routes of posts share, and that media, the editor and imports take from
 * them.
 */

import type { ContentBase } from "../content-base.js";
import type { Post } from "../records/records.js";
import type { Transaction } from "../repository/content-repository.js";
import type { Passwords } from "./post-passwords.js";
import type { PostRenderer } from "./post-renderer.js";
import type { PostTypes } from "./post-type-handler.js";

/**
 * Adds a revision of a changed post to the transaction, if the post type has revisions and the
 * post differs from its newest one. Returns the post to store. `author`: who changed it.
 */
export type KeepRevision = (transaction: Transaction, post: Post, author: number) => Promise<Post>;

export interface PostBase extends ContentBase {
  postTypes: PostTypes;
  renderer: PostRenderer;
  passwords: Passwords;
  keepRevision: KeepRevision;
}
