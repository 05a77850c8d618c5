/** Lists the posts of a type that the caller may see. */

import { toText } from "../../schema/coerce.js";
import type { Context, Json } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import type { PostQuery, TermFilter, Visibility, VisibilityScope } from "../query/types.js";
import type { Collection, PostOrder } from "../records/content-model.js";
import type { PostColumns, PostStatus, PostType } from "../records/records.js";
import { RenderBudget } from "../render-budget.js";
import { RestError } from "../rest/error.js";
import { type ListLimit, pageHeaders } from "../rest/lists.js";
import { readContext } from "../rest/record-fields.js";
import { parseFields } from "../rest/serialise.js";
import type { Item, RestRequest, RestResponse } from "../rest/types.js";
import type { Site } from "../site.js";
import { parseDate } from "../text/dates.js";
import { createFilterQuery, nonEmpty, SEARCH_COLUMNS, toTermFilters } from "./list-filters.js";
import type { PostBase } from "./post-base.js";
import { type RenderPostRequest, readExcerptLength } from "./post-renderer.js";
import { type PostResource, readPassword } from "./post-resource.js";
import type { Values } from "./post-type-handler.js";

/** Whole records that a list loads before it renders them. */
const BATCH = 25;

interface ListedPosts {
  ids: number[];
  view: RenderPostRequest;
  /** The password that the client gave. */
  password: string | undefined;
}

export function createListPosts(
  { type: { collection }, permissions }: PostResource,
  { repository, site, renderer, passwords, lists, namespace }: PostBase,
): (request: RestRequest) => Promise<RestResponse> {
  const { index } = repository;
  const toQuery = createPostQuery(collection, site);

  async function renderPosts({ ids, view, password }: ListedPosts, { add }: ListLimit): Promise<void> {
    const action = view.context === "edit" ? "edit" : "read";
    const isVisible = (post: PostColumns | undefined): post is PostColumns =>
      post !== undefined && permissions.may(view.caller, action, post);
    const getCached = (id: number): Item | undefined => {
      const post = index.post(id);
      const isTried = password !== undefined && post?.hasPassword === true;
      return isVisible(post) && !isTried ? renderer.getCached(id, view) : undefined;
    };
    // A password is tried on all posts at once or on none.
    const step = password === undefined ? BATCH : Math.max(ids.length, 1);
    for (let start = 0; start < ids.length; start += step) {
      const slice = ids.slice(start, start + step);
      const cached = slice.map(getCached);
      const loaded = cached.includes(undefined) ? await repository.posts(slice) : [];
      // Posts that were removed or hidden since the query are left out.
      const posts = loaded.flatMap((post) => (isVisible(post) ? [post] : []));
      const unlocked = password === undefined ? undefined : passwords.open(posts, password);
      const byId = new Map(posts.map((post) => [post.id, post]));
      for (const [at, found] of cached.entries()) {
        const post = byId.get(slice[at] ?? 0);
        const item =
          found ?? (post && (await renderer.render(post, { ...view, isUnlocked: unlocked?.has(post.id) })));
        if (item !== undefined) await add(item);
      }
    }
  }

  return async (request) => {
    const { values, caller, url, query } = request;
    const { ids, total } = await index.find(toQuery(values, caller), repository.texts);
    const selection = parseFields(request.input["_fields"]);
    const view = {
      context: readContext(request),
      caller,
      url,
      selection,
      excerptLength: readExcerptLength(values),
      budget: new RenderBudget(),
    };
    // An editor of a post sees its texts without the password.
    const password = view.context === "edit" ? undefined : readPassword(query);
    return {
      status: 200,
      headers: pageHeaders({ values, total, query, url: url(`/${namespace}/${collection.base}`) }),
      body: {
        items: await lists.collect(selection, (limit) => renderPosts({ ids, view, password }, limit)),
      },
    };
  };
}

/** @throws RestError 400 for an order that lacks what it orders by */
function assertOrderPossible(values: Values): void {
  const orderBy = values["orderby"];
  if (orderBy === "relevance" && toText(values["search"]) === "") {
    throw new RestError(
      400,
      "rest_no_search_term_defined",
      "You need to define a search term to order by relevance.",
    );
  }
  if (orderBy === "include" && nonEmpty(values["include"]) === undefined) {
    throw new RestError(
      400,
      "rest_orderby_include_missing_include",
      "You need to define an include parameter to order by include.",
    );
  }
}

function readStatuses(values: Values, { list }: Collection): PostStatus[] {
  const wanted = (values["status"] ?? []) as (PostStatus | "any")[];
  const statuses = wanted.length > 0 ? wanted : [list.status as PostStatus];
  return [...new Set(statuses.flatMap((status) => (status === "any" ? ANY_STATUS : [status])))];
}

/** Returns a date as the site's wall-clock time, in which the columns hold dates. */
function toLocalTime(value: Json | undefined, site: Site): number | undefined {
  const parsed = typeof value === "string" ? parseDate(value) : undefined;
  return parsed && (parsed.hasZone ? site.zone.toLocal(parsed.ms) : parsed.ms);
}

function toSearch(
  values: Values,
  statuses: PostStatus[],
  { type, caller }: { type: Collection["type"]; caller: Caller },
): PostQuery["search"] {
  const text = toText(values["search"]);
  if (text === "") return undefined;
  const names = (values["search_columns"] ?? []) as (keyof typeof SEARCH_COLUMNS)[];
  const columns = names.map((name) => SEARCH_COLUMNS[name]);
  return {
    text,
    columns: columns.length > 0 ? columns : Object.values(SEARCH_COLUMNS),
    isExact: values["search_semantics"] === "exact",
    seesProtected: caller.id !== 0,
    searchedProtected: resolveEditable(statuses, { type, caller }),
  };
}

const toPage = (values: Values): { offset: number; limit: number } => {
  const limit = Number(values["per_page"]);
  const offset = values["offset"];
  return {
    offset: offset === undefined ? (Number(values["page"]) - 1) * limit : Math.max(0, Number(offset)),
    limit,
  };
};

/**
 * True if sticky posts come first, which WordPress does on the front page of the site. It takes the
 * first page of a list for that, whatever its offset, unless the list is a search, even for
 * nothing, or has terms to be in. A format is such a term if no other argument names terms. A list
 * of chosen posts never begins with others.
 */
function putsStickiesFirst(values: Values, terms: TermFilter[]): boolean {
  if (values["ignore_sticky"] !== false || values["page"] !== 1) return false;
  const isChosen = nonEmpty(values["include"]) !== undefined || values["sticky"] !== undefined;
  if (isChosen || values["search"] !== undefined) return false;
  const hasOnlyFormat = values["tax_relation"] === undefined && terms.length === 0;
  if (hasOnlyFormat) return nonEmpty(values["format"]) === undefined;
  return terms.every(({ operator }) => operator === "NOT");
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Drops the members that are `undefined`. */
const definedMembers = <T extends object>(members: T): Defined<T> =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Defined<T>;

/** @throws RestError 400 for an order that lacks what it orders by */
type ToPostQuery = (values: Values, caller: Caller) => PostQuery;

/** Creates the function that turns the arguments of a type's list into a query. */
function createPostQuery(collection: Collection, site: Site): ToPostQuery {
  const { type } = collection;
  const toFilters = createFilterQuery(collection);
  return (values, caller) => {
    assertOrderPossible(values);
    const statuses = readStatuses(values, collection);
    const terms = toTermFilters(values, collection);
    return {
      type,
      ...resolveVisibility(statuses, { context: values["context"] as Context, type, caller }),
      orderBy: values["orderby"] as PostOrder,
      order: values["order"] as "asc" | "desc",
      ...toPage(values),
      ...toFilters(values),
      terms,
      stickyFirst: putsStickiesFirst(values, terms),
      ...definedMembers({
        include: nonEmpty<number>(values["include"]),
        exclude: nonEmpty<number>(values["exclude"]),
        slug: nonEmpty(values["slug"])?.map((slug) => site.slug(toText(slug))),
        after: toLocalTime(values["after"], site),
        before: toLocalTime(values["before"], site),
        modifiedAfter: toLocalTime(values["modified_after"], site),
        modifiedBefore: toLocalTime(values["modified_before"], site),
        search: toSearch(values, statuses, { type, caller }),
      }),
    };
  };
}

// Decides which authors' posts a caller may list, by status.

/** The statuses that `any` stands for: those that WordPress includes in searches. */
const ANY_STATUS: PostStatus[] = ["publish", "future", "draft", "pending", "private"];
/** Statuses of posts that media can belong to. */
const PARENT_STATUSES: PostStatus[] = [...ANY_STATUS, "trash", "auto-draft"];

/** No user has this id: it stands for any author but the caller. */
const OTHER_AUTHOR = -1;

/** Finds the scope by asking about a post of another author and one of the caller. */
function findScope(caller: Caller, may: (author: number) => boolean): VisibilityScope | undefined {
  if (may(OTHER_AUTHOR)) return "all";
  return caller.id !== 0 && may(caller.id) ? { author: caller.id } : undefined;
}

const toVisibility = (
  statuses: PostStatus[],
  findScopeOf: (status: PostStatus) => VisibilityScope | undefined,
): Visibility => {
  const visibility: { [status in PostStatus]?: VisibilityScope } = {};
  for (const status of statuses) {
    const scope = findScopeOf(status);
    if (scope !== undefined) visibility[status] = scope;
  }
  return visibility;
};

/** Permissions depend on these columns alone. */
const probe = (type: PostType, status: PostStatus, author: number): PostColumns =>
  ({ type, status, author }) as PostColumns;

/** Returns whose posts of each status the caller may list. */
function resolveVisibility(
  statuses: PostStatus[],
  { context, type, caller }: { context: Context; type: PostType; caller: Caller },
): { visibility: Visibility; inherited?: Visibility } {
  const action = context === "edit" ? "edit" : "read";
  const isInheriting = type === "attachment" && action === "read" && statuses.includes("inherit");
  const mayByStatus = (status: PostStatus) => (author: number) =>
    caller.may(action, probe(type, status, author));
  if (!isInheriting) {
    return { visibility: toVisibility(statuses, (status) => findScope(caller, mayByStatus(status))) };
  }
  const mayReadBelow = (author: number, status: PostStatus, parentAuthor: number): boolean =>
    caller.may("read", probe(type, "inherit", author), probe("post", status, parentAuthor));
  // The status `inherit` alone admits media that the caller may read below any post.
  const mayReadBelowAny = (author: number): boolean =>
    PARENT_STATUSES.every((status) => mayReadBelow(author, status, OTHER_AUTHOR));
  return {
    visibility: toVisibility(statuses, (status) =>
      findScope(caller, status === "inherit" ? mayReadBelowAny : mayByStatus(status)),
    ),
    inherited: toVisibility(PARENT_STATUSES, (status) =>
      findScope(caller, (author) => mayReadBelow(OTHER_AUTHOR, status, author)),
    ),
  };
}

/** Returns whose posts of each status the caller may edit. */
export const resolveEditable = (
  statuses: PostStatus[],
  { type, caller }: { type: PostType; caller: Caller },
): Visibility =>
  toVisibility(statuses, (status) =>
    findScope(caller, (author) => caller.may("edit", probe(type, status, author))),
  );

/**
 * Refuses statuses that the caller may not list, whoever the author is.
 *
 * @throws RestError 400 `rest_invalid_param`
 */
export function assertStatusesAllowed(statuses: string[], { type, list }: Collection, caller: Caller): void {
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
