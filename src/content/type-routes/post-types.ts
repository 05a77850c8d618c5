/** `/types`: the types of posts that the site has, from the table of collections. */

import type { ContentBase } from "../content-base.js";
import type { CapabilityNames, Collection } from "../records/content-model.js";
import { type BuiltInPostType, isBuiltInName, type PostType } from "../records/records.js";
import { ALL, EDIT, FULL, type RecordFields } from "../rest/record-fields.js";
import { type KeyedTable, typeLabels } from "./keyed-routes.js";

/** The icons that editors show for the types. */
const ICONS: { [type in BuiltInPostType]: string | null } = {
  post: "dashicons-admin-post",
  page: "dashicons-admin-page",
  attachment: "dashicons-admin-media",
  nav_menu_item: null,
  wp_block: null,
  wp_navigation: null,
};

const HAS_SCREENS: Set<PostType> = new Set(["post", "page", "attachment", "wp_block", "wp_navigation"]);
const IS_IN_MENUS: Set<PostType> = new Set(["post", "page"]);

/** The capabilities that WordPress checks for a single post. No role has them. */
const metaCapabilities = (type: PostType): CapabilityNames => {
  const one = type === "page" ? "page" : type === "wp_block" ? "block" : "post";
  return { edit_post: `edit_${one}`, read_post: `read_${one}`, delete_post: `delete_${one}` };
};

const FIELDS = {
  capabilities: {
    schema: { description: "All capabilities used by the post type.", type: "object", context: EDIT },
    read: ({ type, capabilities }) => ({ ...metaCapabilities(type), ...capabilities }),
  },
  description: {
    schema: { description: "A human-readable description of the post type.", type: "string", context: FULL },
    read: ({ description }) => description,
  },
  hierarchical: {
    schema: {
      description: "Whether or not the post type should have children.",
      type: "boolean",
      context: FULL,
    },
    read: ({ isHierarchical }) => isHierarchical,
  },
  has_archive: {
    schema: {
      description: "If the value is a string, the value will be used as the archive slug.",
      type: ["string", "boolean"],
      context: FULL,
    },
    read: () => false,
  },
  visibility: {
    schema: { description: "The visibility settings for the post type.", type: "object", context: EDIT },
    read: ({ type, isViewable }) =>
      isBuiltInName(type)
        ? { show_in_nav_menus: IS_IN_MENUS.has(type), show_ui: HAS_SCREENS.has(type) }
        : { show_in_nav_menus: isViewable, show_ui: true },
  },
  viewable: {
    schema: { description: "Whether or not the post type can be viewed.", type: "boolean", context: EDIT },
    read: ({ isViewable }) => isViewable,
  },
  labels: {
    schema: {
      description: "Human-readable labels for the post type for various contexts.",
      type: "object",
      context: EDIT,
    },
    read: ({ labels }) => typeLabels(labels),
  },
  name: {
    schema: { description: "The title for the post type.", type: "string", context: ALL },
    read: ({ labels }) => labels.name,
  },
  slug: {
    schema: {
      description: "An alphanumeric identifier for the post type.",
      type: "string",
      context: ALL,
    },
    read: ({ type }) => type,
  },
  icon: {
    schema: { description: "The icon for the post type.", type: ["string", "null"], context: ALL },
    read: ({ type, icon }) => icon ?? ICONS[type as BuiltInPostType] ?? null,
  },
  supports: {
    schema: { description: "All features, supported by the post type.", type: "object", context: EDIT },
    read: ({ supports }) => Object.fromEntries(supports.map((feature) => [feature, true])),
  },
  taxonomies: {
    schema: {
      description: "Taxonomies associated with post type.",
      type: "array",
      items: { type: "string" },
      context: FULL,
    },
    read: ({ taxonomies }) => taxonomies.map(({ taxonomy }) => taxonomy),
  },
  rest_base: {
    schema: { description: "REST base route for the post type.", type: "string", context: ALL },
    read: ({ base }) => base,
  },
  rest_namespace: {
    schema: { description: "REST route's namespace for the post type.", type: "string", context: ALL },
    // Replaced by the namespace of the site.
    read: () => "",
  },
  template: {
    schema: {
      description: "The block template associated with the post type.",
      type: "array",
      context: ALL,
    },
    read: () => [],
  },
  template_lock: {
    schema: {
      description: "The template_lock associated with the post type, or false if none.",
      type: ["string", "boolean"],
      enum: ["all", "insert", "contentOnly", false],
      context: ALL,
    },
    read: () => false,
  },
} satisfies RecordFields<Collection>;

export const typesTable = ({ model, namespace }: ContentBase): KeyedTable<Collection> => ({
  base: "types",
  parameter: "type",
  parameterDescription: "An alphanumeric identifier for the post type.",
  entries: model.types,
  fields: { ...FIELDS, rest_namespace: { ...FIELDS.rest_namespace, read: () => namespace } },
  links: ({ base }, to) => ({ "https://api.w.org/items": [{ href: to(`/${base}`) }] }),
  hidden: new Set(["revision", "custom_css", "customize_changeset", "oembed_cache", "user_request"]),
  isPermittedToAll: true,
  canRead: () => true,
  canEdit: (caller, { type }) => caller.canOf(type, "edit_posts"),
  refusals: {
    unknown: ["rest_type_invalid", "Invalid post type."],
    read: ["rest_cannot_read_type", "Cannot view post type."],
    editAny: ["rest_cannot_view", "Sorry, you are not allowed to edit posts in this post type."],
    edit: ["rest_forbidden_context", "Sorry, you are not allowed to edit posts in this post type."],
  },
});
