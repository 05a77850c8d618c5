/**
 * Imports the terms of a file. A term is found by its slug, or created. A term whose parent comes
 * later in the file gets that parent at the end.
 */

import { nextTurn } from "../../core/next-turn.js";
import type { Caller } from "../auth/caller.js";
import type { SiteIndex } from "../query/site-index.js";
import { getTaxonomy } from "../records/content-model.js";
import type { Taxonomy, Term } from "../records/records.js";
import type { ContentRepository, Transaction } from "../repository/content-repository.js";
import type { Site } from "../site.js";
import { splitIntoBatches } from "./batches.js";
import { getImportState, type NamedTerm, termNameKey, termSlugKey } from "./identity.js";
import { type ImportResult, type ImportSummaryBuilder, mayImport } from "./options.js";
import { type ImportNote, listAncestorIds } from "./resolve-references.js";
import type { WxrTerm } from "./types.js";

export interface TermImport {
  take: (terms: WxrTerm[]) => Promise<void>;
  /** Takes the terms that posts name, and creates those that neither the site nor the file has. */
  takeNamed: (terms: (NamedTerm & { taxonomy: string })[]) => Promise<void>;
  /** Returns the id of a term on this site, or `undefined` if there is no such term. */
  findId: (taxonomy: string, term: NamedTerm) => number | undefined;
  /** Returns the id on this site of the term with this id in the file. */
  findIdByFileId: (id: number) => number | undefined;
  finish: () => Promise<void>;
}

/** Limits of one commit; `weight` is in characters of the file. */
const BATCH = { count: 500, weight: 4_194_304 };
/** Terms that are looked up before requests of the host run again. */
const TERMS_PER_TURN = 200;

const toKey = (term: NamedTerm & { taxonomy: string }): string => `${term.taxonomy}/${termSlugKey(term)}`;

export function createTermImport({
  repository,
  site,
  caller,
  summary,
}: {
  caller: Caller;
  repository: ContentRepository;
  site: Site;
  summary: ImportSummaryBuilder;
}): TermImport {
  const { index } = repository;
  const byFileId = new Map<number, TermPath>();
  const pending = new Map<string, PendingTerm>();
  const isTaxonomy = (name: string): boolean => index.model.taxonomies.has(name);

  const findId: TermImport["findId"] = (taxonomy, term) =>
    isTaxonomy(taxonomy) ? index.termsBySlug(taxonomy, termSlugKey(term))[0]?.id : undefined;

  async function store(terms: WxrTerm[]): Promise<void> {
    // One commit can write a record only once. Of equal terms, the last one counts.
    const distinct = new Map(terms.map((term) => [toKey(term), term] as const));
    const descriptions = new Map<string, string>();
    for (const [key, { description }] of distinct) {
      descriptions.set(key, await site.sanitise("title", description));
    }
    const results = await repository.change(async (transaction) => {
      const firstId = await transaction.newIds("term", distinct.size);
      let used = 0;
      const tree = createTermTree(index, transaction);
      return [...distinct].map(([key, term]) => ({
        key,
        collection: getTaxonomy(index.model, term.taxonomy).base,
        ...storeTerm(term, descriptions.get(key) ?? "", () => firstId + used++, tree),
      }));
    });
    for (const { key, collection, result, pending: waiting } of results) {
      summary.count(collection, result);
      if (waiting === undefined) pending.delete(key);
      else pending.set(key, waiting);
    }
  }

  async function take(terms: WxrTerm[]): Promise<void> {
    const importable: WxrTerm[] = [];
    for (const [place, term] of terms.entries()) {
      if (place % TERMS_PER_TURN === 0) await nextTurn();
      const { taxonomy, id } = term;
      if (!isTaxonomy(taxonomy)) summary.leaveOut(`taxonomy ${taxonomy}`);
      else if (!mayImport(caller, taxonomy, "edit_terms"))
        summary.leaveOut(`taxonomy ${taxonomy}, which the importing user may not write`);
      else if (termNameKey(term) === "") summary.warn(term.line, "A term without a name was skipped.");
      else {
        importable.push(term);
        if (id > 0) byFileId.set(id, { taxonomy, slug: termSlugKey(term) });
      }
    }
    for (const batch of splitIntoBatches(importable, BATCH, ({ size }) => size)) await store(batch);
  }

  return {
    findId,
    findIdByFileId(id) {
      const term = byFileId.get(id);
      return term && index.termsBySlug(term.taxonomy, term.slug)[0]?.id;
    },
    take,
    async takeNamed(terms) {
      const missing = new Map<string, WxrTerm>();
      for (const [place, { taxonomy, slug, name }] of terms.entries()) {
        if (place % TERMS_PER_TURN === 0) await nextTurn();
        if (taxonomy === "post_format" || findId(taxonomy, { slug, name }) !== undefined) continue;
        missing.set(toKey({ taxonomy, slug, name }), {
          kind: "term",
          line: 0,
          id: 0,
          taxonomy,
          slug,
          name: name || slug,
          description: "",
          parent: "",
          size: slug.length + name.length,
        });
      }
      if (missing.size > 0) await take([...missing.values()]);
    },
    async finish() {
      for (const batch of splitIntoBatches([...pending.values()], BATCH, ({ size }) => size)) {
        const warnings = await repository.change((transaction) => {
          const tree = createTermTree(index, transaction);
          return batch.flatMap((entry) => resolveParent(entry, tree));
        });
        for (const { line, message } of warnings) summary.warn(line, message);
      }
    },
  };
}

function resolveParent(entry: PendingTerm, tree: TermTree): ImportNote[] {
  const found = tree.find(entry);
  const parent = tree.find({ taxonomy: entry.taxonomy, slug: entry.parent });
  if (found === undefined) return [];
  if (parent !== undefined && tree.canHaveParent(found.id, parent)) {
    const { importedOpen: _, ...resolved } = found;
    tree.put({ ...resolved, parent: parent.id });
    return [];
  }
  const why = parent === undefined ? "is missing" : "is below it";
  const message = `The term “${entry.slug.slice(0, 60)}” was stored at the top: its parent ${why}.`;
  return [{ line: entry.line, message }];
}

// Stores one term of a file: creates it, updates it, or leaves it as it is.

/** A stored term whose parent is not here yet, or is below it. */
interface PendingTerm extends TermPath {
  line: number;
  size: number;
  /** Slug of the parent. */
  parent: string;
}

interface StoredTerm {
  result: ImportResult;
  pending?: PendingTerm;
}

/** `description`: that of the term, sanitised. `createId` is called for a new term only. */
function storeTerm(term: WxrTerm, description: string, createId: () => number, tree: TermTree): StoredTerm {
  const { taxonomy, line, size } = term;
  const slug = termSlugKey(term);
  const found = tree.find({ taxonomy, slug });
  const state = getImportState(term, "term");
  if (found !== undefined && !needsImport(found, state)) return { result: "unchanged" };
  const id = found?.id ?? createId();
  const { isHierarchical } = getTaxonomy(tree.model, taxonomy);
  const parentSlug = isHierarchical ? getParentSlug(term) : "";
  const parent = findParent({ taxonomy, slug: parentSlug }, id, tree);
  const isOpen = parentSlug !== "" && parent === undefined;
  const base = found ?? { id, version: 0, taxonomy, slug, name: "", description: "", meta: {}, parent: 0 };
  const written = buildTerm({ ...term, description }, base, state, { parent, isOpen });
  const pending = isOpen ? { pending: { taxonomy, slug, parent: parentSlug, line, size } } : {};
  if (found !== undefined && isSameRecord(found, written)) return { result: "unchanged", ...pending };
  tree.put(written);
  return { result: found === undefined ? "created" : "updated", ...pending };
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
  term: WxrTerm,
  base: Term,
  state: string,
  { parent, isOpen }: { parent: Term | undefined; isOpen: boolean },
): Term {
  const isSame = base.importedState === state;
  const { importedOpen: _, ...before } = base;
  const { name, description } = isSame ? base : { name: termNameKey(term), description: term.description };
  return {
    ...before,
    name,
    description,
    importedState: state,
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

/** Names a term of this site. */
interface TermPath {
  taxonomy: Taxonomy;
  slug: string;
}

interface TermTree {
  model: SiteIndex["model"];
  find: (path: TermPath) => Term | undefined;
  /**
   * True if the term `id` may be below `parent`. The ancestors must then not move before the
   * transaction is stored.
   */
  canHaveParent: (id: number, parent: Term) => boolean;
  put: (term: Term) => void;
}

function createTermTree(index: SiteIndex, transaction: Transaction): TermTree {
  const bySlug = new Map<string, Term>();
  const byId = new Map<number, Term>();
  const getParent = (id: number): number => (byId.get(id) ?? index.term(id))?.parent ?? 0;
  return {
    model: index.model,
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
