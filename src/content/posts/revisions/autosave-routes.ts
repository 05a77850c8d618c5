/** The routes of autosaves, which an editor stores while somebody writes. */

import type { Argument, Arguments, Json } from "../../../schema/types.js";
import type { Collection } from "../../records/content-model.js";
import type { Post, Revision } from "../../records/records.js";
import { RenderBudget } from "../../render-budget.js";
import type { ContentRepository, Transaction } from "../../repository/content-repository.js";
import { listAutosaves } from "../../repository/remove-posts.js";
import { RestError } from "../../rest/error.js";
import { contextArgument, readContext } from "../../rest/record-fields.js";
import { parseFields } from "../../rest/serialise.js";
import type { RestEndpoint, RestRequest, RestResponse, RestRoute } from "../../rest/types.js";
import { updateArguments } from "../change-post.js";
import type { PostBase } from "../post-base.js";
import { resolvePostDates } from "../post-dates.js";
import type { FieldTarget } from "../post-field.js";
import { assertAuthorExists, createPostResource, type PostResource } from "../post-resource.js";
import type { PostTypeHandler, SanitisedValues, WriteContext } from "../post-type-handler.js";
import { isSameMeta, writeMeta } from "../text-fields.js";
import { sanitiseValues } from "../write-post.js";
import { isSameText, REVISIONED_TEXTS, selectRevisionedMeta } from "./keep-revisions.js";
import { createRevisionPermissions } from "./revision-permissions.js";
import { createRevisionRenderer, type RevisionRenderer } from "./revision-renderer.js";

type Handler = (request: RestRequest) => Promise<RestResponse>;

const DRAFT_STATUSES: Set<string> = new Set(["draft", "auto-draft"]);

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

function createListAutosaves(renderer: RevisionRenderer, { repository, lists }: PostBase): Handler {
  const load = createLoadPost(repository);
  return async (request) => {
    const { values, url } = request;
    const parent = await load(Number(values["id"]));
    const found = await repository.revisions([...listAutosaves(parent)]);
    const autosaves = found
      .filter((autosave) => autosave !== undefined)
      .sort((a, b) => b.date - a.date || b.id - a.id);
    const view = { context: readContext(request), url, budget: new RenderBudget() };
    const items = await lists.collect(parseFields(request.input["_fields"]), async ({ add }) => {
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

function createEndpoint(type: PostTypeHandler, renderer: RevisionRenderer, base: PostBase): RestEndpoint {
  const resource = createPostResource(type, base);
  return {
    methods: ["POST"],
    args: withParent(updateArguments(type, base)),
    described: { status: 200 },
    permit: resource.permissions.update,
    handle: createCreateAutosave(resource, renderer, base),
  };
}

function createCreateAutosave(
  resource: PostResource,
  renderer: RevisionRenderer,
  { repository, site, users }: PostBase,
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
      // Checks the version that the change replaces.
      resource.permissions.update(request, previous);
      const context = resource.createWriteContext(request);
      const isOwnDraft = DRAFT_STATUSES.has(previous.status) && previous.author === caller.id;
      if (!isOwnDraft) return saveAutosave(transaction, values, previous, context);
      // Nobody else reads the draft: its author's autosave changes it, and leaves no revision.
      const autosaved = selectAutosavedValues(values, type);
      const dates = resolvePostDates(autosaved, site);
      const post = type.write({ values: autosaved, previous, id, dates }, context);
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
export function autosaveRoutes(type: PostTypeHandler, base: PostBase): RestRoute[] {
  const { base: name, supports, type: postType } = type.collection;
  if (!supports.includes("autosave")) return [];
  const { repository, namespace } = base;
  const { read: authorizeRead } = createRevisionPermissions(postType, { repository, what: "autosaves" });
  const renderer = createRevisionRenderer(type, base, { hasPreview: true });
  const { schema } = renderer;
  const list: RestEndpoint = {
    methods: ["GET"],
    args: withParent({ context: contextArgument }),
    described: { form: "items" },
    permit: ({ values, caller }) => void authorizeRead(Number(values["id"]), caller),
    handle: createListAutosaves(renderer, base),
  };
  const read: RestEndpoint = {
    methods: ["GET"],
    args: withParent({ id: idArgument, context: contextArgument }),
    permit: ({ values, caller }) => void authorizeRead(Number(values["parent"]), caller),
    handle: createReadAutosave(renderer, repository),
  };
  const create = createEndpoint(type, renderer, base);
  return [
    { namespace, path: `/${name}/:id/autosaves`, schema, endpoints: [list, create] },
    { namespace, path: `/${name}/:parent/autosaves/:id`, schema, endpoints: [read] },
  ];
}

// Stores what an editor saves automatically: one autosave per user and post, beside the post.

const isGiven = (value: Json | undefined): value is Json => value !== undefined && value !== null;

const isText = (name: string): boolean => (REVISIONED_TEXTS as readonly string[]).includes(name);

const selectValues = (values: SanitisedValues, isWanted: (name: string) => boolean): SanitisedValues =>
  Object.fromEntries(Object.entries(values).filter(([name]) => isWanted(name))) as SanitisedValues;

/**
 * Picks the values that an author's autosave of his own draft writes to the draft. Like in
 * WordPress, it excludes terms and meta fields.
 */
const selectAutosavedValues = (values: SanitisedValues, { fields }: PostTypeHandler): SanitisedValues =>
  selectValues(values, (name) => fields.has("content") && fields.get(name)?.isAutosaved === true);

/**
 * Returns `before` with the texts and meta fields in `values`. Like in WordPress, an autosave of a
 * menu item holds no text.
 */
function writeTexts(
  before: Revision,
  { values, post, type }: { values: SanitisedValues; post: Post; type: PostTypeHandler },
  context: WriteContext,
): Revision {
  const { collection } = context;
  const { title, content, excerpt, isTrusted } = before;
  const target: FieldTarget["post"] = { ...post, title, content, excerpt, isTrusted };
  for (const name of REVISIONED_TEXTS) {
    const value = values[name];
    if (isGiven(value)) type.fields.get(name)?.write?.(value, { ...context, post: target });
  }
  const { meta } = values;
  return {
    ...before,
    title: target.title,
    content: target.content,
    excerpt: target.excerpt,
    isTrusted: target.isTrusted,
    meta: isGiven(meta)
      ? selectRevisionedMeta(writeMeta(before.meta, meta, collection.meta), collection)
      : before.meta,
  };
}

/** True if the texts and meta fields in `values` differ from those of the post itself. */
function differs(written: Revision, values: SanitisedValues, post: Post, collection: Collection): boolean {
  const hasOtherText = REVISIONED_TEXTS.some(
    (name) => isGiven(values[name]) && !isSameText(written[name], post[name]),
  );
  if (hasOtherText) return true;
  return isGiven(values["meta"]) && !isSameMeta(written.meta, selectRevisionedMeta(post.meta, collection));
}

const createAutosave = (id: number, post: Post, { caller, collection }: WriteContext): Revision => ({
  id,
  parent: post.id,
  author: caller.id,
  date: 0,
  dateGmt: 0,
  title: "",
  content: "",
  excerpt: "",
  isTrusted: true,
  meta: selectRevisionedMeta(post.meta, collection),
});

/** Refuses what an update would refuse. The texts cannot be a reason, so they are left out. */
function assertSavable(
  values: SanitisedValues,
  post: Post,
  type: PostTypeHandler,
  context: WriteContext,
): void {
  // Nor is the parent one: an autosave does not move the post.
  const isChecked = (name: string): boolean => name !== "parent" && !isText(name);
  const checked = type.fields.has("content") ? selectValues(values, isChecked) : values;
  const dates = resolvePostDates(values, context.site);
  type.write({ values: checked, previous: post, id: post.id, dates }, context);
}

/** Saves `values` as the caller's autosave of `post`, and returns it. */
function createSaveAutosave(type: PostTypeHandler, repository: ContentRepository) {
  return async (
    transaction: Transaction,
    values: SanitisedValues,
    post: Post,
    context: WriteContext,
  ): Promise<Revision> => {
    const { caller, now, site, collection } = context;
    assertSavable(values, post, type, context);
    const knownId = post.autosaves[caller.id];
    const [found] = knownId === undefined ? [] : await repository.revisions([knownId]);
    const id = found?.id ?? (await transaction.newId("post"));
    const written = writeTexts(found ?? createAutosave(id, post, context), { values, post, type }, context);
    if (found !== undefined && !differs(written, values, post, collection)) return found;
    const revision: Revision = { ...written, date: site.zone.toLocal(now), dateGmt: now };
    transaction.putRevision(revision, found?.version ?? 0);
    if (found === undefined) {
      transaction.putBookkeeping({
        ...post,
        revisions: [...post.revisions, id],
        autosaves: { ...post.autosaves, [caller.id]: id },
      });
    }
    return revision;
  };
}
