/** `/taxonomies`: the taxonomies that the site has, from their table. */

import { LENGTHS } from "../argument-bounds.js";
import { capabilityNames } from "../auth/capabilities.js";
import { ALL, EDIT, FULL, type RecordFields } from "../rest/record-fields.js";
import { type TaxonomyDefinition, taxonomies } from "../terms/taxonomies.js";
import type { KeyedTable } from "./keyed-routes.js";
import { taxonomyLabels } from "./labels.js";

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
    read: ({ taxonomy }) => capabilityNames[taxonomy],
  },
  description: {
    schema: { description: "A human-readable description of the taxonomy.", type: "string", context: FULL },
    read: () => "",
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
      show_admin_column: isViewable || taxonomy === "wp_pattern_category",
      show_in_nav_menus: isViewable,
      show_in_quick_edit: isViewable,
      show_ui: taxonomy !== "nav_menu",
    }),
  },
} satisfies RecordFields<TaxonomyDefinition>;

export const taxonomiesTable = (namespace: string): KeyedTable<TaxonomyDefinition> => ({
  base: "taxonomies",
  parameter: "taxonomy",
  parameterDescription: "An alphanumeric identifier for the taxonomy.",
  entries: new Map(Object.entries(taxonomies)),
  fields: { ...FIELDS, rest_namespace: { ...FIELDS.rest_namespace, read: () => namespace } },
  links: ({ base }, to) => ({ "https://api.w.org/items": [{ href: to(`/${base}`) }] }),
  listArguments: {
    type: {
      description: "Limit results to taxonomies associated with a specific post type.",
      type: "string",
      maxLength: LENGTHS.name,
    },
  },
  isListed: ({ types }, { type }) =>
    typeof type !== "string" || type === "" || (types as readonly string[]).includes(type),
  canRead: () => true,
  canEdit: (caller, { taxonomy }) => caller.canOf(taxonomy, "assign_terms"),
  refusals: {
    unknown: ["rest_taxonomy_invalid", "Invalid taxonomy."],
    read: ["rest_forbidden", "Sorry, you are not allowed to do that."],
    editAny: ["rest_cannot_view", "Sorry, you are not allowed to manage terms in this taxonomy."],
    edit: ["rest_forbidden_context", "Sorry, you are not allowed to manage terms in this taxonomy."],
  },
});
