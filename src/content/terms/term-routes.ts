/** The REST routes of terms, one set per taxonomy: list, create, read, update, delete. */

import { coerceValue } from "../../schema/coerce.js";
import type { Argument, Arguments, Json } from "../../schema/types.js";
import { validateValue } from "../../schema/validate.js";
import type { ContentBase } from "../content-base.js";
import type { MenuLocations } from "../menu-locations/menu-locations.js";
import { STATUSES } from "../query/row.js";
import type { TaxonomyDefinition } from "../records/content-model.js";
import type { Term } from "../records/records.js";
import { removePosts } from "../repository/remove-posts.js";
import { RestError } from "../rest/error.js";
import { respondWithPage } from "../rest/lists.js";
import { contextArgument, readContext, writableArguments } from "../rest/record-fields.js";
import { countSanitised } from "../rest/sanitised-characters.js";
import type { RestEndpoint, RestRequest, RestResponse, RestRoute } from "../rest/types.js";
import { listTermAncestors } from "./term-fields.js";
import { listTerms, termListArguments, toTermQuery } from "./term-list.js";
import { createTermPermissions, createTermRenderer } from "./term-permissions.js";
import { applyTermValues } from "./write-term.js";

const ID: Argument = { description: "Unique identifier for the term.", type: "integer" };
const FORCE: Argument = {
  description: "Required to be true, as terms do not support trashing.",
  type: "boolean",
  default: false,
};

/** Returns the routes of all taxonomies. */
export const termRoutes = (base: ContentBase): RestRoute[] =>
  [...base.model.taxonomies.values()].flatMap((definition) => taxonomyRoutes(definition, base));

function taxonomyRoutes(definition: TaxonomyDefinition, base: ContentBase): RestRoute[] {
  const { repository, menuLocations, namespace } = base;
  const { index } = repository;
  const { taxonomy, base: name } = definition;
  const permissions = createTermPermissions(definition, repository);
  const { find, mayDelete } = permissions;
  const { fields, schema, renderItem } = createTermRenderer(definition, base, mayDelete);
  const changes = createTermChanges(definition, base);
  const writable: Arguments = withKnownLocations(writableArguments(fields), menuLocations);
  const toItemResponse = (
    term: Term,
    request: RestRequest,
    context = readContext(request),
  ): RestResponse => ({
    status: 200,
    headers: {},
    body: { item: renderItem(term, request, context) },
  });

  const list: RestEndpoint = {
    methods: ["GET"],
    args: termListArguments(definition),
    permit: permissions.permitList,
    handle(request) {
      const found = listTerms(permissions.listReadable(request), toTermQuery(request.values), {
        all: index.terms(taxonomy),
        countOf: ({ id }) => index.countOf(taxonomy, id),
      });
      return respondWithPage(found, request, {
        path: `/${namespace}/${name}`,
        itemOf: (term) => renderItem(term, request, readContext(request)),
      });
    },
  };
  const create: RestEndpoint = {
    methods: ["POST"],
    args: { ...writable, name: { ...writable["name"], required: true } },
    permit: permissions.permitCreate,
    async handle(request) {
      const term = await changes.write(request, () => null);
      const headers = { location: request.url(`/${namespace}/${name}/${term.id}`) };
      return { ...toItemResponse(term, request, "edit"), status: 201, headers };
    },
  };
  const read: RestEndpoint = {
    methods: ["GET"],
    args: { id: ID, context: contextArgument },
    permit: permissions.permitRead,
    handle: (request) => toItemResponse(find(request), request),
  };
  const update: RestEndpoint = {
    methods: ["POST", "PUT", "PATCH"],
    args: { id: ID, ...writable },
    permit: permissions.permitUpdate,
    async handle(request) {
      const term = await changes.write(request, () => find(request));
      return toItemResponse(term, request, "edit");
    },
  };
  const remove: RestEndpoint = {
    methods: ["DELETE"],
    args: { id: ID, force: FORCE },
    permit: permissions.permitDelete,
    async handle(request) {
      refuseTrash(request);
      const previous = await changes.remove(
        () => find(request),
        (term) => renderItem(term, request, "view"),
      );
      return { status: 200, headers: {}, body: { json: { deleted: true, previous: previous.fields } } };
    },
  };
  const allowBatch = (endpoint: RestEndpoint): RestEndpoint => ({ ...endpoint, allowBatch: true });
  return [
    { namespace, path: `/${name}`, schema, endpoints: [list, create].map(allowBatch) },
    { namespace, path: `/${name}/:id`, schema, endpoints: [read, update, remove].map(allowBatch) },
  ];
}

/** Like in WordPress, each location must be one that the site has. */
function withKnownLocations(args: Arguments, { all }: MenuLocations): Arguments {
  const { locations } = args;
  if (locations === undefined) return args;
  const isKnown = (name: Json): boolean => all.some((location) => location.name === name);
  return {
    ...args,
    locations: {
      ...locations,
      accepted:
        all.length === 0
          ? { type: "array", maxItems: 0 }
          : { ...locations, items: { type: "string", enum: all.map(({ name }) => name) } },
      validate: (value) =>
        validateValue(value, locations, "locations") ??
        ((coerceValue(value, locations) as Json[]).every(isKnown)
          ? undefined
          : { code: "rest_invalid_menu_location", message: "Invalid menu location." }),
    },
  };
}

function refuseTrash({ values }: RestRequest): void {
  if (values["force"] === true) return;
  throw new RestError(
    501,
    "rest_trash_not_supported",
    "Terms do not support trashing. Set 'force=true' to delete.",
  );
}

/** The most menu items removed in one change; menus rarely have more. */
const ITEMS_PER_CHANGE = 1_000;

interface TermChanges {
  /**
   * Stores the values of the request over the term that `findPrevious` returns, or as a new term if
   * it is `null`.
   */
  write: (request: RestRequest, findPrevious: () => Term | null) => Promise<Term>;
  /**
   * Deletes a term and the menu items that point at it; its children move up to its parent.
   * Deleting a menu deletes its items. Resolves with what `render` made of the term before.
   */
  remove: <T>(find: () => Term, render: (term: Term) => T) => Promise<T>;
}

function createTermChanges(
  definition: TaxonomyDefinition,
  { repository, menuLocations, site }: ContentBase,
): TermChanges {
  const { index } = repository;
  const { taxonomy } = definition;

  /** As in WordPress, the description of any user has the tags of titles alone. */
  async function sanitiseDescription(request: RestRequest): Promise<RestRequest["values"]> {
    const { description } = request.values;
    if (typeof description !== "string") return request.values;
    countSanitised(description, request, site.filteredCharacters);
    return { ...request.values, description: await site.sanitise("title", description) };
  }

  /** Uses several changes, because a menu may have more items than one commit takes. */
  async function removeItems(id: number): Promise<void> {
    for (let isMore = true; isMore; ) {
      isMore = await repository.change(async (transaction) => {
        const { ids, total } = await index.find(
          {
            type: "nav_menu_item",
            visibility: Object.fromEntries(STATUSES.map((status) => [status, "all"])),
            terms: [{ taxonomy, terms: [id], includeChildren: false, operator: "OR" }],
            orderBy: "id",
            order: "asc",
            offset: 0,
            limit: ITEMS_PER_CHANGE,
          },
          async () => [],
        );
        await removePosts(transaction, ids, repository);
        return total > ids.length;
      });
    }
  }

  return {
    async write(request, findPrevious) {
      const sanitised = await sanitiseDescription(request);
      // Flat taxonomies have no such argument, and WordPress refuses it.
      const { parent } = request.input;
      const values = definition.isHierarchical || parent === undefined ? sanitised : { ...sanitised, parent };
      return repository.change(async (transaction) => {
        const previous = findPrevious();
        const id = previous?.id ?? (await transaction.newId("term"));
        const term = applyTermValues(values, previous, id, { definition, index });
        transaction.putTerm(term);
        const { locations } = values;
        if (taxonomy === "nav_menu" && Array.isArray(locations)) {
          menuLocations.assign(transaction, term, locations as string[]);
        }
        for (const ancestor of listTermAncestors(term, index)) {
          transaction.expectUnchanged(`term/${ancestor.id}`);
        }
        return term;
      });
    },
    async remove(find, render) {
      if (definition.ownsItsPosts) await removeItems(find().id);
      return repository.change(async (transaction) => {
        const term = find();
        const rendered = render(term);
        transaction.removeTerm(term);
        for (const child of index.termChildren(taxonomy, term.id)) {
          transaction.putTerm({ ...child, parent: term.parent });
        }
        await removePosts(transaction, index.targeting(`term/${term.id}`), repository);
        return rendered;
      });
    },
  };
}
