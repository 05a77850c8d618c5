/** Reads a WXR file piece by piece into its entries. Holds one entry at a time in memory. */

import sax from "sax";
import { PostbellError } from "../../core/errors.js";
import { isTextRead } from "./elements.js";
import { createEntryCollector } from "./entry-collector.js";
import type { WxrEntry } from "./types.js";
import { createUtf8Decoder } from "./utf8-decoder.js";

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

export interface WxrReaderOptions {
  /** Limit of one entry in characters, all its texts together. */
  readonly maxEntry: number;
}

type Fail = (message: string) => PostbellError;

const MAX_DEPTH = 32;
/**
 * Cost of an element or attribute besides its text, so that millions of empty ones are not free.
 */
const ELEMENT_COST = 100;

/** Control characters and noncharacters, except those that XML 1.0 allows. */
const INVALID = /(?![\t\n\r\u007f-\u009f])\p{Cc}|[\ufffe\uffff]/gu;

/**
 * Creates a reader of one file.
 *
 * The functions of the reader throw `invalid_import` with the line if the file is not well-formed
 * XML, is not WXR 1.0 to 1.2, or is not UTF-8. They also throw it for a document type, for custom
 * entities, for an entry of more than `maxEntry` characters, and for elements nested deeper than
 * {@link MAX_DEPTH}.
 */
export function createWxrReader({ maxEntry }: WxrReaderOptions): WxrReader {
  const parser = sax.parser(true, { position: true });
  const fail: Fail = (message) =>
    new PostbellError("invalid_import", `The file cannot be imported: line ${parser.line + 1}: ${message}.`);
  const decode = createUtf8Decoder(fail);
  const collector = createEntryCollector(fail);
  const path: string[] = [];
  let parts: string[] | undefined;
  let size = 0;
  let dropped = 0;

  const grow = (by: number): void => {
    size += by;
    if (size > maxEntry) throw fail(`an entry has more than ${maxEntry} characters`);
  };

  const removeInvalid = (text: string): string =>
    text.replace(INVALID, () => {
      dropped += 1;
      return "";
    });

  function open(name: string, attributes: sax.Tag["attributes"]): void {
    path.push(name);
    parts = undefined;
    checkPath(path, fail);
    if (path.length < 3) size = 0;
    collector.open(path, (which) => removeInvalid(String(attributes[which] ?? "")), parser.line + 1);
    const isRead = isTextRead(path);
    if (isRead || path.length === 4) grow(ELEMENT_COST);
    if (isRead) parts = [];
  }

  function addPart(text: string): void {
    if (parts === undefined) return;
    grow(text.length);
    parts.push(text);
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
  parser.onattribute = ({ name, value }) => grow(ELEMENT_COST + name.length + value.length);
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
  if (path.length > MAX_DEPTH) throw fail(`elements are nested more than ${MAX_DEPTH} deep`);
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
