/** Tells which leases are those of a process. */

import type { Worker } from "./worker-host.js";

/** The prefix of all tokens of a process. */
export const ownersOf = (worker: Worker): readonly string[] => {
  const tokens = worker.journal().flatMap(({ token }) => (token === undefined ? [] : [token]));
  return [...new Set(tokens.map((token) => token.slice(0, token.indexOf("."))))];
};
