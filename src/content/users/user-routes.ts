/** The routes of users, which are read only: the host keeps its people. Who is shown to whom is decided here. */

import type { Context } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import { canEditSomething } from "../auth/capabilities.js";
import type { Roles } from "../auth/roles.js";
import type { User } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import { RestError, refusal } from "../rest/error.js";
import { createItem } from "../rest/item.js";
import { renderPage } from "../rest/paging.js";
import { contextArgument, readContext, recordSchema, selectRecordFields } from "../rest/record-fields.js";
import type { Item, RestRequest, RestResponse, RestRoute } from "../rest/types.js";
import type { Site } from "../site.js";
import { userFields } from "./user-fields.js";
import { listUsers, userListArguments } from "./user-list.js";
import type { Users } from "./users.js";

export interface UserRoutesOptions {
  readonly library: Pick<ContentRepository, "index" | "stamp">;
  readonly users: Users;
  readonly callerOf: (user: User | null) => Caller;
  readonly roles: Roles;
  readonly site: Pick<Site, "home">;
  /** `core/v2` */
  readonly namespace: string;
}

/** Types whose published posts everybody may read: who wrote one is no secret. */
const PUBLIC_TYPES = ["post", "page"] as const;

export function userRoutes({
  library,
  users,
  callerOf,
  roles,
  site,
  namespace,
}: UserRoutesOptions): readonly RestRoute[] {
  const fields = userFields({ home: site.home, roles });
  const schema = recordSchema("user", fields);

  function itemOf(user: User, { url }: RestRequest, context: Context): Item {
    const collection = url(`/${namespace}/users`);
    const self = { href: `${collection}/${user.id}`, targetHints: { allow: ["GET"] } };
    return createItem(selectRecordFields(user, fields, context), {
      self: [self],
      collection: [{ href: collection }],
    });
  }

  const answer = (user: User, request: RestRequest): RestResponse => ({
    status: 200,
    headers: {},
    body: { item: itemOf(user, request, readContext(request)) },
  });

  async function hasPublished({ id }: User): Promise<boolean> {
    for (const type of PUBLIC_TYPES) {
      const { total } = await library.index.find(
        {
          type,
          visibility: { publish: "all" },
          author: [id],
          orderBy: "date",
          order: "desc",
          offset: 0,
          limit: 1,
        },
        async () => [],
      );
      if (total > 0) return true;
    }
    return false;
  }

  let authors:
    | { readonly stamp: number; readonly of: readonly User[]; readonly found: readonly User[] }
    | undefined;

  /** Those of `everybody` whom anonymous callers may see. Found once for each state of the content. */
  async function publishedAuthors(everybody: readonly User[]): Promise<readonly User[]> {
    const stamp = library.stamp();
    if (authors?.stamp === stamp && authors.of === everybody) return authors.found;
    const found: User[] = [];
    for (const user of everybody) if (await hasPublished(user)) found.push(user);
    authors = { stamp, of: everybody, found };
    return found;
  }

  async function list(request: RestRequest): Promise<RestResponse> {
    const { values, caller } = request;
    const everybody = await users.all();
    const candidates =
      values["who"] === "authors"
        ? everybody.filter((user) => canEditSomething(callerOf(user)))
        : caller.has("list_users")
          ? everybody
          : await publishedAuthors(everybody);
    const found = listUsers(candidates, values);
    return renderPage(found, request, {
      path: `/${namespace}/users`,
      itemOf: (user) => itemOf(user, request, readContext(request)),
    });
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

  /**
   * The user whom the caller may see. Somebody he may not see is answered as nobody is, so that ids cannot be tried out; the reference tells the two
   * apart.
   */
  async function find({ values, caller }: RestRequest): Promise<User> {
    const id = Number(values["id"]);
    const user = caller.user?.id === id ? caller.user : await users.get(id);
    const isShown =
      user !== null &&
      (caller.id === id ||
        caller.has("list_users") ||
        caller.has("edit_users") ||
        (await hasPublished(user)));
    if (isShown) return user;
    throw new RestError(404, "rest_user_invalid_id", "Invalid user ID.");
  }

  const self = ({ caller }: RestRequest): User => {
    if (caller.user !== null) return caller.user;
    throw new RestError(401, "rest_not_logged_in", "You are not currently logged in.");
  };

  return [
    {
      namespace,
      path: "/users",
      schema,
      endpoints: [{ methods: ["GET"], args: userListArguments, permit: permitList, handle: list }],
    },
    {
      namespace,
      path: "/users/:id",
      schema,
      endpoints: [
        {
          methods: ["GET"],
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
          handle: async (request) => answer(await find(request), request),
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
            self(request);
          },
          handle: (request) => answer(self(request), request),
        },
      ],
    },
  ];
}
