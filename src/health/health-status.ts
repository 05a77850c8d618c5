/** The health that a service reports of itself. */

/** One reason why a service does not work as it should. */
export interface Problem {
  /**
   * `loop_stalled`: the delivery loop does not run although it should. `storage_away`: the storage
   * does not respond, or refuses to store. `not_following`: the service no longer polls for changes
   * of other processes.
   */
  readonly code: "loop_stalled" | "storage_away" | "not_following";
  /** Milliseconds since the problem was first seen. */
  readonly forMs: number;
}

/** The health of a service at one moment. */
export interface HealthStatus {
  /** False before `start()` and after `stop()`. The service then has no problems. */
  readonly isStarted: boolean;
  readonly problems: readonly Problem[];
}

/** Returns the problems that exist now. */
export const selectCurrentProblems = (...problems: readonly Problem[]): readonly Problem[] =>
  problems.filter(({ forMs }) => forMs > 0);
