/**
 * The allow-list of the `style` attribute: properties and functions that only change looks. The
 * differences from WordPress stand in docs/decisions/html-sanitising.md.
 */

/**
 * Properties that belong to no family of `STYLE_FAMILIES`. Leaves out those that put an element
 * over the page or let clicks through it: `position`, `top`, `z-index`, `transform` and the like.
 */
export const STYLE_PROPERTIES: ReadonlySet<string> = new Set(
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
export const STYLE_FAMILIES: readonly string[] = [
  ...["--", "background", "border-", "column-", "font", "grid-", "margin", "padding", "stroke", "text-"],
];

/** Functions that may stand in a value, besides `url()`, which has rules of its own. */
export const STYLE_FUNCTIONS: ReadonlySet<string> = new Set(
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
