/** The `_fields` parameter: selects members of a response. Knows no record type. */

import { splitList } from "../../schema/bounds.js";
import type { Json, JsonObject } from "../../schema/types.js";
import { COUNTS, LENGTHS } from "../argument-bounds.js";
import { invalidParams } from "./request-input.js";

/** The selected members of an object: whole, or with a selection of their own. */
export type FieldSelection = ReadonlyMap<string, true | FieldSelection>;

type Selection = Map<string, true | Selection>;

const MAX_FIELDS = COUNTS.selection;
const MAX_LEVELS = 64;

/**
 * Parses `id,title.rendered` or a list of such names. Returns `undefined`, for everything, without
 * a name.
 *
 * Names beyond the first 1 000, and names of more than 64 parts, are ignored.
 */
export function parseFields(given: Json | undefined): FieldSelection | undefined {
  const names = toFieldList(given);
  if (names.length === 0) return undefined;
  const root: Selection = new Map();
  for (const name of names.slice(0, MAX_FIELDS)) {
    const parts = name.split(".", MAX_LEVELS + 1);
    if (parts.length <= MAX_LEVELS) add(root, parts);
  }
  return root;
}

/** Splits a text at commas and blanks, or each text of a list. Returns at most 1 001 names. */
export function toFieldList(given: Json | undefined): readonly string[] {
  const texts: readonly (Json | undefined)[] = Array.isArray(given) ? given : [given];
  const names: string[] = [];
  for (const text of texts) {
    if (names.length > MAX_FIELDS) break;
    if (typeof text === "string") names.push(...splitList(text, MAX_FIELDS - names.length));
  }
  return names;
}

/**
 * Checks the length of `_fields` or `_embed` before it is split.
 *
 * @throws RestError 400 `rest_invalid_param`
 */
export function refuseLongSelection(given: Json | undefined, name: string): void {
  const texts: readonly (Json | undefined)[] = Array.isArray(given) ? given : [given];
  const length = texts
    .slice(0, MAX_FIELDS + 1)
    .reduce((sum: number, text) => sum + (typeof text === "string" ? text.length : 0), 0);
  if (length <= LENGTHS.selection && texts.length <= MAX_FIELDS) return;
  const message = `${name} must have at most ${MAX_FIELDS} names and ${LENGTHS.selection} characters.`;
  throw invalidParams({ [name]: message }, { [name]: { code: "rest_too_long", message, data: null } });
}

function add(root: Selection, parts: readonly string[]): void {
  let selection = root;
  for (const [depth, part] of parts.entries()) {
    const chosen = selection.get(part);
    if (chosen === true) return;
    if (depth === parts.length - 1) {
      selection.set(part, true);
      return;
    }
    const below: Selection = chosen ?? new Map();
    selection.set(part, below);
    selection = below;
  }
}

/**
 * Returns the selected members of an object, or of each entry of a list. An empty result is `[]`,
 * as in WordPress.
 */
export function pickFields(value: Json, selection: FieldSelection): Json {
  return Array.isArray(value)
    ? value.map((entry) => pickMembers(entry, selection))
    : pickMembers(value, selection);
}

// Recursion is bounded by the levels of the selection.
function pickMembers(value: Json, selection: FieldSelection): Json {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return [];
  const object = value as JsonObject;
  const picked: Record<string, Json> = Object.create(null);
  let isEmpty = true;
  for (const name of Object.keys(object)) {
    const chosen = selection.get(name);
    if (chosen === undefined) continue;
    const member = object[name] as Json;
    picked[name] = chosen === true ? member : pickMembers(member, chosen);
    isEmpty = false;
  }
  return isEmpty ? [] : picked;
}
