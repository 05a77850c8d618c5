/** Lists users: the arguments, the filters and the order. Pure. */

import type { Arguments, Json } from "../../schema/types.js";
import { IDS as ID_LIST, LENGTHS, NAMES, SLUGS } from "../argument-bounds.js";
import { contains } from "../query/contains.js";
import { fold } from "../query/folding.js";
import type { User } from "../records/records.js";
import { RestError } from "../rest/error.js";
import { contextArgument, pageArguments } from "../rest/record-fields.js";

/** E-mail, URL and registration date are missing: their order would reveal hidden values. */
const ORDERS = ["id", "include", "name", "slug", "include_slugs"] as const;
type UserOrder = (typeof ORDERS)[number];

const IDS = { ...ID_LIST, default: [] } as const;

export const userListArguments: Arguments = {
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
export function listUsers(
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
