/** The fields of a post that hold texts, terms or meta values. */

import { checkJsonLimits } from "../../schema/json-limits.js";
import type { Context, Json, JsonObject, Schema, SchemaProblem } from "../../schema/types.js";
import { readValue } from "../../schema/validate.js";
import { COUNTS, IDS, LENGTHS } from "../argument-bounds.js";
import type { Caller } from "../auth/caller.js";
import type { MetaField, MetaFields } from "../records/content-model.js";
import type { Taxonomy } from "../records/records.js";
import { combineErrors, RestError, refusal } from "../rest/error.js";
import { ALL, EDIT, FULL, NO_META } from "../rest/record-fields.js";
import { hasBlocks } from "../text/blocks.js";
import { trimBlanks } from "../text/render.js";
import {
  type FieldTarget,
  type FieldView,
  listTermsByName,
  type PostField,
  rawTextArgument,
  readRaw,
  readRawTitle,
  type SharedPostField,
  STANDARD_TYPES,
  TYPES_WITH_EXCERPT,
  TYPES_WITH_TEXTS,
} from "./post-field.js";

/** True if a password protects the texts and the reader has not sent it. */
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
  context: Context[],
  maxLength: number,
  extra: { [name: string]: Schema } = {},
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
      rendered: isHidden(view) ? "" : await view.site.render.content(view.post, view.budget),
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
} as const satisfies { [name: string]: SharedPostField };

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
  read: ({ post, index }) => listTermsByName(post, taxonomy, index),
  write: (value, { post, index }) => {
    const ids = (value as number[]).filter((id) => index.term(id)?.taxonomy === taxonomy);
    post.terms = { ...post.terms, [taxonomy]: [...new Set(ids)].sort((a, b) => a - b) };
  },
});

// Reads and writes the meta fields of a post type. Others are never shown or written.

/** In bytes of JSON. */
export const MAX_VALUE = 65_536;
/** All values of a record, in bytes of JSON. */
const MAX_VALUES = 262_144;
/** Levels of arrays and objects in a value. PHP's serialized form in WXR files has no more. */
const MAX_LEVELS = 16;

/**
 * A pattern's response has it as a separate field; a revision's has null for an unknown value.
 */
const choiceInResponses = (choices: NonNullable<Schema["enum"]>): Schema => ({
  sometimes: true,
  answered: { type: ["string", "null"], enum: [...choices, null] },
});

/** Texts of built-in fields, such as footnotes, may be HTML. */
const describeBuiltIn = (schema: Schema): Schema => {
  if (schema.enum !== undefined) return { ...schema, ...choiceInResponses(schema.enum) };
  return schema.type === "string" ? { ...schema, maxLength: LENGTHS.content } : schema;
};

/**
 * Returns the schema of `meta`, an empty list for a type without any. `embed` shows it if one of
 * the fields is shown there.
 */
export function metaSchema(fields: MetaFields): Schema {
  const members = Object.entries(fields).map(([name, { schema, declared }]): [string, Schema] => [
    name,
    { context: FULL, ...(declared === undefined ? describeBuiltIn(schema) : schema) },
  ]);
  if (members.length === 0) return NO_META.schema;
  const isEmbedded = members.some(([, { context }]) => context?.includes("embed"));
  return {
    type: "object",
    maxProperties: COUNTS.members,
    context: isEmbedded ? ALL : FULL,
    properties: Object.fromEntries(members),
  };
}

/** Returns every field with its stored value or default. Other stored names are left out. */
export const readMeta = (stored: JsonObject, fields: MetaFields): JsonObject =>
  Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, readField(stored[name], field)]));

/** As in WordPress, a value that no longer fits the declaration is shown as `null`. */
function readField(stored: Json | undefined, { schema, default: initial, declared }: MetaField): Json {
  if (stored === undefined || stored === null) return initial;
  if (declared === undefined) return stored;
  const read = readValue(toForm(stored, schema, declared.isList), schema, "");
  return read.problem === undefined ? read.value : null;
}

/** The declaration may have changed between one value and several. */
function toForm(stored: Json, schema: Schema, isList: boolean): Json {
  if (isList) return Array.isArray(stored) ? stored : [stored];
  return Array.isArray(stored) && schema.type !== "array" ? (stored[0] ?? null) : stored;
}

const isSame = (a: Json, b: Json): boolean => JSON.stringify(a) === JSON.stringify(b);

/** True if every value of `a` equals the one in `b`. */
export const isSameMeta = (a: JsonObject, b: JsonObject): boolean =>
  Object.entries(a).every(([name, value]) => isSame(value, b[name] ?? null));

/** Who writes to the post with this id. */
interface PostWriter {
  caller: Caller;
  id: number;
}

/**
 * Returns `stored` with the written values. `null`, and an empty list for a key with several
 * values, reset a field to its default; names that are not registered are ignored.
 *
 * @param value must have been sanitised
 * @param writer who must have the permission; absent for an import
 * @throws RestError 400 with the schema's code for an invalid value; 401 or 403 with the `key` for
 *   a change that the writer may not make: `rest_cannot_delete` for a reset, otherwise
 *   `rest_cannot_update`
 */
export function writeMeta(
  stored: JsonObject,
  value: Json,
  fields: MetaFields,
  writer?: PostWriter,
): JsonObject {
  const input =
    typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
  const written: { [name: string]: Json } = { ...stored };
  const errors: RestError[] = [];
  let isDeclared = false;
  for (const [name, field] of Object.entries(fields)) {
    const meta = Object.hasOwn(input, name) ? input[name] : undefined;
    if (meta === undefined) continue;
    try {
      if (field.declared === undefined) written[name] = readBuiltIn(meta, name, field);
      else {
        isDeclared = true;
        writeDeclared(written, name, meta, { field, writer });
      }
    } catch (error) {
      if (!(error instanceof RestError)) throw error;
      errors.push(error);
    }
  }
  if (errors.length > 0) throw combineErrors(errors);
  if (isDeclared) refuseLargeMeta(written, fields);
  return written;
}

function readBuiltIn(value: Json, name: string, { schema, default: initial }: MetaField): Json {
  if (value === null) return initial;
  const read = readValue(value, schema, `meta.${name}`);
  if (read.problem !== undefined) throw invalid(read.problem);
  return read.value;
}

const invalid = ({ code, message }: SchemaProblem): RestError => new RestError(400, code, message);

function writeDeclared(
  written: { [name: string]: Json },
  name: string,
  value: Json,
  { field, writer }: { field: MetaField; writer: PostWriter | undefined },
): void {
  const { default: initial, declared } = field;
  const isReset = value === null || (declared?.isList === true && Array.isArray(value) && value.length === 0);
  const before = readField(written[name], field);
  if (isReset && before === null && Object.hasOwn(written, name)) {
    throw invalid({
      code: "rest_invalid_stored_value",
      message: `meta.${name} has a stored value that does not fit its schema; write a valid one.`,
    });
  }
  const next = isReset ? initial : readDeclared(value, `meta.${name}`, field.schema);
  // As in WordPress, a client may send back the stored value of a key that it may not change: no
  // list, and no default.
  const isUnchanged =
    !isReset && declared?.isList !== true && Object.hasOwn(written, name) && isSame(before, next);
  const isAllowed =
    writer === undefined || isUnchanged || declared?.mayWrite({ ...writer.caller, id: writer.id }) === true;
  if (!isAllowed) {
    const { status, code, message } = refusal(
      writer.caller,
      isReset ? "rest_cannot_delete" : "rest_cannot_update",
      `Sorry, you are not allowed to edit the ${name} custom field.`,
    );
    throw new RestError(status, code, message, { data: { key: name } });
  }
  if (isReset) delete written[name];
  else written[name] = next;
}

/** Returns the value as it is stored: plain data of a limited size. */
export function readDeclared(value: Json, name: string, schema: Schema): Json {
  const tooDeep = checkJsonLimits(value, { levels: MAX_LEVELS });
  if (tooDeep !== undefined) throw invalid({ ...tooDeep, message: `${name}: ${tooDeep.message}` });
  if (Buffer.byteLength(JSON.stringify(value)) > MAX_VALUE) {
    throw invalid({ code: "rest_too_long", message: `${name} must have at most ${MAX_VALUE} bytes.` });
  }
  const read = readValue(value, schema, name);
  if (read.problem !== undefined) throw invalid(read.problem);
  const text = JSON.stringify(read.value);
  // Only a name has the colon: quotes within a text are escaped.
  if (text.includes('"__proto__":')) {
    const code = "rest_additional_properties_forbidden";
    throw invalid({ code, message: `${name} must not have the property __proto__.` });
  }
  return JSON.parse(text) as Json;
}

function refuseLargeMeta(written: JsonObject, fields: MetaFields): void {
  const builtIn = (name: string): boolean =>
    Object.hasOwn(fields, name) && fields[name]?.declared === undefined;
  const custom = Object.entries(written).filter(([name]) => !builtIn(name));
  if (Buffer.byteLength(JSON.stringify(custom)) <= MAX_VALUES) return;
  throw invalid({ code: "rest_too_long", message: `All of meta must have at most ${MAX_VALUES} bytes.` });
}
