/**
 * Reports whether the content service can reach its storage and follows changes of other processes.
 */

import { type Clock, withTimeout } from "../core/clock.js";
import type { StorageStatus } from "../core/storage-circuit.js";
import {
  describeStorageProblems,
  type HealthStatus,
  selectCurrentProblems,
} from "../health/health-status.js";
import type { ChangePoller } from "./repository/change-poller.js";
import type { ContentRepository } from "./repository/content-repository.js";

/** A probe takes one round trip. A running load takes longer, and responses go on meanwhile. */
const PROBE_MS = 5_000;
/** With `eventual`, readers are promised changes within a second. */
const BEHIND_MS = 10_000;

/**
 * Creates a function that probes the storage of a started service: without requests, nothing else
 * notices an outage.
 */
export function createHealthStatus({
  repository,
  poller,
  clock,
  checkStorage,
  isStarted: isServiceStarted,
}: {
  repository: ContentRepository;
  poller: ChangePoller;
  clock: Clock;
  checkStorage: () => StorageStatus;
  isStarted: () => boolean;
}): () => Promise<HealthStatus> {
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
    const isStarted = isServiceStarted();
    if (isStarted) await probe();
    else storageDownSince = undefined;
    const storage = checkStorage();
    const behindMs = poller.behindMs();
    const downMs = storageDownSince === undefined ? 0 : clock.monotonic() - storageDownSince;
    return {
      isStarted,
      problems: selectCurrentProblems(
        ...describeStorageProblems(storage, isStarted, Math.max(downMs, storage.outageMs)),
        { code: "not_following", forMs: behindMs > BEHIND_MS ? behindMs : 0 },
      ),
    };
  };
}
