/**
 * The content texts in Redis, which docs/redis.md draws: made here for the scripts, and read back.
 */

import type { ContentBasis, ContentChange, ContentRecord, ContentWrite } from "../../src/content/store.js";

/** A name as it stands in a line: without line feeds. */
const encodeName = (name: string): string => JSON.stringify(name).slice(1, -1);

export const decodeName = (encoded: string): string => JSON.parse(`"${encoded}"`) as string;

function headText(version: number, { columns, unique }: NonNullable<ContentWrite["record"]>): string {
  return [`${version},${columns === null ? "n" : "r"}`, ...unique.map(encodeName)].join("\n");
}

const writeTexts = ({ key, expectedVersion, record }: ContentWrite): readonly string[] => [
  key,
  String(expectedVersion),
  record === null ? "" : headText(expectedVersion + 1, record),
  record?.columns ?? "",
  record?.body ?? "",
];

/**
 * A commit as its script takes it: in two texts, however many writes it has, since arguments are
 * passed on the stack.
 */
export function encodeCommit(
  writes: readonly ContentWrite[],
  basis: readonly ContentBasis[],
): readonly [lengths: string, texts: string] {
  const texts = [
    ...basis.flatMap(({ key, version }) => [key, String(version)]),
    ...writes.flatMap(writeTexts),
  ];
  return [texts.map((text) => Buffer.byteLength(text)).join(" "), texts.join("")];
}

/** `text`: the version, for a record with columns a line feed and those. */
function readChange(key: string, text: string): ContentChange {
  const feed = text.indexOf("\n");
  return feed < 0
    ? { key, version: Number(text), columns: null }
    : { key, version: Number(text.slice(0, feed)), columns: text.slice(feed + 1) };
}

/** `texts`: key and columns in turn. */
export function decodeChanges(texts: readonly string[]): readonly ContentChange[] {
  const changes: ContentChange[] = [];
  for (let place = 0; place + 1 < texts.length; place += 2) {
    changes.push(readChange(texts[place] as string, texts[place + 1] as string));
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
  const change = columns == null ? undefined : readChange(key, columns);
  return {
    key,
    version: Number.parseInt(line, 10),
    columns: change?.columns ?? null,
    body: body ?? "",
    unique: names.map(decodeName),
  };
}
