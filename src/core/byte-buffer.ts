/** Puts chunks together. Knows no source of them. */

const PAGE_BYTES = 65_536;

export interface ByteBuffer {
  /** Copies the chunk. */
  readonly add: (chunk: Uint8Array) => void;
  /** Bytes added so far. */
  readonly length: () => number;
  /** All of it. Nothing may be added afterwards, as they may be the very bytes that are held. */
  readonly whole: () => Uint8Array;
}

/** Guarantee: holds less than twice the bytes that were added, in however many chunks, and one chunk alone without more. */
export function createByteBuffer(): ByteBuffer {
  const full: Uint8Array[] = [];
  let page = new Uint8Array(0);
  let used = 0;
  let length = 0;
  return {
    add(chunk) {
      const head = chunk.subarray(0, page.length - used);
      page.set(head, used);
      used += head.length;
      length += chunk.length;
      if (head.length === chunk.length) return;
      const rest = chunk.subarray(head.length);
      if (used > 0) full.push(page);
      page = new Uint8Array(Math.max(rest.length, Math.min(length - rest.length, PAGE_BYTES)));
      page.set(rest);
      used = rest.length;
    },
    length: () => length,
    whole: () => (length === page.length ? page : Buffer.concat([...full, page.subarray(0, used)], length)),
  };
}
