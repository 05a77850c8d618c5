/**
 * `storage.check()`: reports on the servers, repairs the webhook data, and warns of lost content.
 */

import { PostbellError } from "../../src/core/errors.js";
import type { RedisConnection } from "./connection.js";
import type { LayoutGuard } from "./layout.js";
import type { RedisFunction } from "./library.js";
import { type ContentKeys, listContentWarnings, type Partition, type Partitions } from "./partition.js";
import type { StorageReport } from "./server-report.js";
import { encodeOptions, type FunctionLimits, type Session } from "./session.js";

/** If no service has told its limits, the repair does not change which endpoints are ready. */
const UNKNOWN_LIMITS = { perEndpoint: 1, perSecond: undefined, retentionMs: 1, retentionEvents: 0 };

export interface CheckOptions {
  readonly partitions: Partitions;
  readonly contentKeys: ContentKeys;
  readonly layout: LayoutGuard;
  /** `undefined` before a service was created on the storage. */
  readonly functionLimits: FunctionLimits | undefined;
}

export async function checkStorage(
  session: Session,
  { partitions, contentKeys, layout, functionLimits }: CheckOptions,
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
    const run: RunFunction = (name, options) =>
      connection.run(name, partition, [
        encodeOptions(functionLimits ?? UNKNOWN_LIMITS, session.time.now(), {
          isUnlimited: functionLimits === undefined,
          ...options,
        }),
      ]);
    repaired += await repairPartition(connection, partition, run);
  }
  await connection.removeOldLibraries();
  const sizes = (await connection.run("contentSizes", contentKeys, ["{}"])) as number[];
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

/** Runs a function on one partition with named options. */
type RunFunction = (name: RedisFunction, options: object) => Promise<unknown>;

type CountsReply = [next: string, counted: string, repaired: number];

/** Counts the log of an account, page by page. */
async function repairCounts(run: RunFunction, account: string): Promise<number> {
  let [next, counted, repaired]: [string, string | undefined, number] = ["", undefined, 0];
  do {
    const options = { account, after: next, counted };
    [next, counted, repaired] = (await run("repairCounts", options)) as CountsReply;
  } while (next !== "");
  return repaired;
}

/**
 * Compares the counters of a partition with the records they count, a page at a time, and corrects
 * them. Resolves with the number of corrections.
 */
async function repairPartition(
  connection: RedisConnection,
  partition: Partition,
  run: RunFunction,
): Promise<number> {
  const repair = async (part: string, names?: readonly string[]): Promise<number> =>
    Number(await run("repair", { part, names }));
  const scan =
    (command: "HSCAN" | "ZSCAN", key: string) =>
    (cursor: string): Promise<unknown> =>
      connection.call(command, key, cursor, "COUNT", SCANNED_PER_CALL);
  const entries = await visitPages(scan("ZSCAN", partition.key("log")), (names) => repair("entries", names));
  const deliveries = await visitPages(scan("HSCAN", partition.key("deliveries")), (names) =>
    repair("deliveries", names),
  );
  const inFlight = await repair("inFlight");
  const accounts = await visitPages(scan("HSCAN", partition.key("accounts")), async (names) => {
    let sum = await repair("accounts", names);
    for (const account of names) sum += await repairCounts(run, account);
    return sum;
  });
  return entries + deliveries + inFlight + accounts;
}
