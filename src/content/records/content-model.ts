/**
 * The types and taxonomies of one site, as plain data. `createContent` builds the model once;
 * routes, fields, permissions and the index are made from it.
 */

import type { Json, Schema } from "../../schema/types.js";
import type { Post, PostType, Taxonomy, User } from "./records.js";

export interface ContentModel {
  /** By name. A record of a type that is not among them is stored, but nobody sees it. */
  types: Map<PostType, Collection>;
  /** By name. */
  taxonomies: Map<Taxonomy, TaxonomyDefinition>;
}

/** Returns the row of a type. Every record that the index shows has one. */
export function getCollection({ types }: ContentModel, type: PostType): Collection {
  const collection = types.get(type);
  if (collection === undefined) throw new Error(`There is no post type '${type}'.`);
  return collection;
}

/** Returns the row of a taxonomy. Every term that the index shows has one. */
export function getTaxonomy({ taxonomies: all }: ContentModel, taxonomy: Taxonomy): TaxonomyDefinition {
  const definition = all.get(taxonomy);
  if (definition === undefined) throw new Error(`There is no taxonomy '${taxonomy}'.`);
  return definition;
}

// The definition of a post type: one row of the model.

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

/** A feature that a declared type may support. */
export type TypeFeature =
  | "title"
  | "editor"
  | "excerpt"
  | "author"
  | "thumbnail"
  | "trackbacks"
  | "custom-fields"
  | "comments"
  | "revisions"
  | "page-attributes"
  | "post-formats";

/** One key of `meta`. */
export interface MetaField {
  /** Of the whole value: a list of texts for a key with several values of type `string`. */
  schema: Schema;
  /** Shown while no value is stored. */
  default: Json;
  /** Revisions hold the value too. */
  isRevisioned?: true;
  /** Set for a key that the host declared, by the option `meta`. */
  declared?: {
    isList: boolean;
    mayWrite: (writer: MetaWriter) => boolean;
  };
}

export type MetaFields = { [name: string]: MetaField };

/** Who writes to the post with this id. */
export interface MetaWriter {
  /** `null`: anonymous. */
  user: User | null;
  has: (capability: string) => boolean;
  id: number;
}

export interface Collection {
  /** The segment in paths: `posts` in `/posts/12`. */
  base: string;
  type: PostType;
  labels: {
    name: string;
    singular: string;
    /** The title of the list of all items, for menu items that lead there. */
    archives: string;
  };
  description: string;
  isHierarchical: boolean;
  /** True if items have a separate address on the website. */
  isViewable: boolean;
  /** True if anonymous callers may list and read published items. */
  isPublic: boolean;
  taxonomies: TaxonomyDefinition[];
  /** By general name, such as `edit_posts`. */
  capabilities: CapabilityNames;
  /** `supports` of WordPress, for `/types`. */
  supports: string[];
  /** Values of new items that differ between types. */
  newPost: {
    status: Post["status"];
    commentStatus: Post["commentStatus"];
    pingStatus: Post["pingStatus"];
  };
  list: {
    perPage: number;
    order: "asc" | "desc";
    orderBy: PostOrder;
    orders: PostOrder[];
    status: string;
    statuses: string[];
  };
  meta: MetaFields;
  /** True if a batch may use the routes. */
  allowBatch: boolean;
  /** True if deleting without `force` moves an item to the trash. */
  hasTrash: boolean;
  hasRevisions: boolean;
  /** True if media can belong to an item. */
  hasAttachments: boolean;
  /** Begins the paths of items on the website. Absent: they begin with the slug. */
  pathPrefix?: string;
  /** The icon that editors show. */
  icon?: string;
}

export interface TaxonomyDefinition {
  taxonomy: Taxonomy;
  /** In paths: `/categories`; also the name of the field of a post that holds its terms. */
  base: string;
  labels: { name: string; singular: string };
  isHierarchical: boolean;
  /** True if its terms have addresses on the website. */
  isViewable: boolean;
  /** True if everybody may read its terms; otherwise the caller must be able to edit something. */
  isPublic: boolean;
  /** The types of posts that can have its terms. */
  types: PostType[];
  /** The fields of an item, in the order of the response. */
  fields: string[];
  /** Prefix of the class that a post has for each of its terms: `tag-<slug>`. */
  classPrefix: string;
  /** Prefix of a term's path on the website. */
  pathPrefix: string;
  /** True if the path of a term does not contain the terms above it. */
  hasFlatPaths?: true;
  description?: string;
  /** True if deleting a term deletes its posts, as for the items of a menu. */
  ownsItsPosts: boolean;
  /** By general name, such as `edit_terms`. */
  capabilities: CapabilityNames;
}

/** Maps a general name, such as `edit_posts`, to the name that roles have. */
export interface CapabilityNames {
  [general: string]: string;
}
