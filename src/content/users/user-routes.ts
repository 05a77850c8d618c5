/**
 * The REST routes of users. The host keeps its users, so the only thing that can be written is what
 * the site stores about the user who is asking.
 */

import type { Arguments, Context, Json } from "../../schema/types.js";
import { IDS as ID_LIST, LENGTHS, NAMES, SLUGS } from "../argument-bounds.js";
import type { Caller } from "../auth/caller.js";
import { canEditSomething } from "../auth/capabilities.js";
import type { Roles } from "../auth/roles.js";
import type { Callers } from "../callers.js";
import type { User } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import { RestError, refusal } from "../rest/error.js";
import { respondWithPage } from "../rest/lists.js";
import {
  contextArgument,
  pageArguments,
  readContext,
  recordSchema,
  selectRecordFields,
} from "../rest/record-fields.js";
import { createItem } from "../rest/serialise.js";
import type { Item, Links, RestRequest, RestResponse, RestRoute } from "../rest/types.js";
import type { Site } from "../site.js";
import { contains, fold } from "../text/normalise.js";
import { type ShownUser, userFields } from "./user-fields.js";
import type { Users } from "./users.js";
import { createUserVisibility } from "./users.js";
import { userArguments, writeUser } from "./write-user.js";

const WRITES = ["POST", "PUT", "PATCH"] as const;
const ID = { description: "Unique identifier for the user.", type: "integer" } as const;

/** Returns the routes of users. */
export function userRoutes({
  repository,
  site,
  users,
  roles,
  callers,
  namespace,
}: {
  readonly repository: Pick<ContentRepository, "index" | "stamp" | "change" | "userMeta">;
  readonly site: Pick<Site, "home">;
  readonly users: Users;
  readonly roles: Roles;
  readonly callers: Pick<Callers, "toCaller">;
  readonly namespace: string;
}): readonly RestRoute[] {
  const fields = userFields(site.home, roles);
  const schema = recordSchema("user", fields);
  const { listPublishedAuthors, find } = createUserVisibility({ repository, users });

  const renderItem = (user: ShownUser, { url, caller }: RestRequest, context: Context): Item =>
    createItem(
      selectRecordFields(user, fields, context),
      listLinks(user, caller, url(`/${namespace}/users`)),
    );

  /** The preferences of a user are shown to nobody else. */
  async function respond(
    user: User,
    request: RestRequest,
    context = readContext(request),
  ): Promise<RestResponse> {
    const isOwn = context === "edit" && user.id === request.caller.id;
    const shown = isOwn ? { ...user, meta: (await repository.userMeta(user.id)).meta } : user;
    return { status: 200, headers: {}, body: { item: renderItem(shown, request, context) } };
  }

  async function update(user: User, request: RestRequest): Promise<RestResponse> {
    await writeUser(request, user, repository);
    return respond(user, request, "edit");
  }

  async function list(request: RestRequest): Promise<RestResponse> {
    const { values, caller } = request;
    const everybody = await users.all();
    const candidates =
      values["who"] === "authors"
        ? everybody.filter((user) => canEditSomething(callers.toCaller(user)))
        : caller.has("list_users")
          ? everybody
          : await listPublishedAuthors(everybody);
    const found = listUsers(candidates, values);
    return respondWithPage(found, request, {
      path: `/${namespace}/users`,
      itemOf: (user) => renderItem(user, request, readContext(request)),
    });
  }

  const getSelf = ({ caller }: RestRequest): User => {
    if (caller.user !== null) return caller.user;
    throw new RestError(401, "rest_not_logged_in", "You are not currently logged in.");
  };

  return [
    {
      namespace,
      path: "/users",
      schema,
      endpoints: [
        { methods: ["GET"], allowBatch: true, args: userListArguments, permit: permitList, handle: list },
      ],
    },
    {
      namespace,
      path: "/users/:id",
      schema,
      endpoints: [
        {
          methods: ["GET"],
          allowBatch: true,
          args: {
            id: ID,
            context: contextArgument,
          },
          async permit(request) {
            const { id } = await find(request);
            const { caller } = request;
            if (readContext(request) !== "edit" || caller.id === id || caller.has("edit_users")) return;
            throw refusal(caller, "rest_forbidden_context", "Sorry, you are not allowed to edit this user.");
          },
          handle: async (request) => respond(await find(request), request),
        },
        {
          methods: WRITES,
          allowBatch: true,
          args: { id: ID, ...userArguments },
          described: { status: 200 },
          async permit(request) {
            const { caller } = request;
            if (caller.id === 0 || caller.id !== (await find(request)).id) throw cannotEdit(caller);
          },
          handle: async (request) => update(await find(request), request),
        },
      ],
    },
    {
      namespace,
      path: "/users/me",
      schema,
      endpoints: [
        {
          methods: ["GET"],
          args: { context: contextArgument },
          described: { summary: "Read the user who is asking" },
          permit: (request) => {
            getSelf(request);
          },
          handle: (request) => respond(getSelf(request), request),
        },
        {
          methods: WRITES,
          args: userArguments,
          described: { summary: "Change the preferences of the user who is asking", status: 200 },
          permit: (request) => {
            getSelf(request);
          },
          handle: (request) => update(getSelf(request), request),
        },
      ],
    },
  ];
}

function listLinks({ id }: User, caller: Caller, collection: string): Links {
  const allow = id === caller.id ? ["GET", ...WRITES] : ["GET"];
  const self = { href: `${collection}/${id}`, targetHints: { allow } };
  return { self: [self], collection: [{ href: collection }] };
}

const cannotEdit = (caller: Caller): RestError =>
  refusal(caller, "rest_cannot_edit", "Sorry, you are not allowed to edit this user.");

function permitList(request: RestRequest): void {
  const { values, caller, isGiven } = request;
  const canList = caller.has("list_users");
  if (isGiven("roles") && !canList) {
    throw refusal(caller, "rest_user_cannot_view", "Sorry, you are not allowed to filter users by role.");
  }
  if (readContext(request) === "edit" && !canList) {
    throw refusal(caller, "rest_forbidden_context", "Sorry, you are not allowed to edit users.");
  }
  if (values["who"] === "authors" && !canEditSomething(caller)) {
    throw refusal(
      caller,
      "rest_forbidden_who",
      "Sorry, you are not allowed to query users by this parameter.",
    );
  }
}

/** E-mail, URL and registration date are missing: their order would reveal hidden values. */
const ORDERS = ["id", "include", "name", "slug", "include_slugs"] as const;
type UserOrder = (typeof ORDERS)[number];

const IDS = { ...ID_LIST, default: [] } as const;

const userListArguments: Arguments = {
  context: contextArgument,
  ...pageArguments,
  search: {
    description: "Limit results to those whose name or slug matches a string.",
    type: "string",
    maxLength: LENGTHS.search,
  },
  exclude: { description: "Ensure result set excludes specific IDs.", ...IDS },
  include: { description: "Limit result set to specific IDs.", ...IDS },
  offset: { description: "Offset the result set by a specific number of items.", type: "integer" },
  order: {
    description: "Order sort attribute ascending or descending.",
    type: "string",
    default: "asc",
    enum: ["asc", "desc"],
  },
  orderby: {
    description: "Sort collection by user attribute.",
    type: "string",
    default: "name",
    enum: ORDERS,
  },
  slug: { description: "Limit result set to users with one or more specific slugs.", ...SLUGS },
  roles: {
    description: "Limit result set to users matching at least one specific role provided.",
    ...NAMES,
  },
  who: {
    description: "Limit result set to users who are considered authors.",
    type: "string",
    enum: ["authors"],
  },
};

/**
 * Returns those of `users` that fit the arguments, in order; of equal users the lower id first.
 *
 * @throws RestError 400 `rest_orderby_include_missing_include` for an order by a missing list.
 */
function listUsers(
  users: readonly User[],
  values: { readonly [name: string]: Json | undefined },
): readonly User[] {
  const list = <T extends Json>(name: string): readonly T[] | undefined => {
    const value = values[name];
    return Array.isArray(value) && value.length > 0 ? (value as readonly T[]) : undefined;
  };
  const include = list<number>("include");
  const slugs = list<string>("slug");
  const orderBy = values["orderby"] as UserOrder;
  if (orderBy === "include" && include === undefined) {
    throw new RestError(
      400,
      "rest_orderby_include_missing_include",
      "You need to define an include parameter to order by include.",
    );
  }
  const included = include && new Set(include);
  const excluded = new Set(list<number>("exclude"));
  const slugSet = slugs && new Set(slugs);
  const roles = list<string>("roles");
  const { search: wanted } = values;
  const search = typeof wanted === "string" ? fold(wanted) : "";
  const found = users.filter(
    ({ id, name, slug, roles: own }) =>
      (included === undefined || included.has(id)) &&
      !excluded.has(id) &&
      (slugSet === undefined || slugSet.has(slug)) &&
      (roles === undefined || roles.some((role) => own.includes(role))) &&
      (search === "" || contains(fold(name), search) || contains(fold(slug), search)),
  );
  const includePlaces = new Map(include?.map((id, at) => [id, at]));
  const slugPlaces = new Map(slugs?.map((slug, at) => [slug, at]));
  const keys: { readonly [by in UserOrder]: (user: User) => string | number } = {
    id: ({ id }) => id,
    name: ({ name }) => fold(name),
    slug: ({ slug }) => slug,
    include: ({ id }) => includePlaces.get(id) ?? 0,
    include_slugs: ({ slug }) => slugPlaces.get(slug) ?? 0,
  };
  const isListed = orderBy === "include" || orderBy === "include_slugs";
  const direction = values["order"] === "desc" && !isListed ? -1 : 1;
  const keyed = found.map((user) => ({ user, key: keys[orderBy](user) }));
  keyed.sort((a, b) => (a.key < b.key ? -direction : a.key > b.key ? direction : a.user.id - b.user.id));
  return keyed.map(({ user }) => user);
}
