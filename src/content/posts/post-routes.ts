/** The routes of a post type: list, create, read, update, delete. */

import { toText } from "../../schema/text-of.js";
import type { Argument, Arguments, Json } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import { contextArgument } from "../rest/record-fields.js";
import type { RestEndpoint, RestRoute } from "../rest/types.js";
import { createCreatePost, createDeletePost, createUpdatePost, updateArguments } from "./change-post.js";
import { postListArguments } from "./list-arguments.js";
import { assertStatusesAllowed, createListPosts } from "./list-posts.js";
import type { PostBase } from "./post-base.js";
import { createPostResource, type PostResource } from "./post-resource.js";
import { itemSchema, type PostTypeHandler } from "./post-type-handler.js";
import { createReadPost } from "./read-post.js";
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

export function postRoutes(type: PostTypeHandler, base: PostBase): readonly RestRoute[] {
  const { namespace } = base;
  const { base: name, allowBatch } = type.collection;
  const resource = createPostResource(type, base);
  const schema = itemSchema(type);
  const writable = updateArguments(type, base);
  const toEndpoints = (endpoints: readonly RestEndpoint[]): readonly RestEndpoint[] =>
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
      assertStatusesAllowed((values["status"] ?? []) as readonly string[], type.collection, caller);
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
const withDefaults = (args: Arguments, defaults: { readonly [name: string]: Json }): Arguments =>
  Object.fromEntries(
    Object.entries(args).map(([name, argument]) => [
      name,
      Object.hasOwn(defaults, name) ? { ...argument, default: defaults[name] as Json } : argument,
    ]),
  );
