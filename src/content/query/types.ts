/**
 * A query for posts as plain data, after validation. A plan is made from it without reading a
 * record.
 */

import type { PostOrder } from "../records/content-model.js";
import type { PostStatus, PostType, Taxonomy } from "../records/records.js";

export interface TermFilter {
  readonly taxonomy: Taxonomy;
  readonly terms: readonly number[];
  readonly includeChildren: boolean;
  /** `AND`: in all of `terms`; `OR`: in at least one; `NOT`: in no term of them. */
  readonly operator: "AND" | "OR" | "NOT";
}

/** The posts that a caller may see: those of everybody, or those of one author. */
export type VisibilityScope = "all" | { readonly author: number };

/** The posts of each status that a caller may see. Posts of an absent status are not visible. */
export type Visibility = { readonly [status in PostStatus]?: VisibilityScope };

/**
 * `undefined` means that there is no such filter; so does an empty list of `slug` or `include`.
 * Times are as in the columns, and their bounds are exclusive.
 */
export interface PostQuery {
  readonly type: PostType;
  /** Further types whose posts are listed together with those of `type`. */
  readonly alsoTypes?: readonly PostType[];
  /**
   * The requested statuses that the caller may see, by the status and author of the post itself;
   * `inherit` is one of them.
   */
  readonly visibility: Visibility;
  /**
   * Also makes attachments with the status `inherit` visible, by the status and author of the post
   * they belong to. Without such a post the status is `publish`, and the author is their own.
   */
  readonly inherited?: Visibility;
  readonly author?: readonly number[];
  readonly authorExclude?: readonly number[];
  readonly include?: readonly number[];
  readonly exclude?: readonly number[];
  readonly parent?: readonly number[];
  readonly parentExclude?: readonly number[];
  readonly menuOrder?: number;
  readonly slug?: readonly string[];
  readonly after?: number;
  readonly before?: number;
  readonly modifiedAfter?: number;
  readonly modifiedBefore?: number;
  readonly terms?: readonly TermFilter[];
  /** How `terms` and `format` are combined. Default: `AND`. */
  readonly termRelation?: "AND" | "OR";
  readonly sticky?: boolean;
  readonly format?: readonly string[];
  /** `image/png`, or `image/` for every image. */
  readonly mimeType?: readonly string[];
  readonly search?: {
    readonly text: string;
    readonly columns: readonly ("title" | "content" | "excerpt")[];
    /** True to look for the text as one phrase instead of its words. */
    readonly isExact: boolean;
    /**
     * If false, posts with a password are never found, not even by their titles. WordPress does
     * this for anonymous callers.
     */
    readonly seesProtected: boolean;
    /**
     * The protected posts whose texts are searched, by status and author: those that the caller may
     * edit. Other protected posts are compared and ranked by their titles only, which are public.
     */
    readonly searchedProtected: Visibility;
  };
  readonly orderBy: PostOrder;
  readonly order: "asc" | "desc";
  /** True to put all published sticky posts first, whatever filters, except those in `exclude`. */
  readonly stickyFirst?: boolean;
  readonly offset: number;
  readonly limit: number;
}

export interface PostPage {
  readonly ids: readonly number[];
  /** Of all pages. */
  readonly total: number;
}
