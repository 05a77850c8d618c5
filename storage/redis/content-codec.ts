/**
 * Encodes commits for the content scripts, and decodes their replies. docs/redis.md describes the
 * records.
 */

import type { ContentBasis, ContentChange, ContentRecord, ContentWrite } from "../../src/content/store.js";
import { decodeStoredText, encodeStoredText } from "../stored-text.js";

/** Encodes a name as part of a line, without line feeds. */
const encodeName = (name: string): string => JSON.stringify(name).slice(1, -1);

export const decodeName = (encoded: string): string => JSON.parse(`"${encoded}"`) as string;

function encodeHead(version: number, { columns, unique }: NonNullable<ContentWrite["record"]>): string {
  return [`${version},${columns === null ? "n" : "r"}`, ...unique.map(encodeName)].join("\n");
}

const encodeWrite = ({ key, expectedVersion, record }: ContentWrite): readonly string[] => [
  encodeStoredText(key),
  String(expectedVersion),
  record === null ? "" : encodeHead(expectedVersion + 1, record),
  encodeStoredText(record?.columns ?? ""),
  encodeStoredText(record?.body ?? ""),
];

/**
 * Encodes a commit in two texts, however many writes it has, because Lua limits the number of
 * arguments.
 */
export function encodeCommit(
  writes: readonly ContentWrite[],
  basis: readonly ContentBasis[],
): readonly [lengths: string, texts: string] {
  const texts = [
    ...basis.flatMap(({ key, version }) => [encodeStoredText(key), String(version)]),
    ...writes.flatMap(encodeWrite),
  ];
  return [texts.map((text) => Buffer.byteLength(text)).join(" "), texts.join("")];
}

/** Decodes the version, and for a record with columns a line feed and the columns. */
function decodeChange(key: string, text: string): ContentChange {
  const feed = text.indexOf("\n");
  return feed < 0
    ? { key, version: Number(text), columns: null }
    : { key, version: Number(text.slice(0, feed)), columns: decodeStoredText(text.slice(feed + 1)) };
}

/** Decodes changes from key and columns in turn. */
export function decodeChanges(texts: readonly string[]): readonly ContentChange[] {
  const changes: ContentChange[] = [];
  for (let place = 0; place + 1 < texts.length; place += 2) {
    const key = decodeStoredText(texts[place] as string);
    changes.push(decodeChange(key, texts[place + 1] as string));
  }
  return changes;
}

export function decodeRecord(
  key: string,
  head: string | null | undefined,
  columns: string | null | undefined,
  body: string | null | undefined,
): ContentRecord | undefined {
  if (head == null) return undefined;
  const [line = "", ...names] = head.split("\n");
  const change = columns == null ? undefined : decodeChange(key, columns);
  return {
    key,
    version: Number.parseInt(line, 10),
    columns: change?.columns ?? null,
    body: decodeStoredText(body ?? ""),
    unique: names.map(decodeName),
  };
}
