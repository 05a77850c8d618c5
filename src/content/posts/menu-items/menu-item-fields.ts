/**
 * The fields of menu items. Almost none is shared with posts. Title and address come from the
 * target, unless the item has its own.
 */

import { toText } from "../../../schema/coerce.js";
import type { Json, Schema } from "../../../schema/types.js";
import { LENGTHS, NAMES } from "../../argument-bounds.js";
import { WRITABLE_STATUSES } from "../../collections.js";
import { STATUSES } from "../../query/row.js";
import type { MenuItem } from "../../records/records.js";
import { ALL, FULL } from "../../rest/record-fields.js";
import { CLEANABLE_URL, cleanUrl } from "../../text/urls.js";
import { type PostField, type PostFields, rawTextSchema } from "../post-field.js";
import { postFields } from "../post-fields.js";
import { metaField } from "../text-fields.js";
import {
  getMenuItem,
  isInvalidMenuItem,
  readTypeLabel,
  resolveMenuItemTitle,
  resolveMenuItemUrl,
  showsTitleOfPost,
} from "./menu-item-target.js";

/** WordPress returns an empty list as one empty word. */
const toWords = (list: readonly string[]): readonly string[] => (list.length === 0 ? [""] : list);

const field = (schema: Schema, read: PostField["read"]): PostField => ({
  schema: { context: ALL, ...schema },
  read,
});

const text = (description: string, read: (item: MenuItem) => string, more: Schema = {}): PostField =>
  field({ description, type: "string", ...more }, (view) => read(getMenuItem(view)));

const TYPES = ["taxonomy", "post_type", "post_type_archive", "custom"];

/** `applyMenuItemValues` writes them. */
export const menuItemFields: PostFields = {
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
      async (view) => {
        const title = resolveMenuItemTitle(view);
        const isOfPost = showsTitleOfPost(view);
        // Without a tag, there is nothing to sanitise in the title of another record.
        const isTrusted = isOfPost ? !title.includes("<") : view.post.isTrusted;
        const rendered = await view.site.render.title({ ...view.post, title, isTrusted });
        // As in WordPress, the title of a post that the item points at is rendered already.
        return { raw: isOfPost ? rendered : title, rendered };
      },
    ),
    html: "title",
    argument: { accepted: rawTextSchema(LENGTHS.title) },
  },
  id: postFields.id,
  type_label: field(
    {
      description: "The singular label used to describe this type of menu item.",
      type: "string",
      readonly: true,
    },
    readTypeLabel,
  ),
  type: text("The family of objects originally represented.", ({ type }) => type, {
    enum: TYPES,
    // Like in WordPress, `null` stores an empty text.
    answered: { type: "string", enum: [...TYPES, ""] },
  }),
  status: field(
    {
      description: "A named status for the object.",
      type: "string",
      enum: WRITABLE_STATUSES,
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
    (view) => toWords(getMenuItem(view).classes),
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
    (view) => getMenuItem(view).objectId,
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
        // It may have letters beyond ASCII, which a `uri` has not.
        answered: { type: "string" },
      },
      resolveMenuItemUrl,
    ),
    argument: {
      accepted: { type: "string", maxLength: LENGTHS.url, pattern: CLEANABLE_URL },
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
    (view) => toWords(getMenuItem(view).xfn),
  ),
  invalid: field(
    {
      description: "Whether the menu item represents an object that no longer exists.",
      type: "boolean",
      readonly: true,
    },
    isInvalidMenuItem,
  ),
  meta: metaField,
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
