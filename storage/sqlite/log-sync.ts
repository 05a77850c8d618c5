/**
 * The log of changes next to the file. Waits until the disk has what was committed, on a thread of
 * its own: SQLite would wait for it inside of COMMIT, and the process would do nothing else
 * meanwhile, for milliseconds each time.
 *
 * Source: https://www.sqlite.org/wal.html. A commit is in the log, which is synced here as
 * `synchronous = FULL` does it; `NORMAL` keeps the order of log and file at checkpoints.
 */

import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import { PostbellError } from "../../src/core/errors.js";
import type { SqliteHandle } from "./handle.js";

/**
 * Moves what is in the log to the file. SQLite does so when the file is closed, but libsql keeps it
 * open until its statements are garbage.
 */
export function emptyLog(handle: SqliteHandle): void {
  try {
    handle.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } catch {
    // Another process uses the file, or the disk has failed. The log keeps everything.
  }
}

export interface LogSync {
  /** Resolves when everything that was committed before the call is on the disk. */
  wait(): Promise<void>;
  close(): Promise<void>;
}

const NO_SYNC: LogSync = { wait: async () => {}, close: async () => {} };

/** `path`: of the database file; `undefined` for one that is not on a disk, or syncs by itself. */
export function createLogSync(path: string | undefined): LogSync {
  if (path === undefined) return NO_SYNC;
  let log: FileHandle | undefined;
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  /** SQLite may have created the log just now: its name has to be on the disk too. */
  const openLog = async (): Promise<FileHandle> => {
    const opened = await open(`${path}-wal`, "r+");
    // Windows opens no folders, and needs none of this.
    const folder = await open(dirname(path), "r").catch(() => undefined);
    await folder?.sync().catch(() => {});
    await folder?.close();
    return opened;
  };
  const sync = async (): Promise<void> => {
    try {
      log ??= await openLog();
      await log.datasync();
    } catch (cause) {
      throw new PostbellError(
        "storage_unavailable",
        "The disk did not take the changes to the SQLite file; they may or may not survive a power cut. Check the disk.",
        { cause },
      );
    }
  };
  const start = (): Promise<void> => {
    const started = sync().finally(() => {
      if (running === started) running = undefined;
    });
    running = started;
    return started;
  };

  return {
    wait() {
      if (running === undefined) return start();
      // The one that runs may have begun before the commit. All who wait share the one after it.
      next ??= running
        .catch(() => {})
        .then(() => {
          next = undefined;
          return start();
        });
      return next;
    },
    async close() {
      await (next ?? running)?.catch(() => {});
      await log?.close();
      log = undefined;
    },
  };
}
