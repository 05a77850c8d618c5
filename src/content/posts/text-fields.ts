/** The fields of a post that hold texts, terms or meta values. */

import { coerceValue } from "../../schema/coerce.js";
import type { Context, Json, JsonObject, Schema } from "../../schema/types.js";
import { validateValue } from "../../schema/validate.js";
import { COUNTS, IDS, LENGTHS } from "../argument-bounds.js";
import type { MetaField } from "../records/content-model.js";
import type { Taxonomy } from "../records/records.js";
import { RestError } from "../rest/error.js";
import { ALL, EDIT, FULL } from "../rest/record-fields.js";
import { hasBlocks } from "../text/blocks.js";
import { trimBlanks } from "../text/render.js";
import {
  type FieldTarget,
  type FieldView,
  type PostField,
  rawTextArgument,
  readRaw,
  readRawTitle,
  type SharedPostField,
  STANDARD_TYPES,
  TYPES_WITH_EXCERPT,
  TYPES_WITH_TEXTS,
} from "./post-field.js";

/** True if a password protects the texts and the reader has not given it. */
const isHidden = ({ post, isRevealed }: FieldView): boolean => post.password !== "" && !isRevealed;

function writeText(name: "title" | "content" | "excerpt") {
  return (value: Json, target: FieldTarget): void => {
    const raw = name === "title" ? readRawTitle(value) : readRaw(value);
    if (raw === undefined) return;
    target.post[name] = name === "title" ? trimBlanks(raw) : raw;
    target.post.isTrusted = target.caller.has("unfiltered_html");
  };
}

/**
 * Schema of a text that is written as a string or as an object with `raw`. `maxLength` applies to
 * both forms.
 */
const textSchema = (
  context: readonly Context[],
  maxLength: number,
  extra: { readonly [name: string]: Schema } = {},
): Schema => ({
  type: "object",
  context,
  maxLength,
  properties: {
    raw: { type: "string", context: EDIT, description: "As it is stored.", maxLength },
    // A client sends back the response it received; this member is ignored.
    rendered: {
      type: "string",
      context,
      description: "As it is shown.",
      readonly: true,
      maxLength: LENGTHS.content,
    },
    ...extra,
  },
});

export const PROTECTED: Schema = {
  description: "Whether the text is protected with a password.",
  type: "boolean",
  context: ALL,
  readonly: true,
};

export const textFields = {
  title: {
    types: STANDARD_TYPES,
    needs: "title",
    schema: textSchema(ALL, LENGTHS.title),
    read: async ({ post, site }) => ({ raw: post.title, rendered: await site.render.title(post) }),
    html: "title",
    write: writeText("title"),
    argument: rawTextArgument(LENGTHS.title),
    isAutosaved: true,
  },
  content: {
    types: TYPES_WITH_TEXTS,
    needs: "editor",
    schema: textSchema(FULL, LENGTHS.content, {
      block_version: {
        description: "Version of the content block format used by the post.",
        type: "integer",
        context: EDIT,
        readonly: true,
      },
      protected: PROTECTED,
    }),
    read: async (view) => ({
      raw: view.post.content,
      rendered: isHidden(view) ? "" : await view.site.render.content(view.post),
      protected: view.post.password !== "",
      block_version: hasBlocks(view.post.content) ? 1 : 0,
    }),
    html: "content",
    write: writeText("content"),
    argument: rawTextArgument(LENGTHS.content),
    isAutosaved: true,
    isCostly: true,
  },
  excerpt: {
    types: TYPES_WITH_EXCERPT,
    needs: "excerpt",
    schema: textSchema(ALL, LENGTHS.content, { protected: PROTECTED }),
    read: async (view) => ({
      raw: view.post.excerpt,
      rendered: isHidden(view) ? "" : await view.site.render.excerpt(view.post, view.excerptLength),
      protected: view.post.password !== "",
    }),
    html: "excerpt",
    write: writeText("excerpt"),
    argument: rawTextArgument(LENGTHS.content),
    isAutosaved: true,
    isCostly: true,
  },
} as const satisfies { readonly [name: string]: SharedPostField };

/**
 * Reads the content of a type that shows the stored text outside the context `edit`, where a
 * password protects it like the rendered one.
 */
export const readProtectedContent: SharedPostField["read"] = async (view) => ({
  ...(await textFields.content.read(view)),
  ...(isHidden(view) ? { raw: "" } : {}),
});

/** Footnotes are part of the text that a password protects. WordPress shows them. */
export const readShownMeta = (view: FieldView): JsonObject => {
  const { meta } = view.post;
  return readMeta(isHidden(view) ? { ...meta, footnotes: "" } : meta, view.collection.meta);
};

export const metaField: PostField = {
  schema: { description: "Meta fields.", type: "object", context: FULL },
  schemaOfType: ({ meta }) => metaSchema(meta),
  // The argument checks the outer form alone. Like in WordPress, `writeMeta` checks the members.
  argument: {
    validate: (value) =>
      typeof value === "object"
        ? undefined
        : { code: "rest_invalid_param", message: "meta must be an object." },
    sanitize: (value) => value,
  },
  read: readShownMeta,
};

// The field that holds a post's terms in a taxonomy.

export const createTermField = (taxonomy: Taxonomy): PostField => ({
  schema: {
    description: `The terms assigned to the post in the ${taxonomy} taxonomy.`,
    ...IDS,
    context: FULL,
  },
  // The record may name terms that were deleted since.
  read: ({ post, index }) => index.termsOf(post, taxonomy),
  write: (value, { post, index }) => {
    const ids = (value as readonly number[]).filter((id) => index.term(id)?.taxonomy === taxonomy);
    post.terms = { ...post.terms, [taxonomy]: [...new Set(ids)].sort((a, b) => a - b) };
  },
});

// Reads and writes the registered meta fields of a post type. Others are never stored.

type MetaFields = { readonly [name: string]: MetaField };

/**
 * A pattern's response has it as a field of its own; a revision's has null for an unknown value.
 */
const choiceInResponses = (choices: readonly string[]): Schema => ({
  sometimes: true,
  answered: { type: ["string", "null"], enum: [...choices, null] },
});

/** Texts of meta fields, such as footnotes, may be HTML. */
const withMaxLength = (field: MetaField): Schema =>
  field.type === "string" && field.enum === undefined ? { ...field, maxLength: LENGTHS.content } : field;

export const metaSchema = (fields: MetaFields): Schema => ({
  type: "object",
  maxProperties: COUNTS.members,
  properties: Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      {
        ...withMaxLength(field),
        context: ["view", "edit"],
        ...(field.enum === undefined ? {} : choiceInResponses(field.enum)),
      } as Schema,
    ]),
  ),
});

export const readMeta = (stored: JsonObject, fields: MetaFields): JsonObject =>
  Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, stored[name] ?? field.default]));

/**
 * Returns `stored` with the written values, which are sanitised. `null` resets a field to its
 * default; names that are not registered are ignored.
 *
 * @throws RestError 400 with the schema's code for an invalid value
 */
export function writeMeta(stored: JsonObject, value: Json, fields: MetaFields): JsonObject {
  const given =
    typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
  const changed = Object.entries(fields).flatMap(([name, field]) => {
    const meta = Object.hasOwn(given, name) ? given[name] : undefined;
    if (meta === undefined) return [];
    if (meta === null) return [[name, field.default] as const];
    const schema = field as Schema;
    const problem = validateValue(meta, schema, `meta.${name}`);
    if (problem !== undefined) throw new RestError(400, problem.code, problem.message);
    return [[name, coerceValue(meta, schema)] as const];
  });
  return { ...stored, ...Object.fromEntries(changed) };
}
