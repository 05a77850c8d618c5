/** The port to where a host keeps the bytes of media. Knows no record, no type of media and no request. */

import type { ReadableBody } from "../http/types.js";

/** A file that is stored. */
export interface FileEntry {
  readonly name: string;
  readonly bytes: number;
  /** Epoch ms. */
  readonly storedAt: number;
}

/** A part of a file, in bytes. */
export interface ByteRange {
  /** Of the first byte, from 0. */
  readonly start: number;
  /** Of the first byte after the range; at most the size of the file. */
  readonly end: number;
}

/** Bytes that are safe and complete, and that nobody can see yet. */
export interface StagedFile {
  readonly bytes: number;
  /**
   * Makes the file readable as `name`: at once, whole, and for good when the promise resolves with true. False where the name is taken; then
   * nothing has changed, and another name may be tried. At most one call is answered with true.
   *
   * Errors: PostbellError `invalid_argument` unless {@link isFileName}.
   */
  readonly publish: (name: string) => Promise<boolean>;
  /** Frees what was staged. Changes nothing after a publication, or when called again. */
  readonly discard: () => Promise<void>;
}

/**
 * Files by name, written once and never changed. Postbell ships two: `memoryFiles` and `diskFiles`; `filesContract` tests others.
 *
 * Every name that Postbell uses is a {@link isFileName}; for any other a store behaves as if there were no such file. What a process leaves
 * staged when it dies is freed by the store some day, without being seen before.
 */
export interface FileStore {
  /**
   * Reads `bytes` to their end. A chunk is the source's again once the next one is asked for.
   *
   * Errors: what the source throws, and then nothing is left; PostbellError `storage_full`.
   */
  readonly stage: (bytes: ReadableBody) => Promise<StagedFile>;
  /** What is known of a file; `undefined` where there is none of that name. */
  readonly stat: (name: string) => Promise<FileEntry | undefined>;
  /**
   * The bytes of a file, or a range of them. Nothing is opened before the first is asked for, and all is closed when the reader ends or leaves.
   *
   * Errors, while it is read: PostbellError `not_found`.
   */
  readonly read: (name: string, range?: ByteRange) => ReadableBody;
  /** Resolves with whether there was one. Whoever reads it may or may not read on. */
  readonly remove: (name: string) => Promise<boolean>;
  /** Every file that is there from beginning to end of the iteration, once, in any order. */
  readonly list: () => AsyncIterable<FileEntry>;
}

const MAX_SEGMENTS = 8;
/** What file systems take for one name. */
const MAX_SEGMENT_BYTES = 255;
/** No dot in front: neither `..` nor what a host or a store hides. */
const SEGMENT = /^[\p{L}\p{N}_-][\p{L}\p{N}\p{M}._-]*$/u;

/** Whether a text can name a file: up to eight parts of letters, digits, `.`, `_` and `-` between slashes, as in `2026/11/heart.png`. */
export function isFileName(name: string): boolean {
  if (name.length > MAX_SEGMENTS * (MAX_SEGMENT_BYTES + 1)) return false;
  const segments = name.split("/");
  return (
    segments.length <= MAX_SEGMENTS &&
    segments.every((segment) => SEGMENT.test(segment) && Buffer.byteLength(segment) <= MAX_SEGMENT_BYTES)
  );
}
