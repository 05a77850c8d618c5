/** The types of a write: the values, the context, and the function that applies them. */

import type { Json } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import type { Collection } from "../collections.js";
import type { SiteIndex } from "../query/site-index.js";
import type { Post } from "../records/records.js";
import type { Site } from "../site.js";

/** The arguments of a request. Absent ones are `undefined`. */
export type Values = { readonly [name: string]: Json | undefined };

declare const isSanitised: unique symbol;

/**
 * Values whose HTML is sanitised, unless the caller has `unfiltered_html`. Only `sanitiseValues`
 * makes them, so that no other text can be stored.
 */
export type SanitisedValues = Values & { readonly [isSanitised]: true };

export interface WriteContext {
  readonly collection: Collection;
  /** The category of a new post for which the client names none. */
  readonly defaultCategory: number | undefined;
  readonly caller: Caller;
  readonly site: Site;
  readonly index: SiteIndex;
  /** Epoch ms. */
  readonly now: number;
}

export interface PostDates {
  /** The date that `date` or `date_gmt` names, in both forms, epoch ms. */
  readonly given: { readonly date: number; readonly dateGmt: number } | null;
  /** True if one of them is `null`: the date becomes now, and floats in a draft. */
  readonly isReset: boolean;
}

export interface PostChange {
  readonly values: SanitisedValues;
  /** The stored post; `null` for a new one. */
  readonly previous: Post | null;
  readonly id: number;
  readonly dates: PostDates;
}

/** Returns the record that results from a change. Pure. @throws RestError 400 or 403 */
export type PostWriter = (change: PostChange, context: WriteContext) => Post;
