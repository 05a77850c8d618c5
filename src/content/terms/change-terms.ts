/** Creates, changes and deletes the terms of a taxonomy in transactions. */

import type { MenuLocations } from "../menu-locations/menu-locations.js";
import { STATUSES } from "../query/row.js";
import type { Term } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import { removePosts } from "../repository/remove-posts.js";
import { countSanitised } from "../rest/sanitised-characters.js";
import type { RestRequest } from "../rest/types.js";
import type { Site } from "../site.js";
import type { TaxonomyDefinition } from "./taxonomies.js";
import { listTermAncestors } from "./term-fields.js";
import { applyTermValues } from "./write-term.js";

/** The most menu items removed in one change; menus rarely have more. */
const ITEMS_PER_CHANGE = 1_000;

export type TermRepository = Pick<ContentRepository, "index" | "change" | "posts" | "revisions">;

export interface TermChanges {
  /**
   * Stores the values of the request over the term that `findPrevious` returns, or as a new term if
   * it is `null`.
   */
  readonly write: (request: RestRequest, findPrevious: () => Term | null) => Promise<Term>;
  /**
   * Deletes a term and the menu items that point at it; its children move up to its parent.
   * Deleting a menu deletes its items. Resolves with what `render` made of the term before.
   */
  readonly remove: <T>(find: () => Term, render: (term: Term) => T) => Promise<T>;
}

export function createTermChanges(
  definition: TaxonomyDefinition,
  repository: TermRepository,
  menuLocations: Pick<MenuLocations, "assign">,
  site: Pick<Site, "sanitise" | "filteredCharacters">,
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
      const values = await sanitiseDescription(request);
      return repository.change(async (transaction) => {
        const previous = findPrevious();
        const id = previous?.id ?? (await transaction.newId("term"));
        const term = applyTermValues(values, previous, id, { definition, index });
        transaction.putTerm(term);
        const { locations } = values;
        if (taxonomy === "nav_menu" && Array.isArray(locations)) {
          menuLocations.assign(transaction, term, locations as readonly string[]);
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
