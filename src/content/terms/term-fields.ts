/** Defines every field of a term. The table of taxonomies says which of them a taxonomy has. */

import type { Schema } from "../../schema/types.js";
import { LENGTHS, NAMES } from "../argument-bounds.js";
import type { ContentBase } from "../content-base.js";
import type { TaxonomyDefinition } from "../records/content-model.js";
import type { Term } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import { ALL, FULL, NO_META, type RecordField, type RecordFields } from "../rest/record-fields.js";
import type { Site } from "../site.js";

/** Deeper than any real tree. Bounds the walk if the stored parents form a cycle. */
const MAX_ANCESTORS = 100;

/** Lists the terms above a term, from the root down to its parent. */
export function listTermAncestors({ taxonomy, parent }: Term, index: ContentRepository["index"]): Term[] {
  const ancestors: Term[] = [];
  let above = parent === 0 ? undefined : index.term(parent);
  while (above !== undefined && above.taxonomy === taxonomy && ancestors.length < MAX_ANCESTORS) {
    ancestors.unshift(above);
    above = above.parent === 0 ? undefined : index.term(above.parent);
  }
  return ancestors;
}

/** Returns the URL of a term's posts on the website. */
export function termLink(
  term: Term,
  { isViewable, hasFlatPaths, pathPrefix }: TaxonomyDefinition,
  site: Site,
  index: ContentRepository["index"],
): string {
  if (!isViewable) return `${site.home}/?taxonomy=${term.taxonomy}&term=${term.slug}`;
  const above = hasFlatPaths ? [] : listTermAncestors(term, index);
  return site.termLink(pathPrefix, [...above, term].map(({ slug }) => slug).join("/"));
}

const READONLY: Schema = { readonly: true };

/** Returns the fields of a taxonomy's terms, in the order of the response. */
export function termFields(
  definition: TaxonomyDefinition,
  { site, repository, menuLocations }: ContentBase,
): RecordFields<Term> {
  const { index } = repository;
  const fields: { [name: string]: RecordField<Term> } = {
    id: {
      schema: { description: "Unique identifier for the term.", type: "integer", context: ALL, ...READONLY },
      read: ({ id }) => id,
    },
    count: {
      schema: {
        description: "Number of published posts for the term.",
        type: "integer",
        context: FULL,
        ...READONLY,
      },
      read: ({ taxonomy, id }) => index.countOf(taxonomy, id),
    },
    description: {
      schema: {
        description: "HTML description of the term.",
        type: "string",
        maxLength: LENGTHS.termText,
        context: FULL,
      },
      read: ({ description }) => description,
    },
    link: {
      schema: { description: "URL of the term.", type: "string", format: "uri", context: ALL, ...READONLY },
      read: (term) => termLink(term, definition, site, index),
    },
    name: {
      schema: {
        description: "HTML title for the term.",
        type: "string",
        maxLength: LENGTHS.termName,
        context: ALL,
      },
      read: ({ name }) => name,
    },
    slug: {
      schema: {
        description: "An alphanumeric identifier for the term unique to its type.",
        type: "string",
        maxLength: LENGTHS.slug,
        context: ALL,
      },
      read: ({ slug }) => slug,
    },
    taxonomy: {
      schema: {
        description: "Type attribution for the term.",
        type: "string",
        enum: [definition.taxonomy],
        context: ALL,
        ...READONLY,
      },
      read: ({ taxonomy }) => taxonomy,
    },
    parent: {
      schema: { description: "The parent term ID.", type: "integer", context: FULL },
      read: ({ parent }) => parent,
    },
    meta: NO_META,
    locations: {
      schema: { description: "The locations assigned to the menu.", ...NAMES, context: FULL },
      read: ({ id }) => menuLocations.of(id),
    },
    // It is kept for the editor: the site adds no pages to menus by itself.
    auto_add: {
      schema: {
        description: "Whether to automatically add top level pages to this menu.",
        type: "boolean",
        context: FULL,
      },
      read: ({ isAutoAdding = false }) => isAutoAdding,
    },
  };
  return Object.fromEntries(
    definition.fields.map((name) => {
      const field = fields[name];
      if (field === undefined) throw new Error(`Terms have no field '${name}'.`);
      return [name, field];
    }),
  );
}
