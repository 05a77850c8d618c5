/** `/block-patterns/patterns` and `/block-patterns/categories`: what the host's options list. */

import type { Json, JsonObject, Schema } from "../../schema/types.js";
import { COUNTS, LENGTHS, NAMES } from "../argument-bounds.js";
import { ALL } from "../rest/record-fields.js";
import { createItem } from "../rest/serialise.js";
import type { RestRoute } from "../rest/types.js";
import type { EditorOptions } from "./editor-options.js";
import { forEditors, readPlainOption, toMemberName } from "./editor-options.js";

/** In characters of JSON. */
const MAX_PATTERNS = 8_388_608;
const MAX_CATEGORIES = 1_048_576;

const shown = (schema: Schema): Schema => ({ ...schema, readonly: true, context: ALL });
const optional = (schema: Schema): Schema => shown({ ...schema, sometimes: true });
const name = (description: string): Schema => shown({ description, type: "string", maxLength: LENGTHS.name });
const names = (description: string): Schema => optional({ description, ...NAMES });

const PATTERN: Schema = {
  title: "block-pattern",
  type: "object",
  properties: {
    name: name("The pattern name."),
    title: shown({
      description: "The pattern title, in human readable format.",
      type: "string",
      maxLength: LENGTHS.title,
    }),
    content: shown({ description: "The pattern content.", type: "string", maxLength: LENGTHS.content }),
    description: optional({
      description: "The pattern detailed description.",
      type: "string",
      maxLength: LENGTHS.title,
    }),
    viewport_width: optional({
      description: "The pattern viewport width for inserter preview.",
      type: "number",
    }),
    inserter: optional({
      description: "Determines whether the pattern is visible in inserter.",
      type: "boolean",
    }),
    categories: names("The pattern category slugs."),
    keywords: names("The pattern keywords."),
    block_types: names("Block types that the pattern is intended to be used with."),
    post_types: names("An array of post types that the pattern is restricted to be used with."),
    template_types: names("An array of template types where the pattern fits."),
    source: optional({
      description: "Where the pattern comes from e.g. core",
      type: "string",
      enum: [
        "core",
        "plugin",
        "theme",
        "pattern-directory/core",
        "pattern-directory/theme",
        "pattern-directory/featured",
      ],
    }),
  },
};

const CATEGORY: Schema = {
  title: "block-pattern-category",
  type: "object",
  properties: {
    name: name("The category name."),
    label: shown({
      description: "The category label, in human readable format.",
      type: "string",
      maxLength: LENGTHS.title,
    }),
    description: optional({
      description: "The category description, in human readable format.",
      type: "string",
      maxLength: LENGTHS.title,
    }),
  },
};

/** WordPress moved these categories to others, and moves those of patterns accordingly. */
const MOVED_CATEGORIES: { [category: string]: string } = {
  buttons: "call-to-action",
  columns: "text",
  query: "posts",
};

/**
 * Returns the schema of the option that lists such records. Members are required unless optional.
 */
const optionSchema = ({ properties = {} }: Schema): Schema => ({
  type: "array",
  itemLimit: COUNTS.members,
  items: {
    type: "object",
    additionalProperties: false,
    properties: Object.fromEntries(
      Object.entries(properties).map(([field, schema]) => [
        toMemberName(field),
        { ...schema, required: schema.sometimes !== true },
      ]),
    ),
  },
});

/** Returns the fields of a record in the order of the schema. */
const toFields = (option: JsonObject, { properties = {} }: Schema): JsonObject =>
  Object.fromEntries(
    Object.keys(properties).flatMap((field) => {
      const value = option[toMemberName(field)];
      return value === undefined ? [] : [[field, value]];
    }),
  );

const moveCategories = (pattern: JsonObject): JsonObject => {
  const { categories } = pattern;
  if (!Array.isArray(categories)) return pattern;
  return {
    ...pattern,
    categories: categories.map((category: string) =>
      Object.hasOwn(MOVED_CATEGORIES, category) ? (MOVED_CATEGORIES[category] as string) : category,
    ),
  };
};

/** @throws PostbellError `invalid_option` */
export function blockPatternRoutes(
  { patterns = [], patternCategories = [] }: EditorOptions,
  namespace: string,
): RestRoute[] {
  const read = (field: string, value: unknown, schema: Schema, maxCharacters: number): JsonObject[] =>
    (readPlainOption(field, value, optionSchema(schema), maxCharacters) as JsonObject[]).map((option) =>
      toFields(option, schema),
    );
  return [
    toRoute(`/block-patterns/patterns`, {
      namespace,
      schema: PATTERN,
      records: read("editor.patterns", patterns, PATTERN, MAX_PATTERNS).map(moveCategories),
      what: "patterns",
    }),
    toRoute(`/block-patterns/categories`, {
      namespace,
      schema: CATEGORY,
      records: read("editor.patternCategories", patternCategories, CATEGORY, MAX_CATEGORIES),
      what: "pattern categories",
    }),
  ];
}

interface RegisteredRecords {
  namespace: string;
  schema: Schema;
  records: { [name: string]: Json }[];
  what: string;
}

function toRoute(path: string, { namespace, schema, records, what }: RegisteredRecords): RestRoute {
  // They never change, so each is serialised once.
  const items = records.map((record) => createItem(record, {}));
  return {
    namespace,
    path,
    schema,
    endpoints: [
      {
        methods: ["GET"],
        args: {},
        described: { summary: `List the block ${what} of the site`, form: "items" },
        permit: forEditors(
          "rest_cannot_view",
          `Sorry, you are not allowed to view the registered block ${what}.`,
        ),
        handle: () => ({ status: 200, headers: {}, body: { items } }),
      },
    ],
  };
}
