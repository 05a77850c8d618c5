/** The health that a service reports of itself. */

/** One reason why a service does not work as it should. */
export interface Problem {
  /**
   * `loop_stalled`: the delivery loop does not run although it should. `storage_away`: the storage
   * does not respond, or refuses to store. `not_following`: the service no longer polls for changes
   * of other processes. `not_started`: deliveries of this service have waited for more than a
   * minute while no process attempts any.
   */
  readonly code: "loop_stalled" | "storage_away" | "not_following" | "not_started";
  /** Milliseconds since the problem was first seen. */
  readonly forMs: number;
}

/** The health of a service at one moment. */
export interface HealthStatus {
  /** False before `start()` and after `stop()`. The only problem can then be `not_started`. */
  readonly isStarted: boolean;
  readonly problems: readonly Problem[];
}

/** Returns the problems that exist now. */
export const selectCurrentProblems = (...problems: readonly Problem[]): readonly Problem[] =>
  problems.filter(({ forMs }) => forMs > 0);
