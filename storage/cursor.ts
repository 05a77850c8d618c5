/** Cursors of pages, for both storages. */

import { PostbellError } from "../src/core/errors.js";

/**
 * Validates a cursor that a host passed, before a storage uses it. Returns an empty
 * text for the first page.
 *
 * @throws PostbellError `invalid_argument` if it does not match `pattern`.
 */
export function validateCursor(cursor: string | undefined, pattern: RegExp): string {
  if (cursor === undefined) return "";
  // A host in JavaScript may pass anything, such as the `null` of a last page.
  if (typeof cursor !== "string" || !pattern.test(cursor)) {
    throw new PostbellError(
      "invalid_argument",
      `cursor must be the \`next\` of the previous page (got ${typeof cursor === "string" ? JSON.stringify(cursor.slice(0, 40)) : typeof cursor}).`,
      { field: "cursor" },
    );
  }
  return cursor;
}
