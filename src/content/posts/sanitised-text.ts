/**
 * Sanitises texts of users without `unfiltered_html`. The size is checked first, because nothing
 * else runs while the sanitiser parses a text.
 */

import { RestError } from "../rest/error.js";
import type { Site } from "../site.js";

/** The part of a site that `sanitiseText` needs. */
export type TextSanitiser = Pick<Site, "filter" | "filteredCharacters">;

/**
 * Returns the part of `raw` that may be stored in `field` of a post.
 *
 * @throws RestError 413 `rest_text_too_large`, naming the limit
 */
export function sanitiseText(
  raw: string,
  field: keyof Site["filter"],
  { filter, filteredCharacters }: TextSanitiser,
): string {
  if (raw.length <= filteredCharacters) return filter[field](raw);
  throw new RestError(
    413,
    "rest_text_too_large",
    `A text of somebody who may not write unfiltered HTML has at most ${filteredCharacters} characters (got ${raw.length}).`,
  );
}
