/**
 * Notices that a file is no longer the one that was opened, or that two builds of SQLite use it.
 * Data that is stored then would be lost: nobody finds a deleted file again, and two builds in
 * one process do not see each other's locks.
 *
 * It cannot notice a file whose content was overwritten in place: its name and its inode stay.
 */

import { type BigIntStats, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { fileReplaced, otherBuild } from "./errors.js";
import type { SqliteHandle } from "./handle.js";
import { emptyLog } from "./log-sync.js";

/** The file, its log of changes, and the index of the log. */
const SUFFIXES = ["", "-wal", "-shm"] as const;

/** The list of the builds costs half a millisecond or more, so it is read this often. */
const INSPECT_EVERY_MS = 1_000;

/** A log that has not changed for so long is moved to the file. */
const IDLE_MS = 10_000;

interface WatchedFile {
  suffix: (typeof SUFFIXES)[number];
  dev: bigint;
  ino: bigint;
}

/** Returns nothing if there is no such file, and `unknown` if the system does not tell. */
function findStats(path: string): BigIntStats | "unknown" | undefined {
  try {
    return statSync(path, { bigint: true });
  } catch (error) {
    const isGone = ["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");
    return isGone ? undefined : "unknown";
  }
}

const isSame = (one: Omit<WatchedFile, "suffix">, other: Omit<WatchedFile, "suffix">): boolean =>
  one.dev === other.dev && one.ino === other.ino;

/** False if this process has no such file open. True where the system does not tell. */
function isOpen(file: BigIntStats): boolean {
  let descriptors: string[];
  try {
    descriptors = readdirSync("/proc/self/fd");
  } catch {
    return true;
  }
  return descriptors.some((descriptor) => {
    const found = statSync(`/proc/self/fd/${descriptor}`, { bigint: true, throwIfNoEntry: false });
    return found !== undefined && isSame(found, file);
  });
}

/**
 * Counts the builds of SQLite that use an index in this process: each maps its beginning into
 * memory once, for all of its connections. Returns 0 where the system does not tell.
 */
function countBuilds(index: string): number {
  // The list has the bytes of the path.
  const name = ` ${Buffer.from(index).toString("latin1").replaceAll("\n", "\\012")}`;
  let maps: string;
  try {
    maps = readFileSync("/proc/self/maps", "latin1");
  } catch {
    return 0;
  }
  // Address, permissions, offset …, path.
  return maps.split("\n").filter((line) => line.endsWith(name) && line.split(" ", 3)[2] === "00000000")
    .length;
}

export class FileWatch {
  #handle: SqliteHandle;
  #path: string;
  #files: readonly WatchedFile[];
  /** The path of the index without links; `undefined` if there is no index. */
  #index: string | undefined;
  #inspectAt = Number.NEGATIVE_INFINITY;
  /** When the log was last seen to change, and its time of change then. */
  #changedAt = Number.NEGATIVE_INFINITY;
  #changed = 0n;

  /**
   * `path`: of the file that `handle` has read. Errors: `storage_unavailable` if it was deleted or
   * replaced since it was opened.
   */
  constructor(handle: SqliteHandle, path: string) {
    this.#handle = handle;
    this.#path = path;
    const file = findStats(path);
    if (file === undefined || (file !== "unknown" && !isOpen(file))) throw fileReplaced("", "none");
    this.#files = SUFFIXES.flatMap((suffix) => {
      const found = findStats(path + suffix);
      return found === undefined || found === "unknown" ? [] : [{ suffix, dev: found.dev, ino: found.ino }];
    });
    const hasIndex = this.#files.some(({ suffix }) => suffix === "-shm");
    this.#index = hasIndex ? realpathSync(`${path}-shm`) : undefined;
  }

  /**
   * Looks at everything, at most once a second, and empties a log that is idle. No transaction may
   * be open. Errors: `storage_unavailable`; the next call then looks again.
   */
  inspect(now: number): void {
    if (now < this.#inspectAt) return;
    this.requireSame("none");
    this.requireOneBuild();
    this.#emptyIdleLog(now);
    this.#inspectAt = now + INSPECT_EVERY_MS;
  }

  /**
   * Errors: `storage_unavailable` if the file, its log or its index was deleted, moved or replaced.
   * `effect`: of the call that asks.
   */
  requireSame(effect: "none" | "unknown"): void {
    for (const file of this.#files) {
      const found = findStats(this.#path + file.suffix);
      if (found === "unknown") continue;
      const isEmptied = file.suffix === "" && found?.size === 0n;
      if (found === undefined || isEmptied || !isSame(found, file)) throw fileReplaced(file.suffix, effect);
    }
  }

  /** Errors: `storage_unavailable` if another build of SQLite in this process uses the file. */
  requireOneBuild(): void {
    if (this.hasOtherBuild()) throw otherBuild();
  }

  hasOtherBuild(): boolean {
    return this.#index !== undefined && countBuilds(this.#index) > 1;
  }

  /** False if a path is not that of the file. */
  isFile(path: string | undefined): boolean {
    const file = this.#files.find(({ suffix }) => suffix === "");
    const found = path === undefined ? undefined : findStats(path);
    if (file === undefined || found === "unknown") return true;
    return found !== undefined && isSame(found, file);
  }

  /** The bytes of the log; 0 without one. */
  logBytes(): number {
    const log = findStats(`${this.#path}-wal`);
    return log === undefined || log === "unknown" ? 0 : Number(log.size);
  }

  #emptyIdleLog(now: number): void {
    const log = findStats(`${this.#path}-wal`);
    if (log === undefined || log === "unknown" || log.size === 0n) return;
    if (log.mtimeNs !== this.#changed) {
      this.#changed = log.mtimeNs;
      this.#changedAt = now;
    } else if (now - this.#changedAt >= IDLE_MS) {
      // If a reader keeps the log, the next try is as long away.
      this.#changedAt = now;
      emptyLog(this.#handle);
    }
  }
}
