/** The fields that menu items have instead of those of a post. What is shown comes from the record that an item points at, unless it says so itself. */

import { toText } from "../../../schema/text-of.js";
import type { Json, Schema } from "../../../schema/types.js";
import { LENGTHS, NAMES } from "../../argument-bounds.js";
import { getCollection } from "../../collections.js";
import { STATUSES } from "../../query/row.js";
import type { MenuItem, PostColumns, Term } from "../../records/records.js";
import { ALL, FULL } from "../../rest/record-fields.js";
import { getTaxonomy } from "../../terms/taxonomies.js";
import { termLink } from "../../terms/term-fields.js";
import { cleanUrl } from "../../text/urls.js";
import type { FieldView, PostField } from "../post-fields.js";

const itemOf = ({ post }: FieldView): MenuItem => post.menuItem as MenuItem;

type Target =
  | { readonly post: PostColumns }
  | { readonly term: Term }
  /** It points at nothing, or at what is gone. */
  | undefined;

function targetOf({ post, index }: Pick<FieldView, "post" | "index">): Target {
  const item = post.menuItem;
  if (item?.type === "post_type") {
    const found = index.post(item.objectId);
    return found && { post: found };
  }
  if (item?.type === "taxonomy") {
    const found = index.term(item.objectId);
    return found && { term: found };
  }
  return undefined;
}

/** The title of its own, or that of what it points at. */
export function menuItemTitle(view: Pick<FieldView, "post" | "index">): string {
  if (view.post.title !== "") return view.post.title;
  const target = targetOf(view);
  if (target === undefined) return "";
  return "post" in target ? target.post.title : target.term.name;
}

function isInvalid(view: FieldView): boolean {
  const { type } = itemOf(view);
  if (type !== "post_type" && type !== "taxonomy") return false;
  const target = targetOf(view);
  return target === undefined || ("post" in target && target.post.status === "trash");
}

function typeLabel(view: FieldView): string {
  const { type } = itemOf(view);
  const target = targetOf(view);
  if (target !== undefined) {
    return "post" in target
      ? getCollection(target.post.type).labels.singular
      : getTaxonomy(target.term.taxonomy).labels.singular;
  }
  return type === "post_type_archive" ? "Post Type Archive" : "Custom Link";
}

function address(view: FieldView): string {
  const target = targetOf(view);
  if (target === undefined) return itemOf(view).url;
  if ("post" in target) return view.site.link(target.post, view.index);
  return termLink(target.term, getTaxonomy(target.term.taxonomy), view.site, view.index);
}

/** The reference answers no words as one empty word. */
const words = (list: readonly string[]): readonly string[] => (list.length === 0 ? [""] : list);

const field = (schema: Schema, read: PostField["read"]): PostField => ({
  schema: { context: ALL, ...schema },
  read,
});

const text = (description: string, read: (item: MenuItem) => string, more: Schema = {}): PostField =>
  field({ description, type: "string", ...more }, (view) => read(itemOf(view)));

/** Those that are written are written by rules of their own: see `writing.ts`. */
export const menuItemFields: { readonly [name: string]: PostField } = {
  title: {
    ...field(
      {
        description: "The title for the object.",
        type: ["string", "object"],
        maxLength: LENGTHS.title,
        properties: {
          raw: {
            description: "As it is stored.",
            type: "string",
            maxLength: LENGTHS.title,
            context: ["edit"],
          },
          rendered: {
            description: "As it is shown.",
            type: "string",
            maxLength: LENGTHS.content,
            context: ALL,
            readonly: true,
          },
        },
      },
      (view) => {
        const raw = menuItemTitle(view);
        return { raw, rendered: view.site.render.title({ ...view.post, title: raw }) };
      },
    ),
  },
  type_label: field(
    {
      description: "The singular label used to describe this type of menu item.",
      type: "string",
      readonly: true,
    },
    typeLabel,
  ),
  type: text("The family of objects originally represented.", ({ type }) => type, {
    enum: ["taxonomy", "post_type", "post_type_archive", "custom"],
  }),
  status: field(
    {
      description: "A named status for the object.",
      type: "string",
      enum: ["publish", "future", "draft", "pending", "private"],
      answered: { type: "string", enum: STATUSES },
    },
    ({ post }) => post.status,
  ),
  parent: field(
    { description: "The ID for the parent of the object.", type: "integer", minimum: 0 },
    ({ post }) => post.parent,
  ),
  attr_title: text(
    "Text for the title attribute of the link element for this menu item.",
    ({ attrTitle }) => attrTitle,
    { maxLength: LENGTHS.title },
  ),
  classes: field(
    {
      description: "Class names for the link element of this menu item.",
      ...NAMES,
    },
    (view) => words(itemOf(view).classes),
  ),
  description: text("The description of this menu item.", ({ description }) => description, {
    maxLength: LENGTHS.title,
  }),
  menu_order: field(
    {
      description: "The order of the item among those of its menu.",
      type: "integer",
      minimum: 1,
    },
    ({ post }) => post.menuOrder,
  ),
  object: text(
    'The type of object originally represented, such as "category", "post", or "attachment".',
    ({ object }) => object,
    { maxLength: LENGTHS.name },
  ),
  object_id: field(
    {
      description: "The database ID of the original object this menu item represents.",
      type: "integer",
      minimum: 0,
    },
    (view) => itemOf(view).objectId,
  ),
  target: text("The target attribute of the link element for this menu item.", ({ target }) => target, {
    enum: ["_blank", ""],
  }),
  url: {
    ...field(
      {
        description: "The URL to which this menu item points.",
        type: "string",
        format: "uri",
        maxLength: LENGTHS.url,
      },
      address,
    ),
    argument: {
      validate: (value, name) => {
        if (typeof value !== "string")
          return { code: "rest_invalid_type", message: `${name} is not of type string.` };
        const isUsable = value === "" || cleanUrl(value) !== "";
        return isUsable ? undefined : { code: "rest_invalid_url", message: "Invalid URL." };
      },
      sanitize: (value) => cleanUrl(toText(value)),
    },
  },
  xfn: field(
    {
      description: "The XFN relationship expressed in the link of this menu item.",
      ...NAMES,
    },
    (view) => words(itemOf(view).xfn),
  ),
  invalid: field(
    {
      description: "Whether the menu item represents an object that no longer exists.",
      type: "boolean",
      readonly: true,
    },
    isInvalid,
  ),
  menus: {
    schema: {
      description: "The menu that the item belongs to.",
      type: "integer",
      context: FULL,
      sometimes: true,
    },
    read: ({ post, index }): Json | undefined => index.termsOf(post, "nav_menu")[0],
  },
};
