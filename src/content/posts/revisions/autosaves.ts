/** The routes of autosaves: what an editor saves by itself while somebody writes, one for each user and post, beside the post. */

import type { Argument, Arguments, Json } from "../../../schema/types.js";
import type { Collection } from "../../collections.js";
import { listAncestors } from "../../query/page-tree.js";
import type { Post, Revision } from "../../records/records.js";
import type { ContentRepository, Transaction } from "../../repository/content-repository.js";
import { listAutosaves } from "../../repository/remove-posts.js";
import { RestError } from "../../rest/error.js";
import { parseFields } from "../../rest/field-selection.js";
import type { ListLimits } from "../../rest/list-limits.js";
import { contextArgument, readContext } from "../../rest/record-fields.js";
import type { Item, RestRequest, RestResponse, RestRoute } from "../../rest/types.js";
import type { Site } from "../../site.js";
import type { Users } from "../../users/users.js";
import type { FieldTarget } from "../post-fields.js";
import { writeMeta } from "../post-meta.js";
import { createPostPermissions } from "../post-permissions.js";
import { createPostWriter, refuseUnknownAuthor, updateArguments } from "../post-routes.js";
import { listFields } from "../post-schema.js";
import { resolvePostDates, type Values, type WriteContext } from "../write-post.js";
import { isSameMeta, isSameText, REVISIONED_TEXTS, selectRevisionedMeta } from "./keep-revisions.js";
import { createRevisionRenderer } from "./revision-fields.js";
import { createRevisionPermissions } from "./revision-permissions.js";

export interface AutosaveRoutesOptions {
  readonly library: ContentRepository;
  readonly site: Site;
  readonly users: Users;
  /** `core/v2` */
  readonly namespace: string;
  readonly lists: ListLimits;
}

/** What of a request reaches a draft that its author autosaves: the reference writes the post's own columns alone. */
const SAVED_WITH_DRAFT: ReadonlySet<string> = new Set([
  ...REVISIONED_TEXTS,
  "date",
  "date_gmt",
  "slug",
  "status",
  "password",
  "author",
  "parent",
  "menu_order",
  "comment_status",
  "ping_status",
]);

const IS_DRAFT: ReadonlySet<string> = new Set(["draft", "auto-draft"]);

const parentArgument: Argument = { description: "The ID for the parent of the autosave.", type: "integer" };
const idArgument: Argument = { description: "The ID for the autosave.", type: "integer" };

const only = (values: Values, isWanted: (name: string) => boolean): Values =>
  Object.fromEntries(Object.entries(values).filter(([name]) => isWanted(name)));

const isGiven = (value: Json | undefined): value is Json => value !== undefined && value !== null;

/** The texts and meta fields of `before` with those that `values` give. Menu items have no text that could be kept so, as in the reference. */
function textsOver(before: Revision, values: Values, post: Post, context: WriteContext): Revision {
  const { collection } = context;
  const { title, content, excerpt, isTrusted } = before;
  const target: FieldTarget["post"] = { ...post, title, content, excerpt, isTrusted };
  const fields = listFields(collection);
  for (const name of REVISIONED_TEXTS) {
    const value = values[name];
    if (isGiven(value)) fields.get(name)?.write?.(value, { ...context, post: target });
  }
  const { meta } = values;
  return {
    ...before,
    title: target.title,
    content: target.content,
    excerpt: target.excerpt,
    isTrusted: target.isTrusted,
    meta: isGiven(meta)
      ? selectRevisionedMeta(writeMeta(before.meta, meta, collection.meta, context), collection)
      : before.meta,
  };
}

/** Whether what `values` give differs from the post itself: the texts that they give, and the meta fields if they give any. */
function differs(written: Revision, values: Values, post: Post, collection: Collection): boolean {
  const hasOtherText = REVISIONED_TEXTS.some(
    (name) => isGiven(values[name]) && !isSameText(written[name], post[name]),
  );
  return (
    hasOtherText ||
    (isGiven(values["meta"]) && !isSameMeta(written.meta, selectRevisionedMeta(post.meta, collection)))
  );
}

/** None for media, which have no autosaves. */
export function autosaveRoutes(
  collection: Collection,
  { library, site, users, namespace, lists }: AutosaveRoutesOptions,
): readonly RestRoute[] {
  const { base, type } = collection;
  if (!collection.supports.includes("autosave")) return [];
  const { index } = library;
  const hasTexts = collection.fields.includes("content");
  const postRights = createPostPermissions(collection, index);
  const rights = createRevisionPermissions(type, { library, what: "autosaves" });
  const items = createRevisionRenderer({ collection, site, index }, { namespace, hasPreview: true });
  const write = createPostWriter(collection);

  const load = async (id: number): Promise<Post> => {
    const [post] = await library.posts([id]);
    if (post !== undefined) return post;
    throw new RestError(404, "rest_post_invalid_id", "Invalid post ID.");
  };

  async function list(request: RestRequest): Promise<RestResponse> {
    const { values, url } = request;
    const parent = await load(Number(values["id"]));
    const found = await library.revisions([...listAutosaves(parent)]);
    const autosaves = found
      .filter((autosave) => autosave !== undefined)
      .sort((a, b) => b.date - a.date || b.id - a.id);
    const asked = { context: readContext(request), url };
    const listed = await lists.collect(parseFields(request.given["_fields"]), async ({ add }) => {
      for (const autosave of autosaves) await add(items.of(autosave, parent, asked));
    });
    return { status: 200, headers: {}, body: { items: listed } };
  }

  async function read(request: RestRequest): Promise<RestResponse> {
    const { values, url } = request;
    const id = Number(values["id"]);
    const parent = await load(Number(values["parent"]));
    const [autosave] = listAutosaves(parent).has(id) ? await library.revisions([id]) : [];
    if (autosave === undefined) {
      throw new RestError(404, "rest_post_no_autosave", "There is no autosave revision for this post.");
    }
    return {
      status: 200,
      headers: {},
      body: { item: items.of(autosave, parent, { context: readContext(request), url }) },
    };
  }

  /** Saves `values` as the caller's autosave of `post`. */
  async function autosave(
    draft: Transaction,
    values: Values,
    post: Post,
    context: WriteContext,
  ): Promise<Revision> {
    const { caller, now } = context;
    // What could not be saved is not autosaved; the texts cannot be a reason.
    write(
      hasTexts ? only(values, (name) => !(REVISIONED_TEXTS as readonly string[]).includes(name)) : values,
      post,
      post.id,
      context,
      resolvePostDates(values, site),
    );
    const knownId = post.autosaves[caller.id];
    const [known] = knownId === undefined ? [] : await library.revisions([knownId]);
    const id = known?.id ?? (await draft.newId("post"));
    const before: Revision = known ?? {
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
    };
    const written = textsOver(before, values, post, context);
    if (known !== undefined && !differs(written, values, post, collection)) return known;
    const revision: Revision = { ...written, date: site.zone.toLocal(now), dateGmt: now };
    draft.putRevision(revision, known?.version ?? 0);
    if (known === undefined) {
      draft.putBookkeeping({
        ...post,
        revisions: [...post.revisions, id],
        autosaves: { ...post.autosaves, [caller.id]: id },
      });
    }
    return revision;
  }

  async function create(request: RestRequest): Promise<RestResponse> {
    await refuseUnknownAuthor(request, collection, users);
    const { values, caller, url } = request;
    const id = Number(values["id"]);
    const asked = { context: "edit", url } as const;
    const saved = await library.change(async (draft) => {
      const post = await load(id);
      // The version that is judged is the one that the change is stored over.
      postRights.update(request, post);
      const context: WriteContext = {
        collection,
        caller,
        site,
        index,
        now: library.now(),
        defaultCategory: library.defaultCategory(),
      };
      const isOwnDraft = IS_DRAFT.has(post.status) && post.author === caller.id;
      if (!isOwnDraft) return { revision: await autosave(draft, values, post, context) };
      // Nobody reads a draft yet: its author's autosave is the draft itself, and leaves no revision.
      const own = only(values, (name) => hasTexts && SAVED_WITH_DRAFT.has(name));
      const written = write(own, post, id, context, resolvePostDates(own, site));
      draft.putPost(written);
      for (const above of listAncestors(written, index)) draft.basedOn(`post/${above}`);
      return {};
    });
    const post = await load(id);
    if (saved.revision !== undefined) return answer(items.of(saved.revision, post, asked));
    return answer(items.ofPost(post, asked));
  }

  const answer = (item: Item): RestResponse => ({ status: 200, headers: {}, body: { item } });

  const args = (own: Arguments): Arguments => ({ parent: parentArgument, ...own });
  const { schema } = items;
  const many: RestRoute = {
    namespace,
    path: `/${base}/:id/autosaves`,
    schema,
    endpoints: [
      {
        methods: ["GET"],
        args: args({ context: contextArgument }),
        described: { form: "items" },
        permit: ({ values, caller }) => void rights.read(Number(values["id"]), caller),
        handle: list,
      },
      {
        methods: ["POST"],
        args: args(updateArguments(collection, { library, site })),
        described: { status: 200 },
        permit: postRights.update,
        handle: create,
      },
    ],
  };
  const one: RestRoute = {
    namespace,
    path: `/${base}/:parent/autosaves/:id`,
    schema,
    endpoints: [
      {
        methods: ["GET"],
        args: args({ id: idArgument, context: contextArgument }),
        permit: ({ values, caller }) => void rights.read(Number(values["parent"]), caller),
        handle: read,
      },
    ],
  };
  return [many, one];
}
