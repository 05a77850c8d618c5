/** Stores one term of a file: creates it, updates it, or leaves it as it is. */

import type { Taxonomy, Term } from "../records/records.js";
import { getTaxonomy } from "../terms/taxonomies.js";
import { getImportState } from "./identity.js";
import type { ImportResult } from "./import-summary.js";
import { termNameKey, termSlugKey } from "./term-key.js";
import type { TermPath, TermTree } from "./term-tree.js";
import type { WxrTerm } from "./types.js";

export type ImportableTerm = WxrTerm & { readonly taxonomy: Taxonomy };

/** A stored term whose parent is not here yet, or is below it. */
export interface PendingTerm extends TermPath, Pick<WxrTerm, "line" | "size"> {
  /** Slug of the parent. */
  readonly parent: string;
}

export interface StoredTerm {
  readonly result: ImportResult;
  readonly pending?: PendingTerm;
}

/** `description`: that of the term, sanitised. `createId` is called for a new term only. */
export function storeTerm(
  term: ImportableTerm,
  description: string,
  createId: () => number,
  tree: TermTree,
): StoredTerm {
  const { taxonomy, line, size } = term;
  const slug = termSlugKey(term);
  const known = tree.find({ taxonomy, slug });
  const state = getImportState(term, "term");
  if (known !== undefined && !needsImport(known, state)) return { result: "unchanged" };
  const id = known?.id ?? createId();
  const parentSlug = getTaxonomy(taxonomy).isHierarchical ? getParentSlug(term) : "";
  const parent = findParent({ taxonomy, slug: parentSlug }, id, tree);
  const isOpen = parentSlug !== "" && parent === undefined;
  const base = known ?? { id, version: 0, taxonomy, slug, name: "", description: "", meta: {}, parent: 0 };
  const written = buildTerm({ ...term, description }, base, state, { parent, isOpen });
  const pending = isOpen ? { pending: { taxonomy, slug, parent: parentSlug, line, size } } : {};
  if (known !== undefined && isSameRecord(known, written)) return { result: "unchanged", ...pending };
  tree.put(written);
  return { result: known === undefined ? "created" : "updated", ...pending };
}

/** False for a term that was made on this site, or that the file has not changed since. */
const needsImport = ({ importedState, importedOpen }: Term, state: string): boolean =>
  importedState !== undefined && (importedState !== state || importedOpen !== undefined);

/** Returns `undefined` if there is no such parent, or if it must not be the parent of the term. */
function findParent(path: TermPath, id: number, tree: TermTree): Term | undefined {
  const parent = path.slug === "" ? undefined : tree.find(path);
  return parent !== undefined && tree.canHaveParent(id, parent) ? parent : undefined;
}

/** A term that is the same in the file keeps the edits made here, except that its parent is set. */
function buildTerm(
  term: ImportableTerm,
  base: Term,
  state: string,
  { parent, isOpen }: { readonly parent: Term | undefined; readonly isOpen: boolean },
): Term {
  const isSame = base.importedState === state;
  const { importedOpen: _, ...before } = base;
  const { name, description } = isSame ? base : { name: termNameKey(term), description: term.description };
  return {
    ...{ ...before, name, description, importedState: state },
    parent: parent?.id ?? (isSame ? before.parent : 0),
    ...(isOpen ? { importedOpen: true } : {}),
  };
}

/** Returns an empty text for a term at the top. */
const getParentSlug = ({ parent }: WxrTerm): string =>
  parent === "" ? "" : termSlugKey({ slug: parent, name: parent });

const isSameRecord = (a: Term, b: Term): boolean =>
  JSON.stringify([a.name, a.description, a.parent, a.importedState, a.importedOpen]) ===
  JSON.stringify([b.name, b.description, b.parent, b.importedState, b.importedOpen]);
