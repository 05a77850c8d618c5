/** The routes of autosaves, which an editor stores while somebody writes. */

import type { Argument, Arguments } from "../../../schema/types.js";
import type { Post } from "../../records/records.js";
import type { ContentRepository } from "../../repository/content-repository.js";
import { listAutosaves } from "../../repository/remove-posts.js";
import { RestError } from "../../rest/error.js";
import { parseFields } from "../../rest/field-selection.js";
import type { ListLimits } from "../../rest/list-limits.js";
import { contextArgument, readContext } from "../../rest/record-fields.js";
import type { RestEndpoint, RestRequest, RestResponse, RestRoute } from "../../rest/types.js";
import type { Users } from "../../users/users.js";
import { resolvePostDates } from "../post-dates.js";
import {
  assertAuthorExists,
  createPostResource,
  type PostResource,
  type PostResourceOptions,
} from "../post-resource.js";
import type { PostTypeHandler } from "../post-type-handler.js";
import { sanitiseValues } from "../sanitised-values.js";
import { updateArguments } from "../update-post.js";
import { createRevisionPermissions } from "./revision-permissions.js";
import { createRevisionRenderer, type RevisionRenderer } from "./revision-renderer.js";
import { createSaveAutosave, selectAutosavedValues } from "./save-autosave.js";

export interface AutosaveRoutesOptions extends PostResourceOptions {
  readonly users: Users;
  /** `core/v2` */
  readonly namespace: string;
  readonly lists: ListLimits;
}

type Handler = (request: RestRequest) => Promise<RestResponse>;

const DRAFT_STATUSES: ReadonlySet<string> = new Set(["draft", "auto-draft"]);

const parentArgument: Argument = { description: "The ID for the parent of the autosave.", type: "integer" };
const idArgument: Argument = { description: "The ID for the autosave.", type: "integer" };

const withParent = (args: Arguments): Arguments => ({ parent: parentArgument, ...args });

const createLoadPost =
  (repository: ContentRepository) =>
  async (id: number): Promise<Post> => {
    const [post] = await repository.posts([id]);
    if (post !== undefined) return post;
    throw new RestError(404, "rest_post_invalid_id", "Invalid post ID.");
  };

function createListAutosaves(
  renderer: RevisionRenderer,
  { repository, lists }: Pick<AutosaveRoutesOptions, "repository" | "lists">,
): Handler {
  const load = createLoadPost(repository);
  return async (request) => {
    const { values, url } = request;
    const parent = await load(Number(values["id"]));
    const found = await repository.revisions([...listAutosaves(parent)]);
    const autosaves = found
      .filter((autosave) => autosave !== undefined)
      .sort((a, b) => b.date - a.date || b.id - a.id);
    const view = { context: readContext(request), url };
    const items = await lists.collect(parseFields(request.given["_fields"]), async ({ add }) => {
      for (const autosave of autosaves) await add(await renderer.render(autosave, parent, view));
    });
    return { status: 200, headers: {}, body: { items } };
  };
}

function createReadAutosave(renderer: RevisionRenderer, repository: ContentRepository): Handler {
  const load = createLoadPost(repository);
  return async (request) => {
    const { values, url } = request;
    const id = Number(values["id"]);
    const parent = await load(Number(values["parent"]));
    const [autosave] = listAutosaves(parent).has(id) ? await repository.revisions([id]) : [];
    if (autosave === undefined) {
      throw new RestError(404, "rest_post_no_autosave", "There is no autosave revision for this post.");
    }
    const item = await renderer.render(autosave, parent, { context: readContext(request), url });
    return { status: 200, headers: {}, body: { item } };
  };
}

function createEndpoint(
  type: PostTypeHandler,
  renderer: RevisionRenderer,
  options: AutosaveRoutesOptions,
): RestEndpoint {
  const resource = createPostResource(type, options);
  return {
    methods: ["POST"],
    args: withParent(updateArguments(type, options)),
    described: { status: 200 },
    permit: resource.permissions.update,
    handle: createCreateAutosave(resource, renderer, options),
  };
}

function createCreateAutosave(
  resource: PostResource,
  renderer: RevisionRenderer,
  { repository, site, users }: AutosaveRoutesOptions,
): Handler {
  const { type } = resource;
  const load = createLoadPost(repository);
  const saveAutosave = createSaveAutosave(type, repository);
  return async (request) => {
    await assertAuthorExists(request, type, users);
    const { caller, url } = request;
    const id = Number(request.values["id"]);
    const values = await sanitiseValues(request.values, request, type, site);
    const revision = await repository.change(async (transaction) => {
      const previous = await load(id);
      // Judges the version that the change replaces.
      resource.permissions.update(request, previous);
      const context = resource.createWriteContext(request);
      const isOwnDraft = DRAFT_STATUSES.has(previous.status) && previous.author === caller.id;
      if (!isOwnDraft) return saveAutosave(transaction, values, previous, context);
      // Nobody else reads the draft: its author's autosave changes it, and leaves no revision.
      const own = selectAutosavedValues(values, type);
      const dates = resolvePostDates(own, site);
      const post = type.write({ values: own, previous, id, dates }, context);
      transaction.putPost(post);
      resource.expectUnchangedAncestors(transaction, post);
      return undefined;
    });
    const post = await load(id);
    const view = { context: "edit", url } as const;
    const item = await (revision === undefined
      ? renderer.renderPost(post, view)
      : renderer.render(revision, post, view));
    return { status: 200, headers: {}, body: { item } };
  };
}

/** Returns no route for a type without autosaves, such as media. */
export function autosaveRoutes(type: PostTypeHandler, options: AutosaveRoutesOptions): readonly RestRoute[] {
  const { base, supports, type: postType } = type.collection;
  if (!supports.includes("autosave")) return [];
  const { repository, site, namespace } = options;
  const { read: authorizeRead } = createRevisionPermissions(postType, { repository, what: "autosaves" });
  const renderer = createRevisionRenderer(type, {
    site,
    index: repository.index,
    namespace,
    hasPreview: true,
  });
  const { schema } = renderer;
  const list: RestEndpoint = {
    methods: ["GET"],
    args: withParent({ context: contextArgument }),
    described: { form: "items" },
    permit: ({ values, caller }) => void authorizeRead(Number(values["id"]), caller),
    handle: createListAutosaves(renderer, options),
  };
  const read: RestEndpoint = {
    methods: ["GET"],
    args: withParent({ id: idArgument, context: contextArgument }),
    permit: ({ values, caller }) => void authorizeRead(Number(values["parent"]), caller),
    handle: createReadAutosave(renderer, repository),
  };
  const create = createEndpoint(type, renderer, options);
  return [
    { namespace, path: `/${base}/:id/autosaves`, schema, endpoints: [list, create] },
    { namespace, path: `/${base}/:parent/autosaves/:id`, schema, endpoints: [read] },
  ];
}
