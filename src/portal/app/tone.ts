/** The meaning of a badge, which decides its colour. */
export type Tone = "good" | "bad" | "warn" | "wait" | "neutral";
