/** What a list of posts is asked for, after validation: plain data, from which a plan is made without looking at a record. */

import type { PostStatus, PostType, Taxonomy } from "../records/records.js";

export interface TermFilter {
  readonly taxonomy: Taxonomy;
  readonly terms: readonly number[];
  readonly includeChildren: boolean;
  /** `AND`: every one of `terms`; `OR`: at least one; `NOT`: none. */
  readonly operator: "AND" | "OR" | "NOT";
}

export type PostOrder =
  | "author"
  | "date"
  | "id"
  | "include"
  | "modified"
  | "parent"
  | "relevance"
  | "slug"
  | "include_slugs"
  | "title"
  | "menu_order";

export type VisibilityScope = "all" | { readonly author: number };

/** Whose posts of a status the caller may see: everybody's, or only those of one author. A status that is absent is not seen at all. */
export type Visibility = { readonly [status in PostStatus]?: VisibilityScope };

/** `undefined` means: no such filter. An empty list of `slug` or `include` too. Times as in the columns; bounds are exclusive. */
export interface PostQuery {
  readonly type: PostType;
  /** The statuses asked for and seen, by the status and author of the post itself: `inherit` too. */
  readonly visibility: Visibility;
  /**
   * Attachments with the status `inherit` are seen besides where this admits the status and the author of the post they belong to.
   * Without such a post the status is `publish`, and the author the attachment's own.
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
  readonly termRelation?: "AND" | "OR";
  readonly sticky?: boolean;
  readonly format?: readonly string[];
  /** `image/png`, or `image/` for all of a kind. */
  readonly mimeType?: readonly string[];
  readonly search?: {
    readonly text: string;
    readonly columns: readonly ("title" | "content" | "excerpt")[];
    /** The phrase as it stands, rather than its words. */
    readonly isExact: boolean;
    /** False: posts with a password are never found, not even by their titles. WordPress does this for anonymous callers. */
    readonly seesProtected: boolean;
    /**
     * The protected posts whose texts are searched, by status and author: those that the caller may edit. All other protected
     * posts are compared and ranked by their titles alone, which are public.
     */
    readonly searchedProtected: Visibility;
  };
  readonly orderBy: PostOrder;
  readonly order: "asc" | "desc";
  /** Sticky posts that fit come first on the first page, as the reference does it. */
  readonly stickyFirst?: boolean;
  readonly offset: number;
  readonly limit: number;
}

export interface PostPage {
  readonly ids: readonly number[];
  /** Of all pages. */
  readonly total: number;
}
