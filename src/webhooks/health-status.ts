/** Whether the delivery loop is well. Pure. */

import { type HealthStatus, selectCurrentProblems } from "../health/health-status.js";
import type { LoopStats } from "./delivery/dispatcher.js";
import type { WebhooksSettings } from "./settings/settings.js";

/** A turn asks the storage, which has four seconds for each of two calls, and on a busy machine waits for the event loop. */
const TURN_MS = 10_000;

export function evaluateHealthStatus(
  { isRunning, overdueMs, isFull, storageDownMs }: LoopStats,
  { delivery, limits }: Pick<WebhooksSettings, "delivery" | "limits">,
): HealthStatus {
  if (!isRunning) return { isStarted: false, problems: [] };
  // A slot is freed when its attempt ends, and the hook before it.
  const patienceMs = TURN_MS + (isFull ? delivery.deadlineMs + limits.hookMs : 0);
  // What is under way waits to be stored: a new process would mend nothing, and lose it.
  const isHeldUp = isFull && storageDownMs > 0;
  return {
    isStarted: true,
    problems: selectCurrentProblems(
      { code: "loop_stalled", forMs: overdueMs > patienceMs && !isHeldUp ? overdueMs : 0 },
      { code: "storage_away", forMs: storageDownMs },
    ),
  };
}
