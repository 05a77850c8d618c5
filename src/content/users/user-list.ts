/** The list of users: its arguments, who may use which of them, and what they leave. */

import type { Arguments, Json } from "../../schema/types.js";
import { IDS as ID_LIST, LENGTHS, NAMES, SLUGS } from "../argument-bounds.js";
import type { Caller } from "../auth/caller.js";
import type { Roles } from "../auth/roles.js";
import type { ContentModel } from "../records/content-model.js";
import type { PostType, User } from "../records/records.js";
import { refusal } from "../rest/error.js";
import {
  contextArgument,
  idArguments,
  offsetArgument,
  orderArgument,
  pageArguments,
  readContext,
} from "../rest/record-fields.js";
import type { RestRequest } from "../rest/types.js";
import { contains, fold } from "../text/normalise.js";

const ORDERS = ["id", "include", "name", "registered_date", "slug", "include_slugs", "email", "url"] as const;
type UserOrder = (typeof ORDERS)[number];

/** Their order would reveal what only managers of users may see. */
const PRIVATE_ORDERS: Set<unknown> = new Set<UserOrder>(["email", "registered_date"]);

/** WordPress also has `username`, which a host does not tell. */
const SEARCH_COLUMNS = ["email", "name", "id", "slug"] as const;
type SearchColumn = (typeof SEARCH_COLUMNS)[number];

const IDS = { ...ID_LIST, default: [] } as const;

export const userListArguments = ({ types }: ContentModel): Arguments => ({
  context: contextArgument,
  ...pageArguments,
  search: {
    description: "Limit results to those whose name or slug matches a string.",
    type: "string",
    maxLength: LENGTHS.search,
  },
  ...idArguments(IDS),
  offset: offsetArgument,
  order: orderArgument("asc"),
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
  capabilities: {
    description: "Limit result set to users matching at least one specific capability provided.",
    ...NAMES,
  },
  who: {
    description: "Limit result set to users who are considered authors.",
    type: "string",
    enum: ["authors"],
  },
  has_published_posts: {
    description: "Limit result set to users who have published posts.",
    type: ["boolean", "array"],
    items: { type: "string", enum: [...types.keys()] },
    itemLimit: types.size,
  },
  search_columns: {
    description: "Array of column names to be searched.",
    type: "array",
    default: [],
    items: { type: "string", enum: SEARCH_COLUMNS },
    itemLimit: NAMES.itemLimit,
  },
});

/** @throws RestError 401 or 403 for an argument that would tell the caller too much */
export function permitUserList(request: RestRequest): void {
  const { values, caller, isGiven } = request;
  const canList = caller.has("list_users");
  const refuseUnlessLister = (isAsked: boolean, code: string, what: string): void => {
    if (isAsked && !canList) throw refusal(caller, code, `Sorry, you are not allowed to ${what}.`);
  };
  refuseUnlessLister(isGiven("roles"), "rest_user_cannot_view", "filter users by role");
  refuseUnlessLister(isGiven("capabilities"), "rest_user_cannot_view", "filter users by capability");
  refuseUnlessLister(readContext(request) === "edit", "rest_forbidden_context", "edit users");
  refuseUnlessLister(
    PRIVATE_ORDERS.has(values["orderby"]),
    "rest_forbidden_orderby",
    "order users by this parameter",
  );
  if (values["who"] === "authors" && !caller.canEditSomething()) {
    throw refusal(
      caller,
      "rest_forbidden_who",
      "Sorry, you are not allowed to query users by this parameter.",
    );
  }
}

type Values = { [name: string]: Json | undefined };

/** Returns a list that has entries; `undefined` if it is missing or empty. */
function readList<T extends Json>(values: Values, name: string): T[] | undefined {
  const value = values[name];
  return Array.isArray(value) && value.length > 0 ? (value as T[]) : undefined;
}

/** Returns the types that a listed user must have published; `undefined` lists every user. */
export const readPublishedTypes = (values: Values, { types }: ContentModel): PostType[] | undefined =>
  values["has_published_posts"] === true
    ? [...types.keys()]
    : readList<PostType>(values, "has_published_posts");

const COLUMNS: { [column in SearchColumn]: (user: User) => string } = {
  email: ({ email = "" }) => fold(email),
  name: ({ name }) => fold(name),
  id: ({ id }) => String(id),
  slug: ({ slug }) => fold(slug),
};

/** Returns a test for the search. Only managers of users find somebody by his e-mail address. */
function createSearch(values: Values, caller: Caller): (user: User) => boolean {
  const { search: wanted } = values;
  const search = typeof wanted === "string" ? fold(wanted.trim()) : "";
  if (search === "") return () => true;
  const asked = readList<SearchColumn>(values, "search_columns") ?? [];
  const allowed = asked.filter((column) => column !== "email" || caller.has("list_users"));
  const columns = allowed.length > 0 ? allowed : (["name", "slug"] as const);
  return (user) => columns.some((column) => contains(COLUMNS[column](user), search));
}

/**
 * Returns those of `users` that fit the arguments, in order; of equal users the lower id first.
 * `include` without ids orders by slug, since the host tells no user names.
 */
export function selectUsers(users: User[], { values, caller }: RestRequest, roles: Roles): User[] {
  const include = readList<number>(values, "include");
  const slugs = readList<string>(values, "slug");
  const asked = values["orderby"] as UserOrder;
  const isMissing = (asked === "include" && !include) || (asked === "include_slugs" && !slugs);
  const included = include && new Set(include);
  const excluded = new Set(readList<number>(values, "exclude"));
  const slugSet = slugs && new Set(slugs);
  const wantedRoles = readList<string>(values, "roles");
  const wantedCapabilities = readList<string>(values, "capabilities");
  const grants = (user: User, capability: string): boolean =>
    user.roles.some((role) => role === capability || roles.get(role)?.has(capability));
  const isFound = createSearch(values, caller);
  const found = users.filter(
    (user) =>
      (included?.has(user.id) ?? true) &&
      !excluded.has(user.id) &&
      (slugSet?.has(user.slug) ?? true) &&
      (wantedRoles?.some((role) => user.roles.includes(role)) ?? true) &&
      (wantedCapabilities?.some((capability) => grants(user, capability)) ?? true) &&
      isFound(user),
  );
  return sortUsers(found, {
    orderBy: isMissing ? "slug" : asked,
    isDescending: values["order"] === "desc",
    include: include ?? [],
    slugs: slugs ?? [],
  });
}

function sortUsers(
  users: User[],
  {
    orderBy,
    isDescending,
    include,
    slugs,
  }: {
    orderBy: UserOrder;
    isDescending: boolean;
    include: number[];
    slugs: string[];
  },
): User[] {
  const includePlaces = new Map(include.map((id, at) => [id, at]));
  const slugPlaces = new Map(slugs.map((slug, at) => [slug, at]));
  const keys: { [by in UserOrder]: (user: User) => string | number } = {
    id: ({ id }) => id,
    name: COLUMNS.name,
    // The host does not tell when a user registered; ids ascend with it.
    registered_date: ({ id }) => id,
    slug: ({ slug }) => slug,
    email: COLUMNS.email,
    url: ({ url = "" }) => url,
    include: ({ id }) => includePlaces.get(id) ?? 0,
    include_slugs: ({ slug }) => slugPlaces.get(slug) ?? 0,
  };
  const direction = isDescending && orderBy !== "include_slugs" ? -1 : 1;
  const keyed = users.map((user) => ({ user, key: keys[orderBy](user) }));
  keyed.sort((a, b) => (a.key < b.key ? -direction : a.key > b.key ? direction : a.user.id - b.user.id));
  return keyed.map(({ user }) => user);
}
