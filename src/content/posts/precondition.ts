/** Keeps a client that says which state it knows from writing over a newer one. */

import { LENGTHS } from "../argument-bounds.js";
import type { PostColumns } from "../records/records.js";
import { RestError } from "../rest/error.js";

/** Epoch milliseconds of `If-Unmodified-Since` (RFC 9110 §13.1.4). NaN for what is no date: it is ignored, as the RFC asks. */
export function parsePrecondition(headers: Readonly<Record<string, string>>): number {
  const text = headers["if-unmodified-since"] ?? "";
  return text.length > LENGTHS.date ? Number.NaN : Date.parse(text);
}

/**
 * Compares the state that a client knows with `modified_gmt`, both in whole seconds; NaN: he does not say. The reference knows no conditions on writing.
 *
 * Errors: RestError 412 `rest_precondition_failed`.
 */
export function assertUnmodified(known: number, { modifiedGmt }: PostColumns): void {
  if (Number.isNaN(known) || Math.floor(modifiedGmt / 1000) * 1000 <= known) return;
  throw new RestError(412, "rest_precondition_failed", "The item was changed since then.");
}
