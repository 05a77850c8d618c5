/** Asks the host which entries of an event a subscriber may read. */

import { type Clock, withTimeout } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import type { Subscriber } from "../access.js";
import type { PreparedEvent } from "../events/notification.js";
import type { WebhooksSettings } from "../settings/settings.js";

/** For each entry whether it may be read; `null` where the host gave no usable answer. */
export type Permission = readonly boolean[] | null;

export interface PermissionContext {
  readonly access: WebhooksSettings["access"];
  /** Milliseconds that the host's hook may take. */
  readonly hookMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

const isAnswered = (answers: readonly unknown[]): answers is readonly boolean[] =>
  answers.every((answer) => typeof answer === "boolean");

/**
 * Asks `canRead` for each entry: without a promise where the host answers at once. Never throws or
 * rejects.
 */
export function createPermissions({ access, hookMs, clock, logger }: PermissionContext) {
  const fail = ({ account }: Subscriber, error: unknown): null => {
    logger.warn({ account, error }, "access.canRead gave no answer; the delivery waits");
    return null;
  };

  const whenAnswered = async (subscriber: Subscriber, answers: readonly unknown[]): Promise<Permission> => {
    try {
      const late = (): Error => new Error("timeout");
      const settled = await withTimeout(clock, hookMs, Promise.all(answers), late);
      return isAnswered(settled) ? settled : fail(subscriber, new TypeError("neither true nor false"));
    } catch (error) {
      return fail(subscriber, error);
    }
  };

  return (subscriber: Subscriber, { entries }: PreparedEvent): Permission | Promise<Permission> => {
    const answers: unknown[] = [];
    try {
      for (const entry of entries) answers.push(access.canRead(subscriber, entry.resource()));
    } catch (error) {
      // Promises of earlier entries may still reject. Unhandled, that would end the process.
      void Promise.allSettled(answers);
      return fail(subscriber, error);
    }
    return isAnswered(answers) ? answers : whenAnswered(subscriber, answers);
  };
}
