/** The fixture of the files contract: an empty file store, file contents, and shared assertions. */

import assert from "node:assert/strict";
import type { FileStore } from "../../content/files.js";
import { isPostbellError } from "../../core/errors.js";
import type { ReadableBody } from "../../http/types.js";

/** An empty file store. */
export interface FilesUnderTest {
  files: FileStore;
  /** Called at the end of the test. */
  destroy?: (() => void | Promise<void>) | undefined;
}

/** Declares one test, which gets a separate file store. */
export type DeclareFilesTest = (name: string, run: (files: FileStore) => Promise<void>) => void;

/** The file name of tests that need only one. */
export const NAME = "2026/11/heart.png";

/** Builds bytes that differ from place to place, so that a lost or repeated byte is noticed. */
export const buildBytes = (length: number, seed = 7): Uint8Array =>
  Uint8Array.from({ length }, (_, at) => (at * 31 + (at >> 8) * seed + seed) & 255);

/** Streams `bytes` in one buffer that is reused: a store must copy each chunk. */
export async function* streamBytes(
  bytes: Uint8Array,
  chunkBytes: number,
): ReadableBody & AsyncGenerator<Uint8Array> {
  const shared = new Uint8Array(chunkBytes);
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    const part = bytes.subarray(at, at + chunkBytes);
    shared.set(part);
    await Promise.resolve();
    yield shared.subarray(0, part.length);
    shared.fill(0);
  }
}

/** Reads a whole body. */
export async function readWhole(body: ReadableBody): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(Uint8Array.from(chunk));
  return Uint8Array.from(Buffer.concat(chunks));
}

/** Lists the names of all files, sorted. */
export async function listNames(files: FileStore): Promise<string[]> {
  const found: string[] = [];
  for await (const { name } of files.list()) found.push(name);
  return found.sort();
}

/** Stages and publishes a file, which must succeed. */
export async function storeFile(files: FileStore, name: string, bytes: Uint8Array): Promise<void> {
  const staged = await files.stage(streamBytes(bytes, 1_000));
  assert.equal(await staged.publish(name), true);
}

/** Asserts that there is no file `name`, for `stat` and for `read`. */
export async function assertAbsent(files: FileStore, name: string): Promise<void> {
  assert.equal(await files.stat(name), undefined);
  await assert.rejects(readWhole(files.read(name)), (error) => isPostbellError(error, "not_found"));
}
