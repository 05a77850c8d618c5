/** What the memory storage says where a limit is reached. */

import { PostbellError } from "../../src/errors.js";
import type { Account, Limits, State } from "./state.js";

export const full = ({ limits }: State, bound: keyof Limits): PostbellError =>
  new PostbellError(
    "storage_full",
    `The memory storage has reached limits.${bound} (${limits[bound]}); nothing was stored. Raise it, or try again later.`,
    { field: `limits.${bound}` },
  );

/** Errors: `storage_full` where `more` pending deliveries of an account would pass a bound. */
export function checkPending(state: State, account: Account, more: number): void {
  if (state.pending + more > state.limits.pending) throw full(state, "pending");
  if (account.pending + more > state.limits.pendingPerAccount) throw full(state, "pendingPerAccount");
}
