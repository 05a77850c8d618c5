/** The port to the host's store of uploaded files. Knows no record, media type or request. */

import type { ReadableBody } from "../http/types.js";

/** A stored file. */
export interface FileEntry {
  readonly name: string;
  readonly bytes: number;
  /** Epoch ms. */
  readonly storedAt: number;
}

/** A part of a file, in bytes. */
export interface ByteRange {
  /** The offset of the first byte, from 0. */
  readonly start: number;
  /** The offset after the last byte; at most the size of the file. */
  readonly end: number;
}

/** Bytes that are stored completely but not yet visible under a name. */
export interface StagedFile {
  readonly bytes: number;
  /**
   * Makes the file readable as `name`: at once, whole and permanently when the promise resolves to
   * `true`.
   *
   * Returns `false` if the name is taken; nothing has changed then, and another name may be tried.
   * At most one call returns `true`.
   *
   * @throws PostbellError `invalid_argument` unless {@link isFileName}
   */
  readonly publish: (name: string) => Promise<boolean>;
  /** Frees the staged bytes. Does nothing after a publication, or when called again. */
  readonly discard: () => Promise<void>;
}

/**
 * Files by name, written once and never changed. Postbell has two, `memoryFiles` and `diskFiles`;
 * `filesContract` tests others.
 *
 * Postbell uses only names that pass {@link isFileName}; for any other, a store behaves as if there
 * were no such file. The store eventually frees the bytes that a process left staged when it died.
 */
export interface FileStore {
  /**
   * Reads `bytes` to their end. The source may reuse a chunk once the next one is requested.
   *
   * @throws the error of the source, and nothing is left staged; PostbellError `storage_full`
   */
  readonly stage: (bytes: ReadableBody) => Promise<StagedFile>;
  /** Describes a file, or returns `undefined` if it does not exist. */
  readonly stat: (name: string) => Promise<FileEntry | undefined>;
  /**
   * Reads a file or a range of it. It opens nothing before the first chunk is requested, and closes
   * everything when the reader ends or stops.
   *
   * @throws PostbellError `not_found` during the read
   */
  readonly read: (name: string, range?: ByteRange) => ReadableBody;
  /** Resolves to `true` if the file existed. Readers of it may or may not continue. */
  readonly remove: (name: string) => Promise<boolean>;
  /**
   * Lists every file that exists from the beginning to the end of the iteration, once, in any
   * order.
   */
  readonly list: () => AsyncIterable<FileEntry>;
}

const MAX_SEGMENTS = 8;
/** The longest name in most file systems. */
const MAX_SEGMENT_BYTES = 255;
/** No leading dot, so neither `..` nor hidden files of a host or a store. */
const SEGMENT = /^[\p{L}\p{N}_-][\p{L}\p{N}\p{M}.@\u2010-\u2015\u2020-\u2023_-]*$/u;

/**
 * True if the text can name a file: up to eight segments of letters, digits, `.`, `@`, `_`, `-`,
 * dashes and bullets, such as `2026/11/heart@2x.png`.
 */
export function isFileName(name: string): boolean {
  if (name.length > MAX_SEGMENTS * (MAX_SEGMENT_BYTES + 1)) return false;
  const segments = name.split("/");
  return (
    segments.length <= MAX_SEGMENTS &&
    segments.every((segment) => SEGMENT.test(segment) && Buffer.byteLength(segment) <= MAX_SEGMENT_BYTES)
  );
}
