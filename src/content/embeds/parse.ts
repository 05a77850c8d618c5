/**
 * Parses what other sites send, HTML and XML, with bounds on what a parser may be made to do. Knows
 * no field of an embed.
 */

import { Parser } from "htmlparser2";

export interface ParseEvents {
  /** `depth`: of the element itself, 1 for the first. */
  open?: (name: string, attributes: Record<string, string>, depth: number) => void;
  close?: (name: string, depth: number) => void;
  text?: (text: string, depth: number) => void;
}

export interface BoundedParser {
  /**
   * Errors: RangeError for more than 100 open elements, SyntaxError for a document type in XML;
   * what an event throws.
   */
  write: (text: string) => void;
  end: () => void;
}

/**
 * The parser looks through its open elements at every closing tag: without a bound, hostile text
 * takes quadratic time.
 */
const MAX_DEPTH = 100;

/**
 * `xml`: names keep their case, CDATA is text, and no entity but the five of XML and numbers is
 * known.
 */
export function boundedParser(
  kind: "html" | "xml",
  { open = () => {}, close = () => {}, text = () => {} }: ParseEvents,
): BoundedParser {
  let depth = 0;
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        depth += 1;
        if (depth > MAX_DEPTH) throw new RangeError("too many open elements");
        open(name, attributes, depth);
      },
      onclosetag(name) {
        close(name, depth);
        depth -= 1;
      },
      ontext: (data) => text(data, depth),
      onprocessinginstruction(name) {
        if (kind === "xml" && name.startsWith("!")) throw new SyntaxError("a document type is not read");
      },
    },
    { xmlMode: kind === "xml" },
  );
  return { write: (data) => parser.write(data), end: () => parser.end() };
}
