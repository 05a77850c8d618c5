/** What a term of a file is known by: its slug, or one that is made of its name. Pure. */

import { createHash } from "node:crypto";
import { MAX_NAME, termName } from "../terms/write-term.js";
import { toSlug } from "../text/slug.js";

export interface NamedTerm {
  readonly slug: string;
  readonly name: string;
}

/** As it is stored; empty for a term that has neither. */
export const termNameKey = ({ name, slug }: NamedTerm): string =>
  (termName(name) || termName(slug)).slice(0, MAX_NAME);

/** Never empty: a name of signs alone, such as `!!!`, has the same slug in every import, so that its term is found again. */
export const termSlugKey = (term: NamedTerm): string =>
  toSlug(term.slug) ||
  toSlug(term.name) ||
  `term-${createHash("sha256").update(termNameKey(term)).digest("hex").slice(0, 16)}`;
