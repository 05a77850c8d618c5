/** Starts and stops the delivery of a service. Both calls may be repeated and may overlap. */

import { type Clock, withTimeout } from "../core/clock.js";
import type { Logger } from "../core/logger.js";
import type { Telemetry } from "../core/telemetry.js";
import type { DeliveryDispatcher } from "./delivery/dispatcher.js";
import { readGauges } from "./delivery/gauges.js";
import type { Sender } from "./sender.js";
import type { WebhooksSettings } from "./settings/settings.js";
import type { StartReminder } from "./start-reminder.js";
import type { WebhookStore } from "./store.js";

const DEFAULT_GRACE_MS = 10_000;

export interface Lifecycle {
  readonly start: () => Promise<void>;
  readonly stop: (options?: { readonly graceMs?: number | undefined }) => Promise<void>;
}

export function createLifecycle({
  settings: { notify, limits, awaitStorage },
  store,
  dispatcher,
  sender,
  clock,
  logger,
  telemetry,
  reminder,
}: {
  readonly settings: Pick<WebhooksSettings, "notify" | "limits" | "awaitStorage">;
  readonly store: WebhookStore;
  readonly dispatcher: DeliveryDispatcher;
  readonly sender: Sender;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly telemetry: Telemetry | undefined;
  readonly reminder: Pick<StartReminder, "dismissAtExit" | "end">;
}): Lifecycle {
  let isWanted = false;
  let stopping: Promise<void> | undefined;
  let stopObserving: (() => void) | undefined;

  const closeNotifiers = async (): Promise<void> => {
    const closing = (async () => notify.close?.())();
    try {
      await withTimeout(clock, limits.hookMs, closing, () => new Error("no answer in time"));
    } catch (error) {
      logger.error({ error }, "notify.close failed; what the notifiers hold may stay open");
    }
  };

  const end = async (graceMs: number): Promise<void> => {
    await dispatcher.stop(graceMs);
    stopObserving?.();
    stopObserving = undefined;
    await sender.close();
    await closeNotifiers();
  };

  /** Rejects if the storage cannot be reached, unless `stop` was called meanwhile. */
  const checkStorage = async (): Promise<void> => {
    try {
      await store.stats();
    } catch (error) {
      if (isWanted) throw error;
    }
  };

  return {
    async start() {
      reminder.dismissAtExit();
      isWanted = true;
      if (awaitStorage) await checkStorage();
      // `stop` may have been called while this call waited, and perhaps `start` again.
      while (stopping !== undefined) await stopping;
      if (!isWanted) return;
      dispatcher.start();
      reminder.end();
      stopObserving ??= telemetry?.observe(() => readGauges(store, dispatcher.inFlight()));
    },
    stop({ graceMs = DEFAULT_GRACE_MS } = {}) {
      reminder.dismissAtExit();
      isWanted = false;
      // A second call (a second SIGTERM) must not shorten the grace period of the first.
      stopping ??= end(graceMs).finally(() => {
        stopping = undefined;
      });
      return stopping;
    },
  };
}
