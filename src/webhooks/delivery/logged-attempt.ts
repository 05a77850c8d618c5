/**
 * Decides what the delivery log tells about an attempt: nothing that a subscriber could map the
 * host's own network with.
 */

import type { Attempt } from "../store.js";

/**
 * Refusals that the text of the URL alone explains (see `AddressRule`). All other ones depend on
 * what a name resolves to.
 */
const RULES_OF_THE_TEXT: ReadonlySet<string> = new Set(["R1", "R2", "R3", "R4", "R6", "R8"]);

/**
 * The attempt as it is stored, and so as subscribers see it. A name that leads to an internal
 * address and a name that leads nowhere look the same, in every field: otherwise whoever may
 * register a webhook could find out which internal names exist. Pure.
 */
export function toLoggedAttempt(attempt: Attempt): Attempt {
  const { kind, code } = attempt;
  const isAboutName = kind === "dns" || (kind === "refused" && !RULES_OF_THE_TEXT.has(code));
  return isAboutName
    ? { ...attempt, kind: "dns", status: null, code: "NO_USABLE_ADDRESS", excerpt: null, durationMs: 0 }
    : attempt;
}
