/** The page itself: its HTML, its files, and the headers they carry. */

import { createHash } from "node:crypto";
import { script, style } from "virtual:portal-app";
import { parseUrl } from "../core/parse-url.js";
import { isMatch } from "../http/entity-tag.js";
import type { HttpRequest, HttpResponse } from "../http/types.js";
import type { PortalSettings } from "./options.js";
import { buildFavicon, buildThemeCss } from "./theme.js";

/** The settings that decide what the page looks like, and where. */
export type PageSettings = Pick<PortalSettings, "title" | "logo" | "colors" | "frameAncestors">;

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

const escapeHtml = (text: string): string => text.replace(/[&<>"]/g, (character) => ESCAPES[character] ?? "");

/** Returns what the policy must allow for the logo besides the portal's own origin. */
function getLogoSource(logo: string | null): string {
  if (logo === null || logo.startsWith("/")) return "";
  return logo.startsWith("data:") ? " data:" : ` ${parseUrl(logo)?.origin ?? ""}`;
}

/** `self` is a keyword of the policy. */
const toFrameSource = (ancestor: string): string => (ancestor === "self" ? "'self'" : ancestor);

function buildPolicy({ logo, frameAncestors }: PageSettings): string {
  const ancestors = frameAncestors.length === 0 ? "'none'" : frameAncestors.map(toFrameSource).join(" ");
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src 'self'${getLogoSource(logo)}`,
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
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
function getBasePath({ baseUrl }: Pick<HttpRequest, "baseUrl">): string {
  const path = parseUrl(baseUrl)?.pathname.replace(/\/$/, "") ?? "";
  return path === "" ? "./" : `${path}/`;
}

const buildHtml = (title: string, base: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<link rel="icon" type="image/svg+xml" href="${base}favicon.svg">
<link rel="stylesheet" href="${base}app.css">
<link rel="stylesheet" href="${base}theme.css">
<script type="module" src="${base}app.js"></script>
</head>
<body>
<noscript><p>This page needs JavaScript.</p></noscript>
</body>
</html>
`;

interface PageFile {
  readonly type: string;
  readonly text: string;
  readonly etag: string;
}

const createFile = (type: string, text: string): PageFile => ({
  type,
  text,
  etag: `"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"`,
});

/** Anybody may have the files: they are the same for all visitors. */
function respondWithFile(
  { type, text, etag }: PageFile,
  { headers }: Pick<HttpRequest, "headers">,
): HttpResponse {
  const isKnown = isMatch(headers["if-none-match"], etag);
  return {
    status: isKnown ? 304 : 200,
    headers: {
      "content-type": type,
      "content-security-policy": "default-src 'none'; sandbox",
      etag,
      "cache-control": "no-cache",
      "x-content-type-options": "nosniff",
      "cross-origin-resource-policy": "same-origin",
    },
    body: isKnown ? null : text,
  };
}

/** Builds the page of a portal once, for all of its requests. */
export function createPage(settings: PageSettings) {
  const headers = buildPageHeaders(settings);
  const files: Readonly<Record<string, PageFile>> = {
    "/app.js": createFile("text/javascript; charset=utf-8", script),
    "/app.css": createFile("text/css; charset=utf-8", style),
    "/theme.css": createFile("text/css; charset=utf-8", buildThemeCss(settings.colors)),
    "/favicon.svg": createFile("image/svg+xml", buildFavicon(settings.colors)),
  };
  return {
    /** The paths of the files of the page. */
    files: Object.keys(files),
    respondWithFile(request: Pick<HttpRequest, "path" | "headers">): HttpResponse {
      const file = files[request.path];
      if (file === undefined) throw new RangeError(`the page has no file ${request.path}`);
      return respondWithFile(file, request);
    },
    respondWithPage: (request: Pick<HttpRequest, "baseUrl">): HttpResponse => ({
      status: 200,
      headers,
      body: buildHtml(settings.title, escapeHtml(getBasePath(request))),
    }),
    /** A page without script or style, for who may not see the other. */
    respondWithMessage: (
      status: number,
      message: string,
      further: HttpResponse["headers"],
    ): HttpResponse => ({
      status,
      headers: { ...headers, ...further },
      body: `<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>${status}</title>\n<h1>${escapeHtml(message)}</h1>\n</html>\n`,
    }),
  };
}
