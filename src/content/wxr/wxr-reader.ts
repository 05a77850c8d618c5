/** Reads a WXR file piece by piece into its entries. Holds one entry at a time in memory. */

import sax from "sax";
import { PostbellError } from "../../core/errors.js";
import { createEntryCollector, getLongest, isTextRead } from "./entry-collector.js";
import type { WxrEntry } from "./types.js";

export interface WxrReader {
  /**
   * Returns the entries that these bytes complete, in the order of the file. Pass at most about
   * 100 KB at once, because all entries in them are returned together.
   */
  readonly push: (bytes: Uint8Array) => readonly WxrEntry[];
  /** Must be called at the end: it throws if the file is truncated. */
  readonly end: () => readonly WxrEntry[];
  /** Number of characters that were removed because XML does not allow them. */
  readonly dropped: () => number;
}

type Fail = (message: string) => PostbellError;

const MAX_DEPTH = 32;
/** No item is nested deeper, even if it is skipped: the parser keeps the open elements. */
const MAX_PARSED_DEPTH = 1_000;
/** So many times its limit, an entry is not even skipped: it may be endless. */
const ENDLESS = 4;
/**
 * Cost of an element or attribute besides its text, so that millions of empty ones are not free.
 */
const ELEMENT_COST = 100;

const DEEP = `elements are nested more than ${MAX_DEPTH} deep`;

/** Control characters and noncharacters, except those that XML 1.0 allows. */
const INVALID = /(?![\t\n\r\u007f-\u009f])\p{Cc}|[\ufffe\uffff]/gu;

/**
 * Creates a reader of one file.
 *
 * An entry with more than `maxEntry` characters, too many elements of a kind, a text that is too
 * long or elements nested deeper than {@link MAX_DEPTH} is returned as a refused one.
 *
 * The functions of the reader throw `invalid_import` with the line if the file is not well-formed
 * XML, is not WXR 1.0 to 1.2, or is not UTF-8. They also throw it for a document type, for custom
 * entities, for such an excess outside of entries or within one tag, and for an entry that seems to
 * be endless.
 */
export function createWxrReader({
  maxEntry,
}: {
  /**
   * Limit of one entry in characters, all its texts together. A larger entry is refused, the others
   * are returned.
   */
  readonly maxEntry: number;
}): WxrReader {
  const parser = sax.parser(true, { position: true });
  const fail: Fail = (message) =>
    new PostbellError("invalid_import", `The file cannot be imported: line ${parser.line + 1}: ${message}.`);
  const decode = createUtf8Decoder(fail);
  const collector = createEntryCollector(fail);
  const path: string[] = [];
  let parts: string[] | undefined;
  /** Characters of the text in `parts`. */
  let textSize = 0;
  let tagSize = 0;
  let size = 0;
  let dropped = 0;

  function refuse(what: string): void {
    if (!collector.refuse(`it has ${what}`)) throw fail(`an entry has ${what}`);
    parts = undefined;
  }

  function grow(by: number): void {
    size += by;
    if (size > ENDLESS * maxEntry) throw fail(`an entry has more than ${ENDLESS * maxEntry} characters`);
    if (size > maxEntry) refuse(`more than ${maxEntry} characters`);
  }

  function growTag(by: number): void {
    tagSize += by;
    if (tagSize > maxEntry) throw fail(`an entry has more than ${maxEntry} characters in one tag`);
    grow(by);
  }

  const removeInvalid = (text: string): string =>
    text.replace(INVALID, () => {
      dropped += 1;
      return "";
    });

  function open(name: string, attributes: sax.Tag["attributes"]): void {
    path.push(name);
    parts = undefined;
    [textSize, tagSize] = [0, 0];
    checkPath(path, fail);
    if (path.length < 3) size = 0;
    if (path.length > MAX_DEPTH && !collector.refuse(DEEP)) throw fail(DEEP);
    collector.open(path, (which) => removeInvalid(String(attributes[which] ?? "")), parser.line + 1);
    const isRead = isTextRead(path);
    if (isRead || path.length === 4) grow(ELEMENT_COST);
    if (isRead && !collector.isRefused()) parts = [];
  }

  function addPart(text: string): void {
    if (parts === undefined) {
      if (collector.isRefused() && isTextRead(path)) grow(text.length);
      return;
    }
    const element = path.at(-1) ?? "";
    textSize += text.length;
    if (textSize > getLongest(element)) refuse(`more than ${getLongest(element)} characters in ${element}`);
    grow(text.length);
    parts?.push(text);
  }

  function close(): void {
    if (parts === undefined) collector.close(path, size);
    else {
      collector.addText(path, removeInvalid(parts.join("")));
      parts = undefined;
    }
    if (path.length === 3) size = 0;
    path.pop();
    if (path.length === 1) collector.completeSite();
  }

  // Called before the element of the attribute opens. All its attributes stay in memory until then.
  parser.onattribute = ({ name, value }) => growTag(ELEMENT_COST + name.length + value.length);
  parser.onopentag = ({ name, attributes }) => open(name, attributes as sax.Tag["attributes"]);
  parser.onclosetag = close;
  parser.ontext = addPart;
  parser.oncdata = addPart;
  refuseUnsafeXml(parser, fail);

  return {
    push(bytes) {
      const text = decode(bytes);
      if (text !== "") parser.write(text);
      return collector.takeComplete();
    },
    end() {
      const rest = decode(null);
      if (rest !== "") parser.write(rest);
      parser.close();
      if (!collector.isSiteComplete()) throw fail("it is not a WXR file: it is empty");
      return collector.takeComplete();
    },
    dropped: () => dropped,
  };
}

function checkPath(path: readonly string[], fail: Fail): void {
  const name = path.at(-1);
  if (path.length > MAX_PARSED_DEPTH) throw fail(DEEP);
  if (path.length === 1 && name !== "rss") throw fail("it is not a WXR file: its first element is not rss");
  if (path.length === 2 && name !== "channel") throw fail("it is not a WXR file: rss has no channel");
}

/** A document type could declare entities, which can expand to any size. */
function refuseUnsafeXml(parser: sax.SAXParser, fail: Fail): void {
  parser.ondoctype = () => {
    throw fail("it has a document type, which no WXR file needs");
  };
  parser.onprocessinginstruction = ({ name, body }) => {
    const [, encoding] = /\bencoding\s*=\s*["']([^"']*)["']/.exec(body) ?? [];
    if (name !== "xml" || encoding === undefined || /^utf-?8$/i.test(encoding)) return;
    throw fail("it declares an encoding other than UTF-8");
  };
  parser.onerror = (error) => {
    throw fail(`it is not well-formed XML (${(error.message.split("\n")[0] ?? "").slice(0, 100)})`);
  };
}

/**
 * Creates a decoder. It takes the bytes in order, split anywhere; `null` is the end. A byte order
 * mark is removed.
 *
 * @throws the error that `fail` returns, for UTF-16, for bytes that are not UTF-8, and for NUL.
 */
function createUtf8Decoder(fail: (message: string) => Error): (bytes: Uint8Array | null) => string {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let head: Uint8Array | null = new Uint8Array();

  const decode = (bytes: Uint8Array | undefined): string => {
    let text: string;
    try {
      text = bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true });
    } catch {
      throw fail("it is not UTF-8");
    }
    if (text.includes("\0")) throw fail("it contains NUL, which XML does not allow");
    return text;
  };

  return (bytes) => {
    let given = bytes;
    if (head !== null) {
      const start: Uint8Array = bytes === null ? head : Buffer.concat([head, bytes]);
      head = start;
      if (bytes !== null && start.length < 4) return "";
      head = null;
      if (isUtf16(start)) throw fail("it is UTF-16; save it as UTF-8");
      if (bytes === null) return decode(start) + decode(undefined);
      given = start;
    }
    return given === null ? decode(undefined) : decode(given);
  };
}

/**
 * Checks for a byte order mark, and for a zero next to the first character, which is ASCII in every
 * XML file.
 */
const isUtf16 = ([first, second]: Uint8Array): boolean =>
  (first === 0xff && second === 0xfe) ||
  (first === 0xfe && second === 0xff) ||
  (first === 0 && second !== 0 && second !== undefined) ||
  (first !== 0 && second === 0);
