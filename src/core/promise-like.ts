/** Values that may come later: a service answers without a promise where nothing has to be waited for. */

/** Whether `value` has to be awaited; also true of promises of other realms and libraries. */
export const isPromiseLike = <T>(value: T | PromiseLike<T>): value is PromiseLike<T> =>
  typeof value === "object" && value !== null && "then" in value;
