/**
 * Small values of the site that clients change, such as its settings. Every process holds them in
 * memory, and the change feed brings the changes of others.
 */

import type { JsonObject } from "../../schema/types.js";
import type { SiteIndex } from "../query/site-index.js";
import type { ContentWrite } from "../store.js";

/** `settings`: those that were written. `menu-locations`: the id of the menu at each location. */
export type SiteOption = "settings" | "menu-locations";

const toKey = (name: SiteOption): string => `option/${name}`;

/** Returns an empty object if nothing was written yet. */
export function readSiteOption(index: SiteIndex, name: SiteOption): JsonObject {
  const columns = index.record(toKey(name));
  return columns === undefined ? {} : (JSON.parse(columns) as JsonObject);
}

export const toSiteOptionWrite = (index: SiteIndex, name: SiteOption, value: JsonObject): ContentWrite => ({
  key: toKey(name),
  expectedVersion: index.version(toKey(name)),
  record: { columns: JSON.stringify(value), body: "{}", unique: [] },
});
