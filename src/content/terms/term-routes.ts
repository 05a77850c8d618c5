/** The routes of a taxonomy's terms, made from its row of the table: list, create, read, update, delete. */

import type { Argument, Arguments, Context } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import { canEditSomething } from "../auth/capabilities.js";
import { getCollection } from "../collections.js";
import { STATUSES } from "../query/row.js";
import type { Term } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import { removePosts } from "../repository/remove-posts.js";
import { RestError, refusal } from "../rest/error.js";
import { createItem } from "../rest/item.js";
import { renderPage } from "../rest/paging.js";
import {
  contextArgument,
  readContext,
  recordSchema,
  selectRecordFields,
  writableArguments,
} from "../rest/record-fields.js";
import type { Item, ItemLink, Links, RestRequest, RestResponse, RestRoute } from "../rest/types.js";
import type { Site } from "../site.js";
import { type TaxonomyDefinition, taxonomies } from "./taxonomies.js";
import { listTermAncestors, termFields } from "./term-fields.js";
import { listTerms, termListArguments, toTermQuery } from "./term-list.js";
import { applyTermValues } from "./write-term.js";

export interface TermRoutesOptions {
  readonly library: Pick<ContentRepository, "index" | "change" | "posts" | "revisions">;
  readonly site: Pick<Site, "home" | "termLink">;
  /** `core/v2` */
  readonly namespace: string;
  /** The category that cannot be deleted. */
  readonly defaultCategory: () => number | undefined;
}

/** The routes of all taxonomies. */
export const termRoutes = (options: TermRoutesOptions): readonly RestRoute[] =>
  Object.values(taxonomies).flatMap((definition) => taxonomyRoutes(definition, options));

/** Menu items that go in one change; a menu has seldom more. */
const ITEMS_AT_ONCE = 1_000;

const idArgument: Argument = { description: "Unique identifier for the term.", type: "integer" };

function taxonomyRoutes(
  definition: TaxonomyDefinition,
  { library, site, namespace, defaultCategory }: TermRoutesOptions,
): readonly RestRoute[] {
  const { index } = library;
  const { taxonomy, base, isHierarchical, isPublic, types } = definition;
  const fields = termFields(definition, { site, index });
  const schema = recordSchema(taxonomy === "post_tag" ? "tag" : taxonomy, fields);

  const find = ({ values }: RestRequest): Term => {
    const term = index.term(Number(values["id"]));
    if (term?.taxonomy === taxonomy) return term;
    throw new RestError(404, "rest_term_invalid", "Term does not exist.");
  };

  const mayDelete = (caller: Caller, { id }: Term): boolean =>
    caller.canOf(taxonomy, "delete_terms") && id !== defaultCategory();

  function refuseReading({ caller }: RestRequest): void {
    if (isPublic || canEditSomething(caller)) return;
    throw refusal(caller, "rest_cannot_view", "Sorry, you are not allowed to view menus.");
  }

  function linksOf(term: Term, { caller, url }: RestRequest): Links {
    const to = (path: string): string => url(`/${namespace}${path}`);
    const canEdit = caller.canOf(taxonomy, "edit_terms");
    const allow = [
      "GET",
      ...(canEdit ? ["POST", "PUT", "PATCH"] : []),
      ...(mayDelete(caller, term) ? ["DELETE"] : []),
    ];
    const parent = listTermAncestors(term, index).at(-1);
    const up: Links = parent ? { up: [{ href: to(`/${base}/${parent.id}`), embeddable: true }] } : {};
    return {
      self: [{ href: to(`/${base}/${term.id}`), targetHints: { allow } }],
      collection: [{ href: to(`/${base}`) }],
      about: [{ href: to(`/taxonomies/${taxonomy}`) }],
      ...up,
      "https://api.w.org/post_type": types.map(
        (type): ItemLink => ({ href: to(`/${getCollection(type).base}?${base}=${term.id}`) }),
      ),
    };
  }

  const itemOf = (term: Term, request: RestRequest, context: Context): Item =>
    createItem(selectRecordFields(term, fields, context), linksOf(term, request));

  /** The terms of one post, or all. Errors: as for reading the post. */
  function candidates({ values, caller }: RestRequest): readonly Term[] {
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
  }

  const countOf = ({ id }: Term): number => index.countOf(taxonomy, id);

  function list(request: RestRequest): RestResponse {
    const { values } = request;
    const found = listTerms(candidates(request), toTermQuery(values), {
      all: index.terms(taxonomy),
      countOf,
    });
    return renderPage(found, request, {
      path: `/${namespace}/${base}`,
      itemOf: (term) => itemOf(term, request, readContext(request)),
    });
  }

  /** Commits what `values` say, over the term with that id or as a new one. */
  const write = (request: RestRequest, previous: () => Term | null): Promise<Term> =>
    library.change(async (draft) => {
      const before = previous();
      const id = before?.id ?? (await draft.newId("term"));
      const term = applyTermValues(request.values, before, id, { definition, index });
      draft.putTerm(term);
      for (const above of listTermAncestors(term, index)) draft.expectUnchanged(`term/${above.id}`);
      return term;
    });

  async function create(request: RestRequest): Promise<RestResponse> {
    const term = await write(request, () => null);
    return {
      status: 201,
      headers: { location: request.url(`/${namespace}/${base}/${term.id}`) },
      body: { item: itemOf(term, request, "edit") },
    };
  }

  async function update(request: RestRequest): Promise<RestResponse> {
    const term = await write(request, () => find(request));
    return { status: 200, headers: {}, body: { item: itemOf(term, request, "edit") } };
  }

  /** A menu's items mean nothing without it. In several changes: a menu may hold more than one commit takes. */
  async function removeItems(id: number): Promise<void> {
    for (let isMore = true; isMore; ) {
      isMore = await library.change(async (draft) => {
        const { ids, total } = await index.find(
          {
            type: "nav_menu_item",
            visibility: Object.fromEntries(STATUSES.map((status) => [status, "all"])),
            terms: [{ taxonomy, terms: [id], includeChildren: false, operator: "OR" }],
            orderBy: "id",
            order: "asc",
            offset: 0,
            limit: ITEMS_AT_ONCE,
          },
          async () => [],
        );
        await removePosts(draft, ids, library);
        return total > ids.length;
      });
    }
  }

  async function remove(request: RestRequest): Promise<RestResponse> {
    if (request.values["force"] !== true) {
      throw new RestError(
        501,
        "rest_trash_not_supported",
        "Terms do not support trashing. Set 'force=true' to delete.",
      );
    }
    if (definition.ownsItsPosts) await removeItems(find(request).id);
    const previous = await library.change(async (draft) => {
      const term = find(request);
      const item = itemOf(term, request, "view");
      draft.removeTerm(term);
      for (const child of index.termChildren(taxonomy, term.id)) {
        draft.putTerm({ ...child, parent: term.parent });
      }
      await removePosts(draft, index.targeting(`term/${term.id}`), library);
      return item;
    });
    return { status: 200, headers: {}, body: { json: { deleted: true, previous: previous.fields } } };
  }

  const writable: Arguments = writableArguments(fields);
  const name = { ...writable["name"], required: true };
  return [
    {
      namespace,
      path: `/${base}`,
      schema,
      endpoints: [
        {
          methods: ["GET"],
          args: termListArguments(definition),
          permit(request) {
            const { caller } = request;
            if (readContext(request) === "edit" && !caller.canOf(taxonomy, "edit_terms")) {
              throw refusal(
                caller,
                "rest_forbidden_context",
                "Sorry, you are not allowed to edit terms in this taxonomy.",
              );
            }
            refuseReading(request);
          },
          handle: list,
        },
        {
          methods: ["POST"],
          args: { ...writable, name },
          permit({ caller }) {
            if (caller.canOf(taxonomy, isHierarchical ? "edit_terms" : "assign_terms")) return;
            throw refusal(
              caller,
              "rest_cannot_create",
              "Sorry, you are not allowed to create terms in this taxonomy.",
            );
          },
          handle: create,
        },
      ],
    },
    {
      namespace,
      path: `/${base}/:id`,
      schema,
      endpoints: [
        {
          methods: ["GET"],
          args: { id: idArgument, context: contextArgument },
          permit(request) {
            find(request);
            const { caller } = request;
            if (readContext(request) === "edit" && !caller.canOf(taxonomy, "edit_terms")) {
              throw refusal(
                caller,
                "rest_forbidden_context",
                "Sorry, you are not allowed to edit this term.",
              );
            }
            refuseReading(request);
          },
          handle: (request) => ({
            status: 200,
            headers: {},
            body: { item: itemOf(find(request), request, readContext(request)) },
          }),
        },
        {
          methods: ["POST", "PUT", "PATCH"],
          args: { id: idArgument, ...writable },
          permit(request) {
            find(request);
            const { caller } = request;
            if (caller.canOf(taxonomy, "edit_terms")) return;
            throw refusal(caller, "rest_cannot_update", "Sorry, you are not allowed to edit this term.");
          },
          handle: update,
        },
        {
          methods: ["DELETE"],
          args: {
            id: idArgument,
            force: {
              description: "Required to be true, as terms do not support trashing.",
              type: "boolean",
              default: false,
            },
          },
          permit(request) {
            const { caller } = request;
            if (mayDelete(caller, find(request))) return;
            throw refusal(caller, "rest_cannot_delete", "Sorry, you are not allowed to delete this term.");
          },
          handle: remove,
        },
      ],
    },
  ];
}
