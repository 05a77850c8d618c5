/** The list of a collection: its arguments, and the query that they ask for. */

import { toText } from "../../schema/text-of.js";
import type { Argument, Arguments, Context, Json, JsonObject } from "../../schema/types.js";
import { COUNTS, IDS, LENGTHS, NAMES, SLUGS } from "../argument-bounds.js";
import type { Caller } from "../auth/caller.js";
import { type Collection, POST_FORMATS } from "../collections.js";
import type { PostOrder, PostQuery, TermFilter, Visibility, VisibilityScope } from "../query/types.js";
import type { PostColumns, PostStatus, Taxonomy } from "../records/records.js";
import { RestError } from "../rest/error.js";
import { contextArgument, pageArguments } from "../rest/record-fields.js";
import type { Site } from "../site.js";
import { getTaxonomy } from "../terms/taxonomies.js";
import { parseDate } from "../text/dates.js";
import type { Values } from "./write-post.js";

const integers: Argument = { ...IDS, default: [] };
const moment: Argument = { type: "string", format: "date-time", maxLength: LENGTHS.date };

const SEARCH_COLUMNS = { post_title: "title", post_content: "content", post_excerpt: "excerpt" } as const;
type SearchColumn = keyof typeof SEARCH_COLUMNS;
const MEDIA_KINDS = ["image", "video", "text", "application", "audio"] as const;

const termQuery = (taxonomy: Taxonomy, isExclude: boolean): Argument => {
  const { labels, isHierarchical } = getTaxonomy(taxonomy);
  const verb = isExclude ? "except those with" : "with";
  return {
    description: `Limit result set to items ${verb} specific ${labels.name.toLowerCase()}.`,
    type: ["object", "array"],
    oneOf: [
      { title: "Term ID List", ...IDS },
      {
        title: "Term ID Taxonomy Query",
        type: "object",
        properties: {
          terms: { description: "Term IDs.", ...IDS, default: [] },
          ...(isHierarchical
            ? {
                include_children: {
                  description: "Whether to include child terms in the terms limiting the result set.",
                  type: "boolean",
                  default: false,
                },
              }
            : {}),
          ...(isExclude
            ? {}
            : {
                operator: {
                  description: "Whether items must be assigned all or any of the specified terms.",
                  type: "string",
                  enum: ["AND", "OR"],
                  default: "OR",
                },
              }),
        },
        additionalProperties: false,
      },
    ],
  };
};

const listed = <T extends string>(values: readonly T[]): readonly string[] => values;

/** Arguments that some collections have. Those of a taxonomy stand under its base: see `postListArguments`. */
const FILTERS: Arguments = {
  author: { description: "Limit result set to posts assigned to specific authors.", ...integers },
  author_exclude: {
    description: "Ensure result set excludes posts assigned to specific authors.",
    ...integers,
  },
  menu_order: { description: "Limit result set to posts with a specific menu_order value.", type: "integer" },
  parent: { description: "Limit result set to items with particular parent IDs.", ...integers },
  parent_exclude: {
    description: "Limit result set to all items except those of a particular parent ID.",
    ...integers,
  },
  tax_relation: {
    description: "Limit result set based on relationship between multiple taxonomies.",
    type: "string",
    enum: ["AND", "OR"],
  },
  sticky: { description: "Limit result set to items that are sticky.", type: "boolean" },
  ignore_sticky: { description: "Whether to ignore sticky posts or not.", type: "boolean", default: true },
  format: {
    description: "Limit result set to items assigned one or more given formats.",
    type: "array",
    mostItems: COUNTS.names,
    uniqueItems: true,
    items: {
      type: "string",
      enum: POST_FORMATS,
    },
  },
  media_type: {
    description: "Limit result set to attachments of a particular media type or media types.",
    type: "array",
    mostItems: COUNTS.names,
    items: { type: "string", enum: listed(MEDIA_KINDS) },
    default: null,
  },
  mime_type: {
    description: "Limit result set to attachments of a particular MIME type or MIME types.",
    ...NAMES,
    default: null,
  },
};

/** The taxonomy behind the name of a filter: `categories`, `menus` … */
const taxonomyFilter = (name: string, { taxonomies }: Collection): Taxonomy | undefined =>
  taxonomies.find((taxonomy) => getTaxonomy(taxonomy).base === name);

export function postListArguments(collection: Collection): Arguments {
  const { list } = collection;
  const filters = collection.filters.flatMap((name): [string, Argument][] => {
    const taxonomy = taxonomyFilter(name, collection);
    if (taxonomy !== undefined) {
      return [
        [name, termQuery(taxonomy, false)],
        [`${name}_exclude`, termQuery(taxonomy, true)],
      ];
    }
    return [[name, FILTERS[name] as Argument]];
  });
  return {
    context: contextArgument,
    ...pageArguments,
    per_page: { ...pageArguments["per_page"], default: list.perPage },
    search: {
      description: "Limit results to those matching a string.",
      type: "string",
      maxLength: LENGTHS.search,
    },
    ...mapLate({
      after: {
        description: "Limit response to posts published after a given ISO8601 compliant date.",
        ...moment,
      },
      modified_after: {
        description: "Limit response to posts modified after a given ISO8601 compliant date.",
        ...moment,
      },
      before: {
        description: "Limit response to posts published before a given ISO8601 compliant date.",
        ...moment,
      },
      modified_before: {
        description: "Limit response to posts modified before a given ISO8601 compliant date.",
        ...moment,
      },
      exclude: { description: "Ensure result set excludes specific IDs.", ...integers },
      include: { description: "Limit result set to specific IDs.", ...integers },
      search_semantics: {
        description: "How to interpret the search input.",
        type: "string",
        enum: ["exact"],
      },
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
      search_columns: {
        description: "Array of column names to be searched.",
        type: "array",
        mostItems: COUNTS.names,
        default: [],
        items: { type: "string", enum: Object.keys(SEARCH_COLUMNS) },
      },
      slug: {
        description: "Limit result set to posts with one or more specific slugs.",
        ...SLUGS,
      },
      status: {
        description: "Limit result set to posts assigned one or more statuses.",
        type: "array",
        mostItems: COUNTS.names,
        default: list.status,
        items: { type: "string", enum: list.statuses },
      },
      ...Object.fromEntries(filters),
    }),
  };
}

/** The reference looks at these when the others are found valid. */
const mapLate = (args: Arguments): Arguments =>
  Object.fromEntries(Object.entries(args).map(([name, argument]) => [name, { ...argument, late: true }]));

/** What `any` stands for: every status that a search of the reference finds. */
const ANY: readonly PostStatus[] = ["publish", "future", "draft", "pending", "private"];
/** Of posts that media can belong to. */
const PARENT_STATUSES: readonly PostStatus[] = [...ANY, "trash", "auto-draft"];

/** Nobody's id. */
const SOMEBODY = -1;

/** Whose posts the caller may act on: found by asking about one of somebody else's and one of his own. */
function sightOf(caller: Caller, may: (author: number) => boolean): VisibilityScope | undefined {
  if (may(SOMEBODY)) return "all";
  return caller.id !== 0 && may(caller.id) ? { author: caller.id } : undefined;
}

/** Whose posts of each status the caller may list. */
function visibilityOf(
  statuses: readonly PostStatus[],
  context: Context,
  { type }: Collection,
  caller: Caller,
): Pick<PostQuery, "visibility" | "inherited"> {
  const action = context === "edit" ? "edit" : "read";
  const probe = (status: PostStatus, author: number) => ({ type, status, author }) as PostColumns;
  const parent = (status: PostStatus, author: number) =>
    ({ ...probe(status, author), type: "post" }) as PostColumns;
  const each = (
    of: readonly PostStatus[],
    sight: (status: PostStatus) => VisibilityScope | undefined,
  ): Visibility => filled(Object.fromEntries(of.map((status) => [status, sight(status)])));
  const isInheriting = type === "attachment" && action === "read" && statuses.includes("inherit");
  const visibility = each(statuses, (status) =>
    sightOf(caller, (author) =>
      isInheriting && status === "inherit"
        ? // What may be read whatever post it belongs to.
          PARENT_STATUSES.every((of) => caller.may("read", probe("inherit", author), parent(of, SOMEBODY)))
        : caller.may(action, probe(status, author)),
    ),
  );
  if (!isInheriting) return { visibility };
  const inherited = each(PARENT_STATUSES, (status) =>
    sightOf(caller, (author) => caller.may("read", probe("inherit", SOMEBODY), parent(status, author))),
  );
  return { visibility, inherited };
}

/** Whose posts of each status the caller may edit. */
const editableBy = (caller: Caller, { type }: Collection, statuses: readonly PostStatus[]): Visibility =>
  filled(
    Object.fromEntries(
      statuses.map((status) => [
        status,
        sightOf(caller, (author) => caller.may("edit", { type, status, author } as PostColumns)),
      ]),
    ),
  );

/** Refuses statuses that the caller may not ask for, whoever the posts belong to. */
export function refuseStatuses(
  statuses: readonly string[],
  { type, list }: Collection,
  caller: Caller,
): void {
  const isAllowed = (status: string): boolean =>
    status === list.status ||
    caller.canOf(type, "edit_posts") ||
    (status === "private" && caller.canOf(type, "read_private_posts"));
  if (statuses.every(isAllowed)) return;
  const message = "Status is forbidden.";
  throw new RestError(400, "rest_invalid_param", "Invalid parameter(s): status", {
    data: {
      params: { status: message },
      details: {
        status: { code: "rest_forbidden_status", message, data: { status: caller.id === 0 ? 401 : 403 } },
      },
    },
  });
}

function momentOf(value: Json | undefined, site: Site): number | undefined {
  const parsed = typeof value === "string" ? parseDate(value) : undefined;
  return parsed && (parsed.hasZone ? site.zone.toLocal(parsed.ms) : parsed.ms);
}

function termFilters(values: Values, collection: Collection): readonly TermFilter[] {
  return collection.taxonomies.flatMap((taxonomy) => {
    const { base } = getTaxonomy(taxonomy);
    return [base, `${base}_exclude`].flatMap((name): TermFilter[] => {
      const value = values[name];
      if (value === undefined || value === null) return [];
      const isList = Array.isArray(value);
      const query = (isList ? { terms: value } : value) as JsonObject;
      const terms = (query["terms"] ?? []) as readonly number[];
      if (terms.length === 0) return [];
      const operator = name === base ? (query["operator"] === "AND" ? "AND" : "OR") : "NOT";
      return [{ taxonomy, terms, operator, includeChildren: query["include_children"] === true }];
    });
  });
}

/** The names of `values` that hold something, with their values. */
const filled = (entries: { readonly [name: string]: unknown }): object =>
  Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined));

const nonEmpty = (value: Json | undefined): readonly Json[] | undefined =>
  Array.isArray(value) && value.length > 0 ? value : undefined;

/**
 * The query behind the arguments of a list. Pure.
 *
 * Errors: RestError 400 for an order that lacks what it orders by.
 */
export function toPostQuery(values: Values, collection: Collection, caller: Caller, site: Site): PostQuery {
  const orderBy = values["orderby"] as PostOrder;
  const search = toText(values["search"]);
  const include = nonEmpty(values["include"]);
  if (orderBy === "relevance" && search === "") {
    throw new RestError(
      400,
      "rest_no_search_term_defined",
      "You need to define a search term to order by relevance.",
    );
  }
  if (orderBy === "include" && include === undefined) {
    throw new RestError(
      400,
      "rest_orderby_include_missing_include",
      "You need to define an include parameter to order by include.",
    );
  }
  const context = values["context"] as Context;
  const given = (values["status"] ?? []) as readonly (PostStatus | "any")[];
  const statuses = given.length > 0 ? given : [collection.list.status as PostStatus];
  const asked = statuses.flatMap((status) => (status === "any" ? ANY : [status]));
  const perPage = Number(values["per_page"]);
  const columns = ((values["search_columns"] ?? []) as readonly SearchColumn[]).map(
    (name) => SEARCH_COLUMNS[name],
  );
  const mimeTypes = [
    ...((values["mime_type"] ?? []) as readonly string[]),
    ...((values["media_type"] ?? []) as readonly string[]).map((kind) => `${kind}/`),
  ];
  const slugs = nonEmpty(values["slug"])?.map((slug) => site.slug(toText(slug)));
  return {
    type: collection.type,
    ...visibilityOf([...new Set(asked)], context, collection, caller),
    orderBy,
    order: values["order"] as "asc" | "desc",
    offset:
      values["offset"] === undefined
        ? (Number(values["page"]) - 1) * perPage
        : Math.max(0, Number(values["offset"])),
    limit: perPage,
    ...filled({
      author: nonEmpty(values["author"]),
      authorExclude: nonEmpty(values["author_exclude"]),
      include,
      exclude: nonEmpty(values["exclude"]),
      parent: nonEmpty(values["parent"]),
      parentExclude: nonEmpty(values["parent_exclude"]),
      menuOrder: values["menu_order"],
      slug: slugs,
      after: momentOf(values["after"], site),
      before: momentOf(values["before"], site),
      modifiedAfter: momentOf(values["modified_after"], site),
      modifiedBefore: momentOf(values["modified_before"], site),
      terms: termFilters(values, collection),
      termRelation: values["tax_relation"],
      sticky: values["sticky"],
      format: nonEmpty(values["format"]),
      mimeType: mimeTypes.length > 0 ? mimeTypes : undefined,
      stickyFirst: values["ignore_sticky"] === false ? true : undefined,
      search:
        search === ""
          ? undefined
          : {
              text: search,
              columns: columns.length > 0 ? columns : Object.values(SEARCH_COLUMNS),
              isExact: values["search_semantics"] === "exact",
              seesProtected: caller.id !== 0,
              searchedProtected: editableBy(caller, collection, asked),
            },
    }),
  };
}
