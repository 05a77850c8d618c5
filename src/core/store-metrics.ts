/** Counts the storage calls that fail. */

import { isPostbellError } from "./errors.js";
import type { Telemetry } from "./telemetry.js";

type Method = (...given: readonly unknown[]) => unknown;

/**
 * Returns the same store with its failures counted, or the store itself without telemetry. Its
 * methods must not need `this`.
 */
export function countStoreErrors<S extends object>(
  store: S,
  telemetry: Telemetry | undefined,
  service: "webhooks" | "content",
): S {
  if (telemetry === undefined) return store;
  const counted =
    (operation: string, method: Method): Method =>
    (...given) => {
      const result = method(...given);
      if (!(result instanceof Promise)) return result;
      return result.catch((error: unknown) => {
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
