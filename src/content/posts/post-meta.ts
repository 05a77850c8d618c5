/** Reads and writes the registered meta fields of a post type. Others are never stored. */

import { coerceValue } from "../../schema/coerce.js";
import { toText } from "../../schema/text-of.js";
import type { Json, JsonObject, Schema } from "../../schema/types.js";
import { validateValue } from "../../schema/validate.js";
import { COUNTS, LENGTHS } from "../argument-bounds.js";
import type { Caller } from "../auth/caller.js";
import type { MetaField } from "../collections.js";
import { RestError } from "../rest/error.js";
import { stripTags } from "../text/markup.js";
import { sanitiseText, type TextSanitiser } from "./sanitised-text.js";

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
 * Returns `stored` with the written values. `null` resets a field to its default; names that are
 * not registered are ignored. Footnotes are HTML, so they are sanitised unless `caller` has
 * `unfiltered_html`.
 *
 * @throws RestError 400 with the schema's code for an invalid value
 */
export function writeMeta(
  stored: JsonObject,
  value: Json,
  fields: MetaFields,
  { caller, site }: { readonly caller: Pick<Caller, "has">; readonly site: TextSanitiser },
): JsonObject {
  const given =
    typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
  const changed = Object.entries(fields).flatMap(([name, field]) => {
    const meta = Object.hasOwn(given, name) ? given[name] : undefined;
    if (meta === undefined) return [];
    if (meta === null) return [[name, field.default] as const];
    const schema = field as Schema;
    const problem = validateValue(meta, schema, `meta.${name}`);
    if (problem !== undefined) throw new RestError(400, problem.code, problem.message);
    const coerced = coerceValue(meta, schema);
    if (name !== "footnotes" || caller.has("unfiltered_html")) return [[name, coerced] as const];
    return [[name, sanitiseFootnotes(toText(coerced), site)] as const];
  });
  return { ...stored, ...Object.fromEntries(changed) };
}

/**
 * Notes with markup that are sanitised in one text. Further ones, which no author writes, lose
 * their tags, because each call of the sanitiser takes a fraction of a millisecond.
 */
const MAX_HTML_NOTES = 500;

/**
 * Sanitises a JSON list of notes: keeps the id and the sanitised content of each. Returns an empty
 * text for anything else. Source: WordPress 7.1.
 */
function sanitiseFootnotes(text: string, site: TextSanitiser): string {
  // The limit is for the sum of all notes, although each is sanitised on its own.
  if (text.length > site.filteredCharacters) return sanitiseText(text, "content", site);
  let notes: unknown;
  try {
    notes = JSON.parse(text);
  } catch {
    return "";
  }
  if (!Array.isArray(notes)) return "";
  let budget = MAX_HTML_NOTES;
  const sanitise = (content: string): string => {
    const isPlain = !/[<>&\u00a0]/.test(content);
    if (!isPlain) budget -= 1;
    return isPlain || budget >= 0 ? sanitiseText(content, "content", site) : stripTags(content);
  };
  const sanitised = notes.flatMap((note: { readonly id?: unknown; readonly content?: unknown } | null) => {
    const { id, content } = note ?? {};
    if (typeof id !== "string" || typeof content !== "string" || id === "" || content === "") return [];
    return [{ id: id.toLowerCase().replace(/[^a-z0-9_-]/g, ""), content: sanitise(content) }];
  });
  return JSON.stringify(sanitised);
}
