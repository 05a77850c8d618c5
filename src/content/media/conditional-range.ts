/**
 * Evaluates the preconditions of a request for a file, such as `If-None-Match` and `If-Range`, and
 * its `Range` (RFC 9110). Decides between 200, 206, 304, 412 and 416. Pure; knows no store.
 */

import { isMatch } from "../../http/entity-tag.js";
import type { ByteRange } from "../files.js";

export interface Validators {
  readonly bytes: number;
  /** A strong entity tag, quoted. */
  readonly tag: string;
  /** Epoch ms. */
  readonly storedAt: number;
}

export type RangeResult =
  | { readonly status: 200 | 304 | 412 | 416 }
  | { readonly status: 206; readonly range: ByteRange };

/**
 * Evaluates preconditions and range in the order of RFC 9110 §13.2.2. Supports one range: for
 * several ranges, or a malformed one, the result is the whole file, as §14.2 allows.
 *
 * @param headers names in lower case
 */
export function evaluateRange(
  method: "GET" | "HEAD",
  headers: { readonly [name: string]: string },
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

type Headers = { readonly [name: string]: string };

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
  return match.trim() !== "*" && !match.split(",").some((given) => given.trim() === file.tag);
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
