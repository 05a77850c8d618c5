/** The terms of the site as they will be once a transaction is stored. */

import type { SiteIndex } from "../query/site-index.js";
import type { Taxonomy, Term } from "../records/records.js";
import type { Transaction } from "../repository/content-repository.js";
import { listAncestorIds } from "./ancestors.js";

/** Names a term of this site. */
export interface TermPath {
  readonly taxonomy: Taxonomy;
  readonly slug: string;
}

export interface TermTree {
  readonly find: (path: TermPath) => Term | undefined;
  /**
   * True if the term `id` may be below `parent`. The ancestors must then not move before the
   * transaction is stored.
   */
  readonly canHaveParent: (id: number, parent: Term) => boolean;
  readonly put: (term: Term) => void;
}

export function createTermTree(index: SiteIndex, transaction: Transaction): TermTree {
  const bySlug = new Map<string, Term>();
  const byId = new Map<number, Term>();
  const getParent = (id: number): number => (byId.get(id) ?? index.term(id))?.parent ?? 0;
  return {
    find: ({ taxonomy, slug }) => bySlug.get(`${taxonomy}/${slug}`) ?? index.termsBySlug(taxonomy, slug)[0],
    canHaveParent(id, parent) {
      const ancestors = listAncestorIds(id, parent.id, getParent);
      for (const at of ancestors ?? [])
        if (index.term(at) !== undefined) transaction.expectUnchanged(`term/${at}`);
      return ancestors !== undefined;
    },
    put(term) {
      bySlug.set(`${term.taxonomy}/${term.slug}`, term);
      byId.set(term.id, term);
      transaction.putTerm(term);
    },
  };
}
