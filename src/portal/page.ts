/** The page itself: its HTML, its files, and the headers they carry. */

import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { brotliCompress, gzip } from "node:zlib";
import { script, style } from "virtual:portal-app";
import { parseUrl } from "../core/parse-url.js";
import { isMatch } from "../http/entity-tag.js";
import { HttpError } from "../http/errors.js";
import type { HttpRequest, HttpResponse } from "../http/types.js";
import { chooseEncoding, chooseLanguage } from "./negotiation.js";
import type { PortalSettings } from "./options.js";
import type { english } from "./texts/en.js";
import { type PortalTexts, portalTexts } from "./texts/languages.js";
import { createTexts } from "./texts/table.js";
import { buildFavicon, buildThemeCss } from "./theme.js";

/** The settings that decide what the page looks like, and where. */
export type PageSettings = PortalSettings;

const ESCAPES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

export const escapeMarkup = (text: string): string =>
  text.replace(/[&<>"]/g, (character) => ESCAPES[character] ?? "");

/** Returns what the policy must allow for the logo besides the portal's origin. */
function getLogoSource(logo: string | null): string {
  if (logo === null || logo.startsWith("/")) return "";
  return logo.startsWith("data:") ? " data:" : ` ${parseUrl(logo)?.origin ?? ""}`;
}

/** `self` is a keyword of the policy. */
export const toFrameSource = (ancestor: string): string => (ancestor === "self" ? "'self'" : ancestor);

function buildPolicy({ theme, frameAncestors, content }: PageSettings): string {
  const ancestors = frameAncestors.length === 0 ? "'none'" : frameAncestors.map(toFrameSource).join(" ");
  // A form of the page shows the preview of a post in a frame.
  const previews =
    content === undefined ? ["form-action 'none'"] : ["frame-src 'self'", "form-action 'self'"];
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src 'self'${getLogoSource(theme.logo)}`,
    "connect-src 'self'",
    "base-uri 'none'",
    ...previews,
    `frame-ancestors ${ancestors}`,
  ].join("; ");
}

const buildPageHeaders = (settings: PageSettings) => ({
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": buildPolicy(settings),
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "referrer-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  // A page that requires this header of its frames (COEP) could not show the portal otherwise.
  "cross-origin-resource-policy": settings.frameAncestors.some((origin) => origin !== "self")
    ? "cross-origin"
    : "same-origin",
});

/**
 * Returns the prefix of addresses on the page. At the root they are relative, so that a proxy can
 * put the host below a path. Below a mount point they are absolute paths, since the page is served
 * with and without a trailing slash.
 */
function getBasePath({ baseUrl }: HttpRequest): string {
  const path = parseUrl(baseUrl)?.pathname.replace(/\/$/, "") ?? "";
  return path === "" ? "./" : `${path}/`;
}

/** A page in one language. */
interface PageParts {
  /** A BCP 47 tag. */
  language: string;
  table: PortalTexts;
  title: string;
  /** The prefix of the addresses of its files, escaped. */
  base: string;
  names: { script: string; style: string; theme: string; texts: string };
}

/** The beginning of every page. Its files are public: they show nothing of the host. */
const buildHead = ({ language, title, base, names }: PageParts, attributes = ""): string => `<!doctype html>
<html lang="${language}"${attributes}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeMarkup(title)}</title>
<link rel="icon" type="image/svg+xml" href="${base}favicon.svg">
<link rel="stylesheet" href="${base}${names.style}">
<link rel="stylesheet" href="${base}${names.theme}">
`;

/** The attributes name the texts, and hold those that the script shows if it cannot read them. */
function buildHtml(page: PageParts): string {
  const { base, names, table } = page;
  const data = { texts: names.texts, title: table.page.cannotBeShown, error: table.errors.unreachable };
  const attributes = Object.entries(data).map(([name, text]) => ` data-${name}="${escapeMarkup(text)}"`);
  return `${buildHead(page, attributes.join(""))}<link rel="preload" as="fetch" crossorigin href="${base}${names.texts}">
<script type="module" src="${base}${names.script}"></script>
</head>
<body>
<noscript><p>${escapeMarkup(table.page.needsJavaScript)}</p></noscript>
</body>
</html>
`;
}

/** The message of an error for a visitor, in the language of the page if it has one. */
function describeError({ code, message }: HttpError, { errors }: PortalTexts): string {
  const texts: Record<string, string> = {
    not_found: errors.notFound,
    unauthorized: errors.unauthorized,
    unavailable: errors.unavailable,
  };
  return texts[code] ?? message;
}

/** The page of an error, such as 401. It has the colours of the host, and no script. */
function buildErrorHtml(error: HttpError, page: PageParts): string {
  const { errors } = createTexts(page.language, page.table as typeof english);
  return `${buildHead({ ...page, title: String(error.status) })}
</head>
<body class="error-page">
<main class="card">
<h1>${escapeMarkup(describeError(error, page.table))}</h1>
<p class="quiet">${escapeMarkup(errors.status({ status: String(error.status) }))}</p>
</main>
</body>
</html>
`;
}

const compressors = { br: promisify(brotliCompress), gzip: promisify(gzip) } as const;

/** Less than this does not become smaller in the end. */
const MIN_COMPRESSED_LENGTH = 1_000;

interface PageFile {
  type: string;
  text: string;
  hash: string;
  isCompressible: boolean;
  /** Returns the compressed text. It is compressed once, when it is first asked for. */
  compress: (encoding: "br" | "gzip") => Promise<Uint8Array>;
}

function createFile(type: string, text: string): PageFile {
  const compressed = new Map<string, Promise<Uint8Array>>();
  return {
    type,
    text,
    hash: createHash("sha256").update(text).digest("base64url").slice(0, HASH_LENGTH),
    isCompressible: text.length >= MIN_COMPRESSED_LENGTH,
    compress(encoding) {
      const found = compressed.get(encoding);
      if (found !== undefined) return found;
      const made = compressors[encoding](text);
      compressed.set(encoding, made);
      // The next request tries again.
      made.catch(() => compressed.delete(encoding));
      return made;
    },
  };
}

const HASH_LENGTH = 22;
const HASHED_PATH = /^(\/[\w-]{1,20})-[\w-]{22}(\.[a-z]{2,4})$/;
const MAX_PATH_LENGTH = 60;

/** `/app.js` becomes `/app-<hash>.js`. */
const addHash = (path: string, { hash }: PageFile): string => path.replace(".", `-${hash}.`);

/** Anybody may have the files: they are the same for all visitors. */
async function respondWithFile(
  { type, text, hash, isCompressible, compress }: PageFile,
  { headers }: HttpRequest,
  isImmutable: boolean,
): Promise<HttpResponse> {
  const encoding = isCompressible ? chooseEncoding(headers["accept-encoding"]) : "identity";
  // Each encoding is a separate representation.
  const etag = encoding === "identity" ? `"${hash}"` : `"${hash}-${encoding}"`;
  const common = {
    "content-type": type,
    "content-security-policy": "default-src 'none'; sandbox",
    etag,
    "cache-control": isImmutable ? "public, max-age=31536000, immutable" : "no-cache",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    ...(isCompressible && { vary: "accept-encoding" }),
  };
  if (isMatch(headers["if-none-match"], etag)) return { status: 304, headers: common, body: null };
  if (encoding === "identity") return { status: 200, headers: common, body: text };
  return {
    status: 200,
    headers: { ...common, "content-encoding": encoding },
    body: await compress(encoding),
  };
}

/** Builds the files of a page, by their paths. Only the table of one language is loaded. */
const createFiles = ({ theme, languages }: PageSettings): [path: string, file: PageFile][] => [
  ["/app.js", createFile("text/javascript; charset=utf-8", script)],
  ["/app.css", createFile("text/css; charset=utf-8", style)],
  ["/theme.css", createFile("text/css; charset=utf-8", buildThemeCss(theme))],
  ["/favicon.svg", createFile("image/svg+xml", buildFavicon(theme))],
  ...Array.from(languages, ([language, table]): [string, PageFile] => [
    `/texts-${language}.json`,
    createFile("application/json", JSON.stringify(table)),
  ]),
];

/** Builds the page of a portal once, for all of its requests. */
export function createPage(settings: PageSettings) {
  const { title, languages } = settings;
  const headers = buildPageHeaders(settings);
  const plain = createFiles(settings);
  const hashed = new Map(plain.map(([path, file]): [string, PageFile] => [addHash(path, file), file]));
  const files = new Map<string, PageFile>([...plain, ...hashed]);
  const names = new Map(plain.map(([path, file]) => [path, addHash(path, file).slice(1)]));
  const nameOf = (path: string): string => names.get(path) ?? "";
  const tags = [...languages.keys()];
  /** The page in the language of a request. */
  const partsFor = (request: HttpRequest): PageParts => {
    const language = chooseLanguage(request.headers["accept-language"], tags);
    return {
      language,
      table: languages.get(language) ?? portalTexts.en,
      title,
      base: escapeMarkup(getBasePath(request)),
      names: {
        script: nameOf("/app.js"),
        style: nameOf("/app.css"),
        theme: nameOf("/theme.css"),
        texts: nameOf(`/texts-${language}.json`),
      },
    };
  };
  return {
    /** The paths of the files of the page: with their hash, and without it for older pages. */
    files: [...files.keys()],
    /**
     * Returns the path of the file that is meant. A name with the hash of another version means the
     * present file: during an update, page and files may come from different processes.
     */
    toFilePath(path: string): string {
      if (files.has(path) || path.length > MAX_PATH_LENGTH) return path;
      const [, start, end] = HASHED_PATH.exec(path) ?? [];
      return start !== undefined && files.has(`${start}${end}`) ? `${start}${end}` : path;
    },
    /** Under its name with a hash, a file never changes. */
    async respondWithFile(request: HttpRequest): Promise<HttpResponse> {
      const file = files.get(request.path);
      // The router ignores a trailing slash: `/app.js/` is no file.
      if (file === undefined) throw new HttpError(404, "not_found", "There is no such file.");
      return respondWithFile(file, request, hashed.has(request.path));
    },
    respondWithPage: (request: HttpRequest): HttpResponse => ({
      status: 200,
      headers,
      body: buildHtml(partsFor(request)),
    }),
    /** A page without script, for who may not see the other. */
    respondWithError: (request: HttpRequest, error: HttpError): HttpResponse => ({
      status: error.status,
      headers: { ...headers, ...error.headers },
      body: buildErrorHtml(error, partsFor(request)),
    }),
  };
}
