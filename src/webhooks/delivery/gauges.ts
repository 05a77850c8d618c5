/** Reads the gauges of the storage and of this process for telemetry. */

import type { Reading } from "../../core/telemetry.js";
import type { WebhookStore } from "../store.js";

/** Never rejects: gauges that the storage cannot read are left out. */
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
