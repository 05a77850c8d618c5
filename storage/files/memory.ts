/** Files on the heap, for tests and small hosts. What it holds ends with the process. */

import { type ByteRange, type FileEntry, type FileStore, isFileName } from "../../src/content/files.js";
import { createByteBuffer } from "../../src/core/bytes.js";
import { systemClock } from "../../src/core/clock.js";
import { PostbellError } from "../../src/core/errors.js";
import { readOptions, wholeNumber } from "../../src/core/options.js";
import { fileNotFound, invalidName } from "./errors.js";

/** The options of {@link memoryFiles}. */
export interface MemoryFilesOptions {
  limits?:
    | {
        /** Of all files, staged ones included. Default 256 MiB; beyond it `storage_full`. */
        bytes?: number | undefined;
      }
    | undefined;
}

const CHUNK_BYTES = 65_536;

const memoryFilesOptions = { limits: { bytes: wholeNumber("bytes", 268_435_456, { min: 1 }) } };

/**
 * Files in memory, under a separate bound.
 *
 * Errors: `invalid_option` for an unknown or unusable option.
 */
export function memoryFiles(options: MemoryFilesOptions = {}): FileStore {
  const { limits } = readOptions("memoryFiles", memoryFilesOptions, options);
  const files = new Map<string, { readonly entry: FileEntry; readonly content: Uint8Array }>();
  let used = 0;

  async function* read(name: string, range?: ByteRange) {
    const file = files.get(name);
    if (file === undefined) throw fileNotFound();
    const { start, end } = range ?? { start: 0, end: file.content.length };
    // Copies: what a reader does to a chunk must not reach the file.
    for (let at = start; at < end; at += CHUNK_BYTES)
      yield Uint8Array.from(file.content.subarray(at, Math.min(at + CHUNK_BYTES, end)));
  }

  return Object.freeze<FileStore>({
    async stage(bytes) {
      let gathered = createByteBuffer();
      let held = 0;
      const release = (): void => {
        used -= held;
        held = 0;
        gathered = createByteBuffer();
      };
      try {
        for await (const chunk of bytes) {
          if (used + chunk.length > limits.bytes) {
            throw new PostbellError("storage_full", "The files in memory have reached limits.bytes.");
          }
          used += chunk.length;
          held += chunk.length;
          gathered.add(chunk);
        }
      } catch (error) {
        release();
        throw error;
      }
      const size = held;
      return {
        bytes: size,
        async publish(name) {
          if (!isFileName(name)) throw invalidName();
          if (files.has(name)) return false;
          const entry = { name, bytes: size, storedAt: Math.floor(systemClock.now()) };
          files.set(name, { entry, content: gathered.whole() });
          held = 0;
          gathered = createByteBuffer();
          return true;
        },
        async discard() {
          release();
        },
      };
    },
    stat: async (name) => files.get(name)?.entry,
    read,
    async remove(name) {
      used -= files.get(name)?.entry.bytes ?? 0;
      return files.delete(name);
    },
    async *list() {
      for (const { entry } of files.values()) yield entry;
    },
  });
}
