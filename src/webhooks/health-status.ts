/** Evaluates the health of the delivery loop. Pure. */

import type { StorageStatus } from "../core/storage-circuit.js";
import {
  describeStorageProblems,
  type HealthStatus,
  selectCurrentProblems,
} from "../health/health-status.js";
import type { WebhooksConfig } from "./config/config.js";
import type { LoopStats } from "./delivery/passes.js";

/**
 * How late a pass of the loop may be. It makes two storage calls of up to four seconds each, and
 * waits for the event loop on a busy machine.
 */
const PASS_MS = 10_000;

export interface WebhooksFacts {
  /** How long deliveries have waited for a process to start, 0 if they need not. */
  waitingMs: number;
  storage: StorageStatus;
}

/**
 * Returns the problems of the loop and of its storage. While the loop is not running, its only one
 * is that deliveries wait for a process to start.
 */
export function evaluateHealthStatus(
  { isRunning, overdueMs, isFull, storageDownMs }: LoopStats,
  { delivery, limits }: WebhooksConfig,
  { waitingMs, storage }: WebhooksFacts,
): HealthStatus {
  if (!isRunning) {
    const problems = selectCurrentProblems(
      { code: "not_started", forMs: waitingMs },
      ...describeStorageProblems(storage, false, storage.outageMs),
    );
    return { isStarted: false, problems };
  }
  // If all slots are taken, one is free after an attempt and the hook before it.
  const patienceMs = PASS_MS + (isFull ? delivery.deadlineMs + limits.hookMs : 0);
  // The results in flight wait for the storage. A new process would not help, and would lose them.
  const isHeldUp = isFull && storageDownMs > 0;
  return {
    isStarted: true,
    problems: selectCurrentProblems(
      { code: "loop_stalled", forMs: overdueMs > patienceMs && !isHeldUp ? overdueMs : 0 },
      ...describeStorageProblems(storage, true, Math.max(storageDownMs, storage.outageMs)),
    ),
  };
}
