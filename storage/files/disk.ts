/**
 * Files in a folder, which several processes may share. A file appears there under its name only
 * when all of it is on the disk.
 */

import { randomUUID } from "node:crypto";
import { type FileHandle, link, mkdir, open, opendir, rm, stat, unlink } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import {
  type ByteRange,
  type FileEntry,
  type FileStore,
  isFileName,
  type StagedFile,
} from "../../src/content/files.js";
import { systemClock } from "../../src/core/clock.js";
import { PostbellError } from "../../src/core/errors.js";
import { readOptions, value } from "../../src/core/options.js";
import type { ReadableBody } from "../../src/http/types.js";
import { fileNotFound, invalidName } from "./errors.js";

/** The options of {@link diskFiles}. */
export interface DiskFilesOptions {
  /**
   * Made when the first file is stored. Its file system must know hard links; nothing else should
   * write into it.
   */
  directory: string;
}

/** Below the directory; no file can have such a name. */
const STAGING = ".staging";
const DAY_MS = 86_400_000;
const CHUNK_BYTES = 262_144;

/** A path with a lone surrogate would name the same folder as others. */
const isPath = (path: unknown): boolean =>
  typeof path === "string" && path !== "" && !/[\0\p{Surrogate}]/u.test(path);

const diskFilesOptions = { directory: value("the path of a folder", isPath, "") };

const hasCode = (error: unknown, ...codes: readonly string[]): boolean =>
  codes.includes((error as NodeJS.ErrnoException).code ?? "");

const isMissing = (error: unknown): boolean => hasCode(error, "ENOENT", "ENOTDIR");

/**
 * Files below `directory`, under the names the service gives them. Written to a file aside,
 * flushed, and linked to their name, which fails where the name is taken; then the folder is
 * flushed. What a process that died has left aside is removed a day later.
 *
 * Errors: `invalid_option` for an unknown or unusable option. What the file system refuses (no
 * room, no permission) is thrown as Node reports it.
 */
export function diskFiles(options: DiskFilesOptions): FileStore {
  const { directory } = readOptions("diskFiles", diskFilesOptions, options);
  if (directory === "") {
    throw new PostbellError("invalid_option", "diskFiles: directory is required.", { field: "directory" });
  }
  const root = resolve(directory);
  const staging = join(root, STAGING);
  let sweptAt = Number.NEGATIVE_INFINITY;

  async function sweep(): Promise<void> {
    if (systemClock.monotonic() - sweptAt < DAY_MS) return;
    sweptAt = systemClock.monotonic();
    for await (const { name } of await opendir(staging)) {
      const path = join(staging, name);
      // Somebody else may sweep, or publish it, at the same time.
      const found = await stat(path).catch(() => undefined);
      if (found !== undefined && systemClock.now() - found.mtimeMs > DAY_MS) await rm(path, { force: true });
    }
  }

  async function publish(staged: string, name: string): Promise<boolean> {
    if (!isFileName(name)) throw invalidName();
    const path = join(root, name);
    await makeFolder(dirname(path));
    try {
      await link(staged, path);
    } catch (error) {
      if (hasCode(error, "EEXIST")) return false;
      throw error;
    }
    await flushFolder(dirname(path));
    await rm(staged, { force: true });
    return true;
  }

  async function* read(name: string, range?: ByteRange) {
    if (range !== undefined && range.start >= range.end) return;
    const handle = isFileName(name) ? await openToRead(join(root, name)) : undefined;
    if (handle === undefined) throw fileNotFound();
    try {
      yield* handle.createReadStream({
        ...(range && { start: range.start, end: range.end - 1 }),
        autoClose: false,
        highWaterMark: CHUNK_BYTES,
      });
    } finally {
      await handle.close();
    }
  }

  async function statFile(name: string): Promise<FileEntry | undefined> {
    if (!isFileName(name)) return undefined;
    try {
      const found = await stat(join(root, name));
      return found.isFile() ? { name, bytes: found.size, storedAt: Math.floor(found.mtimeMs) } : undefined;
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  async function* listBelow(folder: string): AsyncGenerator<FileEntry> {
    const entries = await opendir(join(root, folder)).catch((error: unknown) => {
      if (isMissing(error)) return [];
      throw error;
    });
    for await (const entry of entries) {
      const name = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (!isFileName(name)) continue;
      if (entry.isDirectory()) yield* listBelow(name);
      else {
        const found = await statFile(name);
        if (found !== undefined) yield found;
      }
    }
  }

  return Object.freeze<FileStore>({
    async stage(bytes) {
      await makeFolder(staging);
      await sweep();
      const path = join(staging, randomUUID());
      const size = await writeWhole(path, bytes);
      let isPublished = false;
      return Object.freeze<StagedFile>({
        bytes: size,
        async publish(name) {
          isPublished = await publish(path, name);
          return isPublished;
        },
        async discard() {
          if (!isPublished) await rm(path, { force: true });
        },
      });
    },
    stat: statFile,
    read,
    async remove(name) {
      if ((await statFile(name)) === undefined) return false;
      try {
        await unlink(join(root, name));
        return true;
      } catch (error) {
        if (isMissing(error)) return false;
        throw error;
      }
    },
    list: () => listBelow(""),
  });
}

/**
 * Resolves with the size once all of it is on the disk; nothing is left where the source or the
 * disk fails.
 */
async function writeWhole(path: string, bytes: ReadableBody): Promise<number> {
  const handle = await open(path, "wx");
  try {
    for await (const chunk of bytes) await handle.writeFile(chunk);
    await handle.sync();
    const { size } = await handle.stat();
    await handle.close();
    return size;
  } catch (error) {
    await handle.close().catch(() => {});
    await rm(path, { force: true });
    throw error;
  }
}

/** With the folders above it. A folder that was made is safe once the one above it is flushed. */
async function makeFolder(path: string): Promise<void> {
  const firstMade = await mkdir(path, { recursive: true });
  if (firstMade === undefined) return;
  for (let folder = path; folder.length >= firstMade.length; folder = dirname(folder)) {
    await flushFolder(dirname(folder));
  }
}

async function flushFolder(path: string): Promise<void> {
  try {
    const handle = await open(path, "r");
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    // Windows and some network file systems cannot flush a folder.
    if (!hasCode(error, "EISDIR", "EPERM", "EACCES", "EINVAL", "ENOTSUP")) throw error;
  }
}

async function openToRead(path: string): Promise<FileHandle | undefined> {
  try {
    const handle = await open(path, "r");
    if ((await handle.stat()).isFile()) return handle;
    await handle.close();
    return undefined;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
