/**
 * Stages the bytes of one file while they arrive: detects its type, reads the size of an image, and
 * checks the bytes and their digest. Knows no request.
 */

import { createHash } from "node:crypto";
import { createByteBuffer } from "../../core/bytes.js";
import type { ReadableBody } from "../../http/types.js";
import type { FileStore, StagedFile } from "../files.js";
import type { ImageMetadata } from "../records/records.js";
import { RestError } from "../rest/error.js";
import { toBaseName } from "./file-name.js";
import { readImageMetadata } from "./image-metadata.js";
import { type ImageSize, imageSize } from "./image-size.js";
import { detectMediaType, hasBinary, type MediaType } from "./media-type.js";

/**
 * The dimensions of an image are within this many bytes. Some photographs have more metadata before
 * them; their dimensions are read once the file is stored.
 */
const HEAD_BYTES = 1_048_576;

export interface StageFileOptions {
  files: FileStore;
  /** The most pixels of an image, by its header. Default: no limit. */
  maxPixels?: number | undefined;
}

/** A staged file with its type and, if known, the size of its image. */
export interface StagedMedia {
  staged: StagedFile;
  type: MediaType;
  size: ImageSize | undefined;
  /** Read from the first megabyte of the file; `undefined` if that contains nothing. */
  metadata: ImageMetadata | undefined;
  baseName: string;
  discard: () => Promise<void>;
}

/**
 * Reads `source` to its end. `digest`: the expected MD5 in hexadecimal digits or base64.
 *
 * @throws RestError 400 `rest_upload_no_data`, `rest_upload_sideload_error`,
 * `rest_upload_image_too_large`, 412 `rest_upload_hash_mismatch`; errors of `source` and `files`.
 */
export async function stageFile(
  source: ReadableBody,
  fileName: string,
  digest: string | undefined,
  { files, maxPixels }: StageFileOptions,
): Promise<StagedMedia> {
  const iterator = source[Symbol.asyncIterator]();
  try {
    const { head, isWhole } = await readHead(iterator);
    if (head.length === 0) throw noData();
    const type = detectMediaType(fileName, head);
    if (type === undefined) throw refused();
    const size = imageSize(type.mimeType, head);
    if ((size !== undefined || isWhole) && isImage(type)) assertImageSize(size, maxPixels);
    const hash = digest === undefined ? undefined : createHash("md5");
    const staged = await files.stage(checkBytes(head, iterator, type, (chunk) => hash?.update(chunk)));
    if (hash !== undefined && !isDigest(digest?.trim() ?? "", hash.digest())) {
      await staged.discard();
      throw new RestError(412, "rest_upload_hash_mismatch", "Content hash did not match expected.");
    }
    const metadata = readImageMetadata(type.mimeType, head);
    return { staged, type, size, metadata, baseName: toBaseName(fileName), discard: () => staged.discard() };
  } catch (error) {
    await iterator.return?.();
    throw error;
  }
}

export const isImage = ({ mimeType }: MediaType): boolean => mimeType.startsWith("image/");

export function assertImageSize(size: ImageSize | undefined, maxPixels = Number.POSITIVE_INFINITY): void {
  if (size === undefined) throw refused();
  if (size.width * size.height > maxPixels) throw tooManyPixels(maxPixels);
}

async function readHead(
  iterator: AsyncIterator<Uint8Array>,
): Promise<{ head: Uint8Array; isWhole: boolean }> {
  const bytes = createByteBuffer();
  while (bytes.length() < HEAD_BYTES) {
    const step = await iterator.next();
    if (step.done === true) return { head: bytes.whole(), isWhole: true };
    bytes.add(step.value);
  }
  return { head: bytes.whole(), isWhole: false };
}

/** Yields the bytes of a file and checks that a text file has only text. */
async function* checkBytes(
  head: Uint8Array,
  iterator: AsyncIterator<Uint8Array>,
  { isText }: MediaType,
  visit: (chunk: Uint8Array) => void,
): AsyncGenerator<Uint8Array> {
  let chunk = head;
  for (;;) {
    if (isText && hasBinary(chunk)) throw refused();
    visit(chunk);
    yield chunk;
    const step = await iterator.next();
    if (step.done === true) return;
    chunk = step.value;
  }
}

const isDigest = (expected: string, actual: Buffer): boolean =>
  expected.toLowerCase() === actual.toString("hex") || expected === actual.toString("base64");

/** WordPress responds with the same code and the status 500. */
const refused = (): RestError =>
  new RestError(
    400,
    "rest_upload_sideload_error",
    "Sorry, you are not allowed to upload this file type, or its content does not fit its name.",
  );

const tooManyPixels = (max: number): RestError =>
  new RestError(
    400,
    "rest_upload_image_too_large",
    `The image is too large: at most ${Math.floor(max / 1_000_000)} million pixels are accepted.`,
  );

export const noData = (): RestError => new RestError(400, "rest_upload_no_data", "No data supplied.");
