/** Finds out which entries of an event a subscriber may read, with the host's `access.canRead`. */

import { type Clock, withTimeout } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import type { Subscriber } from "../access.js";
import type { PreparedEvent } from "../events/notification.js";
import type { WebhooksSettings } from "../settings/settings.js";

/**
 * True for each entry that may be read; `null` if the host threw, timed out or returned an invalid
 * value.
 */
export type Permission = readonly boolean[] | null;

export interface PermissionContext {
  readonly access: WebhooksSettings["access"];
  /** Milliseconds that the host's hook may take. */
  readonly hookMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

const areBooleans = (results: readonly unknown[]): results is readonly boolean[] =>
  results.every((result) => typeof result === "boolean");

/**
 * Returns a function that calls `canRead` for each entry. It returns a promise only if the host
 * does, and never throws or rejects.
 */
export function createPermissions({ access, hookMs, clock, logger }: PermissionContext) {
  const fail = ({ account }: Subscriber, error: unknown): null => {
    logger.warn({ account, error }, "access.canRead failed or returned an invalid value; the delivery waits");
    return null;
  };

  const waitForResults = async (subscriber: Subscriber, results: readonly unknown[]): Promise<Permission> => {
    try {
      const late = (): Error => new Error("timeout");
      const settled = await withTimeout(clock, hookMs, Promise.all(results), late);
      return areBooleans(settled) ? settled : fail(subscriber, new TypeError("neither true nor false"));
    } catch (error) {
      return fail(subscriber, error);
    }
  };

  return (subscriber: Subscriber, { entries }: PreparedEvent): Permission | Promise<Permission> => {
    const results: unknown[] = [];
    try {
      for (const entry of entries) results.push(access.canRead(subscriber, entry.resource()));
    } catch (error) {
      // Promises of earlier entries may still reject. Unhandled, that would end the process.
      void Promise.allSettled(results);
      return fail(subscriber, error);
    }
    return areBooleans(results) ? results : waitForResults(subscriber, results);
  };
}
