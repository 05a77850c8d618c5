/** Indexes the terms of a site by taxonomy, parent and slug. Knows no post. */

import type { Taxonomy, Term } from "../records/records.js";
import { createMultiMap } from "./multi-map.js";
import { createSlugIndex } from "./slug-index.js";

export interface TermIndex {
  readonly get: (id: number) => Term | undefined;
  readonly put: (term: Term) => void;
  readonly remove: (id: number) => void;
  /** True if the term exists and belongs to that taxonomy. */
  readonly has: (taxonomy: Taxonomy, id: number) => boolean;
  /** By id. */
  readonly all: (taxonomy: Taxonomy) => readonly Term[];
  /** By id. */
  readonly below: (taxonomy: Taxonomy, parent: number) => readonly Term[];
  /** By id. */
  readonly withSlug: (taxonomy: Taxonomy, slug: string) => readonly Term[];
  /** By id. Upper and lower case are the same. */
  readonly withName: (taxonomy: Taxonomy, parent: number, name: string) => readonly Term[];
  /** As in `SlugIndex`. */
  readonly nextFreeSlug: (taxonomy: Taxonomy, stem: string, from: number) => number;
  /** Returns `ids` and the terms below them at any depth, nearest first. Visits each once. */
  readonly withDescendants: (taxonomy: Taxonomy, ids: Iterable<number>) => ReadonlySet<number>;
}

export function createTermIndex(): TermIndex {
  const terms = new Map<number, Term>();
  const byTaxonomy = createMultiMap<Taxonomy>();
  const byParent = createMultiMap<string>();
  const bySlug = createSlugIndex();
  const byName = createMultiMap<string>();
  const lists = new Map<Taxonomy, readonly Term[]>();

  const resolve = (ids: readonly number[]): readonly Term[] => ids.flatMap((id) => terms.get(id) ?? []);
  const toNameKey = ({ taxonomy, parent, name }: Pick<Term, "taxonomy" | "parent" | "name">): string =>
    `${taxonomy}/${parent}/${name.toLowerCase()}`;
  const below = (taxonomy: Taxonomy, parent: number) => resolve(byParent.get(`${taxonomy}/${parent}`));

  function remove(id: number): void {
    const term = terms.get(id);
    if (!term) return;
    const { taxonomy, parent, slug } = term;
    terms.delete(id);
    lists.delete(taxonomy);
    byTaxonomy.remove(taxonomy, id);
    byParent.remove(`${taxonomy}/${parent}`, id);
    bySlug.remove(`${taxonomy}/${slug}`, id);
    byName.remove(toNameKey(term), id);
  }

  return {
    get: (id) => terms.get(id),
    put(term) {
      const { id, taxonomy, parent, slug } = term;
      remove(id);
      terms.set(id, term);
      lists.delete(taxonomy);
      byTaxonomy.add(taxonomy, id);
      byParent.add(`${taxonomy}/${parent}`, id);
      bySlug.add(`${taxonomy}/${slug}`, id);
      byName.add(toNameKey(term), id);
    },
    remove,
    has: (taxonomy, id) => terms.get(id)?.taxonomy === taxonomy,
    all(taxonomy) {
      const known = lists.get(taxonomy) ?? Object.freeze(resolve(byTaxonomy.get(taxonomy)));
      lists.set(taxonomy, known);
      return known;
    },
    below,
    withSlug: (taxonomy, slug) => resolve(bySlug.get(`${taxonomy}/${slug}`)),
    withName: (taxonomy, parent, name) => resolve(byName.get(toNameKey({ taxonomy, parent, name }))),
    nextFreeSlug: (taxonomy, stem, from) => bySlug.nextFree(`${taxonomy}/${stem}`, from),
    withDescendants(taxonomy, ids) {
      const found = new Set(ids);
      // The set grows during the iteration and takes no id twice.
      for (const parent of found) for (const child of below(taxonomy, parent)) found.add(child.id);
      return found;
    },
  };
}
