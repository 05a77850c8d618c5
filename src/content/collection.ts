/** The definition of a post type: one row of the table in `collections.ts`. Types only. */

import type { PostOrder } from "./query/types.js";
import type { Post, PostType, Taxonomy } from "./records/records.js";

export interface MetaField {
  readonly type: "boolean" | "string";
  readonly default: boolean | string;
  readonly enum?: readonly string[];
  /** Revisions hold the value too. */
  readonly isRevisioned?: true;
}

export interface Collection {
  /** The segment in paths: `posts` in `/posts/12`. */
  readonly base: string;
  readonly type: PostType;
  readonly labels: {
    readonly name: string;
    readonly singular: string;
    /** The title of the list of all items, for menu items that lead there. */
    readonly archives: string;
  };
  readonly description: string;
  readonly isHierarchical: boolean;
  /** True if items have an address of their own on the website. */
  readonly isViewable: boolean;
  /** True if anonymous callers may list and read published items. */
  readonly isPublic: boolean;
  readonly taxonomies: readonly Taxonomy[];
  /** `supports` of WordPress, for `/types`. */
  readonly supports: readonly string[];
  /** Values of new items that differ between types. */
  readonly newPost: Pick<Post, "status" | "commentStatus" | "pingStatus">;
  readonly list: {
    readonly perPage: number;
    readonly order: "asc" | "desc";
    readonly orderBy: PostOrder;
    readonly orders: readonly PostOrder[];
    readonly status: string;
    readonly statuses: readonly string[];
  };
  readonly meta: { readonly [name: string]: MetaField };
  /** True if a batch may use the routes. */
  readonly allowBatch: boolean;
  /** True if deleting without `force` moves an item to the trash. */
  readonly hasTrash: boolean;
  readonly hasRevisions: boolean;
  /** True if media can belong to an item. */
  readonly hasAttachments: boolean;
}
