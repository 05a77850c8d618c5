/** The routes of the revisions of a post type: list, read, delete. */

import type { Argument, Arguments } from "../../../schema/types.js";
import type { Collection } from "../../records/content-model.js";
import type { Post } from "../../records/records.js";
import { RenderBudget } from "../../render-budget.js";
import type { ContentRepository, StoredRevision } from "../../repository/content-repository.js";
import { listAutosaves } from "../../repository/remove-posts.js";
import { RestError } from "../../rest/error.js";
import { pageHeaders } from "../../rest/lists.js";
import { contextArgument, readContext } from "../../rest/record-fields.js";
import { parseFields } from "../../rest/serialise.js";
import type { RestEndpoint, RestRequest, RestResponse, RestRoute } from "../../rest/types.js";
import type { PostBase } from "../post-base.js";
import type { PostTypeHandler } from "../post-type-handler.js";
import { removeRevision } from "./keep-revisions.js";
import {
  type Entry,
  needsRecords,
  type RevisionQuery,
  revisionListArguments,
  selectCandidates,
  sortEntries,
  toEntry,
  toLoadedEntry,
  toRevisionPage,
  toRevisionQuery,
} from "./revision-list.js";
import { createRevisionPermissions, type RevisionPermissions } from "./revision-permissions.js";
import { createRevisionRenderer, type RevisionRenderer } from "./revision-renderer.js";

const parentArgument: Argument = { description: "The ID for the parent of the revision.", type: "integer" };
const idArgument: Argument = { description: "Unique identifier for the revision.", type: "integer" };

const withParent = (args: Arguments): Arguments => ({ parent: parentArgument, ...args });

function readEndpoint({ permissions, loadParent, renderer, permitRead }: RevisionResource): RestEndpoint {
  return {
    methods: ["GET"],
    args: withParent({ id: idArgument, context: contextArgument }),
    permit: permitRead,
    handle: async (request) => {
      const { values, caller, url } = request;
      const post = permissions.read(Number(values["parent"]), caller);
      const revision = await permissions.find(Number(values["id"]), post);
      const parent = await loadParent(revision.parent);
      const item = await renderer.render(revision, parent, { context: readContext(request), url });
      return { status: 200, headers: {}, body: { item } };
    },
  };
}

function deleteEndpoint(resource: RevisionResource, { repository }: PostBase): RestEndpoint {
  const findRemovable = ({ values, caller }: RestRequest) =>
    resource.permissions.remove(Number(values["id"]), Number(values["parent"]), caller);
  return {
    methods: ["DELETE"],
    args: withParent({
      id: idArgument,
      force: {
        description: "Required to be true, as revisions do not support trashing.",
        type: "boolean",
        default: false,
      },
    }),
    permit: async (request) => void (await findRemovable(request)),
    handle: createDeleteRevision(resource, findRemovable, repository),
  };
}

/** Returns no route for a type without revisions. */
export function revisionRoutes(type: PostTypeHandler, base: PostBase): RestRoute[] {
  const { base: name, hasRevisions } = type.collection;
  if (!hasRevisions) return [];
  const { namespace } = base;
  const resource = createRevisionResource(type, base);
  const { schema } = resource.renderer;
  const list: RestEndpoint = {
    methods: ["GET"],
    args: withParent(revisionListArguments),
    permit: resource.permitRead,
    handle: createListRevisions(type.collection, resource, base),
  };
  return [
    { namespace, path: `/${name}/:parent/revisions`, schema, endpoints: [list] },
    {
      namespace,
      path: `/${name}/:parent/revisions/:id`,
      schema,
      endpoints: [readEndpoint(resource), deleteEndpoint(resource, base)],
    },
  ];
}

/** `findRemovable` throws unless the caller may remove the revision that the request names. */
function createDeleteRevision(
  { renderer, loadParent }: RevisionResource,
  findRemovable: (request: RestRequest) => Promise<StoredRevision>,
  repository: ContentRepository,
): (request: RestRequest) => Promise<RestResponse> {
  return async (request) => {
    if (request.values["force"] !== true) {
      throw new RestError(
        501,
        "rest_trash_not_supported",
        "Revisions do not support trashing. Set 'force=true' to delete.",
      );
    }
    const previous = await repository.change(async (transaction) => {
      // Checks the newest state once more.
      const revision = await findRemovable(request);
      const parent = await loadParent(revision.parent);
      removeRevision(transaction, parent, revision);
      return (await renderer.render(revision, parent, { context: "view", url: request.url })).fields;
    });
    return { status: 200, headers: {}, body: { json: { deleted: true, previous } } };
  };
}

/** Whole revisions in memory at once. */
const BATCH = 20;

function createListRevisions(
  { base }: Collection,
  { renderer, loadParent }: RevisionResource,
  { repository, namespace, lists }: PostBase,
): (request: RestRequest) => Promise<RestResponse> {
  async function loadEntries(parent: Post, query: RevisionQuery): Promise<Entry[]> {
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
    const { values, url } = request;
    const query = toRevisionQuery(values);
    const parent = await loadParent(Number(values["parent"]));
    const ids = sortEntries(await loadEntries(parent, query), query);
    const { start, end, perPage } = toRevisionPage(values, ids.length);
    const view = { context: readContext(request), url, budget: new RenderBudget() };
    const listed = ids.slice(start, end);
    const items = await lists.collect(parseFields(request.input["_fields"]), async ({ add }) => {
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
        query: request.query,
        url: url(`/${namespace}/${base}/${parent.id}/revisions`),
        isOpenEnded: true,
      }),
      body: { items },
    };
  };
}

// The revisions of one post type over REST: what the handlers of their routes share.

interface RevisionResource {
  permissions: RevisionPermissions;
  renderer: RevisionRenderer;
  /** @throws RestError 404 `rest_post_invalid_parent` */
  loadParent: (id: number) => Promise<Post>;
  permitRead: (request: RestRequest) => void;
}

function createRevisionResource(type: PostTypeHandler, base: PostBase): RevisionResource {
  const { repository } = base;
  const permissions = createRevisionPermissions(type.collection.type, { repository, what: "revisions" });
  return {
    permissions,
    renderer: createRevisionRenderer(type, base, { hasPreview: false }),
    async loadParent(id) {
      const [post] = await repository.posts([id]);
      if (post !== undefined) return post;
      throw new RestError(404, "rest_post_invalid_parent", "Invalid post parent ID.");
    },
    permitRead: ({ values, caller }) => void permissions.read(Number(values["parent"]), caller),
  };
}
