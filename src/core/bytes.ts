/** Allocates bytes that are used for a moment, such as bodies and requests, and joins chunks. */

import { markAsUntransferable } from "node:worker_threads";

const POOL_BYTES = 65_536;
/** Larger parts get separate memory, so that little of a pool is lost. */
const MAX_PART_BYTES = POOL_BYTES / 8;

function createPool(): Buffer {
  const bytes = Buffer.allocUnsafeSlow(POOL_BYTES);
  // A host may hand a body on to a worker. Transferred, it would take the whole pool with it.
  markAsUntransferable(bytes.buffer);
  return bytes;
}

let pool = createPool();
let used = 0;

/**
 * Allocates like `Buffer.allocUnsafe`, from a pool eight times as large. Node's pool of 8 KiB
 * is used up by four notifications, and a new one costs more than they do. The bytes are not
 * zeroed, and no part is handed out twice. A pool is freed with the last of its parts, so do not
 * keep a part for long.
 */
export function allocateBriefly(bytes: number): Buffer {
  if (bytes > MAX_PART_BYTES) return Buffer.allocUnsafeSlow(bytes);
  if (used + bytes > POOL_BYTES) {
    pool = createPool();
    used = 0;
  }
  const part = pool.subarray(used, used + bytes);
  used += bytes;
  return part;
}

const PAGE_BYTES = 65_536;

export interface ByteBuffer {
  /** Copies the chunk. */
  add: (chunk: Uint8Array) => void;
  /** Bytes added so far. */
  length: () => number;
  /** Returns all bytes. Add nothing afterwards, because the buffer is not copied. */
  whole: () => Uint8Array;
}

/**
 * Creates an empty buffer. It holds less than twice the bytes that were added, in however many
 * chunks; a single chunk takes no more than its size.
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
