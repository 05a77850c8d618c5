/** Decides who may list, read, create, change and delete the terms of a taxonomy. */

import type { Context, Schema } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import type { ContentBase } from "../content-base.js";
import { getCollection, type TaxonomyDefinition } from "../records/content-model.js";
import type { Term } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import { RestError, refusal } from "../rest/error.js";
import { type RecordFields, readContext, recordSchema, selectRecordFields } from "../rest/record-fields.js";
import { createItem } from "../rest/serialise.js";
import type { Item, ItemLink, Links, RestRequest } from "../rest/types.js";
import { listTermAncestors, termFields } from "./term-fields.js";

/** The `permit` functions throw the RestError of WordPress for a request that is not allowed. */
export interface TermPermissions {
  /** Returns the requested term. Throws RestError 404 `rest_term_invalid` if it does not exist. */
  find: (request: RestRequest) => Term;
  mayDelete: (caller: Caller, term: Term) => boolean;
  /** Returns the terms to list: those of one post, or all. Throws if the post may not be read. */
  listReadable: (request: RestRequest) => Term[];
  permitList: (request: RestRequest) => void;
  permitCreate: (request: RestRequest) => void;
  permitRead: (request: RestRequest) => void;
  permitUpdate: (request: RestRequest) => void;
  permitDelete: (request: RestRequest) => void;
}

export function createTermPermissions(
  { taxonomy, isHierarchical, isPublic }: TaxonomyDefinition,
  { index, defaultCategory }: ContentRepository,
): TermPermissions {
  const canEdit = (caller: Caller): boolean => caller.canOf(taxonomy, "edit_terms");

  function find({ values }: RestRequest): Term {
    const term = index.term(Number(values["id"]));
    if (term?.taxonomy === taxonomy) return term;
    throw new RestError(404, "rest_term_invalid", "Term does not exist.");
  }

  const mayDelete = (caller: Caller, { id }: Term): boolean =>
    caller.canOf(taxonomy, "delete_terms") && id !== defaultCategory();

  /** `message` explains the refusal of the context `edit`. */
  function permitContext(request: RestRequest, message: string): void {
    const { caller } = request;
    if (readContext(request) === "edit" && !canEdit(caller)) {
      throw refusal(caller, "rest_forbidden_context", message);
    }
    if (isPublic || caller.canEditSomething()) return;
    const what = taxonomy === "nav_menu" ? "menus" : "terms in this taxonomy";
    throw refusal(caller, "rest_cannot_view", `Sorry, you are not allowed to view ${what}.`);
  }

  return {
    find,
    mayDelete,
    listReadable({ values, caller }) {
      const { post: id } = values;
      if (typeof id !== "number") return index.terms(taxonomy);
      const post = index.post(id);
      if (post === undefined) throw new RestError(400, "rest_post_invalid_id", "Invalid post ID.");
      if (!caller.may("read", post, post.status === "inherit" ? index.post(post.parent) : undefined)) {
        throw refusal(
          caller,
          "rest_forbidden_context",
          "Sorry, you are not allowed to view terms for this post.",
        );
      }
      return index.termsOf(post, taxonomy).flatMap((term) => index.term(term) ?? []);
    },
    permitList: (request) =>
      permitContext(request, "Sorry, you are not allowed to edit terms in this taxonomy."),
    permitCreate({ caller }) {
      if (caller.canOf(taxonomy, isHierarchical ? "edit_terms" : "assign_terms")) return;
      throw refusal(
        caller,
        "rest_cannot_create",
        "Sorry, you are not allowed to create terms in this taxonomy.",
      );
    },
    permitRead(request) {
      find(request);
      permitContext(request, "Sorry, you are not allowed to edit this term.");
    },
    permitUpdate(request) {
      find(request);
      const { caller } = request;
      if (canEdit(caller)) return;
      throw refusal(caller, "rest_cannot_update", "Sorry, you are not allowed to edit this term.");
    },
    permitDelete(request) {
      const { caller } = request;
      if (mayDelete(caller, find(request))) return;
      throw refusal(caller, "rest_cannot_delete", "Sorry, you are not allowed to delete this term.");
    },
  };
}

// Renders the items of a taxonomy's terms with their links.

interface TermRenderer {
  fields: RecordFields<Term>;
  schema: Schema;
  renderItem: (term: Term, request: RestRequest, context: Context) => Item;
}

export function createTermRenderer(
  definition: TaxonomyDefinition,
  base: ContentBase,
  mayDelete: TermPermissions["mayDelete"],
): TermRenderer {
  const { menuLocations, namespace, model } = base;
  const { index } = base.repository;
  const { taxonomy, base: name } = definition;
  const bases = definition.types.map((type) => getCollection(model, type).base);
  const fields = termFields(definition, base);

  function buildLinks(term: Term, { caller, url }: RestRequest): Links {
    const toUrl = (path: string): string => url(`/${namespace}${path}`);
    const allow = [
      "GET",
      ...(caller.canOf(taxonomy, "edit_terms") ? ["POST", "PUT", "PATCH"] : []),
      ...(mayDelete(caller, term) ? ["DELETE"] : []),
    ];
    const parent = listTermAncestors(term, index).at(-1);
    const up: Links = parent ? { up: [{ href: toUrl(`/${name}/${parent.id}`), embeddable: true }] } : {};
    const locations = taxonomy === "nav_menu" ? menuLocations.of(term.id) : [];
    const shownAt = locations.map((name) => ({ href: toUrl(`/menu-locations/${name}`), embeddable: true }));
    return {
      self: [{ href: toUrl(`/${name}/${term.id}`), targetHints: { allow } }],
      collection: [{ href: toUrl(`/${name}`) }],
      about: [{ href: toUrl(`/taxonomies/${taxonomy}`) }],
      ...up,
      "https://api.w.org/post_type": bases.map(
        (typeBase): ItemLink => ({ href: toUrl(`/${typeBase}?${name}=${term.id}`) }),
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
