/** The routes of the revisions of a collection's posts: list, read, delete. */

import type { Argument, Arguments } from "../../../schema/types.js";
import type { Collection } from "../../collections.js";
import type { Post } from "../../records/records.js";
import type { ContentRepository, StoredRevision } from "../../repository/content-repository.js";
import { listAutosaves } from "../../repository/remove-posts.js";
import { RestError } from "../../rest/error.js";
import { parseFields } from "../../rest/field-selection.js";
import type { ListLimits } from "../../rest/list-limits.js";
import { pageHeaders } from "../../rest/paging.js";
import { contextArgument, readContext } from "../../rest/record-fields.js";
import type { RestRequest, RestResponse, RestRoute } from "../../rest/types.js";
import type { Site } from "../../site.js";
import { removeRevision } from "./keep-revisions.js";
import { createRevisionRenderer } from "./revision-fields.js";
import {
  candidates,
  type Entry,
  idsInOrder,
  needsRecords,
  pageOfEntries,
  type RevisionQuery,
  revisionListArguments,
  toEntry,
  toLoadedEntry,
  toRevisionQuery,
} from "./revision-list.js";
import { createRevisionPermissions } from "./revision-permissions.js";

export interface RevisionRoutesOptions {
  readonly library: ContentRepository;
  readonly site: Site;
  /** `core/v2` */
  readonly namespace: string;
  readonly lists: ListLimits;
}

/** Whole revisions in memory at once, where all of a post are looked at. */
const READ_AT_ONCE = 20;

const parentArgument: Argument = { description: "The ID for the parent of the revision.", type: "integer" };
const idArgument: Argument = { description: "Unique identifier for the revision.", type: "integer" };

/** None for a collection without revisions. */
export function revisionRoutes(
  collection: Collection,
  { library, site, namespace, lists }: RevisionRoutesOptions,
): readonly RestRoute[] {
  const { base, type, hasRevisions } = collection;
  if (!hasRevisions) return [];
  const { index } = library;
  const rights = createRevisionPermissions(type, { library, what: "revisions" });
  const items = createRevisionRenderer({ collection, site, index }, { namespace, hasPreview: false });

  const load = async (id: number): Promise<Post> => {
    const [post] = await library.posts([id]);
    if (post !== undefined) return post;
    throw new RestError(404, "rest_post_invalid_parent", "Invalid post parent ID.");
  };

  const parentIdOf = ({ values }: RestRequest): number => Number(values["parent"]);
  const idOf = ({ values }: RestRequest): number => Number(values["id"]);

  async function entriesOf(parent: Post, query: RevisionQuery): Promise<readonly Entry[]> {
    const autosaves = listAutosaves(parent);
    const ids = candidates(parent.revisions, query);
    if (!needsRecords(query, autosaves)) return ids.map(toEntry);
    const entries: Entry[] = [];
    for (let start = 0; start < ids.length; start += READ_AT_ONCE) {
      for (const revision of await library.revisions(ids.slice(start, start + READ_AT_ONCE))) {
        const entry = revision && toLoadedEntry(revision, autosaves.has(revision.id), query);
        if (entry !== undefined) entries.push(entry);
      }
    }
    return entries;
  }

  async function list(request: RestRequest): Promise<RestResponse> {
    const { values, url, query: given } = request;
    const query = toRevisionQuery(values);
    const parent = await load(parentIdOf(request));
    const ids = idsInOrder(await entriesOf(parent, query), query);
    const { start, end, perPage } = pageOfEntries(values, ids.length);
    const asked = { context: readContext(request), url };
    const listed = ids.slice(start, end);
    const found = await lists.collect(parseFields(request.given["_fields"]), async ({ add }) => {
      for (let from = 0; from < listed.length; from += READ_AT_ONCE) {
        for (const revision of await library.revisions(listed.slice(from, from + READ_AT_ONCE))) {
          // A revision that went between the list and here is left out.
          if (revision !== undefined) await add(items.of(revision, parent, asked));
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
      body: { items: found },
    };
  }

  async function read(request: RestRequest): Promise<RestResponse> {
    const revision = await rights.find(idOf(request), rights.read(parentIdOf(request), request.caller));
    const parent = await load(revision.parent);
    return {
      status: 200,
      headers: {},
      body: { item: items.of(revision, parent, { context: readContext(request), url: request.url }) },
    };
  }

  const removable = (request: RestRequest): Promise<StoredRevision> =>
    rights.remove(idOf(request), parentIdOf(request), request.caller);

  async function remove(request: RestRequest): Promise<RestResponse> {
    if (request.values["force"] !== true) {
      throw new RestError(
        501,
        "rest_trash_not_supported",
        "Revisions do not support trashing. Set 'force=true' to delete.",
      );
    }
    const previous = await library.change(async (draft) => {
      // Asked again of the newest state.
      const revision = await removable(request);
      const parent = await load(revision.parent);
      removeRevision(draft, parent, revision);
      return items.of(revision, parent, { context: "view", url: request.url }).fields;
    });
    return { status: 200, headers: {}, body: { json: { deleted: true, previous } } };
  }

  const args = (own: Arguments): Arguments => ({ parent: parentArgument, ...own });
  const { schema } = items;
  const many: RestRoute = {
    namespace,
    path: `/${base}/:parent/revisions`,
    schema,
    endpoints: [
      {
        methods: ["GET"],
        args: args(revisionListArguments),
        permit: (request) => void rights.read(parentIdOf(request), request.caller),
        handle: list,
      },
    ],
  };
  const one: RestRoute = {
    namespace,
    path: `/${base}/:parent/revisions/:id`,
    schema,
    endpoints: [
      {
        methods: ["GET"],
        args: args({ id: idArgument, context: contextArgument }),
        permit: (request) => void rights.read(parentIdOf(request), request.caller),
        handle: read,
      },
      {
        methods: ["DELETE"],
        args: args({
          id: idArgument,
          force: {
            description: "Required to be true, as revisions do not support trashing.",
            type: "boolean",
            default: false,
          },
        }),
        permit: async (request) => void (await removable(request)),
        handle: remove,
      },
    ],
  };
  return [many, one];
}
