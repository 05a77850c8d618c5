/** Distinguishes promises from values, so that a service can respond without a promise. */

/** True if `value` has to be awaited, also for promises of other realms and libraries. */
export const isPromiseLike = <T>(value: T | PromiseLike<T>): value is PromiseLike<T> =>
  typeof value === "object" && value !== null && "then" in value;
