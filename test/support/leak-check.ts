/** Looks for what may be in no log, span, metric or error. Remembers each text once, so that a hot loop costs a look into a set. */

/** Every signing secret, whatever made it, and credentials in the form in which requests carry them. */
const PATTERNS: readonly RegExp[] = [
  /whsec_[A-Za-z0-9+/]{20,}/,
  /\bBearer [\x21-\x7e]{4,}/,
  /\bBasic [A-Za-z0-9+/]{8,}/,
  /\bs=[0-9a-f]{64}\b/,
  /"resourceType"|resourceType: '/,
];

/** What the tests use as keys of the API, keys that seal, passwords of posts, and names of patients, clinics and practitioners. */
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

const MOST_TEXTS = 100_000;

export interface LeakCheck {
  readonly note: (text: string) => void;
  /** What was found, each with the text around it. */
  readonly found: () => readonly string[];
}

export function createLeakCheck(): LeakCheck {
  const texts = new Set<string>();
  return {
    note(text) {
      if (texts.size < MOST_TEXTS) texts.add(text);
    },
    found: () =>
      [...texts].filter(
        (text) => WORDS.some((word) => text.includes(word)) || PATTERNS.some((pattern) => pattern.test(text)),
      ),
  };
}
