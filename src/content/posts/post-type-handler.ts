/**
 * The interface between posts and their types: the rules of a type, its schema, and the types of a
 * write. Media and menu items implement `PostTypeRules`; the assembly of the content service passes
 * the rules to `createPostTypes`.
 */

import type { Argument, Arguments, Context, Json, JsonObject, Schema } from "../../schema/types.js";
import { validateValue } from "../../schema/validate.js";
import type { Caller, PostAction } from "../auth/caller.js";
import type { SiteIndex } from "../query/site-index.js";
import type { Collection } from "../records/content-model.js";
import type { Post, PostColumns, PostStatus, PostType } from "../records/records.js";
import type { Links, RestEndpoint, RestRequest } from "../rest/types.js";
import type { Site } from "../site.js";
import type { PostField, PostFields } from "./post-field.js";

/** Receives the file that comes with a new media item. */
export interface MediaUploads {
  receive: NonNullable<RestEndpoint["receive"]>;
  /** @throws RestError if the request has no file */
  take: (request: RestRequest) => Promise<NewMediaFile>;
  /** Removes the files of an item whose record is gone. Never rejects. */
  remove: (post: Post) => Promise<void>;
}

/** A file that is stored before its record is. */
export interface NewMediaFile {
  /** Fields that follow from the file if the client does not give them. */
  values: Values;
  complete: (post: Post) => Post;
  /** Removes the file, because its record could not be stored. */
  discard: () => Promise<void>;
}

export interface PermissionView {
  index: SiteIndex;
  may: (caller: Caller, action: PostAction, post: PostColumns) => boolean;
}

export interface LinkView {
  index: SiteIndex;
  /** Absolute URL of a path below the namespace: `/posts/12`. */
  to: (path: string) => string;
}

/** How a post type differs from posts and pages. Every rule is optional. */
export interface PostTypeRules {
  /** Fields that the type adds, or defines differently. */
  fields?: PostFields;
  /** Replaces `applyPostValues`. */
  write?: PostWriter;
  /** Defaults of the arguments that create an item. */
  createDefaults?: { [name: string]: Json };
  /** Context in which DELETE returns the removed item. Default: `edit`. */
  deletedContext?: Context;
  /** Throws a RestError unless the caller may view items of the type at all. */
  authorizeView?: (caller: Caller) => void;
  /** Throws a RestError unless the caller may write these values. */
  authorizeValues?: (request: RestRequest, view: PermissionView) => void;
  /** The status that is stored for a requested one. Replaces the rules of publishing. */
  resolveStatus?: (status: PostStatus) => PostStatus;
  /** Throws a RestError if the values contradict other records. */
  assertConsistent?: (values: Values, index: SiteIndex) => void;
  listLinks?: (post: Post, view: LinkView) => Links;
  /** Keys of further records that responses depend on: `post/12`, `term/3`. */
  listDependencies?: (post: Post, index: SiteIndex) => string[];
  uploads?: MediaUploads;
}

/** A field as responses in one context show it. */
export interface ShownField {
  name: string;
  field: PostField;
  /** Leaves out the members that the context does not show. */
  show: (value: Json) => Json;
}

/** Everything that routes, renderer and writers need to know about one post type. */
export interface PostTypeHandler extends Omit<PostTypeRules, "fields" | "write"> {
  collection: Collection;
  /** By name, in the order in which responses list them. */
  fields: Map<string, PostField>;
  shownFields: { [context in Context]: ShownField[] };
  /** Names of fields that are slow to render. */
  costlyFields: string[];
  write: PostWriter;
}

export interface PostTypes {
  all: PostTypeHandler[];
  /** Returns the handler of a type of the site. */
  get: (type: PostType) => PostTypeHandler;
}

// The schema of a type's items and the arguments that write them, built from the fields.

/** Returns the schema of a field as one post type has it. */
export const describeField = ({ schema, schemaOfType }: PostField, collection: Collection): Schema => ({
  ...schema,
  ...schemaOfType?.(collection),
});

export function itemSchema({ collection, fields }: PostTypeHandler): Schema {
  const properties = [...fields].map(([name, field]) => [name, describeField(field, collection)] as const);
  return { title: collection.type, type: "object", properties: Object.fromEntries(properties) };
}

/** Returns the arguments that create or update an item: every field that can be written. */
export function writeArguments(
  { collection, fields }: PostTypeHandler,
  overrides: Arguments = {},
): Arguments {
  const entries = [...fields].flatMap(([name, field]) => {
    if (field.schema.readonly === true) return [];
    const { context: _, required: __, ...schema } = describeField(field, collection);
    return [[name, { ...schema, ...field.argument, ...overrides[name] } as Argument] as const];
  });
  return Object.fromEntries(entries);
}

/**
 * Returns the id in the path of an update. A request that creates an item may give anything under
 * that name; the result is NaN then.
 */
const readId = ({ id }: JsonObject): number => (typeof id === "number" ? id : Number.NaN);

/**
 * Accepts what the schema accepts, and the value that the record already has: a trashed post may be
 * saved with the status `trash`.
 */
export const orUnchanged =
  (schema: Schema, stored: (id: number) => string | undefined): NonNullable<Argument["validate"]> =>
  (value, name, values) =>
    value === stored(readId(values)) ? undefined : validateValue(value, schema, name);

/**
 * Returns the part of a field's value that `context` shows. Drops members without a schema. As in
 * WordPress, an object without any member left becomes an empty list.
 */
export function renderFields(value: Json, schema: Schema, context: Context): Json {
  const { properties } = schema;
  if (properties === undefined || typeof value !== "object" || value === null || Array.isArray(value))
    return value;
  const members = Object.entries(value as JsonObject).filter(
    ([name]) => properties[name]?.context?.includes(context) === true,
  );
  return members.length === 0 ? [] : Object.fromEntries(members);
}

// The types of a write: the values, the context, and the function that applies them.

/** The arguments of a request. Absent ones are `undefined`. */
export type Values = { [name: string]: Json | undefined };

declare const isSanitised: unique symbol;

/**
 * Values whose HTML is sanitised, unless the caller has `unfiltered_html`. Only `sanitiseValues`
 * makes them, so that no other text can be stored.
 */
export type SanitisedValues = Values & { [isSanitised]: true };

export interface WriteContext {
  collection: Collection;
  /** The category of a new post for which the client names none. */
  defaultCategory: number | undefined;
  caller: Caller;
  site: Site;
  index: SiteIndex;
  /** Epoch ms. */
  now: number;
}

export interface PostDates {
  /** The date that `date` or `date_gmt` names, in both forms, epoch ms. */
  sent: { date: number; dateGmt: number } | null;
  /** True if one of them is `null`: the date becomes now, and floats in a draft. */
  isReset: boolean;
}

export interface PostChange {
  values: SanitisedValues;
  /** The stored post; `null` for a new one. */
  previous: Post | null;
  id: number;
  dates: PostDates;
}

/** Returns the record that results from a change. Pure. @throws RestError 400 or 403 */
type PostWriter = (change: PostChange, context: WriteContext) => Post;
