/** The page itself: its HTML, its two assets, and the headers they carry. */

import { createHash } from "node:crypto";
import { script, style } from "virtual:portal-app";
import { parseUrl } from "../src/core/parse-url.js";
import type { HttpRequest, HttpResponse } from "../src/http/types.js";

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const PAGE_HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": POLICY,
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "referrer-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
} as const;

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

const escaped = (text: string): string => text.replace(/[&<>"]/g, (character) => ESCAPES[character] ?? "");

/**
 * Returns the prefix of addresses on the page. At the root they are relative, so that a proxy can
 * put the host below a path. Below a mount point they are absolute paths, since the page is served
 * with and without a trailing slash.
 */
function getBasePath({ baseUrl }: Pick<HttpRequest, "baseUrl">): string {
  const path = parseUrl(baseUrl)?.pathname.replace(/\/$/, "") ?? "";
  return path === "" ? "./" : `${path}/`;
}

export function renderPage(request: Pick<HttpRequest, "baseUrl">, title: string): HttpResponse {
  const base = escaped(getBasePath(request));
  return {
    status: 200,
    headers: PAGE_HEADERS,
    body: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${base}app.css">
<script type="module" src="${base}app.js"></script>
</head>
<body>
<noscript><p>This page needs JavaScript.</p></noscript>
</body>
</html>
`,
  };
}

/** A page without script or style, for who may not see the other. */
export function plainPage(status: number, message: string, headers: HttpResponse["headers"]): HttpResponse {
  return {
    status,
    headers: { ...PAGE_HEADERS, ...headers },
    body: `<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>${status}</title>\n<h1>${escaped(message)}</h1>\n</html>\n`,
  };
}

const assetOf = (type: string, text: string) => ({
  type,
  text,
  etag: `"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"`,
});

const assets = {
  "app.js": assetOf("text/javascript; charset=utf-8", script),
  "app.css": assetOf("text/css; charset=utf-8", style),
};

/** Anybody may have the assets: they are the same for all, and in the package. */
export function asset(name: keyof typeof assets, { headers }: Pick<HttpRequest, "headers">): HttpResponse {
  const { type, text, etag } = assets[name];
  const known = (headers["if-none-match"] ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  const isKnown = known.includes(etag) || known.includes("*");
  return {
    status: isKnown ? 304 : 200,
    headers: {
      "content-type": type,
      etag,
      "cache-control": "no-cache",
      "x-content-type-options": "nosniff",
      "cross-origin-resource-policy": "same-origin",
    },
    body: isKnown ? null : text,
  };
}
