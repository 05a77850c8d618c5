/**
 * Serialises records and the bodies of responses, with the members that `_fields` selects and the
 * links that `_embed` follows.
 */

import { nextTurn, TURN_CHARACTERS } from "../../core/next-turn.js";
import { splitList } from "../../schema/bounds.js";
import type { Json, JsonObject } from "../../schema/types.js";
import { COUNTS, LENGTHS } from "../argument-bounds.js";
import type { Caller } from "../auth/caller.js";
import { invalidParams } from "./request-input.js";
import type { Item, ItemLink, Links, RestBody } from "./types.js";

/** The JSON shares its parts with the body and must not be changed. */
export function toJson(body: RestBody): Json {
  if ("item" in body) return ofItem(body.item);
  if ("items" in body) return body.items.map(ofItem);
  if ("text" in body) return body.text;
  return body.links === undefined ? body.json : withLinks(body.json as JsonObject, compactLinks(body.links));
}

const ofItem = ({ fields, links }: Item): JsonObject => withLinks(fields, links);

const COMMA = Buffer.from(",");
const OPENING = Buffer.from("[");
const CLOSING = Buffer.from("]");

/** Returns the JSON as UTF-8, from the bytes that items cache. A long list takes several turns. */
export async function toBytes(body: RestBody): Promise<Uint8Array> {
  if ("item" in body) return body.item.bytes();
  if ("text" in body) return Buffer.from(body.text);
  if (!("items" in body)) return Buffer.from(JSON.stringify(toJson(body)));
  const parts: Uint8Array[] = [OPENING];
  let sinceTurn = 0;
  for (const [index, item] of body.items.entries()) {
    if (index > 0) parts.push(COMMA);
    const bytes = item.bytes();
    parts.push(bytes);
    sinceTurn += bytes.length;
    if (sinceTurn < TURN_CHARACTERS) continue;
    sinceTurn = 0;
    await nextTurn();
  }
  parts.push(CLOSING);
  return Buffer.concat(parts);
}

/** Writes JSON as `JSON.stringify` does with this indentation. A long list takes several turns. */
export async function toJsonText(json: Json, indent: number): Promise<string> {
  if (!Array.isArray(json) || json.length === 0) return JSON.stringify(json, null, indent);
  const texts: string[] = [];
  let sinceTurn = 0;
  for (const entry of json) {
    const text = JSON.stringify(entry, null, indent);
    // JSON strings hold no line breaks, so every one is between members.
    texts.push(indent === 0 ? text : text.replaceAll("\n", `\n${" ".repeat(indent)}`));
    sinceTurn += text.length;
    if (sinceTurn < TURN_CHARACTERS) continue;
    sinceTurn = 0;
    await nextTurn();
  }
  const line = `\n${" ".repeat(indent)}`;
  return indent === 0 ? `[${texts.join(",")}]` : `[${line}${texts.join(`,${line}`)}\n]`;
}

interface Selection {
  fields: FieldSelection | undefined;
  embed: EmbedSelection | undefined;
}

/** Returns the selected members, with `_embedded`; for a list, of each of its entries. */
export async function select(
  body: RestBody,
  { fields, embed }: Selection,
  fetch: FetchEmbedded,
): Promise<Json> {
  const chosen = fields === undefined ? toJson(body) : chooseFields(body, fields, embed !== undefined);
  if (embed === undefined) return chosen;
  if (!Array.isArray(chosen)) return embedInto(chosen, embed, fetch);
  const entries: Json[] = [];
  for (const entry of chosen) entries.push(await embedInto(entry as Json, embed, fetch));
  return entries;
}

/**
 * Returns the selected members. As in WordPress, `_fields` filters the links of list entries like
 * any member. A single record has all its links or none: they are added after the filter, also if
 * `_embedded` asks for them.
 */
export function chooseFields(body: RestBody, fields: FieldSelection, isEmbedding: boolean): Json {
  const asksForLinks = fields.has("_links") || (isEmbedding && fields.has("_embedded"));
  if ("item" in body) {
    const chosen = pickFields(body.item.fields, fields);
    return asksForLinks ? addLinks(chosen, body.item.links) : chosen;
  }
  if (!("json" in body) || body.links === undefined) return pickFields(toJson(body), fields);
  const chosen = pickFields(body.json, fields);
  return asksForLinks || body.keepsLinks ? addLinks(chosen, compactLinks(body.links)) : chosen;
}

const addLinks = (chosen: Json, links: Links): Json =>
  withLinks(Array.isArray(chosen) ? {} : (chosen as JsonObject), links);

async function embedInto(chosen: Json, embed: EmbedSelection, fetch: FetchEmbedded): Promise<Json> {
  if (typeof chosen !== "object" || chosen === null) return chosen;
  const links = (chosen as JsonObject)["_links"];
  if (typeof links !== "object" || links === null || Array.isArray(links)) return chosen;
  const embedded = await embeddedFor(links as Links, embed, fetch);
  return embedded === undefined
    ? chosen
    : { ...(Array.isArray(chosen) ? {} : (chosen as JsonObject)), _embedded: embedded };
}

// The `_embed` parameter adds the records that a response links to.

/** `"all"`, or the requested relations. */
type EmbedSelection = "all" | Set<string>;

/** Returns the JSON at the URL of a link, or `undefined` if the link leads elsewhere. */
type FetchEmbedded = (href: string) => Promise<Json | undefined>;

export type FetchEmbeddedAs = (caller: Caller, baseUrl: string) => FetchEmbedded;

/** Each costs a request inside the service. Further links are not embedded. */
const MAX_EMBEDDED = 500;

/**
 * Parses `_embed`: `1`, `true` or empty embed everything, `author,wp:term` those relations. Returns
 * `undefined` without the parameter.
 */
export function parseEmbed(value: Json | undefined): EmbedSelection | undefined {
  if (value === undefined || value === null) return undefined;
  if (value === "true" || value === "1" || value === true || value === 1) return "all";
  const relations = toFieldList(value);
  return relations.length === 0 ? "all" : new Set(relations);
}

/** Fetches every URL once, and no more than 500 of them. */
export function fetchOnce(fetch: FetchEmbedded): FetchEmbedded {
  const fetched = new Map<string, Promise<Json | undefined>>();
  return (href) => {
    let found = fetched.get(href);
    if (found === undefined) {
      if (fetched.size >= MAX_EMBEDDED) return Promise.resolve(undefined);
      found = fetch(href);
      fetched.set(href, found);
    }
    return found;
  };
}

/**
 * Returns `_embedded` for one record with these links, or `undefined` if nothing was found.
 *
 * Each relation has a list in the order of its links, with an empty list for a link that cannot be
 * embedded. Relations without any record are left out.
 */
async function embeddedFor(
  links: Links,
  selection: EmbedSelection,
  fetch: FetchEmbedded,
): Promise<JsonObject | undefined> {
  const embedded: Record<string, Json> = {};
  for (const [relation, list] of Object.entries(links)) {
    if (selection !== "all" && !selection.has(relation)) continue;
    if (!list.some(isEmbeddable)) continue;
    const found: Json[] = [];
    for (const link of list) found.push((isEmbeddable(link) ? await fetch(link.href) : undefined) ?? []);
    if (found.some((value) => !Array.isArray(value) || value.length > 0)) embedded[relation] = found;
  }
  return Object.keys(embedded).length === 0 ? undefined : embedded;
}

const isEmbeddable = (link: ItemLink): boolean => link["embeddable"] === true;

// A record as responses show it: fields, links under short names, and bytes. Knows no record type.

const API_RELATIONS = "https://api.w.org/";

const CURIES: ItemLink[] = [Object.freeze({ name: "wp", href: `${API_RELATIONS}{rel}`, templated: true })];

/**
 * Shortens `https://api.w.org/term` to `wp:term`, and adds `curies`, which explains the short form.
 */
function compactLinks(links: Links): Links {
  const compact: Links = {};
  let hasShort = false;
  for (const [relation, list] of Object.entries(links)) {
    const isLong = relation.startsWith(API_RELATIONS);
    hasShort ||= isLong || relation.startsWith("wp:");
    compact[isLong ? `wp:${relation.slice(API_RELATIONS.length)}` : relation] = list;
  }
  if (hasShort) compact["curies"] = CURIES;
  return compact;
}

/** Returns `fields` with `links` as the last member `_links`, unless there are no links. */
export function withLinks(fields: JsonObject, links: Links): JsonObject {
  return Object.keys(links).length === 0 ? fields : { ...fields, _links: links };
}

/**
 * `links` may have relations in their long or short form. Neither object may be changed afterwards.
 */
export function createItem(fields: JsonObject, links: Links): Item {
  const compact = compactLinks(links);
  let bytes: Uint8Array | undefined;
  return Object.freeze({
    fields,
    links: compact,
    bytes: () => {
      bytes ??= Buffer.from(JSON.stringify(withLinks(fields, compact)));
      return bytes;
    },
  });
}

// The `_fields` parameter: selects members of a response. Knows no record type.

/** The selected members of an object: whole, or with a separate selection. */
export type FieldSelection = Map<string, true | FieldSelection>;

type MutableSelection = Map<string, true | MutableSelection>;

const MAX_FIELDS = COUNTS.selection;
const MAX_LEVELS = 64;

/**
 * Parses `id,title.rendered` or a list of such names. Returns `undefined`, for everything, without
 * a name.
 *
 * Names beyond the first 1 000, and names of more than 64 parts, are ignored.
 */
export function parseFields(value: Json | undefined): FieldSelection | undefined {
  const names = toFieldList(value);
  if (names.length === 0) return undefined;
  const root: MutableSelection = new Map();
  for (const name of names.slice(0, MAX_FIELDS)) {
    const parts = name.split(".", MAX_LEVELS + 1);
    if (parts.length <= MAX_LEVELS) add(root, parts);
  }
  return root;
}

/** Splits a text at commas and blanks, or each text of a list. Returns at most 1 001 names. */
function toFieldList(value: Json | undefined): string[] {
  const texts: (Json | undefined)[] = Array.isArray(value) ? value : [value];
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
export function refuseLongSelection(value: Json | undefined, name: string): void {
  const texts: (Json | undefined)[] = Array.isArray(value) ? value : [value];
  const length = texts
    .slice(0, MAX_FIELDS + 1)
    .reduce((sum: number, text) => sum + (typeof text === "string" ? text.length : 0), 0);
  if (length <= LENGTHS.selection && texts.length <= MAX_FIELDS) return;
  const message = `${name} must have at most ${MAX_FIELDS} names and ${LENGTHS.selection} characters.`;
  throw invalidParams({ [name]: message }, { [name]: { code: "rest_too_long", message, data: null } });
}

function add(root: MutableSelection, parts: string[]): void {
  let selection = root;
  for (const [depth, part] of parts.entries()) {
    const chosen = selection.get(part);
    if (chosen === true) return;
    if (depth === parts.length - 1) {
      selection.set(part, true);
      return;
    }
    const below: MutableSelection = chosen ?? new Map();
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
