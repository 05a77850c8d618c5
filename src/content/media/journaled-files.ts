/**
 * The host's files with the orphan journal: the storage has an entry for every file that no record
 * names, so that a crash at any step leaves no file behind unnoticed. Deletes such files an hour
 * later.
 */

import type { Clock, Timer } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import type { FileStore, StagedFile } from "../files.js";
import type { OrphanFileJournal } from "../repository/orphan-file-journal.js";

/**
 * Longer than any request takes to name a published file in a record, or to remove the files of a
 * removed record.
 */
const ABANDONED_AFTER_MS = 3_600_000;
const SWEEP_EVERY_MS = 3_600_000;

export interface JournaledFiles extends FileStore {
  /**
   * Removes files of crashed processes: those that have been in the journal for more than an hour.
   * Resolves with their number. Never rejects.
   */
  sweep: () => Promise<number>;
  /** Sweeps now and every hour. */
  start: () => void;
  stop: () => void;
}

export function createJournaledFiles({
  files,
  journal,
  clock,
  logger,
}: {
  files: FileStore;
  journal: OrphanFileJournal;
  clock: Clock;
  logger: Logger;
}): JournaledFiles {
  let timer: Timer | undefined;

  const journaled = (staged: StagedFile): StagedFile => ({
    bytes: staged.bytes,
    discard: () => staged.discard(),
    async publish(name) {
      // A file of the host has no entry. It must not get one here, because a crash before the
      // entry is removed would have it swept.
      if ((await files.stat(name)) !== undefined || !(await journal.add(name))) return false;
      if (await staged.publish(name)) return true;
      await journal.remove(name);
      return false;
    },
  });

  /** Whoever takes over the entry owns the file: no record can come to name it. */
  async function remove(name: string): Promise<boolean> {
    if (!(await journal.takeOver(name))) return false;
    const existed = await files.remove(name);
    await journal.remove(name);
    return existed;
  }

  async function sweep(): Promise<number> {
    const warn = (error: unknown): void =>
      logger.warn({ error }, "files of an interrupted request could not be removed; this is retried");
    let removed = 0;
    try {
      for (const name of await journal.listOlderThan(ABANDONED_AFTER_MS)) {
        if (await remove(name).catch(warn)) removed += 1;
      }
    } catch (error) {
      warn(error);
    }
    if (removed > 0) logger.info({ removed }, "files of an interrupted request were removed");
    return removed;
  }

  function arm(afterMs: number): void {
    const current = clock.setTimeout(() => {
      void sweep().then(() => {
        if (timer === current) arm(SWEEP_EVERY_MS);
      });
    }, afterMs);
    timer = current;
  }

  return {
    stat: (name) => files.stat(name),
    read: (name, range) => files.read(name, range),
    list: () => files.list(),
    stage: async (bytes) => journaled(await files.stage(bytes)),
    remove,
    sweep,
    start() {
      if (timer === undefined) arm(0);
    },
    stop() {
      clock.clearTimeout(timer);
      timer = undefined;
    },
  };
}
