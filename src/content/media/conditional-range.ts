/** Which part of a file a request asks for, and whether it has it already: the conditions and ranges of RFC 9110. Pure; knows no store. */

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
 * In the order of RFC 9110 §13.2.2. One range only: of a request for several, or for one that is malformed, the whole file is the answer, as §14.2 allows.
 *
 * @param headers names in lower case
 */
export function evaluateRange(
  method: "GET" | "HEAD",
  headers: { readonly [name: string]: string },
  file: Validators,
): RangeResult {
  const { tag } = file;
  const storedSecond = Math.floor(file.storedAt / 1_000);
  const {
    "if-match": match,
    "if-unmodified-since": unmodifiedSince,
    "if-none-match": noneMatch,
    "if-modified-since": modifiedSince,
    "if-range": ifRange,
    range,
  } = headers;
  if (match !== undefined) {
    // By strong comparison: no weak tag is equal to ours.
    if (match.trim() !== "*" && !match.split(",").some((given) => given.trim() === tag))
      return { status: 412 };
  } else if (storedSecond > (secondOf(unmodifiedSince) ?? Number.POSITIVE_INFINITY)) return { status: 412 };
  if (noneMatch !== undefined) {
    if (isMatch(noneMatch, tag)) return { status: 304 };
  } else if (storedSecond <= (secondOf(modifiedSince) ?? Number.NEGATIVE_INFINITY)) return { status: 304 };
  if (method === "HEAD" || range === undefined) return { status: 200 };
  const isSameFile = ifRange === undefined || ifRange.trim() === tag || secondOf(ifRange) === storedSecond;
  return isSameFile ? rangeOf(range, file.bytes) : { status: 200 };
}

/** `undefined` for what is no date, which is ignored. */
function secondOf(date: string | undefined): number | undefined {
  // `Date.parse` also takes `"1"` and other tags for years.
  if (date === undefined || !/^[A-Za-z]{3,9},? /.test(date)) return undefined;
  const time = Date.parse(date);
  return Number.isNaN(time) ? undefined : Math.floor(time / 1_000);
}

function rangeOf(header: string, size: number): RangeResult {
  const [, first = "", last = ""] = /^bytes=[ \t]*([0-9]*)-([0-9]*)[ \t]*$/i.exec(header.trim()) ?? [];
  if (first === "" && last === "") return { status: 200 };
  const start = first === "" ? Math.max(size - Number(last), 0) : Number(first);
  const end = first === "" || last === "" ? size : Math.min(Number(last) + 1, size);
  if (first !== "" && last !== "" && Number(last) < Number(first)) return { status: 200 };
  return start >= end ? { status: 416 } : { status: 206, range: { start, end } };
}
