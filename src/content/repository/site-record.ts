/** The record of the site itself, which the first process on an empty storage creates. */

import type { SiteIndex } from "../query/site-index.js";
import { encodeTerm } from "../records/record-codec.js";
import type { Term } from "../records/records.js";
import type { ContentStore } from "../store.js";

const SITE_KEY = "site/1";

/** Every site has this category, for posts without any other. */
const DEFAULT_CATEGORY = { taxonomy: "category", name: "Uncategorized", slug: "uncategorized" } as const;

export const hasSiteRecord = (index: SiteIndex): boolean => index.record(SITE_KEY) !== undefined;

/** Returns the id of the default category; `undefined` before the site record exists. */
export function readDefaultCategory(index: SiteIndex): number | undefined {
  const site = index.record(SITE_KEY);
  return site === undefined ? undefined : (JSON.parse(site) as { defaultCategory: number }).defaultCategory;
}

/** Stores the site record and the default category, unless another process did so before. */
export async function createSiteRecord(store: ContentStore): Promise<void> {
  const id = await store.allocate("term", 1);
  const term: Term = { ...DEFAULT_CATEGORY, id, version: 0, description: "", parent: 0, meta: {} };
  await store.commit([
    { key: `term/${id}`, expectedVersion: 0, record: encodeTerm(term) },
    {
      key: SITE_KEY,
      expectedVersion: 0,
      record: { columns: JSON.stringify({ defaultCategory: id }), body: "{}", unique: [] },
    },
  ]);
}
