/** The routes of a collection of posts, made from its row of the table: list, create, read, update, delete. */

import { nextTurn } from "../../core/next-turn.js";
import { toText } from "../../schema/text-of.js";
import type { Argument, Arguments, Context, Json, JsonObject } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import type { Collection } from "../collections.js";
import { listAncestors } from "../query/page-tree.js";
import type { Post, PostColumns } from "../records/records.js";
import type { ContentRepository, Transaction } from "../repository/content-repository.js";
import { removePosts } from "../repository/remove-posts.js";
import { RestError } from "../rest/error.js";
import { parseFields } from "../rest/field-selection.js";
import type { ListLimit, ListLimits } from "../rest/list-limits.js";
import { pageHeaders } from "../rest/paging.js";
import { readContext } from "../rest/record-fields.js";
import type { Item, RestEndpoint, RestRequest, RestResponse, RestRoute } from "../rest/types.js";
import type { Site } from "../site.js";
import type { Users } from "../users/users.js";
import { applyMenuItemValues } from "./menu-items/write-menu-item.js";
import { postListArguments, refuseStatuses, toPostQuery } from "./post-list.js";
import type { Passwords } from "./post-passwords.js";
import { createPostPermissions } from "./post-permissions.js";
import type { PostRenderer } from "./post-renderer.js";
import type { KeepRevision } from "./post-route-options.js";
import { itemSchema, orUnchanged, writeArguments } from "./post-schema.js";
import { assertUnmodified, parsePrecondition } from "./precondition.js";
import {
  applyPostValues,
  emptyContent,
  reparentChildren,
  resolvePostDates,
  trashPost,
  type Values,
  type WriteContext,
} from "./write-post.js";

/** Takes the file that comes with a new media item. */
export interface MediaUploads {
  readonly receive: NonNullable<RestEndpoint["receive"]>;
  /** Errors: RestError where no file came. */
  readonly take: (request: RestRequest) => Promise<NewMediaFile>;
  /** Removes the files of an item whose record is gone. Never rejects. */
  readonly remove: (post: Post) => Promise<void>;
}

/** A file that is stored already, before its record is. */
export interface NewMediaFile {
  /** Fields that follow from the file where the client gave none. */
  readonly values: Values;
  readonly complete: (post: Post) => Post;
  /** Removes the file: its record could not be stored. */
  readonly discard: () => Promise<void>;
}

export interface PostRoutesOptions {
  readonly library: ContentRepository;
  readonly site: Site;
  readonly items: PostRenderer;
  readonly users: Users;
  readonly uploads: MediaUploads;
  /** `core/v2` */
  readonly namespace: string;
  readonly passwords: Passwords;
  readonly keepRevision: KeepRevision;
  readonly lists: ListLimits;
}

/** What opens a protected text; the reference looks for it in the query alone, since a body may write another one. */
const passwordIn = ({ password }: JsonObject): string | undefined =>
  typeof password === "string" && password !== "" ? password : undefined;

/** In characters. */
const LONG_TEXT = 16_384;

/** Whole records that a list reads before it renders them. */
const READ_AT_ONCE = 25;

const idArgument: Argument = { description: "Unique identifier for the post.", type: "integer" };

const WRITERS: { readonly [type: string]: typeof applyPostValues } = { nav_menu_item: applyMenuItemValues };

/** What makes the record of a written item. */
export const createPostWriter = ({ type }: Collection): typeof applyPostValues =>
  WRITERS[type] ?? applyPostValues;

/** An author must be somebody the host knows. To be asked before a change begins: the host may have to look him up. */
export async function refuseUnknownAuthor(
  { values, caller }: RestRequest,
  collection: Collection,
  users: Users,
): Promise<void> {
  const { author } = values;
  const isAsked = typeof author === "number" && author !== 0 && author !== caller.id;
  if (!isAsked || !collection.fields.includes("author")) return;
  if ((await users.get(author)) === null) {
    throw new RestError(400, "rest_invalid_author", "Invalid author ID.");
  }
}

/** The arguments that update an item. */
export function updateArguments(
  collection: Collection,
  { library, site }: Pick<PostRoutesOptions, "library" | "site">,
): Arguments {
  const { properties } = itemSchema(collection);
  return writeArguments(collection, {
    status: {
      validate: orUnchanged(statusSchema(properties), (id) => library.index.post(id)?.status),
    },
    template: {
      validate: (value, name) =>
        value === "" || site.templates.includes(toText(value))
          ? undefined
          : { code: "rest_invalid_param", message: `${name} is not a template of this site.` },
    },
    slug: { sanitize: (value) => (value === null ? null : site.slug(toText(value))) },
  });
}

export function postRoutes(collection: Collection, options: PostRoutesOptions): readonly RestRoute[] {
  const { library, site, items, users, uploads, namespace, passwords, keepRevision, lists } = options;
  const { index } = library;
  const { base, type, allowBatch } = collection;
  const rights = createPostPermissions(collection, index);
  const schema = itemSchema(collection);
  const write = createPostWriter(collection);

  /** In which an item is shown for the last time. */
  const deletedContext: Context = type === "nav_menu_item" ? "view" : "edit";

  const load = async (id: number): Promise<Post> => {
    rights.find(id);
    const [post] = await library.posts([id]);
    if (post === undefined) throw new RestError(404, "rest_post_invalid_id", "Invalid post ID.");
    return post;
  };

  const itemOf = (post: Post, { values, query, caller, url }: RestRequest, context: Context): Item =>
    items.of(post, {
      context,
      caller,
      url,
      isUnlocked: post.password !== "" && opened.get(query) === post.password,
      excerptLength: typeof values["excerpt_length"] === "number" ? values["excerpt_length"] : undefined,
    });

  async function list(request: RestRequest): Promise<RestResponse> {
    const { values, caller, url, query: given } = request;
    const query = toPostQuery(values, collection, caller, site);
    const { ids, total } = await index.find(query, library.texts);
    const headers = pageHeaders({ values, total, given, url: url(`/${namespace}/${base}`) });
    const selection = parseFields(request.given["_fields"]);
    const asked = { context: readContext(request), caller, url, selection };
    const action = asked.context === "edit" ? "edit" : "read";
    // Who edits a post is shown its texts without its password.
    const password = action === "edit" ? undefined : passwordIn(given);
    const isSeen = (post: PostColumns | undefined): post is PostColumns =>
      post !== undefined && rights.may(caller, action, post);
    const cachedOf = (id: number): Item | undefined => {
      const post = index.post(id);
      const isTried = password !== undefined && post?.hasPassword === true;
      return isSeen(post) && !isTried ? items.cached(id, asked) : undefined;
    };
    const fill = async ({ add }: ListLimit): Promise<void> => {
      // A password is tried on all posts at once, or on none.
      const step = password === undefined ? READ_AT_ONCE : Math.max(ids.length, 1);
      for (let start = 0; start < ids.length; start += step) {
        const slice = ids.slice(start, start + step);
        const known = slice.map(cachedOf);
        // What went, or was taken back, between the query and here is left out.
        const loaded = known.includes(undefined) ? await library.posts(slice) : [];
        const posts = loaded.flatMap((post) => (isSeen(post) ? [post] : []));
        const unlocked = password === undefined ? undefined : passwords.open(posts, password);
        const read = new Map(posts.map((post) => [post.id, post]));
        for (const [at, cached] of known.entries()) {
          const post = read.get(slice[at] ?? 0);
          const item = cached ?? (post && items.of(post, { ...asked, isUnlocked: unlocked?.has(post.id) }));
          if (item !== undefined) await add(item);
        }
      }
    };
    return { status: 200, headers, body: { items: await lists.collect(selection, fill) } };
  }

  /**
   * By the query of a read with a password: the stored password that it matched, `null` for a wrong one, `undefined` before it is
   * tried. Permission is asked more than once in a request, and the password must count once.
   */
  const opened = new WeakMap<JsonObject, string | null | undefined>();

  const expectPassword = ({ query }: RestRequest): void => {
    if (passwordIn(query) !== undefined) opened.set(query, undefined);
  };

  /** A request of another method asks for `Allow` alone: it tries no password, so that it is not told whether one is right. */
  const isOpened = async ({ query, values, caller }: RestRequest): Promise<boolean> => {
    const given = passwordIn(query);
    if (given === undefined || !opened.has(query)) return true;
    if (opened.get(query) === undefined) {
      const post = await load(Number(values["id"]));
      // Any password is wrong for a caller who could not read the post with the right one either.
      const isRight = rights.may(caller, "read", post) && passwords.open([post], given).has(post.id);
      opened.set(query, isRight ? post.password : null);
    }
    return opened.get(query) !== null;
  };

  async function read(request: RestRequest): Promise<RestResponse> {
    const { values, caller, url, query, isGiven } = request;
    const id = Number(values["id"]);
    const isPlain = passwordIn(query) === undefined && !isGiven("excerpt_length");
    // Judged on what is answered: since it was permitted, somebody may have taken the post back.
    rights.read(request);
    const known = isPlain ? items.cached(id, { context: readContext(request), caller, url }) : undefined;
    const post = known === undefined ? await load(id) : undefined;
    if (post !== undefined) rights.read(request, post);
    const item = known ?? itemOf(post as Post, request, readContext(request));
    return { status: 200, headers: {}, body: { item } };
  }

  const writeContext = ({ caller }: RestRequest): WriteContext => ({
    collection,
    caller,
    site,
    index,
    now: library.now(),
    defaultCategory: library.defaultCategory(),
  });

  async function create(request: RestRequest): Promise<RestResponse> {
    // The reference looks for the record 0 then.
    if (request.isGiven("id") && request.given["id"] !== null) rights.find(0);
    await refuseUnknownAuthor(request, collection, users);
    const upload = type === "attachment" ? await uploads.take(request) : undefined;
    const values: Values = { ...request.values, ...upload?.values };
    const created = library.change(async (draft) => {
      const dates = resolvePostDates(values, site);
      const newId = await draft.newId("post");
      const post = write(values, null, newId, writeContext(request), dates);
      draft.putPost(upload === undefined ? post : upload.complete(post));
      if (collection.isHierarchical)
        for (const above of listAncestors(post, index)) draft.basedOn(`post/${above}`);
      return newId;
    });
    const id = await created.catch(async (error: unknown) => {
      await upload?.discard();
      throw error;
    });
    return {
      status: 201,
      headers: { location: request.url(`/${namespace}/${base}/${id}`) },
      body: { item: await written(id, request) },
    };
  }

  /** The item as it was stored. To filter a long text and to render it are two pieces of work: others have their turn between them. */
  async function written(id: number, request: RestRequest): Promise<Item> {
    const post = await load(id);
    if (post.content.length + post.excerpt.length > LONG_TEXT) await nextTurn();
    return itemOf(post, request, "edit");
  }

  async function update(request: RestRequest): Promise<RestResponse> {
    await refuseUnknownAuthor(request, collection, users);
    const { values, caller } = request;
    const id = Number(values["id"]);
    const dates = resolvePostDates(values, site);
    await library.change(async (draft) => {
      const previous = await load(id);
      // The version that is judged is the one that the change is stored over.
      rights.update(request, previous);
      assertUnmodified(parsePrecondition(request.headers), previous);
      const post = write(values, previous, id, writeContext(request), dates);
      draft.putPost(await keepRevision(draft, post, caller.id));
      if (collection.isHierarchical)
        for (const above of listAncestors(post, index)) draft.basedOn(`post/${above}`);
    });
    return { status: 200, headers: {}, body: { item: await written(id, request) } };
  }

  async function remove(request: RestRequest): Promise<RestResponse> {
    const { values, caller } = request;
    const id = Number(values["id"]);
    const isForced = values["force"] === true;
    if (!isForced && !collection.hasTrash) {
      throw new RestError(
        501,
        "rest_trash_not_supported",
        "The post does not support trashing. Set 'force=true' to delete.",
      );
    }
    const previous = await library.change(async (draft) => {
      const post = await load(id);
      rights.delete(request, post);
      assertUnmodified(parsePrecondition(request.headers), post);
      if (isForced) await removeWhole(draft, post);
      else {
        if (post.status === "trash") {
          throw new RestError(410, "rest_already_trashed", "The post has already been deleted.");
        }
        const trashed = trashPost(post, writeContext(request));
        draft.putPost(await keepRevision(draft, trashed, caller.id));
      }
      return { post, item: isForced ? itemOf(post, request, deletedContext) : undefined };
    });
    const { item, post } = previous;
    if (isForced) await uploads.remove(post);
    if (item !== undefined) {
      return { status: 200, headers: {}, body: { json: { deleted: true, previous: item.fields } } };
    }
    return { status: 200, headers: {}, body: { item: itemOf(await load(id), request, "edit") } };
  }

  /** Removes a post with all that is its own; what lay below it moves up, and menu items that led to it go too. */
  async function removeWhole(draft: Transaction, post: Post): Promise<void> {
    const targeting = type === "nav_menu_item" ? [] : index.targeting(`post/${post.id}`);
    await removePosts(draft, [post.id, ...targeting], library);
    if (type === "nav_menu_item") return;
    const children = (await library.posts(index.childrenOf(post.id))).filter(
      (child): child is Post =>
        child !== undefined && (collection.isHierarchical || child.type === "attachment"),
    );
    for (const child of reparentChildren(children, post, index)) draft.putPost(child);
  }

  const writable = updateArguments(collection, { library, site });
  const withId = (args: Arguments): Arguments => ({ id: idArgument, ...args });
  const endpoint = (rest: Omit<RestEndpoint, "allowBatch">): RestEndpoint => ({ ...rest, allowBatch });
  const hasText = collection.fields.includes("content");

  const many: RestRoute = {
    namespace,
    path: `/${base}`,
    schema,
    endpoints: [
      endpoint({
        methods: ["GET"],
        args: postListArguments(collection),
        described: { errors: [429] },
        check: (request) => {
          const statuses = (request.values["status"] ?? []) as readonly string[];
          refuseStatuses(statuses, collection, request.caller);
        },
        permit: rights.list,
        handle: list,
      }),
      endpoint({
        methods: ["POST"],
        args: createArguments(collection, writable),
        ...(type === "attachment" ? { receive: uploads.receive } : {}),
        ...(hasText ? { noObject: emptyContent } : {}),
        permit: rights.create,
        handle: create,
      }),
    ],
  };
  const one: RestRoute = {
    namespace,
    path: `/${base}/:id`,
    schema,
    endpoints: [
      endpoint({
        methods: ["GET"],
        args: withId({
          context: postListArguments(collection)["context"] as Argument,
          ...(hasText
            ? {
                excerpt_length: {
                  description: "Override the default excerpt length.",
                  type: "integer",
                } as const,
                password: {
                  description: "The password for the post if it is password protected.",
                  type: "string",
                  maxLength: LENGTHS.password,
                } as const,
              }
            : {}),
        }),
        described: { errors: [429] },
        check: expectPassword,
        permit: async (request) => rights.read(request, undefined, await isOpened(request)),
        handle: read,
      }),
      endpoint({
        methods: ["POST", "PUT", "PATCH"],
        args: withId(writable),
        described: { errors: [412] },
        permit: rights.update,
        handle: update,
      }),
      endpoint({
        methods: ["DELETE"],
        args: withId({
          force: {
            description: "Whether to bypass Trash and force deletion.",
            type: "boolean",
            default: false,
          },
        }),
        described: collection.hasTrash
          ? { form: "trashed", context: deletedContext, errors: [410, 412] }
          : { context: deletedContext, errors: [412] },
        permit: rights.delete,
        handle: remove,
      }),
    ],
  };
  return [many, one];
}

const statusSchema = (properties: { readonly [name: string]: object } | undefined): Argument =>
  (properties?.["status"] ?? {}) as Argument;

/** Menu items alone begin with values of their own; the reference announces them when one is created. */
const CREATE_DEFAULTS: { readonly [type: string]: { readonly [name: string]: Json } } = {
  nav_menu_item: { type: "custom", status: "publish", parent: 0, menu_order: 1, object_id: 0 },
};

function createArguments({ type }: Collection, args: Arguments): Arguments {
  const defaults = CREATE_DEFAULTS[type] ?? {};
  return Object.fromEntries(
    Object.entries(args).map(([name, argument]) => [
      name,
      Object.hasOwn(defaults, name) ? { ...argument, default: defaults[name] as Json } : argument,
    ]),
  );
}
