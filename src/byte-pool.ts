/** Allocates bytes that are used for a moment, such as bodies and requests. */

const POOL_BYTES = 65_536;
/** Anything larger gets memory of its own, so that little of a pool is ever lost. */
const MAX_PART_BYTES = POOL_BYTES / 8;

let pool = Buffer.allocUnsafeSlow(POOL_BYTES);
let used = 0;

/**
 * Like `Buffer.allocUnsafe`, from a pool eight times as large: Node's own, of 8 KiB, is used up by four notifications, and a new one costs more than they do.
 * The bytes are not zeroed. No part is handed out twice; a pool is freed with the last of its parts, so nothing that is kept for long should come from it.
 */
export function allocateBriefly(bytes: number): Buffer {
  if (bytes > MAX_PART_BYTES) return Buffer.allocUnsafeSlow(bytes);
  if (used + bytes > POOL_BYTES) {
    pool = Buffer.allocUnsafeSlow(POOL_BYTES);
    used = 0;
  }
  const part = pool.subarray(used, used + bytes);
  used += bytes;
  return part;
}
