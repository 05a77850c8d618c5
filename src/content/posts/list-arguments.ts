/** The arguments of the list of a post type. */

import type { Argument, Arguments } from "../../schema/types.js";
import { COUNTS, IDS, LENGTHS, SLUGS } from "../argument-bounds.js";
import type { Collection } from "../collections.js";
import { contextArgument, pageArguments } from "../rest/record-fields.js";
import { filterArguments } from "./list-filters.js";

const ids: Argument = { ...IDS, default: [] };
const dateTime: Argument = { type: "string", format: "date-time", maxLength: LENGTHS.date };

/** The columns that a search can be limited to, by WordPress's names. */
export const SEARCH_COLUMNS = {
  post_title: "title",
  post_content: "content",
  post_excerpt: "excerpt",
} as const;

const SEARCH: Argument = {
  description: "Limit results to those matching a string.",
  type: "string",
  maxLength: LENGTHS.search,
};

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

const idArguments: Arguments = {
  exclude: { description: "Ensure result set excludes specific IDs.", ...ids },
  include: { description: "Limit result set to specific IDs.", ...ids },
};

const orderArguments = ({ list }: Collection): Arguments => ({
  search_semantics: { description: "How to interpret the search input.", type: "string", enum: ["exact"] },
  offset: { description: "Offset the result set by a specific number of items.", type: "integer" },
  order: {
    description: "Order sort attribute ascending or descending.",
    type: "string",
    default: list.order,
    enum: ["asc", "desc"],
  },
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
    mostItems: COUNTS.names,
    default: [],
    items: { type: "string", enum: Object.keys(SEARCH_COLUMNS) },
  },
  slug: { description: "Limit result set to posts with one or more specific slugs.", ...SLUGS },
  status: {
    description: "Limit result set to posts assigned one or more statuses.",
    type: "array",
    mostItems: COUNTS.names,
    default: list.status,
    items: { type: "string", enum: list.statuses },
  },
});

/** Like WordPress, validates these arguments after all others are valid. */
const validateLate = (args: Arguments): Arguments =>
  Object.fromEntries(Object.entries(args).map(([name, argument]) => [name, { ...argument, late: true }]));

export const postListArguments = (collection: Collection): Arguments => ({
  context: contextArgument,
  ...pageArguments,
  per_page: { ...pageArguments["per_page"], default: collection.list.perPage },
  search: SEARCH,
  ...validateLate({
    ...dateArguments,
    ...idArguments,
    ...orderArguments(collection),
    ...columnArguments(collection),
    ...filterArguments(collection),
  }),
});
