/** Concatenates chunks of bytes, wherever they come from. */

const PAGE_BYTES = 65_536;

export interface ByteBuffer {
  /** Copies the chunk. */
  readonly add: (chunk: Uint8Array) => void;
  /** Bytes added so far. */
  readonly length: () => number;
  /** Returns all bytes. Add nothing afterwards, because the buffer is not copied. */
  readonly whole: () => Uint8Array;
}

/**
 * Creates an empty buffer. It holds less than twice the bytes that were added, in however many
 * chunks; a single chunk takes no more than its own size.
 */
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
