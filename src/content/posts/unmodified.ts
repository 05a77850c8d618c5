/** Keeps a client that says which state it knows from writing over a newer one. */

import type { PostColumns } from "../records.js";
import { RestError } from "../rest/error.js";
import type { RestRequest } from "../rest/types.js";

/**
 * `If-Unmodified-Since` (RFC 9110 §13.1.4), compared with `modified_gmt`: both in whole seconds. What is no date is ignored, as the RFC asks. The
 * reference knows no conditions on writing.
 *
 * Errors: RestError 412 `rest_precondition_failed`.
 */
export function refuseModified({ headers }: RestRequest, { modifiedGmt }: PostColumns): void {
  const known = Date.parse(headers["if-unmodified-since"] ?? "");
  if (Number.isNaN(known) || Math.floor(modifiedGmt / 1000) * 1000 <= known) return;
  throw new RestError(412, "rest_precondition_failed", "The item was changed since then.");
}
