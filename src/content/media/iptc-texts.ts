/** Reads the IPTC texts that WordPress shows from a segment of a JPEG. Pure. */

import { decodeMetadataText } from "./metadata-text.js";

/** Texts are decoded, but not sanitised. */
export interface IptcTexts {
  readonly headline?: string;
  readonly title?: string;
  readonly caption?: string;
  readonly credit?: string;
  readonly creator?: string;
  readonly copyright?: string;
  /** `20261123` */
  readonly date?: string;
  /** `102030+0100` */
  readonly time?: string;
  readonly keywords: readonly string[];
}

/** The numbers of the fields in the record of the application. */
const FIELDS: ReadonlyMap<number, Exclude<keyof IptcTexts, "keywords">> = new Map([
  [5, "title"],
  [55, "date"],
  [60, "time"],
  [80, "creator"],
  [105, "headline"],
  [110, "credit"],
  [116, "copyright"],
  [120, "caption"],
] as const);

const KEYWORDS = 25;
export const MAX_KEYWORDS = 100;
const APPLICATION_RECORD = 2;
const FIELD_MARKER = 0x1c;

/**
 * Reads the fields in `segment`, which Photoshop and others write as APP13. A field that is given
 * again, or that does not fit into the segment, is left out.
 *
 * Guarantee: never throws, and is linear in the length of `segment`.
 */
export function readIptcTexts(segment: Uint8Array): IptcTexts {
  const texts = new Map<string, string>();
  const keywords: string[] = [];
  for (const [field, bytes] of iptcFields(segment)) {
    const name = FIELDS.get(field);
    if (field === KEYWORDS && keywords.length < MAX_KEYWORDS) keywords.push(decodeMetadataText(bytes));
    if (name !== undefined && !texts.has(name)) texts.set(name, decodeMetadataText(bytes));
  }
  return { ...Object.fromEntries(texts), keywords: keywords.filter((keyword) => keyword !== "") };
}

/** Yields the number and the bytes of each field of the application. */
function* iptcFields(segment: Uint8Array): Generator<readonly [number, Uint8Array], void> {
  let at = findFirstField(segment);
  while (at + 5 <= segment.length && segment[at] === FIELD_MARKER) {
    const length = ((segment[at + 3] as number) << 8) | (segment[at + 4] as number);
    const end = at + 5 + length;
    // A length of more than 15 bits means a field of another form, which no text has.
    if (length > 0x7fff || end > segment.length) return;
    if (segment[at + 1] === APPLICATION_RECORD)
      yield [segment[at + 2] as number, segment.subarray(at + 5, end)];
    at = end;
  }
}

function findFirstField(segment: Uint8Array): number {
  const at = segment.findIndex(
    (byte, index) => byte === FIELD_MARKER && (segment[index + 1] === 1 || segment[index + 1] === 2),
  );
  return at === -1 ? segment.length : at;
}
