/** Finds the terms of public taxonomies by name and slug, in the order of their names. */

import { COLLECTION_NAMES } from "../records/collection-names.js";
import type { Taxonomy, Term } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import type { Site } from "../site.js";
import { getTaxonomy, taxonomies } from "../terms/taxonomies.js";
import { termLink } from "../terms/term-fields.js";
import { listTerms } from "../terms/term-list.js";
import type { SearchHandler, SearchResult } from "./search-handler.js";

const TAXONOMIES: readonly Taxonomy[] = Object.values(taxonomies).flatMap(({ taxonomy, isViewable }) =>
  isViewable ? [taxonomy] : [],
);

export function createTermSearch({
  repository: { index },
  site,
}: {
  readonly repository: Pick<ContentRepository, "index">;
  readonly site: Pick<Site, "home" | "termLink">;
}): SearchHandler {
  const toResult = (term: Term): SearchResult => ({
    fields: {
      id: term.id,
      title: term.name,
      url: termLink(term, getTaxonomy(term.taxonomy), site, index),
      // As in WordPress, a term has no subtype.
      type: term.taxonomy,
    },
    self: `/${COLLECTION_NAMES[term.taxonomy]}/${term.id}`,
    about: `/taxonomies/${term.taxonomy}`,
  });

  return {
    type: "term",
    subtypes: TAXONOMIES,
    find({ text, subtypes, include, exclude, offset, limit }) {
      // WordPress searches even private taxonomies if every subtype is of another type.
      const wanted = subtypes.length > 0 ? (subtypes as readonly Taxonomy[]) : TAXONOMIES;
      const all = wanted.flatMap((taxonomy) => index.terms(taxonomy));
      const found = listTerms(
        all,
        {
          orderBy: "name",
          order: "asc",
          hideEmpty: false,
          ...(text === "" ? {} : { search: text }),
          ...(include.length > 0 ? { include } : { exclude }),
        },
        { all, countOf: () => 0 },
      );
      return { results: found.slice(offset, offset + limit).map(toResult), total: found.length };
    },
  };
}
