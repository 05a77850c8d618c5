/** Types of the frame that need no DOM, for files that unit tests import. */

/** The meaning of a badge, which decides its colour. */
export type Tone = "good" | "bad" | "warn" | "info" | "neutral";

/** A place that the jump box offers. */
export interface Target {
  label: string;
  /** A further text by which it is found, such as an address. */
  detail?: string;
  /** Below the `#`. */
  path: string;
}
