/** The colours of the page that a host may choose, and what follows from them. Pure. */

/** A colour of the host for light and for dark pages: `#rrggbb`. */
export interface PortalColors {
  accent: string;
  accentDark: string;
}

/** The defaults; `src/portal/app/styles.css` has the same. */
export const DEFAULT_COLORS: PortalColors = { accent: "#0b57b5", accentDark: "#8bbcff" };

/** The backgrounds of the accent: the page and its panels, as in `src/portal/app/styles.css`. */
export const BACKGROUNDS: Record<keyof PortalColors, string[]> = {
  accent: ["#ffffff", "#f6f7f9"],
  accentDark: ["#0f1216", "#161a20"],
};

/** The least contrast of text, WCAG 2.2, criterion 1.4.3. */
export const MIN_CONTRAST = 4.5;

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
export const getLeastContrast = (name: keyof PortalColors, color: string): number =>
  Math.min(...BACKGROUNDS[name].map((background) => getContrast(color, background)));

const INKS = ["#ffffff", "#0d1722"] as const;

/** Returns the colour of text on a colour. */
const getInk = (color: string): string => {
  const [light, dark] = INKS;
  return getContrast(color, light) >= getContrast(color, dark) ? light : dark;
};

const declare = (accent: string): string => `{--accent:${accent};--accent-ink:${getInk(accent)}}`;

/** Builds the style sheet of the colours. What the visitor chose beats the system's setting. */
export const buildThemeCss = ({ accent, accentDark }: PortalColors): string =>
  `:root${declare(accent)}
@media (prefers-color-scheme:dark){:root:not([data-theme=light])${declare(accentDark)}}
:root[data-theme=dark]${declare(accentDark)}
`;

/** Builds the icon of the page: a bell on the accent, so that it shows on light and dark tabs. */
export const buildFavicon = ({ accent }: PortalColors): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="${accent}"/><path fill="${getInk(accent)}" d="M16 5a2 2 0 0 0-2 2.2A7 7 0 0 0 9 14v5l-2.5 3.5V24h19v-1.5L23 19v-5a7 7 0 0 0-5-6.8A2 2 0 0 0 16 5zM13 25.5a3 3 0 0 0 6 0z"/></svg>
`;
