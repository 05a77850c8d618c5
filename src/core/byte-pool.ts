/** Allocates bytes that are used for a moment, such as bodies and requests. */

import { markAsUntransferable } from "node:worker_threads";

const POOL_BYTES = 65_536;
/** Larger parts get memory of their own, so that little of a pool is lost. */
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
 * Allocates like `Buffer.allocUnsafe`, from a pool eight times as large. Node's own pool of 8 KiB
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
