/**
 * The `style` attribute of an author who may not write free HTML: properties that only change
 * looks, with values that load and run nothing.
 */

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

// The allow-list of the `style` attribute: properties and functions that only change looks. The
// differences from WordPress stand in docs/decisions/html-sanitising.md.

/**
 * Properties that belong to no family of `STYLE_FAMILIES`. Leaves out those that put an element
 * over the page or let clicks through it: `position`, `top`, `z-index`, `transform` and the like.
 */
export const STYLE_PROPERTIES: Set<string> = new Set(
  [
    "align-content align-items align-self alignment-baseline aspect-ratio baseline-shift border box-shadow caption-side clear",
    "clip-path clip-rule color color-interpolation color-interpolation-filters color-rendering columns container-type cursor cx",
    "cy d direction display dominant-baseline fill fill-opacity fill-rule filter flex flex-basis flex-direction flex-flow",
    "flex-grow flex-shrink flex-wrap float flood-color flood-opacity gap glyph-orientation-horizontal",
    "glyph-orientation-vertical height image-rendering justify-content justify-items justify-self letter-spacing",
    "lighting-color line-height list-style list-style-position list-style-type marker marker-end marker-mid marker-start mask",
    "mask-type max-height max-width min-height min-width object-fit object-position opacity order overflow paint-order r",
    "row-gap rx ry shape-rendering stop-color stop-opacity table-layout unicode-bidi vector-effect vertical-align visibility",
    "white-space width word-break word-spacing writing-mode x y",
  ].flatMap((line) => line.split(" ")),
);

/** Every property that begins with one of these is allowed. */
export const STYLE_FAMILIES: string[] = [
  "--",
  "background",
  "border-",
  "column-",
  "font",
  "grid-",
  "margin",
  "padding",
  "stroke",
  "text-",
];

/** Functions that may stand in a value, besides `url()`, which has separate rules. */
export const STYLE_FUNCTIONS: Set<string> = new Set(
  [
    "calc clamp max min minmax repeat var",
    "rgb rgba hsl hsla",
    "linear-gradient radial-gradient conic-gradient",
    "repeating-linear-gradient repeating-radial-gradient repeating-conic-gradient",
    "blur brightness contrast grayscale hue-rotate invert saturate sepia drop-shadow",
    "matrix matrix3d perspective rotate rotate3d rotatex rotatey rotatez scale scale3d scalex scaley scalez",
    "skew skewx skewy translate translate3d translatex translatey translatez",
    "circle ellipse inset path polygon rect shape xywh",
  ].flatMap((line) => line.split(" ")),
);
