/** Walks over the segments of a JPEG, which hold its metadata. Pure. */

import { MAX_CHUNKS } from "./image-chunks.js";

export interface JpegSegment {
  /** The second byte of the marker: 0xe1 for EXIF and XMP, 0xed for IPTC. */
  readonly marker: number;
  /** At most 65 533 bytes. */
  readonly data: Uint8Array;
}

/**
 * Yields the segments before the picture that begin in `head`.
 *
 * Guarantee: linear in the length of `head`, whatever it contains.
 */
export function* jpegSegments(head: Uint8Array): Generator<JpegSegment, void> {
  let at = 2;
  for (let steps = 0; steps < MAX_CHUNKS && at + 4 <= head.length; steps += 1) {
    const marker = head[at + 1] as number;
    if (head[at] !== 0xff) return;
    const bare = countBareBytes(marker);
    if (bare > 0) {
      at += bare;
      continue;
    }
    const length = ((head[at + 2] as number) << 8) | (head[at + 3] as number);
    if (beginsOrEndsPicture(marker) || length < 2) return;
    yield { marker, data: head.subarray(at + 4, at + 2 + length) };
    at += 2 + length;
  }
}

/** Returns the length of a marker without a segment; 0 for a marker that has one. */
export function countBareBytes(marker: number): number {
  // Any number of fill bytes 0xff may precede a marker.
  if (marker === 0xff) return 1;
  return marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8) ? 2 : 0;
}

export const beginsOrEndsPicture = (marker: number): boolean => marker === 0xda || marker === 0xd9;
