/**
 * The option `meta`: the keys that a host declares, and how they become fields of the post types.
 * `text-fields.ts` reads and writes their values.
 */

import { PostbellError } from "../../core/errors.js";
import { flag, oneOf, readOptions, value } from "../../core/options.js";
import { coerceValue } from "../../schema/coerce.js";
import { parseSchema } from "../../schema/describe-arguments.js";
import { copyJson } from "../../schema/json-limits.js";
import type { Json, JsonObject, JsonType, Schema } from "../../schema/types.js";
import { validateValue } from "../../schema/validate.js";
import type { ContentModel, MetaField, MetaFields, MetaWriter } from "../records/content-model.js";
import type { User } from "../records/records.js";
import { RestError } from "../rest/error.js";
import { MAX_VALUE, readDeclared } from "./text-fields.js";

/**
 * Meta fields by post type (`post`, `page`, `attachment` …), then by key: at most 100 keys for each
 * type, of at most 255 characters.
 *
 * @example
 * ```ts
 * meta: {
 *   post: {
 *     subtitle: { single: true, revisions: true },
 *     steps: { schema: { maxLength: 500 } }, // several texts
 *     price: { type: "number", single: true, canWrite: "edit_others_posts" },
 *     origin: {
 *       type: "object",
 *       single: true,
 *       schema: { properties: { lat: { type: "number" }, lon: { type: "number" } } },
 *     },
 *   },
 * }
 * ```
 */
export interface MetaOptions {
  [type: string]: { [key: string]: MetaKey };
}

/**
 * One key of `meta`, as `register_post_meta` of WordPress declares it with `show_in_rest`. Values
 * have at most 64 KiB of JSON, and all values of a post 256 KiB. They are stored as they are
 * written: escape texts when you show them.
 */
export interface MetaKey {
  /** Default: `string`, as in WordPress. */
  type?: "string" | "boolean" | "integer" | "number" | "array" | "object" | undefined;
  /** For OPTIONS and OpenAPI. */
  description?: string | undefined;
  /** `true` for one value, `false` for a list of values. Default: `false`, as in WordPress. */
  single?: boolean | undefined;
  /**
   * The value that is shown while none is stored; in a list, its only item. Default: the empty
   * value of the type, `null` if the schema refuses that, or an empty list.
   */
  default?: Json | undefined;
  /**
   * Further keywords of JSON Schema draft 4 for a value: `enum`, `minimum`, `maxLength`, `format`,
   * `properties` … Objects refuse other members than their `properties`, unless they state
   * `additionalProperties`. `pattern` is not supported.
   */
  schema?: JsonObject | undefined;
  /** Where responses show it. Default: `["view", "edit"]`. WordPress never embeds meta fields. */
  context?: readonly ("view" | "edit" | "embed")[] | undefined;
  /** Keeps the value in revisions and autosaves. Default: `false`. */
  revisions?: boolean | undefined;
  /**
   * A capability, or a function that returns `true` for those who may change the value; both in
   * addition to the permission to edit the post. Default: everybody who may edit the post, and
   * nobody for a key that begins with `_`, as in WordPress.
   *
   * `id` is the post. The function must not return a promise; one that throws makes the
   * response 500.
   */
  canWrite?: string | ((write: { user: User; id: number; key: string }) => boolean) | undefined;
}

// Checks what a host declares.

const MAX_KEYS = 100;
const MAX_NAME = 255;
/** Control characters, and those that no XML file can hold. */
const UNUSABLE = /[\p{Cc}\p{Surrogate}\ufffe\uffff]/u;

/** Names that WordPress gives to its data, which is stored elsewhere here. */
const OWN_NAMES =
  /^_(?:thumbnail_id$|wp_|menu_item_|edit_lock$|edit_last$|encloseme$|pingme$|oembed_|customize_)/;

const refuse = (field: string, message: string): never => {
  throw new PostbellError("invalid_option", `createContent: ${field} ${message}`, {
    field: field.slice(0, 400),
  });
};

const isObject = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const CONTEXTS: unknown[] = ["view", "edit", "embed"];

const keyOptions = {
  type: oneOf(["string", "boolean", "integer", "number", "array", "object"], "string"),
  description: value<string>(
    "a text of at most 1000 characters",
    (value) => typeof value === "string" && value.length <= 1_000,
    "",
  ),
  single: flag(false),
  default: value<unknown>("a value of JSON", () => true, undefined),
  schema: value<JsonObject>("an object of JSON Schema's keywords", isObject, Object.freeze({})),
  context: value<NonNullable<MetaKey["context"]>>(
    "a list of 'view', 'edit' and 'embed'",
    (value) =>
      Array.isArray(value) &&
      value.length > 0 &&
      value.length <= CONTEXTS.length &&
      value.every((one) => CONTEXTS.includes(one)),
    Object.freeze(["view", "edit"] as const),
  ),
  revisions: flag(false),
  canWrite: value<MetaKey["canWrite"]>(
    "the name of a capability or a function",
    (value) =>
      typeof value === "function" || (typeof value === "string" && value !== "" && value.length <= 255),
    undefined,
  ),
};

/**
 * Returns the model with the fields that the host declares. Those of a type follow its built-in
 * ones.
 *
 * @throws PostbellError `invalid_option`, with the path as `field`
 */
export function withDeclaredMeta(model: ContentModel, options: MetaOptions): ContentModel {
  const types = new Map(model.types);
  for (const [name, keys] of Object.entries(options)) {
    const path = `meta.${name.slice(0, MAX_NAME)}`;
    const collection = types.get(name);
    if (collection === undefined) {
      return refuse(path, `names no post type; there are ${[...types.keys()].join(", ")}.`);
    }
    const { meta, supports, hasRevisions } = collection;
    // Media and menu items have meta without this support.
    if (!supports.includes("custom-fields") && Object.keys(meta).length === 0) {
      refuse(path, "names a type without meta fields: its supports lack 'custom-fields'.");
    }
    const declared = declareKeys(keys, path, { builtIn: meta, hasRevisions });
    types.set(name, { ...collection, meta: { ...meta, ...declared } });
  }
  return { ...model, types };
}

function declareKeys(
  keys: unknown,
  path: string,
  { builtIn, hasRevisions }: { builtIn: MetaFields; hasRevisions: boolean },
): MetaFields {
  if (typeof keys !== "object" || keys === null || Array.isArray(keys)) {
    return refuse(path, "must be an object of keys.");
  }
  const entries = Object.entries(keys);
  if (entries.length > MAX_KEYS) refuse(path, `must have at most ${MAX_KEYS} keys.`);
  const fields = entries.map(([name, key]): [string, MetaField] => {
    refuseName(name, path, builtIn);
    const field = declareKey(key, name, `${path}.${name}`);
    if (field.isRevisioned === true && !hasRevisions) {
      refuse(`${path}.${name}.revisions`, "must be false: there are no revisions of these records.");
    }
    return [name, field];
  });
  return Object.fromEntries(fields);
}

function refuseName(name: string, path: string, builtIn: MetaFields): void {
  if (name === "" || name.length > MAX_NAME || name.trim() !== name || UNUSABLE.test(name)) {
    refuse(
      path,
      `must have names of 1 to ${MAX_NAME} characters without control characters or outer blanks.`,
    );
  }
  if (name in Object.prototype || Object.hasOwn(builtIn, name) || OWN_NAMES.test(name)) {
    refuse(`${path}.${name}`, "has a name that is taken; choose another one.");
  }
}

function declareKey(value: unknown, name: string, path: string): MetaField {
  const {
    type,
    description,
    single,
    schema: more,
    context,
    revisions,
    canWrite,
    default: wanted,
  } = readOptions("createContent", keyOptions, value, path);
  const parsed = parseSchema(more, type);
  if (parsed.mistake !== undefined) {
    const { path: where, message } = parsed.mistake;
    return refuse(`${path}.schema${where === "" ? "" : `.${where}`}`, `${message}.`);
  }
  const inner: Schema = { ...(description === "" ? {} : { description }), ...parsed.schema };
  const schema: Schema = single ? inner : { type: "array", items: inner, itemLimit: 1_000 };
  const initial = wanted === undefined ? undefined : readDefault(wanted, inner, `${path}.default`);
  const shown = single ? (initial ?? getEmpty(inner)) : initial === undefined ? [] : [initial];
  return {
    schema: {
      ...schema,
      ...(shown === null ? {} : { default: shown }),
      context,
      accepted: { anyOf: [schema, { type: "null" }] },
      answered: { anyOf: [schema, { type: "null" }] },
    },
    default: shown,
    ...(revisions ? { isRevisioned: true as const } : {}),
    declared: { isList: !single, mayWrite: createPermission(canWrite, name, path) },
  };
}

/** The empty value of the type, as in WordPress; `null` if its schema refuses it. */
function getEmpty(schema: Schema): Json {
  const empty = coerceValue(null, { type: schema.type as JsonType });
  return validateValue(empty, schema, "") === undefined ? (JSON.parse(JSON.stringify(empty)) as Json) : null;
}

function readDefault(value: unknown, schema: Schema, path: string): Json {
  const copy = copyJson(value, MAX_VALUE);
  if (copy === undefined) return refuse(path, "must be a small value of JSON.");
  try {
    return readDeclared(copy, path, schema);
  } catch (error) {
    if (!(error instanceof RestError)) throw error;
    return refuse(path, `must fit the schema (${error.message})`);
  }
}

function createPermission(
  canWrite: MetaKey["canWrite"],
  key: string,
  path: string,
): (writer: MetaWriter) => boolean {
  // As in WordPress, nobody writes a key with a leading underscore unless the host allows it.
  if (canWrite === undefined) return () => !key.startsWith("_");
  if (typeof canWrite === "string") return ({ has }) => has(canWrite);
  return ({ user, id }) => {
    if (user === null) return false;
    const answer: unknown = canWrite({ user, id, key });
    if (typeof answer === "boolean") return answer;
    // A rejected promise that nobody awaits would end the process.
    Promise.resolve(answer).catch(() => undefined);
    throw new TypeError(`${path}.canWrite must return true or false.`);
  };
}
