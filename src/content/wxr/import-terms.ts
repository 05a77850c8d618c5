/** Brings the terms of a file into the site: found by their slug, or made; what hangs below a term that comes later is hung there at the end. */

import type { Draft, Library } from "../library.js";
import type { Taxonomy, Term } from "../records.js";
import { taxonomies, taxonomyOf } from "../terms/taxonomies.js";
import { MAX_NAME, termName } from "../terms/writing.js";
import { filterTitle } from "../text/filter-html.js";
import { slugOf } from "../text/slug.js";
import { stateOf } from "./identity.js";
import type { Outcome, Tally } from "./tally.js";
import type { WxrTerm } from "./types.js";

export interface TermImport {
  readonly take: (terms: readonly WxrTerm[]) => Promise<void>;
  /** Terms that posts name; made where neither the site nor the file has told of them. */
  readonly takeNamed: (
    terms: readonly { readonly taxonomy: string; readonly slug: string; readonly name: string }[],
  ) => Promise<void>;
  /** The term of this site; `undefined` where there is none. */
  readonly idOf: (taxonomy: string, slug: string) => number | undefined;
  /** Of a term by its id in the file. */
  readonly idOfId: (id: number) => number | undefined;
  readonly finish: () => Promise<void>;
}

const isTaxonomy = (name: string): name is Taxonomy => Object.hasOwn(taxonomies, name);

interface Pending {
  readonly term: WxrTerm;
  readonly state: string;
}

/** Terms in one commit. */
const BATCH = 500;

export function createTermImport({
  library,
  tally,
}: {
  readonly library: Library;
  readonly tally: Tally;
}): TermImport {
  const { index } = library;
  /** By the id in the file: taxonomy and slug. */
  const told = new Map<number, { readonly taxonomy: Taxonomy; readonly slug: string }>();
  const pending = new Map<string, Pending>();

  const idOf: TermImport["idOf"] = (taxonomy, slug) =>
    isTaxonomy(taxonomy) ? index.termsBySlug(taxonomy, slugOf(slug))[0]?.id : undefined;

  /** Stores a term, or finds that there is nothing to store. Those of the same commit are in `made`. */
  function put(term: WxrTerm & { readonly taxonomy: Taxonomy }, id: () => number, draft: Draft, made: Made) {
    const definition = taxonomyOf(term.taxonomy);
    const slug = slugOf(term.slug) || slugOf(term.name);
    const find = (wanted: string): Term | undefined =>
      made.get(`${term.taxonomy}/${wanted}`) ?? index.termsBySlug(term.taxonomy, wanted)[0];
    const known = find(slug);
    // What the site made itself it keeps as it is.
    if (known !== undefined && known.importedState === undefined) return "unchanged";
    const state = stateOf(term, "term");
    if (known?.importedState === state) return "unchanged";
    const parent = definition.isHierarchical && term.parent !== "" ? find(slugOf(term.parent)) : undefined;
    const isOpen = definition.isHierarchical && term.parent !== "" && parent === undefined;
    const record: Term = {
      id: known?.id ?? id(),
      version: known?.version ?? 0,
      taxonomy: term.taxonomy,
      name: nameOf(term),
      slug,
      description: filterTitle(term.description),
      parent: parent === undefined || isAbove(known?.id, parent) ? 0 : parent.id,
      meta: known?.meta ?? {},
      importedState: isOpen ? "" : state,
    };
    const written = record.slug === "" ? { ...record, slug: String(record.id) } : record;
    if (isOpen) pending.set(`${written.taxonomy}/${written.slug}`, { term, state });
    made.set(`${written.taxonomy}/${written.slug}`, written);
    if (known !== undefined && isSame(known, written)) return "unchanged";
    draft.putTerm(written);
    return known === undefined ? "created" : "updated";
  }

  /** Whether the term is among those above `below`, or is it. */
  function isAbove(id: number | undefined, below: Term): boolean {
    if (id === undefined) return false;
    return index.withDescendants(below.taxonomy, [id]).has(below.id);
  }

  async function store(terms: readonly (WxrTerm & { readonly taxonomy: Taxonomy })[]): Promise<void> {
    // Twice in one commit would be two writes of one record: the last one counts.
    const distinct = new Map(terms.map((term) => [`${term.taxonomy}/${slugOf(term.slug)}`, term] as const));
    const outcomes = await library.change(async (draft) => {
      const made: Made = new Map();
      const first = await draft.newIds("term", distinct.size);
      let used = 0;
      return [...distinct.values()].map((term): readonly [string, Outcome] => [
        taxonomyOf(term.taxonomy).base,
        put(term, () => first + used++, draft, made),
      ]);
    });
    for (const [base, outcome] of outcomes) tally.count(base, outcome);
  }

  async function take(terms: readonly WxrTerm[]): Promise<void> {
    const held: (WxrTerm & { readonly taxonomy: Taxonomy })[] = [];
    for (const term of terms) {
      const { taxonomy, id } = term;
      if (!isTaxonomy(taxonomy)) tally.leaveOut(`taxonomy ${taxonomy}`);
      else if (nameOf(term) === "") tally.warn(term.line, "A term without a name was left out.");
      else {
        held.push({ ...term, taxonomy });
        const slug = slugOf(term.slug) || slugOf(term.name);
        if (id > 0) told.set(id, { taxonomy, slug });
      }
    }
    for (let start = 0; start < held.length; start += BATCH) await store(held.slice(start, start + BATCH));
  }

  return {
    idOf,
    idOfId(id) {
      const term = told.get(id);
      return term && idOf(term.taxonomy, term.slug);
    },
    take,
    async takeNamed(terms) {
      const missing = new Map<string, WxrTerm>();
      for (const { taxonomy, slug, name } of terms) {
        if (taxonomy === "post_format" || idOf(taxonomy, slug || name) !== undefined) continue;
        missing.set(`${taxonomy}/${slug}`, {
          ...{ kind: "term", line: 0, id: 0, taxonomy, slug, name: name || slug },
          ...{ description: "", parent: "" },
        });
      }
      if (missing.size > 0) await take([...missing.values()]);
    },
    async finish() {
      const open = [...pending.values()];
      for (let start = 0; start < open.length; start += BATCH) {
        await library.change((draft) => {
          for (const { term, state } of open.slice(start, start + BATCH)) {
            const taxonomy = term.taxonomy as Taxonomy;
            const [known] = index.termsBySlug(taxonomy, slugOf(term.slug) || slugOf(term.name));
            const [parent] = index.termsBySlug(taxonomy, slugOf(term.parent));
            if (known === undefined || parent === undefined || isAbove(known.id, parent)) {
              tally.warn(
                term.line,
                `The term “${short(term.slug)}” hangs below none: its parent is missing.`,
              );
            } else draft.putTerm({ ...known, parent: parent.id, importedState: state });
          }
        });
      }
    },
  };
}

type Made = Map<string, Term>;

const short = (text: string): string => text.slice(0, 60);

const nameOf = ({ name, slug }: WxrTerm): string => (termName(name) || termName(slug)).slice(0, MAX_NAME);

const isSame = (a: Term, b: Term): boolean =>
  JSON.stringify([a.name, a.description, a.parent, a.importedState]) ===
  JSON.stringify([b.name, b.description, b.parent, b.importedState]);
