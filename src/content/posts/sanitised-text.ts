/** Filters a text of somebody without `unfiltered_html`, whose size is judged first: the filter parses it, and nothing else runs meanwhile. */

import { RestError } from "../rest/error.js";
import type { Site } from "../site.js";

/** What `sanitiseText` needs of a site. */
export type TextSanitiser = Pick<Site, "filter" | "filteredCharacters">;

/**
 * What of `raw` is stored as the `field` of a post.
 *
 * Errors: RestError 413 `rest_text_too_large`, naming the limit.
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
