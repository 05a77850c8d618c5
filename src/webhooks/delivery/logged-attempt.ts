/** Removes details from attempts that a subscriber could use to map the host's network. */

import type { Attempt } from "../store.js";

/** Refusals by the text of the URL alone (see `AddressRule`). The others depend on the DNS. */
const RULES_OF_THE_TEXT: ReadonlySet<string> = new Set(["R1", "R2", "R3", "R4", "R6", "R8"]);

/**
 * Returns the attempt as it is stored and as subscribers see it. A name with an internal address
 * and a name without an address look the same in every field: otherwise subscribers could find out
 * which internal names exist. Pure.
 */
export function toLoggedAttempt(attempt: Attempt): Attempt {
  const { kind, code } = attempt;
  const isAboutName = kind === "dns" || (kind === "refused" && !RULES_OF_THE_TEXT.has(code));
  return isAboutName
    ? { ...attempt, kind: "dns", status: null, code: "NO_USABLE_ADDRESS", excerpt: null, durationMs: 0 }
    : attempt;
}
