/** Lists the revisions of a post. */

import type { Collection } from "../../collections.js";
import type { Post } from "../../records/records.js";
import { listAutosaves } from "../../repository/remove-posts.js";
import { parseFields } from "../../rest/field-selection.js";
import { pageHeaders } from "../../rest/paging.js";
import { readContext } from "../../rest/record-fields.js";
import type { RestRequest, RestResponse } from "../../rest/types.js";
import {
  type Entry,
  needsRecords,
  type RevisionQuery,
  selectCandidates,
  sortEntries,
  toEntry,
  toLoadedEntry,
  toRevisionPage,
  toRevisionQuery,
} from "./revision-list.js";
import type { RevisionResource, RevisionRoutesOptions } from "./revision-resource.js";

/** Whole revisions in memory at once. */
const BATCH = 20;

export function createListRevisions(
  { base }: Collection,
  { renderer, loadParent }: RevisionResource,
  { repository, namespace, lists }: RevisionRoutesOptions,
): (request: RestRequest) => Promise<RestResponse> {
  async function loadEntries(parent: Post, query: RevisionQuery): Promise<readonly Entry[]> {
    const autosaves = listAutosaves(parent);
    const ids = selectCandidates(parent.revisions, query);
    if (!needsRecords(query, autosaves)) return ids.map(toEntry);
    const entries: Entry[] = [];
    for (let start = 0; start < ids.length; start += BATCH) {
      for (const revision of await repository.revisions(ids.slice(start, start + BATCH))) {
        const entry = revision && toLoadedEntry(revision, autosaves.has(revision.id), query);
        if (entry !== undefined) entries.push(entry);
      }
    }
    return entries;
  }

  return async (request) => {
    const { values, url, query: given } = request;
    const query = toRevisionQuery(values);
    const parent = await loadParent(Number(values["parent"]));
    const ids = sortEntries(await loadEntries(parent, query), query);
    const { start, end, perPage } = toRevisionPage(values, ids.length);
    const view = { context: readContext(request), url };
    const listed = ids.slice(start, end);
    const items = await lists.collect(parseFields(request.given["_fields"]), async ({ add }) => {
      for (let from = 0; from < listed.length; from += BATCH) {
        for (const revision of await repository.revisions(listed.slice(from, from + BATCH))) {
          // A revision that was removed in the meantime is left out.
          if (revision !== undefined) await add(await renderer.render(revision, parent, view));
        }
      }
    });
    return {
      status: 200,
      headers: pageHeaders({
        values: { ...values, per_page: perPage },
        total: ids.length,
        given,
        url: url(`/${namespace}/${base}/${parent.id}/revisions`),
        isOpenEnded: true,
      }),
      body: { items },
    };
  };
}
