/** Renders the items of a taxonomy's terms with their links. */

import type { Context, Schema } from "../../schema/types.js";
import { COLLECTION_NAMES } from "../records/collection-names.js";
import type { Term } from "../records/records.js";
import { createItem } from "../rest/item.js";
import { type RecordFields, recordSchema, selectRecordFields } from "../rest/record-fields.js";
import type { Item, ItemLink, Links, RestRequest } from "../rest/types.js";
import type { TaxonomyDefinition } from "./taxonomies.js";
import { listTermAncestors, type TermFieldsOptions, termFields } from "./term-fields.js";
import type { TermPermissions } from "./term-permissions.js";

export interface TermRenderer {
  readonly fields: RecordFields<Term>;
  readonly schema: Schema;
  readonly renderItem: (term: Term, request: RestRequest, context: Context) => Item;
}

export interface TermRendererOptions extends TermFieldsOptions {
  /** `core/v2` */
  readonly namespace: string;
  readonly mayDelete: TermPermissions["mayDelete"];
}

export function createTermRenderer(
  definition: TaxonomyDefinition,
  { index, site, menuLocations, namespace, mayDelete }: TermRendererOptions,
): TermRenderer {
  const { taxonomy, base, types } = definition;
  const fields = termFields(definition, { site, index, menuLocations });

  function buildLinks(term: Term, { caller, url }: RestRequest): Links {
    const toUrl = (path: string): string => url(`/${namespace}${path}`);
    const allow = [
      "GET",
      ...(caller.canOf(taxonomy, "edit_terms") ? ["POST", "PUT", "PATCH"] : []),
      ...(mayDelete(caller, term) ? ["DELETE"] : []),
    ];
    const parent = listTermAncestors(term, index).at(-1);
    const up: Links = parent ? { up: [{ href: toUrl(`/${base}/${parent.id}`), embeddable: true }] } : {};
    const locations = taxonomy === "nav_menu" ? menuLocations.of(term.id) : [];
    const shownAt = locations.map((name) => ({ href: toUrl(`/menu-locations/${name}`), embeddable: true }));
    return {
      self: [{ href: toUrl(`/${base}/${term.id}`), targetHints: { allow } }],
      collection: [{ href: toUrl(`/${base}`) }],
      about: [{ href: toUrl(`/taxonomies/${taxonomy}`) }],
      ...up,
      "https://api.w.org/post_type": types.map(
        (type): ItemLink => ({ href: toUrl(`/${COLLECTION_NAMES[type]}?${base}=${term.id}`) }),
      ),
      ...(shownAt.length === 0 ? {} : { "https://api.w.org/menu-location": shownAt }),
    };
  }

  return {
    fields,
    schema: recordSchema(taxonomy === "post_tag" ? "tag" : taxonomy, fields),
    renderItem: (term, request, context) =>
      createItem(selectRecordFields(term, fields, context), buildLinks(term, request)),
  };
}
