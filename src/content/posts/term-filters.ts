/** Filters of lists by the terms of a taxonomy: their arguments, and their part of the query. */

import type { Argument, JsonObject, Schema } from "../../schema/types.js";
import { IDS } from "../argument-bounds.js";
import type { Collection } from "../collections.js";
import type { TermFilter } from "../query/types.js";
import type { Taxonomy } from "../records/records.js";
import { getTaxonomy } from "../terms/taxonomies.js";
import type { Values } from "./write-context.js";

const INCLUDE_CHILDREN: Schema = {
  description: "Whether to include child terms in the terms limiting the result set.",
  type: "boolean",
  default: false,
};

const OPERATOR: Schema = {
  description: "Whether items must be assigned all or any of the specified terms.",
  type: "string",
  enum: ["AND", "OR"],
  default: "OR",
};

/** Returns the argument that filters by term ids, or by an object with ids and options. */
export function termArgument(taxonomy: Taxonomy, { isExclude }: { readonly isExclude: boolean }): Argument {
  const { labels, isHierarchical } = getTaxonomy(taxonomy);
  const verb = isExclude ? "except those with" : "with";
  return {
    description: `Limit result set to items ${verb} specific ${labels.name.toLowerCase()}.`,
    type: ["object", "array"],
    oneOf: [
      { title: "Term ID List", ...IDS },
      {
        title: "Term ID Taxonomy Query",
        type: "object",
        properties: {
          terms: { description: "Term IDs.", ...IDS, default: [] },
          ...(isHierarchical ? { include_children: INCLUDE_CHILDREN } : {}),
          ...(isExclude ? {} : { operator: OPERATOR }),
        },
        additionalProperties: false,
      },
    ],
  };
}

function toTermFilter(taxonomy: Taxonomy, value: Values[string], isExclude: boolean): TermFilter | undefined {
  if (value === undefined || value === null) return undefined;
  const query = (Array.isArray(value) ? { terms: value } : value) as JsonObject;
  const terms = (query["terms"] ?? []) as readonly number[];
  if (terms.length === 0) return undefined;
  const operator = isExclude ? "NOT" : query["operator"] === "AND" ? "AND" : "OR";
  return { taxonomy, terms, operator, includeChildren: query["include_children"] === true };
}

/** Returns the filters by term that the values of a list's arguments ask for. */
export const toTermFilters = (values: Values, { taxonomies }: Collection): readonly TermFilter[] =>
  taxonomies
    .flatMap((taxonomy) => {
      const { base } = getTaxonomy(taxonomy);
      return [
        toTermFilter(taxonomy, values[base], false),
        toTermFilter(taxonomy, values[`${base}_exclude`], true),
      ];
    })
    .filter((filter) => filter !== undefined);
