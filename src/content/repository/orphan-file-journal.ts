/**
 * The journal of files that no record names: those about to be stored and those about to be
 * removed. A change of a record adds and removes entries in the same commit.
 * `media/journaled-files.ts` deletes the files of old entries.
 */

import { PostbellError } from "../../core/errors.js";
import type { SiteIndex } from "../query/site-index.js";
import type { MediaFile } from "../records/records.js";
import { FILE_KEY_PREFIX, listFileKeys, listFileNames, toFileKey } from "../records/unique-names.js";
import type { ContentStore, ContentWrite } from "../store.js";

export interface OrphanFileJournal {
  /**
   * Resolves with true if the name was free and now has an entry: no record and no other entry had
   * it.
   */
  add: (name: string) => Promise<boolean>;
  /**
   * Marks the entry of a file as going. Resolves with false if there is no entry: a record names
   * the file, or another process removes it. After true, no new record can name the file.
   */
  takeOver: (name: string) => Promise<boolean>;
  remove: (name: string) => Promise<void>;
  /** Resolves with the names whose entries were added or taken over more than `ms` ago. */
  listOlderThan: (ms: number) => Promise<string[]>;
}

export function createOrphanFileJournal({
  store,
  index,
  current,
}: {
  store: ContentStore;
  index: SiteIndex;
  /** Waits until `index` reflects every earlier commit. */
  current: () => void | Promise<void>;
}): OrphanFileJournal {
  const readVersion = async (key: string): Promise<number> => (await store.read([key]))[0]?.version ?? 0;

  return {
    add: async (name) => (await store.commit([writeEntry(name, 0, { at: store.now(), isGoing: false })])).ok,
    async takeOver(name) {
      const version = await readVersion(toFileKey(name));
      if (version === 0) return false;
      return (await store.commit([writeEntry(name, version, { at: store.now(), isGoing: true })])).ok;
    },
    async remove(name) {
      const key = toFileKey(name);
      const version = await readVersion(key);
      if (version > 0) await store.commit([{ key, expectedVersion: version, record: null }]);
    },
    async listOlderThan(ms) {
      await current();
      const before = store.now() - ms;
      return index.records(FILE_KEY_PREFIX).flatMap(({ key, columns }) => {
        return (JSON.parse(columns) as Entry).at < before ? [key.slice(FILE_KEY_PREFIX.length)] : [];
      });
    },
  };
}

interface Entry {
  /** Epoch ms. */
  at: number;
  /** True if the file is about to be removed, false if it is about to be stored. */
  isGoing: boolean;
}

const writeEntry = (name: string, expectedVersion: number, entry: Entry): ContentWrite => ({
  key: toFileKey(name),
  expectedVersion,
  record: { columns: JSON.stringify(entry), body: "{}", unique: [toFileKey(name)] },
});

/**
 * Returns the writes that remove the entries of `media`, for the commit that stores its record.
 * `isNew`: the record is new, so every file of it must have an entry.
 *
 * @throws `storage_unavailable` if a file is being removed, or was removed because its entry had
 * become too old.
 */
export const markAsNamed = (
  media: MediaFile | null,
  { index, isNew }: { index: SiteIndex; isNew: boolean },
): ContentWrite[] =>
  listFileKeys(media).flatMap((key) => {
    const columns = index.record(key);
    if (columns === undefined && !isNew) return [];
    if (columns === undefined || (JSON.parse(columns) as Entry).isGoing) {
      throw new PostbellError("storage_unavailable", "A file was abandoned before its record was stored.");
    }
    return [{ key, expectedVersion: index.version(key), record: null }];
  });

/** Returns the entries for the files of `media`, for the commit that removes its record. */
export const markAsOrphaned = (media: MediaFile | null, now: number): ContentWrite[] =>
  media === null ? [] : listFileNames(media).map((name) => writeEntry(name, 0, { at: now, isGoing: true }));
