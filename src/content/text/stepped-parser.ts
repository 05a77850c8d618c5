/** Parses HTML in steps, so that nothing has to wait for the end of a long text. */

import { type Handler, Parser } from "htmlparser2";

/** Tags and texts that are parsed in one step: a few milliseconds, whatever is done with them. */
const EVENTS_PER_STEP = 1_024;

export type ParseHandler = Pick<
  Handler,
  "ontext" | "onopentag" | "onclosetag" | "oncomment" | "onprocessinginstruction"
>;

class PublicParser extends Parser {
  /** True for an element such as `<br>`, which has no content and no end. */
  isVoid(name: string): boolean {
    return this.isVoidElement(name);
  }
}

export interface SteppedParser {
  /** Says where the last event is in the text. */
  readonly parser: Pick<PublicParser, "startIndex" | "endIndex" | "isVoid">;
  /** Parses the whole of `html`. Yields after each step. To be called once. */
  readonly parse: (html: string) => Generator<void, void>;
}

/**
 * Creates a parser that calls `handler`. It pauses between two characters and goes on with the next
 * one: a text in parts could read differently where two parts meet.
 */
export function createSteppedParser({ ontext, onopentag, ...others }: Partial<ParseHandler>): SteppedParser {
  let events = 0;
  let isOver = false;
  const count = (): void => {
    events += 1;
    if (events % EVENTS_PER_STEP === 0) parser.pause();
  };
  const parser = new PublicParser({
    ...others,
    ontext(text) {
      ontext?.(text);
      count();
    },
    onopentag(name, attributes, isImplied) {
      onopentag?.(name, attributes, isImplied);
      count();
    },
    onend() {
      isOver = true;
    },
  });
  function* parse(html: string): Generator<void, void> {
    parser.end(html);
    while (!isOver) {
      yield;
      parser.resume();
    }
  }
  return { parser, parse };
}
