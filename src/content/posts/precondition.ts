/**
 * The precondition `If-Unmodified-Since` of writes: a client that sends it cannot overwrite a newer
 * state of an item (optimistic locking, 412).
 */

import { LENGTHS } from "../argument-bounds.js";
import type { PostColumns } from "../records/records.js";
import { RestError } from "../rest/error.js";

/**
 * Returns the time of `If-Unmodified-Since` (RFC 9110 §13.1.4) in epoch ms. NaN for an invalid
 * date, which the RFC requires to ignore.
 */
export function parsePrecondition(headers: Readonly<Record<string, string>>): number {
  const text = headers["if-unmodified-since"] ?? "";
  return text.length > LENGTHS.date ? Number.NaN : Date.parse(text);
}

/**
 * Compares `known` with `modified_gmt`, both in whole seconds. NaN sets no condition. WordPress has
 * no preconditions.
 *
 * @throws RestError 412 `rest_precondition_failed`
 */
export function assertUnmodified(known: number, { modifiedGmt }: PostColumns): void {
  if (Number.isNaN(known) || Math.floor(modifiedGmt / 1000) * 1000 <= known) return;
  throw new RestError(412, "rest_precondition_failed", "The item was changed since then.");
}
