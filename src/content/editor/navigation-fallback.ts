/**
 * `/wp-block-editor/v1/navigation-fallback`: the navigation menu for a block that names none. Makes
 * one if the site has none yet.
 */

import type { JsonObject, Schema } from "../../schema/types.js";
import {
  getMenuItem,
  isInvalidMenuItem,
  mayReadMenuItemTarget,
  resolveMenuItemTitle,
  resolveMenuItemUrl,
} from "../posts/menu-items/menu-item-target.js";
import type { PostBase } from "../posts/post-base.js";
import { resolvePostDates } from "../posts/post-dates.js";
import type { FieldView } from "../posts/post-field.js";
import { createPostResource, type PostResource } from "../posts/post-resource.js";
import { sanitiseValues } from "../posts/write-post.js";
import type { PostQuery } from "../query/types.js";
import type { Term } from "../records/records.js";
import { refusal } from "../rest/error.js";
import { ALL } from "../rest/record-fields.js";
import { createItem } from "../rest/serialise.js";
import type { RestRequest, RestRoute } from "../rest/types.js";

interface NavigationTexts {
  title: string;
  slug: string;
  content: string;
}

const SCHEMA: Schema = {
  title: "navigation-fallback",
  type: "object",
  properties: {
    id: {
      description: "The unique identifier for the Navigation Menu.",
      type: "integer",
      context: ALL,
      readonly: true,
    },
  },
};

/** Lists the pages of the site. */
const DEFAULT_MENU: NavigationTexts = {
  title: "Navigation",
  slug: "navigation",
  content: "<!-- wp:page-list /-->",
};

/** The items of a menu beyond this number are left out. */
const MAX_ITEMS = 1_000;

const NEWEST: PostQuery = {
  type: "wp_navigation",
  visibility: { publish: "all" },
  orderBy: "date",
  order: "desc",
  offset: 0,
  limit: 1,
};

export function navigationFallbackRoute(base: PostBase): RestRoute {
  const { repository, postTypes, namespace } = base;
  const resource = createPostResource(postTypes.get("wp_navigation"), base);
  return {
    namespace: "wp-block-editor/v1",
    path: "/navigation-fallback",
    schema: SCHEMA,
    endpoints: [
      {
        methods: ["GET"],
        args: {},
        described: { summary: "Find the navigation menu that is shown by default, or make it", form: "item" },
        permit({ caller }) {
          if (caller.canOf("wp_navigation", "create_posts") && caller.has("edit_posts")) return;
          throw refusal(
            caller,
            "rest_cannot_create",
            "Sorry, you are not allowed to create Navigation Menus as this user.",
          );
        },
        async handle(request) {
          const id = (await findNewest(repository)) ?? (await create(request, resource, base));
          const self = { embeddable: true, href: request.url(`/${namespace}/navigation/${id}`) };
          return { status: 200, headers: {}, body: { item: createItem({ id }, { self: [self] }) } };
        },
      },
    ],
  };
}

async function findNewest({ index, texts }: PostBase["repository"]): Promise<number | undefined> {
  return (await index.find(NEWEST, texts)).ids[0];
}

/** Two requests at once make one menu: the second finds that of the first. */
const create = (request: RestRequest, resource: PostResource, base: PostBase): Promise<number> => {
  const { repository, site } = base;
  return repository.change(async (transaction) => {
    const existing = await findNewest(repository);
    if (existing !== undefined) return existing;
    const menu = findClassicMenu(base);
    const texts = (menu && (await convertMenu(menu, base))) ?? DEFAULT_MENU;
    const fields = { ...texts, status: "publish" };
    const values = await sanitiseValues(fields, request, resource.type, site);
    const id = await transaction.newId("post");
    const change = { values, previous: null, id, dates: resolvePostDates(values, site) };
    transaction.putPost(resource.type.write(change, resource.createWriteContext(request)));
    return id;
  });
};

/** The menu at the primary location, else the one called `primary`, else the newest. */
function findClassicMenu({ repository: { index }, menuLocations }: PostBase): Term | undefined {
  const placed = index.term(menuLocations.menuAt("primary"));
  if (placed?.taxonomy === "nav_menu") return placed;
  const menus = [...index.terms("nav_menu")];
  return menus.find(({ slug }) => slug === "primary") ?? menus.sort((a, b) => b.id - a.id)[0];
}

/**
 * Returns `undefined` for a menu without items. Everybody may read the result, so items whose
 * target is not public are left out: a label would show the title of a draft.
 */
async function convertMenu(
  { id, name, slug }: Term,
  { repository, site, callers, postTypes }: PostBase,
): Promise<NavigationTexts | undefined> {
  const { index } = repository;
  const query: PostQuery = {
    type: "nav_menu_item",
    visibility: { publish: "all" },
    terms: [{ taxonomy: "nav_menu", terms: [id], includeChildren: false, operator: "OR" }],
    orderBy: "menu_order",
    order: "asc",
    offset: 0,
    limit: MAX_ITEMS,
  };
  const { ids } = await index.find(query, repository.texts);
  const items = await repository.posts(ids);
  const views = items.flatMap((post): FieldView[] =>
    post === undefined
      ? []
      : [
          {
            post,
            site,
            index,
            collection: postTypes.get("nav_menu_item").collection,
            context: "edit",
            isRevealed: true,
            excerptLength: 0,
          },
        ],
  );
  const content = toNavigationBlocks(views.filter((view) => mayReadMenuItemTarget(view, callers.anonymous)));
  return content === "" ? undefined : { title: name, slug, content };
}

/**
 * Returns the blocks as text. Items that point at a record that is gone are left out, with the
 * items below them.
 *
 * @param items in the order of the menu
 */
function toNavigationBlocks(items: FieldView[]): string {
  const below = new Map<number, FieldView[]>();
  for (const item of items) {
    if (isInvalidMenuItem(item)) continue;
    const { parent } = item.post;
    const siblings = below.get(parent);
    if (siblings === undefined) below.set(parent, [item]);
    else siblings.push(item);
  }
  // An item is its own parent's child once, so a circle of items is never reached from the root.
  const write = (parent: number): string =>
    (below.get(parent) ?? []).map((item) => toBlock(item, write(item.post.id))).join("");
  return write(0);
}

function toBlock(view: FieldView, inner: string): string {
  const name = inner === "" ? "navigation-link" : "navigation-submenu";
  const attributes = serialiseAttributes(toAttributes(view));
  return inner === ""
    ? `<!-- wp:${name} ${attributes} /-->`
    : `<!-- wp:${name} ${attributes} -->${inner}<!-- /wp:${name} -->`;
}

/** Attributes without a value are left out. */
function toAttributes(view: FieldView): JsonObject {
  const { type, object, objectId, description, classes, target, xfn, attrTitle } = getMenuItem(view);
  const all: JsonObject = {
    className: classes.join(" ").trim(),
    description,
    id: type === "post_type" || type === "taxonomy" ? objectId : 0,
    kind: type.replaceAll("_", "-"),
    label: resolveMenuItemTitle(view),
    opensInNewTab: target === "_blank",
    rel: xfn.join(" ").trim(),
    title: attrTitle,
    type: object,
    url: resolveMenuItemUrl(view),
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => Boolean(value)));
}

/** Returns JSON in which nothing can end the comment that a block delimiter is. */
const serialiseAttributes = (attributes: JsonObject): string =>
  JSON.stringify(attributes)
    .replaceAll("--", "\\u002d\\u002d")
    .replaceAll("<", "\\u003c")
    .replaceAll(">", "\\u003e")
    .replaceAll("&", "\\u0026")
    .replaceAll('\\"', "\\u0022");
