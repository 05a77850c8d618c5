/** What a service says of itself when its health is asked for. */

export interface Problem {
  /**
   * `loop_stalled`: a turn of the delivery loop that was due has not come. `storage_away`: the storage does not answer, or takes nothing. `not_following`: what other processes
   * changed is not looked for any more.
   */
  readonly code: "loop_stalled" | "storage_away" | "not_following";
  /** Milliseconds since it began, as far as is known. */
  readonly forMs: number;
}

/** How a service is, at the moment it was asked. */
export interface HealthStatus {
  /** False before `start()` and after `stop()`: then the service has nothing to do by itself, and no problem. */
  readonly isStarted: boolean;
  readonly problems: readonly Problem[];
}

/** Those of the problems that have begun. */
export const selectCurrentProblems = (...problems: readonly Problem[]): readonly Problem[] =>
  problems.filter(({ forMs }) => forMs > 0);
