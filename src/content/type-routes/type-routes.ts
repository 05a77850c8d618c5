/** The routes in which the site describes its types, statuses and taxonomies. */

import { LENGTHS } from "../argument-bounds.js";
import type { ContentBase } from "../content-base.js";
import type { TaxonomyDefinition } from "../records/content-model.js";
import type { PostStatus } from "../records/records.js";
import { ALL, EDIT, FULL, type RecordFields } from "../rest/record-fields.js";
import type { RestRoute } from "../rest/types.js";
import { type KeyedTable, keyedRoutes, taxonomyLabels } from "./keyed-routes.js";
import { typesTable } from "./post-types.js";

export const typeRoutes = (base: DescribedBase): RestRoute[] => [
  ...keyedRoutes(typesTable(base), base.namespace),
  ...keyedRoutes(statusesTable, base.namespace),
  ...keyedRoutes(taxonomiesTable(base), base.namespace),
];

type DescribedBase = ContentBase;

// `/statuses`: the statuses of posts. Anonymous callers see only the public one.

interface Status {
  slug: PostStatus;
  name: string;
  /** `protected`: neither published nor private, but listed for who writes. */
  kind: "public" | "private" | "protected" | "internal";
  /** True if its posts get their date when they leave the status. */
  isFloating: boolean;
}

const status = (
  slug: PostStatus,
  name: string,
  kind: Status["kind"],
  isFloating = false,
): [string, Status] => [slug, { slug, name, kind, isFloating }];

const statuses: Map<string, Status> = new Map([
  status("publish", "Published", "public"),
  status("future", "Scheduled", "protected"),
  status("draft", "Draft", "protected", true),
  status("pending", "Pending", "protected", true),
  status("private", "Private", "private"),
  status("trash", "Trash", "internal"),
]);

const fields: RecordFields<Status> = {
  name: {
    schema: { description: "The title for the status.", type: "string", context: ALL },
    read: ({ name }) => name,
  },
  private: {
    schema: {
      description: "Whether posts with this status should be private.",
      type: "boolean",
      context: EDIT,
    },
    read: ({ kind }) => kind === "private",
  },
  protected: {
    schema: {
      description: "Whether posts with this status should be protected.",
      type: "boolean",
      context: EDIT,
    },
    read: ({ kind }) => kind === "protected",
  },
  public: {
    schema: {
      description: "Whether posts of this status should be shown in the front end of the site.",
      type: "boolean",
      context: FULL,
    },
    read: ({ kind }) => kind === "public",
  },
  queryable: {
    schema: {
      description: "Whether posts with this status should be publicly-queryable.",
      type: "boolean",
      context: FULL,
    },
    read: ({ kind }) => kind === "public",
  },
  show_in_list: {
    schema: {
      description: "Whether to include posts in the edit listing for their post type.",
      type: "boolean",
      context: EDIT,
    },
    read: ({ kind }) => kind !== "internal",
  },
  slug: {
    schema: { description: "An alphanumeric identifier for the status.", type: "string", context: ALL },
    read: ({ slug }) => slug,
  },
  date_floating: {
    schema: {
      description: "Whether posts of this status may have floating published dates.",
      type: "boolean",
      context: FULL,
    },
    read: ({ isFloating }) => isFloating,
  },
};

const statusesTable: KeyedTable<Status> = {
  base: "statuses",
  parameter: "status",
  parameterDescription: "An alphanumeric identifier for the status.",
  entries: statuses,
  fields,
  links: ({ slug }, to) => ({
    archives: [{ href: to(slug === "publish" ? "/posts" : `/posts?status=${slug}`) }],
  }),
  // Those inside of WordPress, and one that a plug-in adds.
  hidden: new Set([
    "auto-draft",
    "inherit",
    "request-pending",
    "request-confirmed",
    "request-failed",
    "request-completed",
    "dp-rewrite-republish",
  ]),
  canRead: (caller, { kind }) => kind === "public" || caller.canEditSomething(),
  canEdit: (caller) => caller.canEditSomething(),
  refusals: {
    unknown: ["rest_status_invalid", "Invalid status."],
    read: ["rest_cannot_read_status", "Cannot view status."],
    editAny: ["rest_cannot_view", "Sorry, you are not allowed to manage post statuses."],
    edit: ["rest_cannot_view", "Sorry, you are not allowed to manage post statuses."],
  },
};

// `/taxonomies`: the taxonomies that the site has, from their table.

/** Those that WordPress registers with a column in the lists of its dashboard. */
const LISTED_IN_COLUMNS: Set<string> = new Set(["category", "post_tag", "wp_pattern_category"]);

const FIELDS = {
  name: {
    schema: { description: "The title for the taxonomy.", type: "string", context: ALL },
    read: ({ labels }) => labels.name,
  },
  slug: {
    schema: {
      description: "An alphanumeric identifier for the taxonomy.",
      type: "string",
      context: ALL,
    },
    read: ({ taxonomy }) => taxonomy,
  },
  capabilities: {
    schema: { description: "All capabilities used by the taxonomy.", type: "object", context: EDIT },
    read: ({ capabilities }) => capabilities,
  },
  description: {
    schema: { description: "A human-readable description of the taxonomy.", type: "string", context: FULL },
    read: ({ description = "" }) => description,
  },
  labels: {
    schema: {
      description: "Human-readable labels for the taxonomy for various contexts.",
      type: "object",
      context: EDIT,
    },
    read: ({ labels, isHierarchical }) => taxonomyLabels(labels, isHierarchical),
  },
  types: {
    schema: {
      description: "Types associated with the taxonomy.",
      type: "array",
      items: { type: "string" },
      context: FULL,
    },
    read: ({ types }) => types,
  },
  show_cloud: {
    schema: {
      description: "Whether or not the term cloud should be displayed.",
      type: "boolean",
      context: EDIT,
    },
    read: ({ isViewable }) => isViewable,
  },
  hierarchical: {
    schema: {
      description: "Whether or not the taxonomy should have children.",
      type: "boolean",
      context: FULL,
    },
    read: ({ isHierarchical }) => isHierarchical,
  },
  rest_base: {
    schema: { description: "REST base route for the taxonomy.", type: "string", context: ALL },
    read: ({ base }) => base,
  },
  rest_namespace: {
    schema: { description: "REST namespace route for the taxonomy.", type: "string", context: ALL },
    // Replaced by the namespace of the site.
    read: () => "",
  },
  visibility: {
    schema: { description: "The visibility settings for the taxonomy.", type: "object", context: EDIT },
    read: ({ isViewable, taxonomy }) => ({
      public: isViewable,
      publicly_queryable: isViewable,
      show_admin_column: LISTED_IN_COLUMNS.has(taxonomy),
      show_in_nav_menus: isViewable,
      show_in_quick_edit: isViewable || taxonomy === "wp_pattern_category",
      show_ui: taxonomy !== "nav_menu",
    }),
  },
} satisfies RecordFields<TaxonomyDefinition>;

const taxonomiesTable = ({ model, namespace }: DescribedBase): KeyedTable<TaxonomyDefinition> => ({
  base: "taxonomies",
  parameter: "taxonomy",
  parameterDescription: "An alphanumeric identifier for the taxonomy.",
  entries: model.taxonomies,
  fields: { ...FIELDS, rest_namespace: { ...FIELDS.rest_namespace, read: () => namespace } },
  links: ({ base }, to) => ({ "https://api.w.org/items": [{ href: to(`/${base}`) }] }),
  listArguments: {
    type: {
      description: "Limit results to taxonomies associated with a specific post type.",
      type: "string",
      maxLength: LENGTHS.name,
    },
  },
  isListed: ({ types }, { type }) => typeof type !== "string" || type === "" || types.includes(type),
  hidden: new Set(["post_format", "link_category", "wp_theme", "wp_template_part_area"]),
  isUnknownPermitted: true,
  canRead: () => true,
  canEdit: (caller, { taxonomy }) => caller.canOf(taxonomy, "assign_terms"),
  refusals: {
    unknown: ["rest_taxonomy_invalid", "Invalid taxonomy."],
    read: ["rest_forbidden", "Sorry, you are not allowed to do that."],
    editAny: ["rest_cannot_view", "Sorry, you are not allowed to manage terms in this taxonomy."],
    edit: ["rest_forbidden_context", "Sorry, you are not allowed to manage terms in this taxonomy."],
  },
});
