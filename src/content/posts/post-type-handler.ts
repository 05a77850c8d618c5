/**
 * The interface between posts and their types. Media and menu items implement `PostTypeRules`; the
 * assembly of the content service passes the rules to `createPostTypes`.
 */

import type { Context, Json } from "../../schema/types.js";
import type { Caller, PostAction } from "../auth/caller.js";
import type { Collection } from "../collections.js";
import type { SiteIndex } from "../query/site-index.js";
import type { Post, PostColumns, PostStatus, PostType } from "../records/records.js";
import type { Links, RestEndpoint, RestRequest } from "../rest/types.js";
import type { PostField, PostFields } from "./post-field.js";
import type { PostWriter, Values } from "./write-context.js";

/** Receives the file that comes with a new media item. */
export interface MediaUploads {
  readonly receive: NonNullable<RestEndpoint["receive"]>;
  /** @throws RestError if the request has no file */
  readonly take: (request: RestRequest) => Promise<NewMediaFile>;
  /** Removes the files of an item whose record is gone. Never rejects. */
  readonly remove: (post: Post) => Promise<void>;
}

/** A file that is stored before its record is. */
export interface NewMediaFile {
  /** Fields that follow from the file if the client does not give them. */
  readonly values: Values;
  readonly complete: (post: Post) => Post;
  /** Removes the file, because its record could not be stored. */
  readonly discard: () => Promise<void>;
}

export interface PermissionView {
  readonly index: SiteIndex;
  readonly may: (caller: Caller, action: PostAction, post: PostColumns) => boolean;
}

export interface LinkView {
  readonly index: SiteIndex;
  /** Absolute URL of a path below the namespace: `/posts/12`. */
  readonly to: (path: string) => string;
}

/** How a post type differs from posts and pages. Every rule is optional. */
export interface PostTypeRules {
  /** Fields that the type adds, or defines differently. */
  readonly fields?: PostFields;
  /** Replaces `applyPostValues`. */
  readonly write?: PostWriter;
  /** Defaults of the arguments that create an item. */
  readonly createDefaults?: { readonly [name: string]: Json };
  /** Context in which DELETE returns the removed item. Default: `edit`. */
  readonly deletedContext?: Context;
  /** Throws a RestError unless the caller may view items of the type at all. */
  readonly authorizeView?: (caller: Caller) => void;
  /** Throws a RestError unless the caller may write these values. */
  readonly authorizeValues?: (request: RestRequest, view: PermissionView) => void;
  /** The status that is stored for a requested one. Replaces the rules of publishing. */
  readonly resolveStatus?: (status: PostStatus) => PostStatus;
  /** Throws a RestError if the values contradict other records. */
  readonly assertConsistent?: (values: Values, index: SiteIndex) => void;
  readonly listLinks?: (post: Post, view: LinkView) => Links;
  /** Keys of further records that responses depend on: `post/12`, `term/3`. */
  readonly listDependencies?: (post: Post, index: SiteIndex) => readonly string[];
  readonly uploads?: MediaUploads;
}

/** A field as responses in one context show it. */
export interface ShownField {
  readonly name: string;
  readonly field: PostField;
  /** Leaves out the members that the context does not show. */
  readonly show: (value: Json) => Json;
}

/** Everything that routes, renderer and writers need to know about one post type. */
export interface PostTypeHandler extends Omit<PostTypeRules, "fields" | "write"> {
  readonly collection: Collection;
  /** By name, in the order in which responses list them. */
  readonly fields: ReadonlyMap<string, PostField>;
  readonly shownFields: { readonly [context in Context]: readonly ShownField[] };
  /** Names of fields that are slow to render. */
  readonly costlyFields: readonly string[];
  readonly write: PostWriter;
}

export type PostTypes = { readonly [type in PostType]: PostTypeHandler };
