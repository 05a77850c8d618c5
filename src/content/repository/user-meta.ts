/**
 * The values that the site stores about a user; everything else about users is the host's. They are
 * read from the storage each time and are never resident, since only the user needs them.
 */

import type { JsonObject } from "../../schema/types.js";
import type { ContentStore, ContentWrite } from "../store.js";

export interface UserMeta {
  /** The preferences of the editor; `undefined` if the user has none. */
  readonly persisted_preferences?: JsonObject;
}

export interface StoredUserMeta {
  readonly meta: UserMeta;
  /** The version of its record; 0 if nothing is stored. */
  readonly version: number;
}

const toKey = (id: number): string => `user/${id}`;

export async function readUserMeta(store: Pick<ContentStore, "read">, id: number): Promise<StoredUserMeta> {
  const [record] = await store.read([toKey(id)]);
  return record === undefined
    ? { meta: {}, version: 0 }
    : { meta: JSON.parse(record.body) as UserMeta, version: record.version };
}

export const toUserMetaWrite = (id: number, { meta, version }: StoredUserMeta): ContentWrite => ({
  key: toKey(id),
  expectedVersion: version,
  record: { columns: null, body: JSON.stringify(meta), unique: [] },
});
