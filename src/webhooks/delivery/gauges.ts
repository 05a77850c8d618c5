/** What is read of the storage and the dispatcher when somebody looks at the gauges. */

import type { Reading } from "../../core/telemetry.js";
import type { WebhookStore } from "../store.js";

/** Never rejects: what the storage does not tell is left out. */
export async function readGauges(
  store: Pick<WebhookStore, "stats">,
  inFlight: number,
): Promise<readonly Reading[]> {
  const own: Reading = { metric: "deliveriesInFlight", labels: {}, value: inFlight };
  const stats = await store.stats().catch(() => undefined);
  if (stats === undefined) return [own];
  return [
    own,
    { metric: "deliveriesPending", labels: {}, value: stats.pending },
    { metric: "deliveriesDue", labels: {}, value: stats.due },
    ...Object.entries(stats.endpoints ?? {}).map(
      ([health, value]): Reading => ({ metric: "endpoints", labels: { health }, value }),
    ),
  ];
}
