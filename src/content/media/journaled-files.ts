/** The host's files as the content service uses them: each one that no record names is noted in the storage, so that a crash at any step leaves none behind that nobody knows of. */

import type { Clock, Timer } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import type { FileStore, StagedFile } from "../files.js";
import type { OrphanFileJournal } from "../repository/orphan-file-journal.js";

/** Longer than any request takes to name in a record what it has published, or to remove what a record named. */
const ABANDONED_AFTER_MS = 3_600_000;
const SWEEP_EVERY_MS = 3_600_000;

export interface JournaledFiles extends FileStore {
  /** Removes what crashed processes left: files that have been noted for more than an hour. Resolves with how many there were. Never rejects. */
  readonly sweep: () => Promise<number>;
  /** Sweeps now and every hour. */
  readonly start: () => void;
  readonly stop: () => void;
}

export interface JournaledFilesOptions {
  readonly files: FileStore;
  readonly notes: OrphanFileJournal;
  readonly clock: Clock;
  readonly logger: Logger;
}

export function createJournaledFiles({ files, notes, clock, logger }: JournaledFilesOptions): JournaledFiles {
  let timer: Timer | undefined;

  const noted = (staged: StagedFile): StagedFile => ({
    bytes: staged.bytes,
    discard: () => staged.discard(),
    async publish(name) {
      // A file that the host put there was never noted, and must not be swept because a process died in the next two lines.
      if ((await files.stat(name)) !== undefined || !(await notes.add(name))) return false;
      if (await staged.publish(name)) return true;
      await notes.end(name);
      return false;
    },
  });

  /** Whoever takes the note over is alone with the file, and no record can come to name it any more. */
  async function remove(name: string): Promise<boolean> {
    if (!(await notes.takeOver(name))) return false;
    const existed = await files.remove(name);
    await notes.end(name);
    return existed;
  }

  async function sweep(): Promise<number> {
    const tryAgain = (error: unknown): void =>
      logger.warn(
        { error },
        "files that an interrupted request left could not be removed; it is tried again",
      );
    let removed = 0;
    try {
      for (const name of await notes.olderThan(ABANDONED_AFTER_MS)) {
        if (await remove(name).catch(tryAgain)) removed += 1;
      }
    } catch (error) {
      tryAgain(error);
    }
    if (removed > 0) logger.info({ removed }, "files that an interrupted request left were removed");
    return removed;
  }

  function arm(afterMs: number): void {
    const own = clock.setTimeout(() => {
      void sweep().then(() => {
        if (timer === own) arm(SWEEP_EVERY_MS);
      });
    }, afterMs);
    timer = own;
  }

  return {
    stat: (name) => files.stat(name),
    read: (name, range) => files.read(name, range),
    list: () => files.list(),
    stage: async (bytes) => noted(await files.stage(bytes)),
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
