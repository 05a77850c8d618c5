/** The meaning of a badge, which decides its colour. Apart from views, since unit tests have no DOM. */
export type Tone = "good" | "bad" | "warn" | "info" | "neutral";
