/**
 * The `style` attribute of an author who may not write free HTML: properties that only change
 * looks, with values that load and run nothing.
 */

import { STYLE_FAMILIES, STYLE_FUNCTIONS, STYLE_PROPERTIES } from "./allowed-styles.js";
import { isSafeUrl } from "./urls.js";

const isInFamily = (property: string): boolean =>
  STYLE_FAMILIES.some((family) => property.startsWith(family)) && /^[a-z0-9_-]*$/.test(property);

/**
 * The declarations that may stay, in order; empty when none may. If all may, the text is returned
 * as it is, because editors compare it. Linear; cleaning it again changes nothing.
 */
export function cleanStyle(style: string): string {
  const declarations = style
    .split(";")
    .map((declaration) => declaration.trim())
    .filter((declaration) => declaration !== "");
  const harmless = declarations.filter(isHarmless);
  if (harmless.length === 0) return "";
  return harmless.length === declarations.length ? style : harmless.join(";");
}

function isHarmless(declaration: string): boolean {
  const colon = declaration.indexOf(":");
  const property = declaration.slice(0, colon).trim().toLowerCase();
  if (colon === -1 || !(STYLE_PROPERTIES.has(property) || isInFamily(property))) return false;
  const [first = "", ...others] = declaration.slice(colon + 1).split("(");
  const parts = [first];
  for (const part of others) {
    const name =
      (parts.at(-1) ?? "")
        .slice(-32)
        .split(/[^a-z0-9-]/i)
        .at(-1)
        ?.toLowerCase() ?? "";
    const argument = name === "url" ? urlArgument(part) : "";
    const isAllowed = name === "" || name === "url" || STYLE_FUNCTIONS.has(name);
    if (argument === undefined || !isAllowed) return false;
    parts.push(part.slice(argument.length));
  }
  // No escapes, which could spell anything; no comments; no colon outside an address; nothing that
  // ends an attribute or a tag.
  return parts.every(
    (part) => /^[\p{L}\p{M}\p{N}_\s#%.,()'"+*/!?|[\]-]*$/u.test(part) && !part.includes("/*"),
  );
}

/**
 * Returns the argument of `url(` up to its closing bracket, if it is an image on the web or on the
 * site.
 */
function urlArgument(part: string): string | undefined {
  const end = part.indexOf(")");
  if (end === -1) return undefined;
  const argument = part.slice(0, end);
  const [, , url] = /^(["']?)([^"'()\\\s<>]*)\1$/.exec(argument.trim()) ?? [];
  if (url === undefined || !isSafeUrl(url)) return undefined;
  return /^(?:https?:|[^:]*$)/i.test(url) ? argument : undefined;
}
