/** The dynamic blocks that list records of the site: posts, months, terms and pages. */

import { nextTurn } from "../../core/next-turn.js";
import type { JsonObject } from "../../schema/types.js";
import type { PostQuery } from "../query/types.js";
import type { Post, PostColumns, Term } from "../records/records.js";
import { isBuiltInName } from "../records/records.js";
import {
  type BlockSources,
  escapeRecordText,
  findAuthor,
  findTermLink,
  hideBrackets,
  listUsedTerms,
  postLink,
  readAttributeText,
  readCount,
  readIds,
  renderFeaturedImage,
  renderPlainExcerpt,
  renderTime,
  showText,
  wrapperClass,
} from "./block-parts.js";
import { MONTHS, renderCalendar } from "./calendar-block.js";
import type { BlockCall, DynamicBlocks, RenderDynamicBlock } from "./render-blocks.js";

/** Posts in one list of posts. */
const MAX_POSTS = 100;
/** Posts whose months archives list, newest first. */
const MAX_COLUMNS = 10_000;
const MAX_PAGES = 1_000;
const MAX_TERMS = 1_000;
const MAX_LEVELS = 20;
const EXCERPT_WORDS = 55;

const toOrder = (order: unknown): "asc" | "desc" =>
  readAttributeText(order).toLowerCase() === "asc" ? "asc" : "desc";

const ORDERS = new Map<string, PostQuery["orderBy"]>([
  ["author", "author"],
  ["date", "date"],
  ["id", "id"],
  ["menu_order", "menu_order"],
  ["modified", "modified"],
  ["title", "title"],
]);

const toOrderBy = (name: unknown): PostQuery["orderBy"] => ORDERS.get(readAttributeText(name)) ?? "date";

async function renderLatestPosts(call: BlockCall, sources: BlockSources): Promise<string> {
  const { attributes } = call;
  const categories = readIds(attributes["categories"]);
  const author = readCount(attributes["selectedAuthor"], 0);
  const found = await sources.records.find({
    type: "post",
    orderBy: toOrderBy(attributes["orderBy"]),
    order: toOrder(attributes["order"]),
    offset: 0,
    limit: Math.min(readCount(attributes["postsToShow"], 5), MAX_POSTS),
    ...(author > 0 ? { author: [author] } : {}),
    ...(categories.length > 0
      ? { terms: [{ taxonomy: "category", terms: categories, includeChildren: false, operator: "OR" }] }
      : {}),
  });
  const items: string[] = [];
  for (const post of call.budget.takeOf(found))
    items.push(`<li>${await renderLatestPost(post, call, sources)}</li>\n`);
  const classes = [
    "wp-block-latest-posts__list",
    attributes["postLayout"] === "grid" ? `is-grid columns-${readCount(attributes["columns"], 3)}` : "",
    attributes["displayPostDate"] === true ? "has-dates" : "",
    attributes["displayAuthor"] === true ? "has-author" : "",
  ];
  return `<ul ${wrapperClass("latest-posts", call, ...classes)}>${items.join("")}</ul>`;
}

async function renderLatestPost(post: Post, call: BlockCall, sources: BlockSources): Promise<string> {
  const { attributes, site } = call;
  const href = postLink(post, site, sources.index);
  const title = hideBrackets(await site.render.title(post)) || "(no title)";
  const parts: string[] = [];
  if (attributes["displayFeaturedImage"] === true) {
    const size = readAttributeText(attributes["featuredImageSizeSlug"]) || "thumbnail";
    const image = await renderFeaturedImage(post, { site, size, records: sources.records });
    const align = readAttributeText(attributes["featuredImageAlign"]);
    const classes = `wp-block-latest-posts__featured-image${align && ` align${align}`}`;
    const isLink = attributes["addLinkToFeaturedImage"] === true;
    const label = showText(site, post.title);
    const shown = isLink ? `<a href="${href}" aria-label="${label}">${image}</a>` : image;
    if (image !== "") parts.push(`<div class="${escapeRecordText(classes)}">${shown}</div>`);
  }
  parts.push(`<a class="wp-block-latest-posts__post-title" href="${href}">${title}</a>`);
  const author = attributes["displayAuthor"] === true ? await findAuthor(post, sources) : undefined;
  if (author !== undefined) {
    parts.push(`<div class="wp-block-latest-posts__post-author">by ${escapeRecordText(author.name)}</div>`);
  }
  if (attributes["displayPostDate"] === true) {
    const { settings } = sources;
    parts.push(renderTime(post.date, { site, settings, className: "wp-block-latest-posts__post-date" }));
  }
  if (attributes["displayPostContent"] === true && attributes["displayPostContentRadio"] !== "full_post") {
    const words = readCount(attributes["excerptLength"], EXCERPT_WORDS);
    const excerpt = await renderPlainExcerpt(post, site, words);
    parts.push(`<div class="wp-block-latest-posts__post-excerpt">${excerpt}</div>`);
  }
  return parts.join("");
}

/** Newest first. */
const NEWEST: Omit<PostQuery, "visibility"> = {
  type: "post",
  orderBy: "date",
  order: "desc",
  offset: 0,
  limit: MAX_COLUMNS,
};

function renderArchives(call: BlockCall, { records }: BlockSources): string {
  const { attributes, site } = call;
  const months = new Map<number, number>();
  for (const { date } of records.columns(NEWEST)) {
    const day = new Date(date);
    const month = day.getUTCFullYear() * 12 + day.getUTCMonth();
    months.set(month, (months.get(month) ?? 0) + 1);
  }
  if (months.size === 0) return `<div ${wrapperClass("archives", call)}>No archives to show.</div>`;
  const items = [...months].map(([month, count]) => {
    const year = Math.floor(month / 12);
    const number = String((month % 12) + 1).padStart(2, "0");
    const shown = attributes["showPostCounts"] === true ? `&nbsp;(${count})` : "";
    const name = `${MONTHS[month % 12]} ${year}`;
    return `\t<li><a href='${site.home}/${year}/${number}/'>${name}</a>${shown}</li>\n`;
  });
  return `<ul ${wrapperClass("archives", call, "wp-block-archives-list")}>${items.join("")}</ul>`;
}

function groupByParent<T extends { parent: number }>(records: T[]): Map<number, T[]> {
  const groups = new Map<number, T[]>();
  for (const record of records) {
    const group = groups.get(record.parent);
    if (group === undefined) groups.set(record.parent, [record]);
    else group.push(record);
  }
  return groups;
}

function renderCategories(call: BlockCall, { index }: BlockSources): string {
  const { attributes, site } = call;
  const taxonomy = readAttributeText(attributes["taxonomy"]) || "category";
  const terms = call.budget.takeOf(listUsedTerms(taxonomy, index).slice(0, MAX_TERMS));
  const known = new Set(terms.map(({ id }) => id));
  const below = groupByParent(terms);
  const isTree = attributes["showHierarchy"] === true;
  const isTop = ({ parent }: Term): boolean => parent === 0 || !known.has(parent);
  const render = (term: Term, level: number): string => {
    const count = attributes["showPostCounts"] === true ? ` (${index.countOf(taxonomy, term.id)})` : "";
    const children = isTree && level < MAX_LEVELS ? (below.get(term.id) ?? []) : [];
    const inside = children.map((child) => render(child, level + 1)).join("");
    const list = inside && `<ul class='children'>\n${inside}</ul>\n`;
    const link = `<a href="${findTermLink(term, site, index) ?? ""}">${escapeRecordText(term.name)}</a>`;
    return `\t<li class="cat-item cat-item-${term.id}">${link}${count}\n${list}</li>\n`;
  };
  const isOnlyTop = attributes["showOnlyTopLevel"] === true;
  const listed = isTree || isOnlyTop ? terms.filter(isTop) : terms;
  const items = listed.map((term) => render(term, 0)).join("");
  const classes = wrapperClass("categories", call, "wp-block-categories-list");
  return `<ul ${classes}>${items || '<li class="cat-item-none">No categories</li>'}</ul>`;
}

/** From small to large, in points. */
const TAG_SIZES = { smallest: 8, largest: 22 };

function renderTagCloud(call: BlockCall, { index }: BlockSources): string {
  const { attributes, site } = call;
  const taxonomy = readAttributeText(attributes["taxonomy"]) || "post_tag";
  const counted = listUsedTerms(taxonomy, index).map((term) => ({
    term,
    count: index.countOf(taxonomy, term.id),
  }));
  const limit = Math.min(readCount(attributes["numberOfTags"], 45), 100);
  const most = [...counted].sort((a, b) => b.count - a.count).slice(0, limit);
  const chosen = new Set(call.budget.takeOf(most));
  const counts = [...chosen].map(({ count }) => count);
  const least = Math.min(...counts);
  const step = (TAG_SIZES.largest - TAG_SIZES.smallest) / Math.max(1, Math.max(...counts) - least);
  const links = counted
    .filter((tag) => chosen.has(tag))
    .map(({ term, count }, at) => {
      const size = TAG_SIZES.smallest + (count - least) * step;
      const name = escapeRecordText(term.name);
      const label = `${name} (${count} ${count === 1 ? "item" : "items"})`;
      const shown =
        attributes["showTagCounts"] === true ? `<span class="tag-link-count"> (${count})</span>` : "";
      return `<a href="${findTermLink(term, site, index) ?? ""}" class="tag-cloud-link tag-link-${term.id} tag-link-position-${at + 1}" style="font-size: ${size}pt;" aria-label="${label}">${name}${shown}</a>`;
    });
  return links.length === 0 ? "" : `<p ${wrapperClass("tag-cloud", call)}>${links.join("\n")}</p>`;
}

function renderPageList(call: BlockCall, { index, records }: BlockSources): string {
  const { attributes, site, post } = call;
  const isInNavigation = call.context.has("navigation");
  const query: Omit<PostQuery, "visibility"> = {
    type: "page",
    orderBy: "menu_order",
    order: "asc",
    offset: 0,
    limit: MAX_PAGES,
  };
  const pages = call.budget
    .takeOf(records.columns(query))
    .toSorted((a, b) => a.menuOrder - b.menuOrder || a.title.localeCompare(b.title, "en"));
  const below = groupByParent(pages);
  const render = (page: PostColumns, level: number): string => {
    const children = level < MAX_LEVELS ? (below.get(page.id) ?? []) : [];
    const classes = [
      "wp-block-pages-list__item",
      page.id === post.id ? "current-menu-item" : "",
      children.length > 0 ? "has-child" : "",
      isInNavigation ? "wp-block-navigation-item" : "",
      page.id === site.frontPage() ? "menu-item-home" : "",
    ];
    const current = page.id === post.id ? ' aria-current="page"' : "";
    const content = isInNavigation ? " wp-block-navigation-item__content" : "";
    const list = children.map((child) => render(child, level + 1)).join("");
    const submenu = isInNavigation ? " wp-block-navigation__submenu-container" : "";
    return (
      `<li class="${classes.filter(Boolean).join(" ")}"><a class="wp-block-pages-list__item__link${content}" ` +
      `href="${postLink(page, site, index)}"${current}>${showText(site, page.title) || "(no title)"}</a>` +
      `${list && `<ul class="submenu-container${submenu}">${list}</ul>`}</li>`
    );
  };
  const top = readCount(attributes["parentPageID"], 0);
  const items = (below.get(top) ?? []).map((page) => render(page, 0)).join("");
  return items === "" || isInNavigation ? items : `<ul ${wrapperClass("page-list", call)}>${items}</ul>`;
}

/** Gives the query to the template inside, and shows what was saved around it. */
const renderQuery = ({ attributes, context, inner }: BlockCall): Promise<string> =>
  inner({ context: new Map([...context, ["query", attributes["query"] as JsonObject]]) });

/** The posts of the query around it, each with the blocks that the template holds. */
async function renderPostTemplate(call: BlockCall, { records, index }: BlockSources): Promise<string> {
  const query = call.context.get("query");
  if (typeof query !== "object" || query === null || query["inherit"] === true) return "";
  const found = await records.find(toPostQuery(query, index.model.types));
  const items: string[] = [];
  for (const post of call.budget.takeOf(found)) {
    const classes = `wp-block-post post-${post.id} ${post.type} type-${post.type} status-${post.status} hentry`;
    items.push(`<li class="${classes}">${await call.inner({ post })}</li>`);
  }
  return items.length === 0 ? "" : `<ul ${wrapperClass("post-template", call)}>${items.join("")}</ul>`;
}

function toPostQuery(query: JsonObject, types: Map<string, unknown>): Omit<PostQuery, "visibility"> {
  const type = readAttributeText(query["postType"]) || "post";
  const taxQuery = (query["taxQuery"] ?? {}) as JsonObject;
  const included = (taxQuery["include"] ?? taxQuery) as JsonObject;
  const terms = Object.entries(typeof included === "object" && included !== null ? included : {})
    .map(([taxonomy, ids]) => ({
      taxonomy,
      terms: readIds(ids),
      includeChildren: true,
      operator: "OR" as const,
    }))
    .filter(({ terms: ids }) => ids.length > 0);
  const authors = readIds(readAttributeText(query["author"]).split(",").map(Number));
  const parents = readIds(query["parents"]);
  const search = readAttributeText(query["search"]);
  return {
    type: types.has(type) && (!isBuiltInName(type) || type === "post" || type === "page") ? type : "post",
    orderBy: toOrderBy(query["orderBy"]),
    order: toOrder(query["order"]),
    offset: readCount(query["offset"], 0),
    limit: Math.min(readCount(query["perPage"], 10), MAX_POSTS),
    exclude: readIds(query["exclude"]),
    terms,
    ...(parents.length > 0 ? { parent: parents } : {}),
    ...(authors.length > 0 ? { author: authors } : {}),
    ...(query["sticky"] === "only" ? { sticky: true } : {}),
    ...(query["sticky"] === "exclude" ? { sticky: false } : {}),
    ...(search === "" ? {} : { search: searchFor(search) }),
  };
}

/** Texts with a password are not searched. */
const searchFor = (text: string): NonNullable<PostQuery["search"]> => ({
  text,
  columns: ["title", "content", "excerpt"],
  isExact: false,
  seesProtected: false,
  searchedProtected: {},
});

/** Blocks of one name in a content; further ones show nothing, since each reads whole lists. */
const MAX_LISTS = 20;

/** Records that the query of a list counts as, and one that searches the texts of all posts. */
const QUERY_COST = 10;
const SEARCH_COST = 250;

/** Other requests run before each list. */
const bounded =
  (render: RenderDynamicBlock): RenderDynamicBlock =>
  async (call) => {
    if (call.instance > MAX_LISTS) return "";
    const cost = call.context.get("query")?.["search"] ? SEARCH_COST : QUERY_COST;
    if (call.budget.take(cost) < cost) return "";
    await nextTurn();
    return render(call);
  };

/** Returns the renderers of the blocks that list posts, months, terms or pages. */
export const createListBlocks = (sources: BlockSources): DynamicBlocks => ({
  "core/archives": bounded((call) => renderArchives(call, sources)),
  "core/calendar": bounded((call) => renderCalendar(call, sources)),
  "core/categories": bounded((call) => renderCategories(call, sources)),
  "core/latest-posts": bounded((call) => renderLatestPosts(call, sources)),
  "core/page-list": bounded((call) => renderPageList(call, sources)),
  "core/post-template": bounded((call) => renderPostTemplate(call, sources)),
  "core/query": renderQuery,
  "core/tag-cloud": bounded((call) => renderTagCloud(call, sources)),
});
