/** The encoding of a file and the language of a page, by the headers of a browser. Pure. */

/** A browser sends about 30 characters for encodings, and up to 100 for languages. */
const MAX_HEADER = 500;

/** One of the choices of a header, in lower case, with its weight. */
const CHOICE = /^([a-z*][a-z0-9-]{0,34})(?:[ \t]{0,9};[ \t]{0,9}q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?))?$/;

/**
 * Returns the weights of a header such as `Accept-Encoding`, by choice in lower case. Returns
 * `undefined` without the header, and for one that is too long.
 * Source: RFC 9110 §12.4.2.
 */
function parseWeights(header: string | undefined): Map<string, number> | undefined {
  if (header === undefined || header.length > MAX_HEADER) return undefined;
  const weights = new Map<string, number>();
  for (const part of header.toLowerCase().split(",")) {
    const [, name, weight = "1"] = CHOICE.exec(part.trim()) ?? [];
    if (name !== undefined) weights.set(name, Number(weight));
  }
  return weights;
}

export type Encoding = "br" | "gzip" | "identity";

/**
 * Chooses the encoding of a file by `Accept-Encoding`. Of those with the same weight the smaller
 * one wins. Without the header, and with one that is too long, the file is sent as it is; so it is
 * if the client accepts nothing of all this.
 * Source: RFC 9110 §12.5.3.
 */
export function chooseEncoding(header: string | undefined): Encoding {
  const weights = parseWeights(header);
  if (weights === undefined) return "identity";
  const weigh = (name: Encoding): number => weights.get(name) ?? weights.get("*") ?? 0;
  const [br, gzip, plain] = [weigh("br"), weigh("gzip"), weigh("identity")];
  if (br > 0 && br >= gzip && br >= plain) return "br";
  return gzip > 0 && gzip >= plain ? "gzip" : "identity";
}

/** Returns the first of `tags` that fits a range: the same tag, a shorter one, or a longer one. */
function findLanguage(range: string, tags: string[]): string | undefined {
  for (let text = range; text !== ""; text = text.slice(0, Math.max(0, text.lastIndexOf("-")))) {
    const found = tags.find((tag) => tag.toLowerCase() === text);
    if (found !== undefined) return found;
  }
  return tags.find((tag) => tag.toLowerCase().startsWith(`${range}-`));
}

/**
 * Chooses one of `tags` by `Accept-Language`: that of the range with the highest weight, of those
 * with the same weight the first. Returns the first tag if none fits, and without the header.
 * `de-AT` also fits `de`, and `pt` fits `pt-BR`.
 * Source: RFC 4647 §3.4.
 */
export function chooseLanguage(header: string | undefined, tags: string[]): string {
  const ranges = [...(parseWeights(header) ?? [])].filter(([, weight]) => weight > 0);
  for (const [range] of ranges.toSorted(([, a], [, b]) => b - a)) {
    const found = findLanguage(range, tags);
    if (found !== undefined) return found;
  }
  return tags[0] ?? "en";
}
