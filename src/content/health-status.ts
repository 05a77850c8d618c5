/** Whether the content service sees what is stored. */

import { type Clock, withTimeout } from "../core/clock.js";
import { type HealthStatus, selectCurrentProblems } from "../health/health-status.js";
import type { ChangePoller } from "./repository/change-poller.js";
import type { ContentRepository } from "./repository/content-repository.js";

/** A proof takes one round trip; a load that is under way takes longer, and answers go on meanwhile. */
const PROOF_MS = 5_000;
/** Readers of `eventual` answers were promised changes within a second. */
const BEHIND_MS = 10_000;

export interface HealthStatusOptions {
  readonly library: Pick<ContentRepository, "current">;
  readonly following: Pick<ChangePoller, "behindMs">;
  readonly clock: Clock;
}

/** Makes the function that asks the storage, once for all who wait, since a service that is not asked for anything learns of an outage from nobody. */
export function createHealthStatus({
  library,
  following,
  clock,
}: HealthStatusOptions): () => Promise<HealthStatus> {
  let awaySince: number | undefined;

  async function prove(): Promise<void> {
    const began = clock.monotonic();
    try {
      await withTimeout(clock, PROOF_MS, Promise.resolve(library.current()), () => new Error("no answer"));
      awaySince = undefined;
    } catch {
      awaySince ??= began;
    }
  }

  return async () => {
    await prove();
    const behindMs = following.behindMs();
    return {
      isStarted: true,
      problems: selectCurrentProblems(
        { code: "storage_away", forMs: awaySince === undefined ? 0 : clock.monotonic() - awaySince },
        { code: "not_following", forMs: behindMs > BEHIND_MS ? behindMs : 0 },
      ),
    };
  };
}
