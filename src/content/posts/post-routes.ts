/** The routes of a post type, with their arguments: list, create, read, update, delete. */

import { toText } from "../../schema/coerce.js";
import type { Argument, Arguments, Json } from "../../schema/types.js";
import { COUNTS, IDS, LENGTHS, SLUGS } from "../argument-bounds.js";
import type { Collection } from "../records/content-model.js";
import {
  contextArgument,
  idArguments,
  offsetArgument,
  orderArgument,
  pageArguments,
  readContext,
  searchArgument,
} from "../rest/record-fields.js";
import type { RestEndpoint, RestRequest, RestResponse, RestRoute } from "../rest/types.js";
import { createCreatePost, createDeletePost, createUpdatePost, updateArguments } from "./change-post.js";
import { filterArguments, SEARCH_COLUMNS } from "./list-filters.js";
import { assertStatusesAllowed, createListPosts } from "./list-posts.js";
import type { PostBase } from "./post-base.js";
import { createPostResource, type PostResource, readPassword } from "./post-resource.js";
import { itemSchema, type PostTypeHandler } from "./post-type-handler.js";
import { emptyContent, mayBeEmpty } from "./write-post.js";

const idArgument: Argument = { description: "Unique identifier for the post.", type: "integer" };

const excerptLengthArgument: Argument = {
  description: "Override the default excerpt length.",
  type: "integer",
};

const passwordArguments: Arguments = {
  password: {
    description: "The password for the post if it is password protected.",
    type: "string",
    maxLength: LENGTHS.password,
  },
};

/**
 * WordPress obeys `excerpt_length` in every response with excerpts. Where it does not read one
 * item, it neither describes nor checks the argument, and takes the number at its beginning.
 */
const undescribedTextArguments: Arguments = {
  excerpt_length: {
    ...excerptLengthArgument,
    undescribed: true,
    late: true,
    validate: () => undefined,
    sanitize: (value) => (value === null ? null : Number.parseInt(toText(value), 10) || 0),
  },
};

const undescribedArguments = ({ fields }: PostTypeHandler): Arguments =>
  fields.has("excerpt") ? undescribedTextArguments : {};

const forceArgument: Argument = {
  description: "Whether to bypass Trash and force deletion.",
  type: "boolean",
  default: false,
};

export function postRoutes(type: PostTypeHandler, base: PostBase): RestRoute[] {
  const { namespace } = base;
  const { base: name, allowBatch } = type.collection;
  const resource = createPostResource(type, base);
  const schema = itemSchema(type);
  const writable = updateArguments(type, base);
  const toEndpoints = (endpoints: RestEndpoint[]): RestEndpoint[] =>
    endpoints.map((endpoint) => ({ ...endpoint, allowBatch }));
  return [
    {
      namespace,
      path: `/${name}`,
      schema,
      endpoints: toEndpoints([listEndpoint(resource, base), createEndpoint(resource, writable, base)]),
    },
    {
      namespace,
      path: `/${name}/:id`,
      schema,
      endpoints: toEndpoints([
        readEndpoint(resource, base),
        updateEndpoint(resource, writable, base),
        deleteEndpoint(resource, base),
      ]),
    },
  ];
}

function listEndpoint(resource: PostResource, base: PostBase): RestEndpoint {
  const { type, permissions } = resource;
  return {
    methods: ["GET"],
    args: { ...postListArguments(type.collection), ...undescribedArguments(type) },
    described: { errors: [429] },
    check: ({ values, caller }) => {
      assertStatusesAllowed((values["status"] ?? []) as string[], type.collection, caller);
    },
    permit: permissions.list,
    handle: createListPosts(resource, base),
  };
}

function createEndpoint(resource: PostResource, writable: Arguments, base: PostBase): RestEndpoint {
  const { type, permissions } = resource;
  return {
    methods: ["POST"],
    args: { ...withDefaults(writable, type.createDefaults ?? {}), ...undescribedArguments(type) },
    ...(type.uploads === undefined ? {} : { receive: type.uploads.receive }),
    ...(mayBeEmpty(type.collection) ? {} : { noObject: emptyContent }),
    // For an `id` in the body, which belongs to an update.
    described: { errors: [404] },
    permit: permissions.create,
    handle: createCreatePost(resource, base),
  };
}

function readEndpoint(resource: PostResource, base: PostBase): RestEndpoint {
  const { fields } = resource.type;
  return {
    methods: ["GET"],
    args: {
      id: idArgument,
      context: contextArgument,
      ...(fields.has("excerpt") ? { excerpt_length: excerptLengthArgument } : {}),
      ...(fields.has("password") ? passwordArguments : {}),
    },
    described: { errors: [429] },
    ...createReadPost(resource, base),
  };
}

function updateEndpoint(resource: PostResource, writable: Arguments, base: PostBase): RestEndpoint {
  return {
    methods: ["POST", "PUT", "PATCH"],
    args: { id: idArgument, ...writable, ...undescribedArguments(resource.type) },
    described: { errors: [412] },
    permit: resource.permissions.update,
    handle: createUpdatePost(resource, base),
  };
}

function deleteEndpoint(resource: PostResource, base: PostBase): RestEndpoint {
  const { collection, deletedContext: context = "edit" } = resource.type;
  return {
    methods: ["DELETE"],
    args: { id: idArgument, force: forceArgument, ...undescribedArguments(resource.type) },
    described: collection.hasTrash
      ? { form: "trashed", context, errors: [410, 412] }
      : { context, errors: [412] },
    permit: resource.permissions.delete,
    handle: createDeletePost(resource, base),
  };
}

/** WordPress announces the defaults only in the arguments that create an item. */
const withDefaults = (args: Arguments, defaults: { [name: string]: Json }): Arguments =>
  Object.fromEntries(
    Object.entries(args).map(([name, argument]) => [
      name,
      Object.hasOwn(defaults, name) ? { ...argument, default: defaults[name] as Json } : argument,
    ]),
  );

// The arguments of the list of a post type.

const ids: Argument = { ...IDS, default: [] };
const dateTime: Argument = { type: "string", format: "date-time", maxLength: LENGTHS.date };

const dateArguments: Arguments = {
  after: {
    description: "Limit response to posts published after a given ISO8601 compliant date.",
    ...dateTime,
  },
  modified_after: {
    description: "Limit response to posts modified after a given ISO8601 compliant date.",
    ...dateTime,
  },
  before: {
    description: "Limit response to posts published before a given ISO8601 compliant date.",
    ...dateTime,
  },
  modified_before: {
    description: "Limit response to posts modified before a given ISO8601 compliant date.",
    ...dateTime,
  },
};

const orderArguments = ({ list }: Collection): Arguments => ({
  search_semantics: { description: "How to interpret the search input.", type: "string", enum: ["exact"] },
  offset: offsetArgument,
  order: orderArgument(list.order),
  orderby: {
    description: "Sort collection by post attribute.",
    type: "string",
    default: list.orderBy,
    enum: list.orders,
  },
});

const columnArguments = ({ list }: Collection): Arguments => ({
  search_columns: {
    description: "Array of column names to be searched.",
    type: "array",
    itemLimit: COUNTS.names,
    default: [],
    items: { type: "string", enum: Object.keys(SEARCH_COLUMNS) },
  },
  slug: { description: "Limit result set to posts with one or more specific slugs.", ...SLUGS },
  status: {
    description: "Limit result set to posts assigned one or more statuses.",
    type: "array",
    itemLimit: COUNTS.names,
    default: list.status,
    items: { type: "string", enum: list.statuses },
  },
});

/** Like WordPress, validates these arguments after all others are valid. */
const validateLate = (args: Arguments): Arguments =>
  Object.fromEntries(Object.entries(args).map(([name, argument]) => [name, { ...argument, late: true }]));

const postListArguments = (collection: Collection): Arguments => ({
  context: contextArgument,
  ...pageArguments,
  per_page: { ...pageArguments["per_page"], default: collection.list.perPage },
  search: searchArgument,
  ...validateLate({
    ...dateArguments,
    ...idArguments(ids),
    ...orderArguments(collection),
    ...columnArguments(collection),
    ...filterArguments(collection),
  }),
});

// Reads one post. A client can unlock the texts of a protected post with its password.

function createReadPost(
  { permissions, load, render }: PostResource,
  { renderer, passwords }: PostBase,
): Omit<RestEndpoint, "methods" | "args"> {
  /**
   * Compares the password once per request, although `permit` may run several times: each wrong one
   * counts. A request of another method has no state, so it tries no password and learns nothing
   * about it from `Allow`.
   */
  const isUnlocked = async ({ query, values, caller, state }: RestRequest): Promise<boolean> => {
    const password = readPassword(query);
    if (password === undefined || state === undefined) return true;
    if (state.matchedPassword === undefined) {
      const post = await load(Number(values["id"]));
      // Any password is wrong for a caller who could not read the post with the right one either.
      const isRight = permissions.may(caller, "read", post) && passwords.open([post], password).has(post.id);
      state.matchedPassword = isRight ? post.password : null;
    }
    return state.matchedPassword !== null;
  };

  return {
    permit: async (request) => permissions.read(request, undefined, await isUnlocked(request)),
    async handle(request): Promise<RestResponse> {
      const { values, caller, url, query, isGiven } = request;
      const id = Number(values["id"]);
      const context = readContext(request);
      const isPlain = readPassword(query) === undefined && !isGiven("excerpt_length");
      // The post may have changed since `permit`: what is returned is checked again.
      permissions.read(request);
      const cached = isPlain ? renderer.getCached(id, { context, caller, url }) : undefined;
      if (cached !== undefined) return { status: 200, headers: {}, body: { item: cached } };
      const post = await load(id);
      permissions.read(request, post);
      return { status: 200, headers: {}, body: { item: await render(post, request, context) } };
    },
  };
}
