/**
 * `storage.check()`: reports on the servers, repairs the webhook data, and warns of lost content.
 */

import { PostbellError } from "../../src/core/errors.js";
import type { RedisArgument } from "./clients.js";
import type { RedisConnection } from "./connection.js";
import type { LayoutGuard } from "./layout.js";
import { type ContentKeys, listContentWarnings, type Partition, type Partitions } from "./partition.js";
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
  /** As the scripts take them; `undefined` before a service was created on the storage. */
  readonly endpointLimits: RedisArgument | undefined;
}

export async function checkStorage(
  session: Session,
  { partitions, contentKeys, layout, endpointLimits = ANY_NUMBER }: CheckOptions,
): Promise<StorageReport> {
  const reports = await session.inspect();
  const [worst] = [...reports].sort((a, b) => b.warnings.length - a.warnings.length);
  if (!worst)
    throw new PostbellError("storage_unavailable", "No Redis server can be reached; nothing was checked.");
  // A replica refuses the repairs. A user without INFO is not told what the server is.
  if (reports.some(({ role }) => role !== "master" && role !== "unknown")) return { ...worst, repaired: 0 };
  await session.open(layout);
  const connection = await session.connection();
  let repaired = 0;
  for (const partition of partitions.all) {
    repaired += await repairPartition(connection, partition, () => [
      session.time.now(),
      endpointLimits,
      0,
      0,
    ]);
  }
  const sizes = (await connection.run(SCRIPTS.contentCheck, contentKeys, [])) as number[];
  const warnings = [...worst.warnings, ...listContentWarnings(sizes)];
  return { ...worst, ok: warnings.length === 0, warnings, repaired };
}

const SCANNED_PER_CALL = 100;

/** Visits all fields of a key page by page. Resolves with the sum of what the visits returned. */
async function visitPages(
  scan: (cursor: string) => Promise<unknown>,
  visit: (fields: readonly string[]) => Promise<number>,
): Promise<number> {
  let sum = 0;
  let cursor = "0";
  do {
    const [next, entries] = (await scan(cursor)) as [string, string[]];
    const fields = entries.filter((_, index) => index % 2 === 0);
    for (let from = 0; from < fields.length; from += SCANNED_PER_CALL) {
      sum += await visit(fields.slice(from, from + SCANNED_PER_CALL));
    }
    cursor = next;
  } while (cursor !== "0");
  return sum;
}

type TalliesReply = readonly [next: string, counted: string, repaired: number];

/** Calls the repair scripts on one partition. */
interface RepairScripts {
  /** Resolves with how many corrections were made. */
  readonly repair: (
    part: "in-flight" | "counters" | "places" | "entries",
    names: readonly string[],
  ) => Promise<number>;
  /** Counts one page of the log of an account. */
  readonly repairTallies: (account: string, after: string, counted: string) => Promise<TalliesReply>;
}

async function repairAllTallies(
  account: string,
  repairTallies: RepairScripts["repairTallies"],
): Promise<number> {
  let [next, counted, repaired] = await repairTallies(account, "", "");
  while (next !== "") [next, counted, repaired] = await repairTallies(account, next, counted);
  return repaired;
}

/**
 * Compares the counters of a partition with the records they count, a page at a time, and corrects
 * them. `before` returns the arguments that every script takes. Resolves with the number of
 * corrections.
 */
async function repairPartition(
  connection: RedisConnection,
  partition: Partition,
  before: () => readonly RedisArgument[],
): Promise<number> {
  const repair: RepairScripts["repair"] = async (part, names) =>
    Number(await connection.run(SCRIPTS.repair, partition, [...before(), part, ...names]));
  const repairTallies: RepairScripts["repairTallies"] = async (...args) =>
    (await connection.run(SCRIPTS.repairTallies, partition, [...before(), ...args])) as TalliesReply;
  const scan =
    (command: "HSCAN" | "ZSCAN", key: string) =>
    (cursor: string): Promise<unknown> =>
      connection.call(command, key, cursor, "COUNT", SCANNED_PER_CALL);
  const entries = await visitPages(scan("ZSCAN", partition.key("log")), (own) => repair("entries", own));
  const places = await visitPages(scan("HSCAN", partition.key("deliveries")), (own) => repair("places", own));
  const inFlight = await repair("in-flight", []);
  const counters = await visitPages(scan("HSCAN", partition.key("accounts")), async (own) => {
    let sum = await repair("counters", own);
    for (const account of own) sum += await repairAllTallies(account, repairTallies);
    return sum;
  });
  return entries + places + inFlight + counters;
}
