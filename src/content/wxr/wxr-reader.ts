/**
 * Reads a WXR file piece by piece into its entries. Holds one entry at a time in memory. A damaged
 * entry is refused, and the reader goes on with the next one.
 */

import sax from "sax";
import { PostbellError } from "../../core/errors.js";
import { createEntryCollector } from "./entry-collector.js";
import type { WxrDamage, WxrEntry } from "./types.js";
import { getLongest, isEntry, isTextRead, mayFollow } from "./wxr-elements.js";
import { createWxrText } from "./wxr-text.js";

export interface WxrReader {
  /**
   * Returns the entries that these bytes complete, in the order of the file. Pass at most about
   * 100 KB at once, because all entries in them are returned together.
   */
  push: (bytes: Uint8Array) => WxrEntry[];
  /** Must be called at the end: it reports if the file is truncated. */
  end: () => WxrEntry[];
  /** True if the rest of the file is not read, because it is damaged too much. */
  isBroken: () => boolean;
}

type Fail = (message: string) => Error;

/** Ends the reading. */
class Unreadable extends Error {}

const MAX_DEPTH = 32;
/** No item is nested deeper, even if it is skipped: the parser keeps the open elements. */
const MAX_PARSED_DEPTH = 1_000;
/** So many times its limit, an entry is not even skipped: it may be endless. */
const ENDLESS = 4;
/**
 * Cost of an element or attribute besides its text, so that millions of empty ones are not free.
 */
const ELEMENT_COST = 100;

/** Errors of the XML, after which the rest of a file is not read. */
const MAX_DAMAGES = 1_000;

const DEEP = `elements are nested more than ${MAX_DEPTH} deep`;

/**
 * Creates a reader of one file.
 *
 * An entry with more than `maxEntry` characters, too many elements of a kind, a text that is too
 * long or elements nested deeper than {@link MAX_DEPTH} is returned as a refused one.
 *
 * An entry in which the XML is damaged is refused as well. Damage that concerns no entry is
 * returned as such, once for each line and kind.
 *
 * The functions of the reader throw `invalid_import` with the line if the file is not WXR 1.0 to
 * 1.2, not UTF-8, has a document type, or is damaged before its first entry. If the file cannot be
 * read any further after that, the reader reports this as damage and is broken. This happens after
 * such an excess outside of entries or within one tag, and if an entry seems to be endless.
 */
export function createWxrReader({
  maxEntry,
}: {
  /**
   * Limit of one entry in characters, all its texts together. A larger entry is refused, the others
   * are returned.
   */
  maxEntry: number;
}): WxrReader {
  const parser = sax.parser(true, { position: true });
  const fail: Fail = (message) => new Unreadable(message);
  const collector = createEntryCollector(fail);
  let reported: WxrDamage[] = [];
  const report = (line: number, message: string): void => {
    reported.push({ kind: "damage", line, message });
  };
  const toText = createWxrText(fail, report);
  const path: string[] = [];
  /** Elements that the parser has open: more than `path` if end tags are missing. */
  let depth = 0;
  let damages = 0;
  let damagedLine = 0;
  let isBroken = false;
  let parts: string[] | undefined;
  /** Characters of the text in `parts`. */
  let textSize = 0;
  let tagSize = 0;
  let size = 0;

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

  /** Takes an error of the parser, which has gone on behind it. */
  function takeDamage(message: string): void {
    const line = parser.line + 1;
    if (message === "Invalid character entity") {
      if (line !== damagedLine) report(line, "An unknown character reference was kept as text.");
      damagedLine = line;
      return;
    }
    // The parser misses the end tags that were already reported.
    if (message === "Unexpected close tag" && path.length === 2 && depth > 2) return;
    const reason = `it is not well-formed XML (${message.slice(0, 100)})`;
    damages += 1;
    if (collector.isSiteKnown()) collector.completeSite();
    if (!collector.isSiteComplete() || message.startsWith("Max buffer") || damages > MAX_DAMAGES)
      throw fail(reason);
    parts = undefined;
    if (collector.refuse(`it is damaged in line ${line} (${message.slice(0, 100)})`)) return;
    if (line !== damagedLine) report(line, `The file is damaged (${message.slice(0, 100)}).`);
    damagedLine = line;
  }

  function open(name: string, attributes: sax.Tag["attributes"]): void {
    depth += 1;
    if (depth > MAX_PARSED_DEPTH) throw fail(DEEP);
    // Text and elements are not mixed, and an entry is in the channel. Or an end tag is missing.
    if (parts !== undefined)
      collector.refuse(`it is damaged in line ${parser.line + 1} (unexpected ${name})`);
    if (path.length > 2 && mayFollow(path[2] ?? "", name)) path.length = 2;
    path.push(name);
    parts = undefined;
    [textSize, tagSize] = [0, 0];
    checkPath(path, fail);
    if (path.length < 3) size = 0;
    if (path.length > MAX_DEPTH && !collector.refuse(DEEP)) throw fail(DEEP);
    collector.open(path, (which) => String(attributes[which] ?? ""), parser.line + 1);
    const isRead = isTextRead(path);
    if (isRead || path.length === 4) grow(ELEMENT_COST);
    if (isRead && !collector.isRefused()) parts = [];
  }

  /** Elements hold elements or text. Or a start tag is damaged; but signs alone lose nothing. */
  function addStrayText(text: string): void {
    const line = parser.line + 1;
    if (/[\p{L}\p{N}<>]/u.test(text)) collector.refuse(`it is damaged in line ${line} (unexpected text)`);
    else if (!collector.isRefused()) report(line, "Signs between two elements were left out.");
  }

  function addPart(text: string): void {
    if (parts === undefined) {
      if (path.length === 3 && isEntry(path[2] ?? "") && text.trim() !== "") addStrayText(text);
      if (collector.isRefused() && isTextRead(path)) grow(text.length);
      return;
    }
    const element = path.at(-1) ?? "";
    textSize += text.length;
    if (textSize > getLongest(element)) refuse(`more than ${getLongest(element)} characters in ${element}`);
    grow(text.length);
    parts?.push(text);
  }

  function close(name: string): void {
    depth -= 1;
    if (path.at(-1) !== name) return;
    if (parts === undefined) collector.close(path, size);
    else {
      collector.addText(path, parts.join(""));
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
  parser.onerror = ({ message }) => {
    parser.resume();
    takeDamage(message.split("\n")[0] ?? "");
  };

  function takeEntries(): WxrEntry[] {
    const damage = reported;
    reported = [];
    return [...collector.takeComplete(), ...damage];
  }

  /** Runs a step of the parser. Without a complete site, there is nothing to import. */
  function attempt(step: () => void): void {
    try {
      if (!isBroken) step();
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      const line = parser.line + 1;
      if (!collector.isSiteComplete()) {
        const message = `The file cannot be imported: line ${line}: ${error.message}.`;
        throw new PostbellError("invalid_import", message);
      }
      isBroken = true;
      report(line, `The rest of the file was not read: ${error.message}.`);
    }
  }

  return {
    isBroken: () => isBroken,
    push(bytes) {
      attempt(() => parser.write(toText(bytes)));
      return takeEntries();
    },
    end() {
      attempt(() => {
        parser.write(toText(null));
        if (path.length === 0 && collector.isSiteComplete()) return;
        collector.completeSite();
        report(parser.line + 1, "The file ends before the end of the rss element.");
      });
      collector.refuse("the file ends before it is complete");
      collector.endEntry();
      return takeEntries();
    },
  };
}

function checkPath(path: string[], fail: Fail): void {
  const name = path.at(-1);
  if (path.length === 1 && name !== "rss") throw fail("it is not a WXR file: its first element is not rss");
  if (path.length === 2 && name !== "channel") throw fail("it is not a WXR file: rss has no channel");
}
