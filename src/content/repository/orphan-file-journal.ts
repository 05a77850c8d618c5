/** Notes of the files that no record names: those that are about to be stored, and those that are about to go. A change of a record adds and ends notes in the same commit. */

import { PostbellError } from "../../core/errors.js";
import type { SiteIndex } from "../query/site-index.js";
import { listFileNames } from "../records/media-file-names.js";
import type { MediaFile } from "../records/records.js";
import type { ContentStore, ContentWrite } from "../store.js";

const NOTE = "file/";
const noteKey = (name: string): string => `${NOTE}${name}`;

/** A file belongs to one record or one note at a time: the storage sees to it, since both hold this name. */
export const fileNames = (media: MediaFile | null): readonly string[] =>
  media === null ? [] : [...new Set(listFileNames(media))].map(noteKey);

export interface OrphanFileJournal {
  /** Whether the name was free, and is noted now: neither a record nor another note has it. */
  readonly add: (name: string) => Promise<boolean>;
  /** False where there is no note: a record names the file, or somebody else removes it. After true no new record is stored that would name the file. */
  readonly takeOver: (name: string) => Promise<boolean>;
  readonly end: (name: string) => Promise<void>;
  /** Names that were noted, or taken over, more than so many ms ago. */
  readonly olderThan: (ms: number) => Promise<readonly string[]>;
}

export function createOrphanFileJournal({
  store,
  index,
  current,
}: {
  readonly store: ContentStore;
  readonly index: SiteIndex;
  /** Brings `index` up to date. */
  readonly current: () => void | Promise<void>;
}): OrphanFileJournal {
  const versionOf = async (key: string): Promise<number> => (await store.read([key]))[0]?.version ?? 0;

  return {
    add: async (name) => (await store.commit([noteWrite(name, 0, { at: store.now(), isGoing: false })])).ok,
    async takeOver(name) {
      const version = await versionOf(noteKey(name));
      if (version === 0) return false;
      return (await store.commit([noteWrite(name, version, { at: store.now(), isGoing: true })])).ok;
    },
    async end(name) {
      const key = noteKey(name);
      const version = await versionOf(key);
      if (version > 0) await store.commit([{ key, expectedVersion: version, record: null }]);
    },
    async olderThan(ms) {
      await current();
      const before = store.now() - ms;
      return index.records(NOTE).flatMap(({ key, columns }) => {
        return (JSON.parse(columns) as Note).at < before ? [key.slice(NOTE.length)] : [];
      });
    },
  };
}

interface Note {
  /** Epoch ms. */
  readonly at: number;
  /** Whether the file is being removed, rather than stored. */
  readonly isGoing: boolean;
}

const noteWrite = (name: string, expectedVersion: number, note: Note): ContentWrite => ({
  key: noteKey(name),
  expectedVersion,
  record: { columns: JSON.stringify(note), body: "{}", unique: [noteKey(name)] },
});

/**
 * What a commit adds that stores a record with `media`: its files are noted no longer. `isNew`: the record, which has no file yet that is not noted.
 *
 * Errors: `storage_unavailable` where one of them is being removed, or was, since it had been noted for so long.
 */
export const markAsNamed = (
  media: MediaFile | null,
  { index, isNew }: { readonly index: SiteIndex; readonly isNew: boolean },
): readonly ContentWrite[] =>
  fileNames(media).flatMap((key) => {
    const columns = index.record(key);
    if (columns === undefined && !isNew) return [];
    if (columns === undefined || (JSON.parse(columns) as Note).isGoing) {
      throw new PostbellError("storage_unavailable", "A file was given up before its record was stored.");
    }
    return [{ key, expectedVersion: index.version(key), record: null }];
  });

/** What a commit adds that removes a record with `media`: its files are about to go. */
export const markAsOrphaned = (media: MediaFile | null, now: number): readonly ContentWrite[] =>
  media === null ? [] : listFileNames(media).map((name) => noteWrite(name, 0, { at: now, isGoing: true }));
