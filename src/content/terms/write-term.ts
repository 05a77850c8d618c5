/**
 * Applies the values of a request to a term: the rules of WordPress for name, slug and parent.
 * Pure.
 */

import type { Json } from "../../schema/types.js";
import type { TaxonomyDefinition } from "../records/content-model.js";
import type { Term } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import { RestError } from "../rest/error.js";
import { stripAll } from "../text/markup.js";
import { toSlug, uniqueSlug } from "../text/slug.js";
import { listTermAncestors } from "./term-fields.js";

/** In characters; the limit of WordPress. */
export const MAX_NAME = 200;

/** Matches an `&` that begins no character reference. */
const AMPERSAND = /&(?!#\d{1,8};|#x[\da-f]{1,7};|[a-z][a-z\d]{0,31};)/gi;

/** Returns a name as WordPress stores it: one line without markup, escaped for HTML: `R&amp;D`. */
export const termName = (text: string): string =>
  stripAll(text).replace(AMPERSAND, "&amp;").replaceAll(">", "&gt;");

interface TermContext {
  definition: TaxonomyDefinition;
  index: ContentRepository["index"];
}

type TermValues = { [name: string]: Json | undefined };

const getText = (values: TermValues, name: string): string | undefined => {
  const value = values[name];
  return typeof value === "string" ? value : undefined;
};

/**
 * Returns the record after writing `values` over `previous`, or a new record with the id `id`. The
 * slug of a new term is made unique. A changed slug must be unique, unless the parent changes too.
 * A parent below the term itself becomes 0.
 *
 * @throws RestError 400 `empty_term_name`, `rest_invalid_param`, `term_exists` (with `term_id`),
 * `duplicate_term_slug`, `rest_term_invalid`, `rest_taxonomy_not_hierarchical`. WordPress responds
 * with 500 to some of them.
 */
export function applyTermValues(
  values: TermValues,
  previous: Term | null,
  id: number,
  context: TermContext,
): Term {
  const { taxonomy } = context.definition;
  const blank: Term = { id, version: 0, taxonomy, name: "", slug: "", description: "", parent: 0, meta: {} };
  const before = previous ?? blank;
  const name = getText(values, "name");
  const description = getText(values, "description");
  const term: Term = {
    ...before,
    ...(name === undefined ? {} : { name: termName(name) }),
    ...(description === undefined ? {} : { description }),
    parent: resolveParent(values["parent"], before, context),
    ...(typeof values["auto_add"] === "boolean" ? { isAutoAdding: values["auto_add"] } : {}),
  };
  refuseName(term.name);
  if (taxonomy !== "nav_menu") {
    return { ...term, slug: chooseSlug(term, getText(values, "slug"), previous, context) };
  }
  refuseMenuName(term, context);
  // As in WordPress, the slug of a menu follows its name, whatever the client asks for.
  return { ...term, slug: chooseSlug({ ...term, slug: "" }, "", previous, context) };
}

function chooseSlug(
  term: Term,
  givenSlug: string | undefined,
  previous: Term | null,
  context: TermContext,
): string {
  const { index } = context;
  const slug = toSlug(givenSlug ?? "");
  // A name without letters and digits has no slug. WordPress uses the id then.
  const wanted = slug || (givenSlug === undefined && term.slug) || toSlug(term.name) || String(term.id);
  if (previous === null) assertUniqueName(term, slug, wanted, context);
  const holder = index.termsBySlug(term.taxonomy, wanted).find((other) => other.id !== term.id);
  if (holder === undefined) return wanted;
  const mayDiffer = previous === null || slug === "" || term.parent !== previous.parent;
  if (mayDiffer) return findFreeSlug(wanted, term, index);
  throw new RestError(
    400,
    "duplicate_term_slug",
    `The slug “${wanted.slice(0, 100)}” is already in use by another term.`,
  );
}

function refuseName(name: string): void {
  if (name === "") throw new RestError(400, "empty_term_name", "A name is required for this term.");
  if (name.length <= MAX_NAME) return;
  const message = `name must be at most ${MAX_NAME} characters long.`;
  throw new RestError(400, "rest_invalid_param", "Invalid parameter(s): name", {
    data: { params: { name: message }, details: { name: { code: "rest_too_long", message, data: null } } },
  });
}

function resolveParent(
  value: Json | undefined,
  { id, taxonomy, parent }: Term,
  { definition, index }: TermContext,
): number {
  if (value === undefined || value === null) return parent;
  if (!definition.isHierarchical) {
    throw new RestError(
      400,
      "rest_taxonomy_not_hierarchical",
      "Cannot set parent term, taxonomy is not hierarchical.",
    );
  }
  const wanted = Number(value);
  if (wanted === 0) return 0;
  if (index.term(wanted)?.taxonomy !== taxonomy) {
    throw new RestError(400, "rest_term_invalid", "Parent term does not exist.");
  }
  return index.withDescendants(taxonomy, [id]).has(wanted) ? 0 : wanted;
}

/** Sibling terms with the same name look alike; only a separate slug tells a new one apart. */
function assertUniqueName(
  { taxonomy, parent, name }: Term,
  givenSlug: string,
  wantedSlug: string,
  { definition: { isHierarchical }, index }: TermContext,
): void {
  // Terms of a flat taxonomy have no parent.
  const [twin] = index.termsByName(taxonomy, parent, name);
  if (twin === undefined) return;
  const holder = index
    .termsBySlug(taxonomy, wantedSlug)
    .find((other) => !isHierarchical || other.parent === parent);
  const hasOwnSlug = givenSlug !== "" && twin.slug !== givenSlug;
  if (hasOwnSlug && holder === undefined) return;
  const existing = hasOwnSlug && isHierarchical ? (holder ?? twin) : twin;
  const where = isHierarchical ? "with this parent" : "in this taxonomy";
  throw new RestError(400, "term_exists", `A term with the name provided already exists ${where}.`, {
    data: { term_id: existing.id },
  });
}

function refuseMenuName({ id, taxonomy, parent, name }: Term, { index }: TermContext): void {
  if (index.termsByName(taxonomy, parent, name).every((other) => other.id === id)) return;
  throw new RestError(
    400,
    "menu_exists",
    `The menu name ${name.slice(0, 100)} conflicts with another menu name. Please try another.`,
  );
}

/** Appends the slugs of the ancestors one by one, then a number, until the slug is free. */
function findFreeSlug(wanted: string, term: Term, index: ContentRepository["index"]): string {
  const isTaken = (slug: string): boolean =>
    index.termsBySlug(term.taxonomy, slug).some(({ id }) => id !== term.id);
  let slug = wanted;
  for (const ancestor of listTermAncestors(term, index).toReversed()) {
    slug = `${slug}-${ancestor.slug}`;
    if (!isTaken(slug)) break;
  }
  return uniqueSlug(slug, isTaken, {
    nextFree: (stem, from) => index.nextFreeTermSlug(term.taxonomy, stem, from),
    vacated: [index.term(term.id)?.slug],
  });
}
