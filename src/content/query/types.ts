/**
 * A query for posts as plain data, after validation. A plan is made from it without reading a
 * record.
 */

import type { PostOrder } from "../records/content-model.js";
import type { PostStatus, PostType, Taxonomy } from "../records/records.js";

export interface TermFilter {
  taxonomy: Taxonomy;
  terms: readonly number[];
  includeChildren: boolean;
  /** `AND`: in all of `terms`; `OR`: in at least one; `NOT`: in no term of them. */
  operator: "AND" | "OR" | "NOT";
}

/** The posts that a caller may see: those of everybody, or those of one author. */
export type VisibilityScope = "all" | { author: number };

/** The posts of each status that a caller may see. Posts of an absent status are not visible. */
export type Visibility = { [status in PostStatus]?: VisibilityScope };

/**
 * `undefined` means that there is no such filter; so does an empty list of `slug` or `include`.
 * Times are as in the columns, and their bounds are exclusive.
 */
export interface PostQuery {
  type: PostType;
  /** Further types whose posts are listed together with those of `type`. */
  alsoTypes?: readonly PostType[];
  /**
   * The requested statuses that the caller may see, by the status and author of the post itself;
   * `inherit` is one of them.
   */
  visibility: Visibility;
  /**
   * Also makes attachments with the status `inherit` visible, by the status and author of the post
   * they belong to. Without such a post the status is `publish`, and the author is their own.
   */
  inherited?: Visibility;
  author?: readonly number[];
  authorExclude?: readonly number[];
  include?: readonly number[];
  exclude?: readonly number[];
  parent?: readonly number[];
  parentExclude?: readonly number[];
  menuOrder?: number;
  slug?: readonly string[];
  after?: number;
  before?: number;
  modifiedAfter?: number;
  modifiedBefore?: number;
  terms?: readonly TermFilter[];
  /** How `terms` and `format` are combined. Default: `AND`. */
  termRelation?: "AND" | "OR";
  sticky?: boolean;
  format?: readonly string[];
  /** `image/png`, or `image/` for every image. */
  mimeType?: readonly string[];
  search?: {
    text: string;
    columns: readonly ("title" | "content" | "excerpt")[];
    /** True to look for the text as one phrase instead of its words. */
    isExact: boolean;
    /**
     * If false, posts with a password are never found, not even by their titles. WordPress does
     * this for anonymous callers.
     */
    seesProtected: boolean;
    /**
     * The protected posts whose texts are searched, by status and author: those that the caller may
     * edit. Other protected posts are compared and ranked by their titles only, which are public.
     */
    searchedProtected: Visibility;
  };
  orderBy: PostOrder;
  order: "asc" | "desc";
  /** True to put all published sticky posts first, whatever filters, except those in `exclude`. */
  stickyFirst?: boolean;
  offset: number;
  limit: number;
}

export interface PostPage {
  ids: number[];
  /** Of all pages. */
  total: number;
}
