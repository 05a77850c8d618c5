/**
 * Reports whether the content service can reach its storage and follows changes of other processes.
 */

import { type Clock, withTimeout } from "../core/clock.js";
import { type HealthStatus, selectCurrentProblems } from "../health/health-status.js";
import type { ChangePoller } from "./repository/change-poller.js";
import type { ContentRepository } from "./repository/content-repository.js";

/** A probe takes one round trip. A running load takes longer, and responses go on meanwhile. */
const PROBE_MS = 5_000;
/** With `eventual`, readers are promised changes within a second. */
const BEHIND_MS = 10_000;

export interface HealthStatusOptions {
  readonly repository: Pick<ContentRepository, "current">;
  readonly poller: Pick<ChangePoller, "behindMs">;
  readonly clock: Clock;
}

/** Creates a function that probes the storage: without requests, nothing else notices an outage. */
export function createHealthStatus({
  repository,
  poller,
  clock,
}: HealthStatusOptions): () => Promise<HealthStatus> {
  let storageDownSince: number | undefined;

  async function probe(): Promise<void> {
    const began = clock.monotonic();
    try {
      const timedOut = () => new Error("the storage has not answered");
      await withTimeout(clock, PROBE_MS, Promise.resolve(repository.current()), timedOut);
      storageDownSince = undefined;
    } catch {
      storageDownSince ??= began;
    }
  }

  return async () => {
    await probe();
    const behindMs = poller.behindMs();
    const downMs = storageDownSince === undefined ? 0 : clock.monotonic() - storageDownSince;
    return {
      isStarted: true,
      problems: selectCurrentProblems(
        { code: "storage_away", forMs: downMs },
        { code: "not_following", forMs: behindMs > BEHIND_MS ? behindMs : 0 },
      ),
    };
  };
}
