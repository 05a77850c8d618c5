/** Counts the calls of a storage that fail. */

import { isPostbellError } from "./errors.js";
import type { Telemetry } from "./telemetry.js";

type Method = (...given: readonly unknown[]) => unknown;

/** The same store, each failure of its methods counted; the store itself where nobody counts. Its methods must not need their `this`. */
export function countStoreErrors<S extends object>(
  store: S,
  telemetry: Telemetry | undefined,
  service: "webhooks" | "content",
): S {
  if (telemetry === undefined) return store;
  const counted =
    (operation: string, method: Method): Method =>
    (...given) => {
      const answer = method(...given);
      if (!(answer instanceof Promise)) return answer;
      return answer.catch((error: unknown) => {
        const code = isPostbellError(error) ? error.code : "unexpected";
        telemetry.record("storageErrors", 1, { service, operation, error: code });
        throw error;
      });
    };
  const members = Object.entries(store).map(([name, member]: [string, unknown]) => [
    name,
    typeof member === "function" ? counted(name, member as Method) : member,
  ]);
  return Object.freeze(Object.fromEntries(members)) as S;
}
