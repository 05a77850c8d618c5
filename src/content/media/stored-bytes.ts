/**
 * Reads only the part of a stored file that is needed: a range of its bytes, or the size of its
 * image. Knows no record.
 */

import { createByteBuffer } from "../../core/byte-buffer.js";
import type { FileStore } from "../files.js";
import { type ImageSize, imageSizeWalk, PIECE_BYTES } from "./image-size.js";

/** Read at a time. */
const PART_BYTES = 4 * PIECE_BYTES;

/**
 * The bytes from `start` to before `end`, which is at most the size of the file. Errors: what
 * `files` throws.
 */
export async function readStoredBytes(
  files: FileStore,
  name: string,
  { start, end }: { readonly start: number; readonly end: number },
): Promise<Uint8Array> {
  const bytes = createByteBuffer();
  for await (const chunk of files.read(name, { start, end })) bytes.add(chunk);
  return bytes.whole();
}

/**
 * The size of an image in a file of `bytes`, however much stands before what tells it; `undefined`
 * where nothing does.
 *
 * Guarantee: holds one part of 256 KiB at a time. Errors: what `files` throws.
 */
export async function readStoredImageSize(
  files: FileStore,
  { name, bytes, mimeType }: { readonly name: string; readonly bytes: number; readonly mimeType: string },
): Promise<ImageSize | undefined> {
  const walk = imageSizeWalk(mimeType);
  let part: Uint8Array = new Uint8Array();
  let start = 0;
  let step = walk.next();
  while (step.done !== true) {
    const at = step.value;
    const partEnd = start + part.length;
    if (at + PIECE_BYTES > partEnd && partEnd < bytes) {
      start = Math.min(at, bytes);
      const end = Math.min(start + PART_BYTES, bytes);
      part = start < end ? await readStoredBytes(files, name, { start, end }) : new Uint8Array();
    }
    const asked = part.subarray(at - start);
    step = walk.next(new DataView(asked.buffer, asked.byteOffset, asked.byteLength));
  }
  return step.value;
}
