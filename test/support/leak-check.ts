/** Looks for what may be in no log, span, metric or error. */

import { inspect } from "node:util";

/**
 * Every signing secret, whatever made it, and credentials in the form in which requests carry them.
 */
const PATTERNS: readonly RegExp[] = [
  /whsec_[A-Za-z0-9+/]{20,}/,
  /\bBearer [\x21-\x3b\x3d-\x7e]{4,}/,
  /\bBasic [A-Za-z0-9+/]{8,}/,
  /\bs=[0-9a-f]{64}\b/,
  /"resourceType"|resourceType: '/,
];

/**
 * Test values for keys of the API, keys that seal, passwords of posts, and names of patients,
 * clinics and practitioners.
 */
const WORDS: readonly string[] = [
  "key-a1",
  "key-a2",
  "key-of-nobody",
  "s3cret",
  "Wintermute",
  "Hidden Valley",
  "Clinic 文",
  "Dr. Who",
  "open sesame",
  Buffer.alloc(32, 1).toString("base64"),
  Buffer.alloc(32, 2).toString("base64"),
];

/** In one expression, since every span of the suite is held against it. */
const LEAK = new RegExp(
  [...PATTERNS.map(({ source }) => source), ...WORDS.map((word) => word.replace(/[.+/]/g, "\\$&"))].join("|"),
);

/** Enough to say what is wrong. */
const MOST_FOUND = 20;
const MOST_DEPTH = 6;

export interface LeakCheck {
  /** A text, or anything else with texts in it; `where` it was read. */
  readonly note: (where: string, value: unknown) => void;
  /** Where something was found, and the text. */
  readonly found: () => readonly string[];
  /** The same, and forgets it: the next test file of the process starts with nothing. */
  readonly take: () => readonly string[];
}

export function createLeakCheck(): LeakCheck {
  const leaks = new Set<string>();
  const noteText = (where: string, text: string): void => {
    if (LEAK.test(text) && leaks.size < MOST_FOUND) leaks.add(`${where}: ${text}`);
  };
  const note = (where: string, value: unknown, depth: number): void => {
    if (typeof value === "string") noteText(where, value);
    if (typeof value !== "object" || value === null) return;
    const isPlain = Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
    if (isPlain && depth < MOST_DEPTH) {
      for (const [name, member] of Object.entries(value)) {
        noteText(where, `"${name}"`);
        note(where, member, depth + 1);
      }
    } else {
      // Errors, maps, bytes and what hosts make themselves: as a console shows them.
      noteText(where, inspect(value, { depth: MOST_DEPTH }));
    }
  };
  const found = (): readonly string[] => [...leaks];
  return {
    note: (where, value) => note(where, value, 0),
    found,
    take() {
      const taken = found();
      leaks.clear();
      return taken;
    },
  };
}

/** Of the test file that this process runs at the moment. */
export const fileLeaks = createLeakCheck();
