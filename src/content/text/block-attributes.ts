/**
 * The attributes in block delimiters of an author who may not write free HTML. They reach pages
 * when a block is rendered, so the HTML in them is sanitised, too.
 */

import type { Steps } from "../../core/next-turn.js";
import type { BlockDelimiter } from "./blocks.js";
import { stripTags } from "./markup.js";
import { isScriptUrl } from "./urls.js";

export interface AttributeRules {
  /** Removes the characters that the sanitiser uses itself, from any string. */
  readonly withoutMarks: (text: string) => string;
  /** Sanitises the HTML of one string. */
  readonly sanitise: (html: string) => Steps<string>;
  readonly isAllowedTag: (name: string) => boolean;
}

/**
 * Strings with tags that are sanitised in one text. Further ones, which no editor writes, lose
 * their tags, because each call of the sanitiser takes a fraction of a millisecond.
 */
const MAX_HTML_STRINGS = 200;

/** Strings with tags in one step. */
const STRINGS_PER_STEP = 16;

/** At the end, a `<` could begin a tag with what a page puts after the text. */
const TAG_START = /<(?:[a-z!?/]|$)/i;

/** Signs that begin neither a tag nor a reference. */
const escapeLoneSigns = (text: string): string =>
  text.replace(/<(?=[^a-z!?/])/gi, "&lt;").replace(/&(?!(?:[a-z][a-z\d]*|#\d+|#x[\da-f]+);)/gi, "&amp;");

/**
 * Returns a function that makes the delimiters of one text harmless. A delimiter that is harmless
 * stays as it is, byte for byte. Another one is written as WordPress's serialiser would. One whose
 * attributes are no JSON loses them.
 */
export function createDelimiterFilter(rules: AttributeRules): (delimiter: BlockDelimiter) => Steps<string> {
  let budget = MAX_HTML_STRINGS;
  function* harmless(raw: string): Steps<string> {
    const text = rules.withoutMarks(raw);
    if (!TAG_START.test(text)) return isScriptUrl(text) ? "" : text;
    budget -= 1;
    const written = escapeLoneSigns(text);
    const clean = budget >= 0 ? yield* rules.sanitise(written) : stripTags(text);
    if (budget % STRINGS_PER_STEP === 0) yield;
    if (isScriptUrl(stripTags(clean))) return "";
    return clean === written ? text : clean;
  }
  return (delimiter) => filterDelimiter(delimiter, harmless, rules);
}

function* filterDelimiter(
  { kind, name, attributes, text }: BlockDelimiter,
  harmless: (text: string) => Steps<string>,
  { isAllowedTag }: AttributeRules,
): Steps<string> {
  if (attributes === "") return text;
  const slash = kind === "close" ? "/" : "";
  const end = kind === "void" ? "/" : "";
  let json = "";
  try {
    const clean = new Map<string, string>();
    for (const written of listStrings(attributes)) clean.set(written, yield* harmless(written));
    let isChanged = /--|[<>]/.test(attributes);
    const value: unknown = JSON.parse(attributes, (key, item: unknown) => {
      const filtered = filterValue(item, (written) => clean.get(written) ?? "");
      const isRefused =
        name === "core/template-part" &&
        key === "tagName" &&
        !(typeof item === "string" && (item === "" || isAllowedTag(item)));
      isChanged ||= isRefused || filtered !== item;
      return isRefused ? "" : filtered;
    });
    if (!isChanged) return text;
    json = `${escapeJson(JSON.stringify(value))} `;
  } catch {
    // No JSON, or deeper than the parser goes: the block stays, its attributes do not.
  }
  return `<!-- ${slash}wp:${name.replace(/^core\//, "")} ${json}${end}-->`;
}

/** The texts and names of the JSON, each once. */
function listStrings(json: string): ReadonlySet<string> {
  const strings = new Set<string>();
  JSON.parse(json, (_, value: unknown) => {
    if (typeof value === "string") strings.add(value);
    else if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      for (const name of Object.keys(value)) strings.add(name);
    }
    return value;
  });
  return strings;
}

/** The value itself if it is harmless. Its members are filtered already. */
function filterValue(value: unknown, harmless: (text: string) => string): unknown {
  if (typeof value === "string") return harmless(value);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).map(([key, member]) => [harmless(key), member] as const);
  const names = Object.keys(value);
  const isUnchanged = entries.every(([key], at) => key === names[at]);
  return isUnchanged ? value : Object.fromEntries(entries);
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ["\\\\", "\\u005c"],
  ['\\"', "\\u0022"],
  ["--", "\\u002d\\u002d"],
  ["<", "\\u003c"],
  [">", "\\u003e"],
  ["&", "\\u0026"],
]);

/** So that no attribute can end the comment, and as editors write it. */
const escapeJson = (json: string): string =>
  json.replace(/\\\\|\\"|--|[<>&]/g, (part) => ESCAPES.get(part) ?? part);
