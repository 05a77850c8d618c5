/**
 * Small records besides posts and terms: values of the site that clients change, such as its
 * settings, and what the site stores about a user.
 */

import type { JsonObject } from "../../schema/types.js";
import type { SiteIndex } from "../query/site-index.js";
import type { ContentStore, ContentWrite } from "../store.js";

/** `settings`: those that were written. `menu-locations`: the id of the menu at each location. */
export type SiteOption = "settings" | "menu-locations";

const toOptionKey = (name: SiteOption): string => `option/${name}`;

/** Returns an empty object if nothing was written yet. */
export function readSiteOption(index: SiteIndex, name: SiteOption): JsonObject {
  const columns = index.record(toOptionKey(name));
  return columns === undefined ? {} : (JSON.parse(columns) as JsonObject);
}

export const toSiteOptionWrite = (index: SiteIndex, name: SiteOption, value: JsonObject): ContentWrite => ({
  key: toOptionKey(name),
  expectedVersion: index.version(toOptionKey(name)),
  record: { columns: JSON.stringify(value), body: "{}", unique: [] },
});

// The values that the site stores about a user; everything else about users is the host's. They are
// read from the storage each time and are never resident, since only the user needs them.

export interface UserMeta {
  /** The preferences of the editor; `undefined` if the user has none. */
  readonly persisted_preferences?: JsonObject;
}

export interface StoredUserMeta {
  readonly meta: UserMeta;
  /** The version of its record; 0 if nothing is stored. */
  readonly version: number;
}

const toUserKey = (id: number): string => `user/${id}`;

export async function readUserMeta(store: Pick<ContentStore, "read">, id: number): Promise<StoredUserMeta> {
  const [record] = await store.read([toUserKey(id)]);
  return record === undefined
    ? { meta: {}, version: 0 }
    : { meta: JSON.parse(record.body) as UserMeta, version: record.version };
}

export const toUserMetaWrite = (id: number, { meta, version }: StoredUserMeta): ContentWrite => ({
  key: toUserKey(id),
  expectedVersion: version,
  record: { columns: null, body: JSON.stringify(meta), unique: [] },
});
