/** Reads options that are plain data of any shape: copies them, and checks them by a schema. */

import { PostbellError } from "../../core/errors.js";
import type { Json, Schema } from "../../schema/types.js";
import { readValue } from "../../schema/validate.js";

const invalid = (field: string, problem: string): PostbellError =>
  new PostbellError("invalid_option", `createContent: ${problem}`, { field });

function toJson(given: unknown): string | undefined {
  try {
    return JSON.stringify(given);
  } catch {
    return undefined;
  }
}

/**
 * Returns a copy of the option `field` that fits `schema`. `maxCharacters`: of its JSON.
 *
 * @throws PostbellError `invalid_option`; the message names the member that does not fit
 */
export function readPlainOption(field: string, given: unknown, schema: Schema, maxCharacters: number): Json {
  const text = toJson(given);
  if (text === undefined) throw invalid(field, `${field} must be plain data that JSON can hold.`);
  if (text.length > maxCharacters) {
    throw invalid(
      field,
      `${field} must have at most ${maxCharacters} characters as JSON (got ${text.length}).`,
    );
  }
  const read = readValue(JSON.parse(text) as Json, schema, field);
  if (read.problem === undefined) return read.value;
  // `editor.patterns[0][title]` is `editor.patterns[0].title` for a host.
  throw invalid(field, read.problem.message.replace(/\[([a-z][\w-]*)\]/gi, ".$1"));
}

/** Returns the member of an option that fills a field: `apiVersion` for `api_version`. */
export const toMemberName = (field: string): string =>
  field.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
