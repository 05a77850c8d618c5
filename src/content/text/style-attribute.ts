/**
 * The `style` attribute of an author who may not write free HTML: properties that only change
 * looks, with values that load and run nothing.
 */

import { isSafeUrl } from "./urls.js";

const PROPERTIES: ReadonlySet<string> = new Set(
  (
    "align-content align-items align-self aspect-ratio border-radius box-shadow caption-side clear color column-count column-gap " +
    "column-rule column-span column-width cursor direction display filter flex flex-basis flex-direction flex-flow flex-grow " +
    "flex-shrink flex-wrap float gap grid-area grid-auto-columns grid-auto-flow grid-auto-rows grid-column grid-column-end " +
    "grid-column-start grid-row grid-row-end grid-row-start grid-template-areas grid-template-columns grid-template-rows height " +
    "justify-content justify-items justify-self letter-spacing line-height list-style list-style-position list-style-type max-height " +
    "max-width min-height min-width object-fit object-position opacity order overflow row-gap table-layout vertical-align " +
    "white-space width word-break word-spacing writing-mode"
  ).split(" "),
);

const FAMILIES = ["--", "background", "border-", "font", "margin", "padding", "text-"] as const;

const isInFamily = (property: string): boolean =>
  FAMILIES.some((family) => property.startsWith(family)) && /^[a-z0-9-]*$/.test(property);

const FUNCTIONS: ReadonlySet<string> = new Set(
  (
    " calc clamp max min minmax repeat var rgb rgba hsl hsla linear-gradient radial-gradient conic-gradient " +
    "repeating-linear-gradient repeating-radial-gradient blur brightness contrast grayscale invert saturate sepia drop-shadow"
  ).split(" "),
);

/**
 * The declarations that may stay, in order; empty when none may. Linear; cleaning it again changes
 * nothing.
 */
export const cleanStyle = (style: string): string =>
  style
    .split(";")
    .map((declaration) => declaration.trim())
    .filter(isHarmless)
    .join(";");

function isHarmless(declaration: string): boolean {
  const colon = declaration.indexOf(":");
  const property = declaration.slice(0, colon).trim().toLowerCase();
  if (colon === -1 || !(PROPERTIES.has(property) || isInFamily(property))) return false;
  const [first = "", ...others] = declaration.slice(colon + 1).split("(");
  const parts = [first];
  for (const part of others) {
    const name =
      (parts.at(-1) ?? "")
        .slice(-32)
        .split(/[^a-z-]/i)
        .at(-1)
        ?.toLowerCase() ?? "";
    const argument = name === "url" ? urlArgument(part) : "";
    if (argument === undefined || (name !== "url" && !FUNCTIONS.has(name))) return false;
    parts.push(part.slice(argument.length));
  }
  // No escapes, which could spell anything; no comments; no colon outside an address; nothing that
  // ends an attribute or a tag.
  return parts.every((part) => /^[\w\s#%.,()'"+*/!-]*$/.test(part) && !part.includes("/*"));
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
