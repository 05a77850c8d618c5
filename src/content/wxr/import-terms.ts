/** Brings the terms of a file into the site: found by their slug, or made; what hangs below a term that comes later is hung there at the end. */

import type { Taxonomy, Term } from "../records/records.js";
import type { ContentRepository, Transaction } from "../repository/content-repository.js";
import { getTaxonomy, taxonomies } from "../terms/taxonomies.js";
import { sanitiseTitle } from "../text/sanitise-html.js";
import { listAncestorIds } from "./ancestors.js";
import { splitIntoBatches } from "./batches.js";
import { getImportState } from "./identity.js";
import type { ImportResult, ImportSummaryBuilder } from "./import-summary.js";
import { type NamedTerm, termNameKey, termSlugKey } from "./term-key.js";
import type { WxrTerm } from "./types.js";

export interface TermImport {
  readonly take: (terms: readonly WxrTerm[]) => Promise<void>;
  /** Terms that posts name; made where neither the site nor the file has told of them. */
  readonly takeNamed: (terms: readonly (NamedTerm & { readonly taxonomy: string })[]) => Promise<void>;
  /** The term of this site; `undefined` where there is none. */
  readonly idOf: (taxonomy: string, term: NamedTerm) => number | undefined;
  /** Of a term by its id in the file. */
  readonly idOfId: (id: number) => number | undefined;
  readonly finish: () => Promise<void>;
}

const isTaxonomy = (name: string): name is Taxonomy => Object.hasOwn(taxonomies, name);

type HeldTerm = WxrTerm & { readonly taxonomy: Taxonomy };

/** Of this site, by taxonomy and slug. */
interface Key {
  readonly taxonomy: Taxonomy;
  readonly slug: string;
}

/** A stored term whose parent was not here yet, or below it. */
interface PendingPost extends Key, Pick<WxrTerm, "line" | "size"> {
  /** Slug of the parent. */
  readonly parent: string;
}

/** What one commit may hold; characters in the file. */
const BATCH = { count: 500, weight: 4_194_304 };

export function createTermImport({
  library,
  tally,
}: {
  readonly library: ContentRepository;
  readonly tally: ImportSummaryBuilder;
}): TermImport {
  const { index } = library;
  /** By the id in the file. */
  const told = new Map<number, Key>();
  const pending = new Map<string, PendingPost>();

  const idOf: TermImport["idOf"] = (taxonomy, term) =>
    isTaxonomy(taxonomy) ? index.termsBySlug(taxonomy, termSlugKey(term))[0]?.id : undefined;

  /** Terms as they will be once the change is stored. */
  function treeIn(draft: Transaction) {
    const bySlug = new Map<string, Term>();
    const byId = new Map<number, Term>();
    return {
      find: ({ taxonomy, slug }: Key): Term | undefined =>
        bySlug.get(`${taxonomy}/${slug}`) ?? index.termsBySlug(taxonomy, slug)[0],
      /** Whether `parent` may be above the term `id`: nothing above may move before that is stored. */
      mayHang(id: number, parent: Term): boolean {
        const above = listAncestorIds(id, parent.id, (at) => (byId.get(at) ?? index.term(at))?.parent ?? 0);
        for (const at of above ?? []) if (index.term(at) !== undefined) draft.basedOn(`term/${at}`);
        return above !== undefined;
      },
      put(term: Term): void {
        bySlug.set(`${term.taxonomy}/${term.slug}`, term);
        byId.set(term.id, term);
        draft.putTerm(term);
      },
    };
  }

  /** Stores a term, or finds that there is nothing to store. */
  function put(
    term: HeldTerm,
    newId: () => number,
    tree: ReturnType<typeof treeIn>,
  ): { readonly outcome: ImportResult; readonly pending?: PendingPost } {
    const { taxonomy, line, size } = term;
    const slug = termSlugKey(term);
    const known = tree.find({ taxonomy, slug });
    const state = getImportState(term, "term");
    const isSame = known?.importedState === state;
    // What the site made itself it keeps as it is.
    if (known !== undefined && known.importedState === undefined) return { outcome: "unchanged" };
    if (isSame && known.importedOpen === undefined) return { outcome: "unchanged" };
    const id = known?.id ?? newId();
    const wanted = getTaxonomy(taxonomy).isHierarchical ? parentSlugOf(term) : "";
    const parent = wanted === "" ? undefined : tree.find({ taxonomy, slug: wanted });
    const isHung = parent !== undefined && tree.mayHang(id, parent);
    const isOpen = wanted !== "" && !isHung;
    const { importedOpen: _, ...before } = known ?? { id, version: 0, taxonomy, slug, meta: {}, parent: 0 };
    // What is the same in the file stays as it is here, but for the parent that was missing.
    const told = isSame ? known : { name: termNameKey(term), description: sanitiseTitle(term.description) };
    const { name, description } = told;
    const written: Term = {
      ...{ ...before, name, description, importedState: state },
      parent: isHung ? parent.id : isSame ? before.parent : 0,
      ...(isOpen ? { importedOpen: true } : {}),
    };
    const waits = isOpen ? { pending: { taxonomy, slug, parent: wanted, line, size } } : {};
    if (known !== undefined && isSameRecord(known, written)) return { outcome: "unchanged", ...waits };
    tree.put(written);
    return { outcome: known === undefined ? "created" : "updated", ...waits };
  }

  async function store(terms: readonly HeldTerm[]): Promise<void> {
    // Twice in one commit would be two writes of one record: the last one counts.
    const distinct = new Map(terms.map((term) => [`${term.taxonomy}/${termSlugKey(term)}`, term] as const));
    const results = await library.change(async (draft) => {
      const first = await draft.newIds("term", distinct.size);
      let used = 0;
      const tree = treeIn(draft);
      return [...distinct].map(([key, term]) => ({
        ...{ key, base: getTaxonomy(term.taxonomy).base },
        ...put(term, () => first + used++, tree),
      }));
    });
    for (const { key, base, outcome, pending: waiting } of results) {
      tally.count(base, outcome);
      if (waiting === undefined) pending.delete(key);
      else pending.set(key, waiting);
    }
  }

  async function take(terms: readonly WxrTerm[]): Promise<void> {
    const held: HeldTerm[] = [];
    for (const term of terms) {
      const { taxonomy, id } = term;
      if (!isTaxonomy(taxonomy)) tally.leaveOut(`taxonomy ${taxonomy}`);
      else if (termNameKey(term) === "") tally.warn(term.line, "A term without a name was left out.");
      else {
        held.push({ ...term, taxonomy });
        if (id > 0) told.set(id, { taxonomy, slug: termSlugKey(term) });
      }
    }
    for (const batch of splitIntoBatches(held, BATCH, ({ size }) => size)) await store(batch);
  }

  return {
    idOf,
    idOfId(id) {
      const term = told.get(id);
      return term && index.termsBySlug(term.taxonomy, term.slug)[0]?.id;
    },
    take,
    async takeNamed(terms) {
      const missing = new Map<string, WxrTerm>();
      for (const { taxonomy, slug, name } of terms) {
        if (taxonomy === "post_format" || idOf(taxonomy, { slug, name }) !== undefined) continue;
        missing.set(`${taxonomy}/${termSlugKey({ slug, name })}`, {
          ...{ kind: "term", line: 0, id: 0, taxonomy, slug, name: name || slug },
          ...{ description: "", parent: "", size: slug.length + name.length },
        });
      }
      if (missing.size > 0) await take([...missing.values()]);
    },
    async finish() {
      for (const batch of splitIntoBatches([...pending.values()], BATCH, ({ size }) => size)) {
        const warnings = await library.change((draft) => {
          const tree = treeIn(draft);
          return batch.flatMap((entry) => {
            const known = tree.find(entry);
            const parent = tree.find({ taxonomy: entry.taxonomy, slug: entry.parent });
            if (known === undefined) return [];
            if (parent !== undefined && tree.mayHang(known.id, parent)) {
              const { importedOpen: _, ...settled } = known;
              tree.put({ ...settled, parent: parent.id });
              return [];
            }
            const why = parent === undefined ? "is missing" : "hangs below it";
            const message = `The term “${entry.slug.slice(0, 60)}” hangs below none: its parent ${why}.`;
            return [{ line: entry.line, message }];
          });
        });
        for (const { line, message } of warnings) tally.warn(line, message);
      }
    },
  };
}

/** Empty for a term that hangs below none. */
const parentSlugOf = ({ parent }: WxrTerm): string =>
  parent === "" ? "" : termSlugKey({ slug: parent, name: parent });

const isSameRecord = (a: Term, b: Term): boolean =>
  JSON.stringify([a.name, a.description, a.parent, a.importedState, a.importedOpen]) ===
  JSON.stringify([b.name, b.description, b.parent, b.importedState, b.importedOpen]);
