/**
 * `storage.check()`: reports on the servers, repairs the webhook data, and warns of lost content.
 */

import { PostbellError } from "../../src/core/errors.js";
import { type ContentKeys, listContentWarnings } from "./content-keys.js";
import type { LayoutGuard } from "./layout.js";
import type { Partitions } from "./partition.js";
import { repairPartition } from "./repair.js";
import { SCRIPTS } from "./scripts.js";
import type { StorageReport } from "./server-report.js";
import type { Session } from "./session.js";

/**
 * Stands for the slots of an endpoint if no service has said how many there are. Then the repair
 * does not change which endpoints are ready.
 */
const ANY_NUMBER = 1_000_000;

export interface CheckOptions {
  readonly partitions: Partitions;
  readonly contentKeys: ContentKeys;
  readonly layout: LayoutGuard;
  /** Slots of an endpoint; `undefined` before a service was created on the storage. */
  readonly perEndpoint: number | undefined;
}

export async function checkStorage(
  session: Session,
  { partitions, contentKeys, layout, perEndpoint = ANY_NUMBER }: CheckOptions,
): Promise<StorageReport> {
  const reports = await session.inspect();
  const [worst] = [...reports].sort((a, b) => b.warnings.length - a.warnings.length);
  if (!worst)
    throw new PostbellError("storage_unavailable", "No Redis server can be reached; nothing was checked.");
  // A replica refuses the repairs.
  if (reports.some(({ role }) => role !== "master")) return { ...worst, repaired: 0 };
  await session.open(layout);
  const connection = await session.connection();
  let repaired = 0;
  for (const partition of partitions.all) {
    repaired += await repairPartition(connection, partition, () => [session.time.now(), perEndpoint, 0, 0]);
  }
  const sizes = (await connection.run(SCRIPTS.contentCheck, contentKeys, [])) as number[];
  const warnings = [...worst.warnings, ...listContentWarnings(sizes)];
  return { ...worst, ok: warnings.length === 0, warnings, repaired };
}
