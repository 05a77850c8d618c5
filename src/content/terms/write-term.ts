/** What becomes of a term when it is written: pure rules for name, slug and place in a tree, after the reference's. */

import type { Json } from "../../schema/types.js";
import type { Term } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import { RestError } from "../rest/error.js";
import { stripAll } from "../text/plain.js";
import { sanitiseTitle } from "../text/sanitise-html.js";
import { toSlug, uniqueSlug } from "../text/slug.js";
import type { TaxonomyDefinition } from "./taxonomies.js";
import { listTermAncestors } from "./term-fields.js";

/** In characters, as the reference stores them. */
export const MAX_NAME = 200;

/** An `&` that begins no reference. */
const AMPERSAND = /&(?!#\d{1,8};|#x[\da-f]{1,7};|[a-z][a-z\d]{0,31};)/gi;

/** One line without markup, safe to stand in HTML: `R&amp;D`, as the reference stores and answers it. */
export const termName = (text: string): string =>
  stripAll(text).replace(AMPERSAND, "&amp;").replaceAll(">", "&gt;");

/**
 * The record that comes of writing `values` over `previous`, or of creating one with the id `id`. A new term's slug is made unique; a changed one's
 * must be unless its parent changes with it. A parent below the term itself becomes 0.
 *
 * Errors: RestError 400 `empty_term_name`, `rest_invalid_param`, `term_exists` (with `term_id`), `duplicate_term_slug`, `rest_term_invalid`,
 * `rest_taxonomy_not_hierarchical`. The reference answers some of them with 500.
 */
export function applyTermValues(
  values: { readonly [name: string]: Json | undefined },
  previous: Term | null,
  id: number,
  {
    definition,
    index,
  }: { readonly definition: TaxonomyDefinition; readonly index: ContentRepository["index"] },
): Term {
  const { taxonomy } = definition;
  const given = (name: string): string | undefined => {
    const value = values[name];
    return typeof value === "string" ? value : undefined;
  };
  const before: Term = previous ?? {
    id,
    version: 0,
    taxonomy,
    name: "",
    slug: "",
    description: "",
    parent: 0,
    meta: {},
  };
  const name = given("name");
  const description = given("description");
  const term: Term = {
    ...before,
    ...(name === undefined ? {} : { name: termName(name) }),
    ...(description === undefined ? {} : { description: sanitiseTitle(description) }),
    parent: writtenParent(values["parent"], before, definition, index),
  };
  refuseName(term.name);

  const slug = toSlug(given("slug") ?? "");
  // A name of signs alone makes no slug; the reference takes the id then.
  const wanted = slug || (given("slug") === undefined && before.slug) || toSlug(term.name) || String(id);
  if (previous === null) refuseTwin(term, slug, wanted, definition, index);
  const holder = index.termsBySlug(taxonomy, wanted).find((other) => other.id !== id);
  if (holder === undefined) return { ...term, slug: wanted };
  const mayDiffer = previous === null || slug === "" || term.parent !== before.parent;
  if (!mayDiffer) {
    throw new RestError(
      400,
      "duplicate_term_slug",
      `The slug “${wanted.slice(0, 100)}” is already in use by another term.`,
    );
  }
  return { ...term, slug: freeSlug(wanted, term, index) };
}

function refuseName(name: string): void {
  if (name === "") throw new RestError(400, "empty_term_name", "A name is required for this term.");
  if (name.length <= MAX_NAME) return;
  const message = `name must be at most ${MAX_NAME} characters long.`;
  throw new RestError(400, "rest_invalid_param", "Invalid parameter(s): name", {
    data: { params: { name: message }, details: { name: { code: "rest_too_long", message, data: null } } },
  });
}

function writtenParent(
  value: Json | undefined,
  { id, taxonomy, parent }: Term,
  { isHierarchical }: TaxonomyDefinition,
  index: ContentRepository["index"],
): number {
  if (value === undefined || value === null) return parent;
  if (!isHierarchical) {
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

/** Two terms of one name beside each other would look like one; a slug of its own tells them apart. */
function refuseTwin(
  term: Term,
  givenSlug: string,
  wantedSlug: string,
  { taxonomy, isHierarchical }: TaxonomyDefinition,
  index: ContentRepository["index"],
): void {
  const siblings = isHierarchical ? index.termChildren(taxonomy, term.parent) : index.terms(taxonomy);
  const name = term.name.toLowerCase();
  const twin = siblings.find((other) => other.name.toLowerCase() === name);
  if (twin === undefined) return;
  const holder = index
    .termsBySlug(taxonomy, wantedSlug)
    .find((other) => !isHierarchical || other.parent === term.parent);
  const hasOwnSlug = givenSlug !== "" && twin.slug !== givenSlug;
  if (hasOwnSlug && holder === undefined) return;
  const existing = hasOwnSlug && isHierarchical ? (holder ?? twin) : twin;
  const where = isHierarchical ? "with this parent" : "in this taxonomy";
  throw new RestError(400, "term_exists", `A term with the name provided already exists ${where}.`, {
    data: { term_id: existing.id },
  });
}

/** With the slugs of its ancestors appended, one by one, and then with a number. */
function freeSlug(wanted: string, term: Term, index: ContentRepository["index"]): string {
  const isTaken = (slug: string): boolean =>
    index.termsBySlug(term.taxonomy, slug).some(({ id }) => id !== term.id);
  let slug = wanted;
  for (const ancestor of listTermAncestors(term, index).toReversed()) {
    slug = `${slug}-${ancestor.slug}`;
    if (!isTaken(slug)) break;
  }
  return uniqueSlug(slug, isTaken);
}
