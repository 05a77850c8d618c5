/** The health that a service reports of itself. */

import type { StorageStatus } from "../core/storage-circuit.js";

/** One reason why a service does not work as it should. */
export interface Problem {
  /**
   * `loop_stalled`: the delivery loop does not run although it should. `storage_away`: the storage
   * does not respond, or refuses to store. `storage_not_reached`: no call of the storage has
   * succeeded since the service was created. `not_following`: the service no longer polls for
   * changes of other processes. `not_started`: deliveries of this service have waited for more than
   * a minute while no process attempts any.
   */
  readonly code: "loop_stalled" | "storage_away" | "storage_not_reached" | "not_following" | "not_started";
  /** Milliseconds since the problem was first seen, as a whole number. */
  readonly forMs: number;
  /** A sentence for an operator, with the code of the cause if it is known. It names no address. */
  readonly reason: string;
}

const REASONS: Record<Problem["code"], string> = {
  loop_stalled: "The delivery loop does not run although it should.",
  storage_away: "The storage does not respond, or refuses to store",
  storage_not_reached: "The storage could not be used since the service was created",
  not_following: "The service no longer receives changes of other processes.",
  not_started: "Deliveries are due and no process attempts them: call start() in one.",
};

/** A problem that may exist: `forMs` is 0 if it does not. */
export interface PossibleProblem {
  code: Problem["code"];
  forMs: Problem["forMs"];
  /** The code of the cause, for problems of the storage. */
  cause?: string | undefined;
}

/**
 * Returns the problems of the storage. `downMs`: how long it has been unavailable. A service that
 * is not started need not have reached it, unless it failed.
 */
export const describeStorageProblems = (
  { hasFailed, unreachedMs, cause }: Omit<StorageStatus, "outageMs">,
  isStarted: boolean,
  downMs: number,
): PossibleProblem[] => [
  { code: "storage_away", forMs: downMs, cause },
  { code: "storage_not_reached", forMs: isStarted || hasFailed ? unreachedMs : 0, cause },
];

/** The health of a service at one moment. */
export interface HealthStatus {
  /**
   * False before `start()` and after `stop()`. The only problems can then be `not_started` and
   * those of the storage.
   */
  readonly isStarted: boolean;
  readonly problems: readonly Problem[];
}

const describe = ({ code, forMs, cause }: PossibleProblem): Problem => {
  const text = REASONS[code];
  const reason = text.endsWith(".") ? text : `${text}${cause === undefined ? "" : ` (${cause})`}.`;
  return { code, forMs: Math.ceil(forMs), reason };
};

/** Returns the problems that exist now. */
export const selectCurrentProblems = (...problems: PossibleProblem[]): Problem[] =>
  problems.filter(({ forMs }) => forMs > 0).map(describe);
