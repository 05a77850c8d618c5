/** Asks the host's `canRead` about the entries of an event. */

import { callHook } from "../../core/clock.js";
import type { Subscriber } from "../access.js";
import type { ServiceBase } from "../config/config.js";
import type { PreparedEvent } from "../events/notification.js";

export const ALL_ALLOWED: boolean[] = [true];

/**
 * True for each entry that may be read; `null` if the host threw, timed out or returned an invalid
 * value.
 */
export type Permission = readonly boolean[] | null;

const areBooleans = (results: readonly unknown[]): results is readonly boolean[] =>
  results.every((result) => typeof result === "boolean");

/**
 * Returns a function that calls `canRead` for each entry. It returns a promise only if the host
 * does, and never throws or rejects. Without `canRead`, which is left out if all types are plain,
 * it allows plain events; one with a resource was emitted under other options, and waits.
 */
export function createPermissions({ config: { access, limits, clock }, logger }: ServiceBase) {
  const fail = ({ account }: Subscriber, error: unknown): null => {
    logger.warn({ account, error }, "access.canRead failed or returned an invalid value; the delivery waits");
    return null;
  };

  const waitForResults = async (subscriber: Subscriber, results: unknown[]): Promise<Permission> => {
    try {
      const settled = await callHook(clock, limits.hookMs, () => Promise.all(results));
      return areBooleans(settled) ? settled : fail(subscriber, new TypeError("neither true nor false"));
    } catch (error) {
      return fail(subscriber, error);
    }
  };

  if (access.canRead === undefined) {
    return (subscriber: Subscriber, { isPlain }: PreparedEvent): Permission =>
      isPlain ? ALL_ALLOWED : fail(subscriber, new TypeError("access.canRead is missing"));
  }
  const { canRead } = access;
  return (subscriber: Subscriber, { entries }: PreparedEvent): Permission | Promise<Permission> => {
    const results: unknown[] = [];
    try {
      for (const entry of entries) results.push(canRead(subscriber, entry.resource()));
    } catch (error) {
      // Promises of earlier entries may still reject. Unhandled, that would end the process.
      void Promise.allSettled(results);
      return fail(subscriber, error);
    }
    return areBooleans(results) ? results : waitForResults(subscriber, results);
  };
}
