/**
 * Serves the files of media to whoever has their address, as a separate service beside the REST
 * interface. Knows no record.
 */

import type { Logger } from "../../core/logger.js";
import { isMatch } from "../../http/entity-tag.js";
import type { HttpRequest, HttpResponse, Service } from "../../http/types.js";
import { type ByteRange, type FileEntry, type FileStore, isFileName } from "../files.js";
import { findMimeType } from "./media-type.js";

/**
 * Where a file is, below the address of the uploads, as it stands in a URL: `2026/11/heart.png`.
 */
export const uploadPath = (name: string): string => name.split("/").map(encodeURIComponent).join("/");

/** A stored file never changes, but another may take its name once it was deleted. */
const FOR_A_DAY = "public, max-age=86400";

/**
 * Serves GET and HEAD for stored files, with ranges and preconditions. Returns `undefined` for any
 * other name.
 *
 * Guarantee: a fixed type by the name, never guessed by the browser; what is no image, sound or
 * film is downloaded, and may run nothing where it is opened nevertheless. 503 while the store
 * fails.
 */
export function createFileServer({ files, logger }: { files: FileStore; logger: Logger }): Service {
  async function answer(request: HttpRequest, name: string): Promise<HttpResponse | undefined> {
    const entry = await files.stat(name);
    if (entry === undefined) return undefined;
    const { method, headers } = request;
    if (method !== "GET" && method !== "HEAD") {
      return { status: 405, headers: { allow: "GET, HEAD", "cache-control": "no-store" }, body: null };
    }
    const tag = tagOf(entry);
    const part = evaluateRange(method, headers, { ...entry, tag });
    const common = { ...SAFE, etag: tag, "last-modified": new Date(entry.storedAt).toUTCString() };
    switch (part.status) {
      case 304:
        return { status: 304, headers: { ...common, "cache-control": FOR_A_DAY }, body: null };
      case 412:
        return { status: 412, headers: { ...SAFE, "cache-control": "no-store" }, body: null };
      case 416: {
        const unsatisfied = { "content-range": `bytes */${entry.bytes}`, "cache-control": "no-store" };
        return { status: 416, headers: { ...SAFE, ...unsatisfied }, body: null };
      }
      case 200:
      case 206: {
        const range = part.status === 206 ? part.range : { start: 0, end: entry.bytes };
        const described = {
          ...common,
          ...contentHeaders(name),
          "cache-control": FOR_A_DAY,
          "accept-ranges": "bytes",
          "content-length": String(range.end - range.start),
          ...(part.status === 206 && {
            "content-range": `bytes ${range.start}-${range.end - 1}/${entry.bytes}`,
          }),
        };
        return {
          status: part.status,
          headers: described,
          body: method === "HEAD" ? null : files.read(name, range),
        };
      }
    }
  }

  return Object.freeze<Service>({
    async handle(request) {
      const name = nameOf(request.path);
      if (name === undefined) return undefined;
      try {
        return await answer(request, name);
      } catch (error) {
        logger.error({ error }, "a file of media could not be served");
        return { status: 503, headers: { "retry-after": "5", "cache-control": "no-store" }, body: null };
      }
    },
  });
}

const SAFE = { "x-content-type-options": "nosniff" } as const;

/** A name can be used again once its file is removed, so that the name alone is not enough. */
const tagOf = ({ bytes, storedAt }: FileEntry): string => `"${bytes.toString(36)}-${storedAt.toString(36)}"`;

function nameOf(path: string): string | undefined {
  try {
    const name = decodeURIComponent(path.slice(1));
    return isFileName(name) ? name : undefined;
  } catch {
    return undefined;
  }
}

function contentHeaders(name: string): Record<string, string> {
  const mimeType = findMimeType(name) ?? "application/octet-stream";
  if (/^(?:image|audio|video)\//.test(mimeType)) return { "content-type": mimeType };
  return {
    "content-type": mimeType,
    "content-disposition": "attachment",
    "content-security-policy": "default-src 'none'; sandbox",
  };
}

// Evaluates the preconditions of a request for a file, such as `If-None-Match` and `If-Range`, and
// its `Range` (RFC 9110). Decides between 200, 206, 304, 412 and 416. Pure; knows no store.

interface Validators {
  bytes: number;
  /** A strong entity tag, quoted. */
  tag: string;
  /** Epoch ms. */
  storedAt: number;
}

type RangeResult = { status: 200 | 304 | 412 | 416 } | { status: 206; range: ByteRange };

/**
 * Evaluates preconditions and range in the order of RFC 9110 §13.2.2. Supports one range: for
 * several ranges, or a malformed one, the result is the whole file, as §14.2 allows.
 *
 * @param headers names in lower case
 */
function evaluateRange(
  method: "GET" | "HEAD",
  headers: { [name: string]: string },
  file: Validators,
): RangeResult {
  if (hasChanged(headers, file)) return { status: 412 };
  if (isKnown(headers, file)) return { status: 304 };
  const { "if-range": ifRange, range } = headers;
  if (method === "HEAD" || range === undefined) return { status: 200 };
  const isSameFile =
    ifRange === undefined || ifRange.trim() === file.tag || parseSecond(ifRange) === getStoredSecond(file);
  return isSameFile ? parseRange(range, file.bytes) : { status: 200 };
}

type Headers = { [name: string]: string };

const getStoredSecond = ({ storedAt }: Validators): number => Math.floor(storedAt / 1_000);

/** Evaluates `If-Match`, or else `If-Unmodified-Since`. */
function hasChanged(
  { "if-match": match, "if-unmodified-since": unmodifiedSince }: Headers,
  file: Validators,
): boolean {
  if (match === undefined) {
    return getStoredSecond(file) > (parseSecond(unmodifiedSince) ?? Number.POSITIVE_INFINITY);
  }
  // The comparison is strong: a weak tag never equals the tag of a file.
  return match.trim() !== "*" && !match.split(",").some((tag) => tag.trim() === file.tag);
}

/** Evaluates `If-None-Match`, or else `If-Modified-Since`. */
function isKnown(
  { "if-none-match": noneMatch, "if-modified-since": modifiedSince }: Headers,
  file: Validators,
): boolean {
  if (noneMatch !== undefined) return isMatch(noneMatch, file.tag);
  return getStoredSecond(file) <= (parseSecond(modifiedSince) ?? Number.NEGATIVE_INFINITY);
}

/** Returns `undefined` for an invalid date, which is ignored. */
function parseSecond(date: string | undefined): number | undefined {
  // `Date.parse` also reads `"1"` and other entity tags as years.
  if (date === undefined || !/^[A-Za-z]{3,9},? /.test(date)) return undefined;
  const time = Date.parse(date);
  return Number.isNaN(time) ? undefined : Math.floor(time / 1_000);
}

function parseRange(header: string, size: number): RangeResult {
  const [, first = "", last = ""] = /^bytes=[ \t]*([0-9]*)-([0-9]*)[ \t]*$/i.exec(header.trim()) ?? [];
  if (first === "" && last === "") return { status: 200 };
  const start = first === "" ? Math.max(size - Number(last), 0) : Number(first);
  const end = first === "" || last === "" ? size : Math.min(Number(last) + 1, size);
  if (first !== "" && last !== "" && Number(last) < Number(first)) return { status: 200 };
  return start >= end ? { status: 416 } : { status: 206, range: { start, end } };
}
