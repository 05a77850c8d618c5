/** What a change of records is to the host. Pure; knows no storage. */

import { getCollection } from "../collections.js";
import { getTaxonomy } from "../terms/taxonomies.js";
import type { PostColumns, Term } from "./records.js";

/** What happened to a record. */
export interface ContentChanged {
  readonly action: "created" | "updated" | "trashed" | "deleted";
  /** `posts`, `pages`, `categories` … */
  readonly collection: string;
  readonly id: number;
  /** Before and after; empty where there is none, as of terms. */
  readonly status: { readonly before: string; readonly after: string };
}

type Written<T> = { readonly before: T | undefined; readonly after: T | undefined };

function actionOf(before: string | undefined, after: string | undefined): ContentChanged["action"] {
  if (before === undefined) return "created";
  if (after === undefined) return "deleted";
  return after === "trash" && before !== "trash" ? "trashed" : "updated";
}

export function postChanged({ before, after }: Written<PostColumns>): ContentChanged {
  const { id, type } = (after ?? before) as PostColumns;
  return {
    action: actionOf(before?.status, after?.status),
    collection: getCollection(type).base,
    id,
    status: { before: before?.status ?? "", after: after?.status ?? "" },
  };
}

export function termChanged({ before, after }: Written<Term>): ContentChanged {
  const { id, taxonomy } = (after ?? before) as Term;
  return {
    action: actionOf(before && "", after && ""),
    collection: getTaxonomy(taxonomy).base,
    id,
    status: { before: "", after: "" },
  };
}
