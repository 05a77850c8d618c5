/** The table of known oEmbed providers, and how to find the provider of a page. Fetches nothing. */

/** A site that gives embeds of its pages. */
export interface EmbedProvider {
  /**
   * Its pages: `https://*.example.org/videos/*`. A leading `*.` is any name below, and the name
   * itself; `*` is one part of the path, at the end of the path everything that follows. Pages are
   * found with `http:` too. The query counts where the pattern has one.
   */
  readonly pages: readonly string[];
  /** Its oEmbed endpoint, which must answer JSON when it is given `format=json`, or XML. */
  readonly endpoint: string;
}

/** From the providers' documentation and the registry of https://oembed.com. */
export const KNOWN_PROVIDERS: EmbedProvider[] = [
  {
    pages: [
      "https://*.youtube.com/watch*",
      "https://*.youtube.com/playlist*",
      "https://*.youtube.com/shorts/*",
      "https://*.youtube.com/live/*",
      "https://youtu.be/*",
    ],
    endpoint: "https://www.youtube.com/oembed",
  },
  { pages: ["https://*.vimeo.com/*"], endpoint: "https://vimeo.com/api/oembed.json" },
  {
    pages: ["https://*.dailymotion.com/video/*", "https://dai.ly/*"],
    endpoint: "https://www.dailymotion.com/services/oembed",
  },
  {
    pages: ["https://*.flickr.com/photos/*", "https://flic.kr/*"],
    endpoint: "https://www.flickr.com/services/oembed/",
  },
  { pages: ["https://*.soundcloud.com/*"], endpoint: "https://soundcloud.com/oembed" },
  { pages: ["https://open.spotify.com/*"], endpoint: "https://open.spotify.com/oembed" },
  { pages: ["https://*.ted.com/talks/*"], endpoint: "https://www.ted.com/services/v1/oembed.json" },
  {
    pages: [
      "https://*.twitter.com/*/status/*",
      "https://*.x.com/*/status/*",
      "https://*.twitter.com/i/status/*",
    ],
    endpoint: "https://publish.twitter.com/oembed",
  },
  { pages: ["https://bsky.app/profile/*/post/*"], endpoint: "https://embed.bsky.app/oembed" },
  { pages: ["https://*.tiktok.com/*/video/*"], endpoint: "https://www.tiktok.com/oembed" },
  { pages: ["https://*.reddit.com/r/*/comments/*"], endpoint: "https://www.reddit.com/oembed" },
  { pages: ["https://*.tumblr.com/post/*"], endpoint: "https://www.tumblr.com/oembed/1.0" },
  { pages: ["https://*.pinterest.com/pin/*"], endpoint: "https://www.pinterest.com/oembed.json" },
  { pages: ["https://*.imgur.com/*"], endpoint: "https://api.imgur.com/oembed" },
  {
    pages: ["https://giphy.com/gifs/*", "https://media.giphy.com/media/*"],
    endpoint: "https://giphy.com/services/oembed",
  },
  { pages: ["https://*.mixcloud.com/*/*"], endpoint: "https://app.mixcloud.com/oembed/" },
  { pages: ["https://*.deezer.com/*"], endpoint: "https://api.deezer.com/oembed" },
  { pages: ["https://audioboom.com/posts/*"], endpoint: "https://audioboom.com/publishing/oembed.json" },
  {
    pages: ["https://*.kickstarter.com/projects/*"],
    endpoint: "https://www.kickstarter.com/services/oembed",
  },
  { pages: ["https://*.slideshare.net/*/*"], endpoint: "https://www.slideshare.net/api/oembed/2" },
  { pages: ["https://speakerdeck.com/*/*"], endpoint: "https://speakerdeck.com/oembed.json" },
  { pages: ["https://issuu.com/*/docs/*"], endpoint: "https://issuu.com/oembed" },
  {
    pages: ["https://*.scribd.com/doc/*", "https://*.scribd.com/document/*"],
    endpoint: "https://www.scribd.com/services/oembed/",
  },
  { pages: ["https://codepen.io/*/pen/*"], endpoint: "https://codepen.io/api/oembed" },
  { pages: ["https://*.loom.com/share/*"], endpoint: "https://www.loom.com/v1/oembed" },
  {
    pages: ["https://*.wistia.com/medias/*", "https://*.wistia.com/embed/*"],
    endpoint: "https://fast.wistia.com/oembed.json",
  },
  {
    pages: ["https://*.figma.com/file/*", "https://*.figma.com/design/*", "https://*.figma.com/proto/*"],
    endpoint: "https://www.figma.com/api/oembed",
  },
  {
    pages: ["https://sketchfab.com/3d-models/*", "https://sketchfab.com/models/*"],
    endpoint: "https://sketchfab.com/oembed",
  },
  { pages: ["https://streamable.com/*"], endpoint: "https://api.streamable.com/oembed.json" },
  { pages: ["https://datawrapper.dwcdn.net/*"], endpoint: "https://api.datawrapper.de/v3/oembed/" },
];

const PATTERN = /^https:\/\/(?<wild>\*\.)?(?<host>[a-z0-9.-]+(?::\d+)?)(?<path>\/[^\s#]*)$/;

/** True if the table can look the pattern up. */
export const isPattern = (pattern: unknown): pattern is string =>
  typeof pattern === "string" && pattern.length <= 500 && PATTERN.test(pattern);

interface Entry {
  /** With the names below it. */
  isWild: boolean;
  host: string;
  path: string;
  endpoint: string;
}

/**
 * True if `path` matches the pattern. `*` stands for one or more characters other than `/` and `?`;
 * at the end of the pattern it stands for anything.
 *
 * Each text between two `*` takes the first place where it fits. If a later place fits too, the `*`
 * after the first one can reach it.
 */
function matchesPath(path: string, pattern: string): boolean {
  const isOpen = pattern.endsWith("*");
  const [start = "", ...texts] = (isOpen ? pattern.slice(0, -1) : pattern).split("*");
  if (!path.startsWith(start)) return false;
  let at = start.length;
  for (const [index, text] of texts.entries()) {
    const isEnd = !isOpen && index === texts.length - 1;
    const found = isEnd ? path.length - text.length : path.indexOf(text, at + 1);
    if (found <= at || /[/?]/.test(path.slice(at, found)) || !path.startsWith(text, found)) return false;
    at = found + text.length;
  }
  return isOpen || at === path.length;
}

/**
 * Finds the endpoint for a page, the first pattern first; `undefined` where none fits. Errors:
 * TypeError for what is no pattern.
 */
export function createProviderTable(providers: EmbedProvider[]): (page: URL) => string | undefined {
  const entries = providers.flatMap(({ pages, endpoint }) =>
    pages.map((page): Entry => {
      const { wild, host = "", path = "" } = PATTERN.exec(page)?.groups ?? {};
      if (host === "") throw new TypeError(`No pattern for pages: ${page}`);
      return { isWild: wild !== undefined, host, path, endpoint };
    }),
  );
  return (page) =>
    entries.find(
      ({ isWild, host, path }) =>
        (page.host === host || (isWild && page.host.endsWith(`.${host}`))) &&
        matchesPath(page.pathname + page.search, path),
    )?.endpoint;
}
