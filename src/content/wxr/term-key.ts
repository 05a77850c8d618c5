/** Returns the slug and name under which a term of a file is stored and found again. Pure. */

import { createHash } from "node:crypto";
import { MAX_NAME, termName } from "../terms/write-term.js";
import { toSlug } from "../text/slug.js";

export interface NamedTerm {
  readonly slug: string;
  readonly name: string;
}

/** Returns the name as it is stored; empty for a term with neither name nor slug. */
export const termNameKey = ({ name, slug }: NamedTerm): string =>
  (termName(name) || termName(slug)).slice(0, MAX_NAME);

/**
 * Returns the slug, which is never empty. A name without letters, such as `!!!`, gets the same slug
 * in every import, so that its term is found again.
 */
export const termSlugKey = (term: NamedTerm): string =>
  toSlug(term.slug) ||
  toSlug(term.name) ||
  `term-${createHash("sha256").update(termNameKey(term)).digest("hex").slice(0, 16)}`;
