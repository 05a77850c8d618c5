/**
 * Small records besides posts and terms: values of the site that clients change, such as its
 * settings, and what the site stores about a user.
 */

import { PostbellError } from "../../core/errors.js";
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
  persisted_preferences?: JsonObject;
}

export interface StoredUserMeta {
  meta: UserMeta;
  /** The version of its record; 0 if nothing is stored. */
  version: number;
}

const toUserKey = (id: number): string => `user/${id}`;

export async function readUserMeta(store: ContentStore, id: number): Promise<StoredUserMeta> {
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

// Application passwords: one record for each user who has some. Never resident either; every
// request that uses one reads it.

/** A password of a user, without the password itself. */
export interface ApplicationPassword {
  readonly uuid: string;
  /** A UUID that the program chose; empty if it has none. */
  readonly appId: string;
  readonly name: string;
  /** Epoch ms. */
  readonly createdAt: number;
  /** Epoch ms, exact to a day; `null` before the first use. */
  readonly lastUsedAt: number | null;
  readonly lastIp: string | null;
}

/** The form in which a password is stored. */
export interface StoredPassword extends ApplicationPassword {
  /** Its first characters, so that a request costs one hash, however many passwords a user has. */
  selector: string;
  hash: string;
}

export interface PasswordRecords {
  read: (userId: number) => Promise<StoredPassword[]>;
  /**
   * Stores the list that `decide` returns for the newest one; the same list stores nothing. If
   * another writer is faster, `decide` runs again.
   *
   * @throws what `decide` throws; `storage_unavailable` after {@link MAX_ATTEMPTS} conflicts
   */
  change: (userId: number, decide: (passwords: StoredPassword[]) => StoredPassword[]) => Promise<void>;
  /** Changes one password. Resolves with `undefined` if it does not exist. */
  edit: (
    userId: number,
    uuid: string,
    edit: (password: StoredPassword) => StoredPassword,
  ) => Promise<StoredPassword | undefined>;
}

const MAX_ATTEMPTS = 20;

const toPasswordsKey = (userId: number): string => `application-passwords/${userId}`;

export function createPasswordRecords(store: ContentStore): PasswordRecords {
  async function readRecord(key: string) {
    const [record] = await store.read([key]);
    const passwords = record === undefined ? [] : (JSON.parse(record.body) as StoredPassword[]);
    return { passwords, expectedVersion: record?.version ?? 0 };
  }

  const change: PasswordRecords["change"] = async (userId, decide) => {
    const key = toPasswordsKey(userId);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const { passwords, expectedVersion } = await readRecord(key);
      const changed = decide(passwords);
      if (changed === passwords) return;
      const body = JSON.stringify(changed);
      const record = changed.length === 0 ? null : { columns: null, body, unique: [] };
      const { ok } = await store.commit([{ key, expectedVersion, record }]);
      if (ok) return;
    }
    throw new PostbellError(
      "storage_unavailable",
      `Other writers changed the same passwords ${MAX_ATTEMPTS} times in a row. Try again later.`,
    );
  };

  return {
    read: async (userId) => (await readRecord(toPasswordsKey(userId))).passwords,
    change,
    async edit(userId, uuid, edit) {
      let edited: StoredPassword | undefined;
      await change(userId, (passwords) => {
        const found = passwords.find((one) => one.uuid === uuid);
        edited = found && edit(found);
        return edited === found ? passwords : passwords.map((one) => (one === found && edited) || one);
      });
      return edited;
    },
  };
}
