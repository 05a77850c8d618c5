/** The REST routes of users. They are read-only, because the host keeps its users. */

import type { Context } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import { canEditSomething } from "../auth/capabilities.js";
import type { Roles } from "../auth/roles.js";
import type { User } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import { RestError, refusal } from "../rest/error.js";
import { createItem } from "../rest/item.js";
import { respondWithPage } from "../rest/paging.js";
import { contextArgument, readContext, recordSchema, selectRecordFields } from "../rest/record-fields.js";
import type { Item, RestRequest, RestResponse, RestRoute } from "../rest/types.js";
import type { Site } from "../site.js";
import { userFields } from "./user-fields.js";
import { listUsers, userListArguments } from "./user-list.js";
import { createUserVisibility } from "./user-visibility.js";
import type { Users } from "./users.js";

export interface UserRoutesOptions {
  readonly repository: Pick<ContentRepository, "index" | "stamp">;
  readonly users: Users;
  readonly callerOf: (user: User | null) => Caller;
  readonly roles: Roles;
  readonly site: Pick<Site, "home">;
  /** `core/v2` */
  readonly namespace: string;
}

/** Returns the routes of users. */
export function userRoutes({
  repository,
  users,
  callerOf,
  roles,
  site,
  namespace,
}: UserRoutesOptions): readonly RestRoute[] {
  const fields = userFields({ home: site.home, roles });
  const schema = recordSchema("user", fields);
  const { listPublishedAuthors, find } = createUserVisibility({ repository, users });

  function renderItem(user: User, { url }: RestRequest, context: Context): Item {
    const collection = url(`/${namespace}/users`);
    const self = { href: `${collection}/${user.id}`, targetHints: { allow: ["GET"] } };
    return createItem(selectRecordFields(user, fields, context), {
      self: [self],
      collection: [{ href: collection }],
    });
  }

  const toResponse = (user: User, request: RestRequest): RestResponse => ({
    status: 200,
    headers: {},
    body: { item: renderItem(user, request, readContext(request)) },
  });

  async function list(request: RestRequest): Promise<RestResponse> {
    const { values, caller } = request;
    const everybody = await users.all();
    const candidates =
      values["who"] === "authors"
        ? everybody.filter((user) => canEditSomething(callerOf(user)))
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
            id: { description: "Unique identifier for the user.", type: "integer" },
            context: contextArgument,
          },
          async permit(request) {
            const { id } = await find(request);
            const { caller } = request;
            if (readContext(request) !== "edit" || caller.id === id || caller.has("edit_users")) return;
            throw refusal(caller, "rest_forbidden_context", "Sorry, you are not allowed to edit this user.");
          },
          handle: async (request) => toResponse(await find(request), request),
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
          handle: (request) => toResponse(getSelf(request), request),
        },
      ],
    },
  ];
}

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
