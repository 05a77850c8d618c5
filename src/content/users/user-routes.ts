/**
 * The REST routes of users. The host keeps its users, so the only thing that can be written is what
 * the site stores about the user who is asking.
 */

import type { Context } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import type { Roles } from "../auth/roles.js";
import type { Callers } from "../callers.js";
import type { User } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import { RestError, refusal } from "../rest/error.js";
import { respondWithPage } from "../rest/lists.js";
import { contextArgument, readContext, recordSchema, selectRecordFields } from "../rest/record-fields.js";
import { createItem } from "../rest/serialise.js";
import type { Item, Links, RestRequest, RestResponse, RestRoute } from "../rest/types.js";
import type { Site } from "../site.js";
import { type ShownUser, userFields } from "./user-fields.js";
import { permitUserList, readPublishedTypes, selectUsers, userListArguments } from "./user-list.js";
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
  repository: ContentRepository;
  site: Site;
  users: Users;
  roles: Roles;
  callers: Callers;
  namespace: string;
}): RestRoute[] {
  const fields = userFields(site.home, roles);
  const schema = recordSchema("user", fields);
  const { model } = repository.index;
  const { listPublishers, find } = createUserVisibility({ repository, users });

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
        ? everybody.filter((user) => callers.toCaller(user).canEditSomething())
        : caller.has("list_users")
          ? everybody
          : await listPublishers(everybody);
    const types = readPublishedTypes(values, model);
    const publishers = types && new Set(await listPublishers(everybody, types));
    const listed = candidates.filter((user) => publishers?.has(user) ?? true);
    const found = selectUsers(listed, request, roles);
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
        {
          methods: ["GET"],
          allowBatch: true,
          args: userListArguments(model),
          permit: permitUserList,
          handle: list,
        },
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
          described: { summary: "Read the user who is asking", errors: [401] },
          // As in WordPress: `Allow` names GET for anonymous callers, who get 401.
          permit: () => {},
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
