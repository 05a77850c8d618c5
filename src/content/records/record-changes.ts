/** Describes a change of a record to the host. Pure; knows no storage. */

import { type ContentModel, getCollection, getTaxonomy } from "./content-model.js";
import type { PostColumns, Term } from "./records.js";

/** A change of one record, as the host is told about it. */
export interface ContentChanged {
  readonly action: "created" | "updated" | "trashed" | "deleted";
  /** `posts`, `pages`, `categories` … */
  readonly collection: string;
  readonly id: number;
  /** The status before and after the change; empty if there is no such state, and for terms. */
  readonly status: { readonly before: string; readonly after: string };
}

type Written<T> = { before: T | undefined; after: T | undefined };

function toAction(before: string | undefined, after: string | undefined): ContentChanged["action"] {
  if (before === undefined) return "created";
  if (after === undefined) return "deleted";
  return after === "trash" && before !== "trash" ? "trashed" : "updated";
}

/** Describes the change of a post of any type. One of the two states is required. */
export function describePostChange(
  { before, after }: Written<PostColumns>,
  model: ContentModel,
): ContentChanged {
  const { id, type } = (after ?? before) as PostColumns;
  return {
    action: toAction(before?.status, after?.status),
    collection: getCollection(model, type).base,
    id,
    status: { before: before?.status ?? "", after: after?.status ?? "" },
  };
}

/** Describes the change of a term. One of the two states is required. */
export function describeTermChange({ before, after }: Written<Term>, model: ContentModel): ContentChanged {
  const { id, taxonomy } = (after ?? before) as Term;
  return {
    action: toAction(before && "", after && ""),
    collection: getTaxonomy(model, taxonomy).base,
    id,
    status: { before: "", after: "" },
  };
}
