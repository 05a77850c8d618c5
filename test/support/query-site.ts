/**
 * Posts, terms and queries with everything a test does not care about filled in, and an index that
 * holds them.
 */

import { builtInModel } from "../../src/content/declared-types.js";
import { createSiteIndex, type SiteIndex, type StoredColumns } from "../../src/content/query/site-index.js";
import type { PostQuery } from "../../src/content/query/types.js";
import type { Term } from "../../src/content/records/records.js";
import type { ContentChange } from "../../src/content/store.js";

export const DAY_MS = 86_400_000;
export const DEFAULT_CATEGORY = 1;

export const post = (fields: Partial<StoredColumns> & { readonly id: number }): StoredColumns => ({
  version: 1,
  type: "post",
  status: "publish",
  author: 1,
  date: fields.id * DAY_MS,
  dateGmt: fields.id * DAY_MS,
  modified: 0,
  modifiedGmt: 0,
  slug: `slug-${fields.id}`,
  title: `Title ${fields.id}`,
  parent: 0,
  menuOrder: 0,
  hasPassword: false,
  sticky: false,
  format: "standard",
  terms: {},
  mimeType: "",
  target: "",
  ...fields,
});

export const term = (fields: Partial<Term> & { readonly id: number }): Term => ({
  version: 1,
  taxonomy: "category",
  name: `Term ${fields.id}`,
  slug: `term-${fields.id}`,
  description: "",
  parent: 0,
  meta: {},
  ...fields,
});

export const ofPost = ({ version, ...columns }: StoredColumns): ContentChange => ({
  key: `post/${columns.id}`,
  version,
  columns: JSON.stringify(columns),
});

export const ofTerm = ({ version, ...columns }: Term): ContentChange => ({
  key: `term/${columns.id}`,
  version,
  columns: JSON.stringify(columns),
});

export const removal = (key: string): ContentChange => ({ key, version: 0, columns: null });

/** An index loaded with `changes`, in batches of three. */
export async function indexOf(changes: readonly ContentChange[]): Promise<SiteIndex> {
  const index = createSiteIndex({ defaultCategory: () => DEFAULT_CATEGORY, model: builtInModel });
  async function* batches() {
    for (let start = 0; start < changes.length; start += 3) yield changes.slice(start, start + 3);
  }
  await index.load(batches());
  return index;
}

export const query = (fields: Partial<PostQuery> = {}): PostQuery => ({
  type: "post",
  visibility: { publish: "all" },
  orderBy: "date",
  order: "desc",
  offset: 0,
  limit: 10,
  ...fields,
});
