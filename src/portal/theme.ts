/** The look of the page that a host may choose, its checks, and what follows from it. Pure. */

/** The look of the page, with its defaults. */
export interface PortalTheme {
  /** Colours for light and for dark pages: `#rrggbb`. */
  accent: string;
  accentDark: string;
  /** The radius of the corners of controls, in px. Those of cards have twice as much. */
  radius: number;
  /** A list of font families, as CSS has it. */
  font: string;
  logo: string | null;
}

/** The defaults; `src/portal/app/styles.css` has the same. */
export const DEFAULT_THEME: PortalTheme = {
  accent: "#0b57b5",
  accentDark: "#8bbcff",
  radius: 4,
  font: "system-ui, sans-serif",
  logo: null,
};

type Side = "accent" | "accentDark";

/** The backgrounds of the accent: the page and its panels, as in `src/portal/app/styles.css`. */
const BACKGROUNDS: Record<Side, string[]> = {
  accent: ["#ffffff", "#f6f7f9"],
  accentDark: ["#0f1216", "#161a20"],
};

/** The backgrounds of links: also rows, notices and bars, which have a colour of their tone. */
export const LINK_BACKGROUNDS: Record<Side, string[]> = {
  accent: [...BACKGROUNDS.accent, "#eceff3", "#e6f5ec", "#fdf1da", "#fdebec", "#e7f0fc"],
  accentDark: [...BACKGROUNDS.accentDark, "#1f252d", "#12281b", "#2f240d", "#351a1d", "#14243a"],
};

/** The least contrast of text: WCAG 2.2, criterion 1.4.3. */
const TEXT_CONTRAST = 4.5;
/** The least contrast of controls and marks: WCAG 2.2, criterion 1.4.11. */
const MARK_CONTRAST = 3;

export const isColor = (value: unknown): value is string =>
  typeof value === "string" && /^#[0-9a-fA-F]{6}$/.test(value);

/** Source: WCAG 2.2, "relative luminance". */
function getLuminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Returns the contrast of two colours, from 1 to 21. Source: WCAG 2.2, "contrast ratio". */
function getContrast(a: string, b: string): number {
  const [dark = 0, light = 0] = [getLuminance(a), getLuminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

/** Returns the least contrast that a colour has with what it stands on. */
const getLeastContrast = (color: string, backgrounds: string[]): number =>
  Math.min(...backgrounds.map((background) => getContrast(color, background)));

const INKS = ["#ffffff", "#0d1722"] as const;

/** Returns the colour of text on a colour. */
const getInk = (color: string): string => {
  const [light, dark] = INKS;
  return getContrast(color, light) >= getContrast(color, dark) ? light : dark;
};

/** Returns why an accent cannot be read on a page, or `undefined` if it can. */
export function findContrastFault(side: Side, color: string): string | undefined {
  const [page, towards] = side === "accent" ? ["light", "darker"] : ["dark", "lighter"];
  const mark = getLeastContrast(color, BACKGROUNDS[side]);
  if (mark < MARK_CONTRAST)
    return `a contrast of at least ${MARK_CONTRAST} with the ${page} page (${color} has ${mark.toFixed(2)}); choose a ${towards} colour`;
  const text = getContrast(color, getInk(color));
  if (text < TEXT_CONTRAST)
    return `a contrast of at least ${TEXT_CONTRAST} with the text on buttons (${color} has ${text.toFixed(2)} with ${getInk(color)}); choose a ${towards} colour`;
  return undefined;
}

/** Mixes a colour with another: `share` of it, from 0 to 1. */
function mix(color: string, other: string, share: number): string {
  const parts = [1, 3, 5].map((at) => {
    const [from, to] = [color, other].map((each) => Number.parseInt(each.slice(at, at + 2), 16));
    return Math.round((from ?? 0) * (1 - share) + (to ?? 0) * share);
  });
  return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

/** Returns the accent as a colour of text: as it is, or as much darker or lighter as text needs. */
function toLinkColor(side: Side, color: string): string {
  const shares = Array.from({ length: 21 }, (_, step) => step / 20);
  const end = side === "accent" ? "#000000" : "#ffffff";
  const colors = shares.map((share) => (share === 0 ? color : mix(color, end, share)));
  return colors.find((each) => getLeastContrast(each, LINK_BACKGROUNDS[side]) >= TEXT_CONTRAST) ?? end;
}

/** Returns the colour of a button under the pointer: further away from the text on it. */
const toHoverColor = (color: string): string =>
  mix(color, getInk(color) === INKS[0] ? "#000000" : "#ffffff", 0.15);

const FAMILY = /^[A-Za-z][A-Za-z0-9 -]{0,39}$/;
const MAX_FONT = 200;

/** True for a list of font families such as `Inter, sans-serif`, which can add nothing to CSS. */
export const isFontList = (value: unknown): boolean =>
  typeof value === "string" &&
  value.length <= MAX_FONT &&
  value.split(",").every((family) => FAMILY.test(family.trim()));

/** Families that CSS knows by a keyword, in any case; others are quoted. */
const GENERIC = new Set([
  "serif",
  "sans-serif",
  "monospace",
  "cursive",
  "fantasy",
  "math",
  "system-ui",
  "ui-sans-serif",
  "ui-serif",
  "ui-monospace",
  "ui-rounded",
]);

const quoteFamilies = (font: string): string =>
  font
    .split(",")
    .map((family) => family.trim())
    .map((family) => (GENERIC.has(family.toLowerCase()) ? family : `"${family}"`))
    .join(", ");

const declare = (side: Side, color: string): string =>
  `{--accent:${color};--accent-ink:${getInk(color)};--accent-hover:${toHoverColor(color)};--link:${toLinkColor(side, color)}}`;

/** Builds the style sheet of the look. What the visitor chose beats the system's setting. */
export const buildThemeCss = ({ accent, accentDark, radius, font }: PortalTheme): string =>
  `:root{--font:${quoteFamilies(font)};--radius:${radius}px;--radius-card:${2 * radius}px}
:root${declare("accent", accent)}
@media (prefers-color-scheme:dark){:root:not([data-theme=light])${declare("accentDark", accentDark)}}
:root[data-theme=dark]${declare("accentDark", accentDark)}
`;

/** Builds the icon of the page: a bell on the accent, so that it shows on light and dark tabs. */
export const buildFavicon = ({ accent }: PortalTheme): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="${accent}"/><path fill="${getInk(accent)}" d="M16 5a2 2 0 0 0-2 2.2A7 7 0 0 0 9 14v5l-2.5 3.5V24h19v-1.5L23 19v-5a7 7 0 0 0-5-6.8A2 2 0 0 0 16 5zM13 25.5a3 3 0 0 0 6 0z"/></svg>
`;
