/** What an operator has to know of a Redis that keeps deliveries and content: how durable it is, whether it may drop keys, and whether the books are right. */

import type { RedisLink } from "./link.js";
import type { Partition } from "./partition.js";

/** A clock that is off by more shows in signatures: receivers allow 300 s. */
const SKEW_MS = 5_000;
const SCANNED_PER_CALL = 100;

/** What `check()` found out about the Redis in use. */
export interface StorageReport {
  /** True where there is no warning. */
  readonly ok: boolean;
  /** What to change, a sentence each. */
  readonly warnings: readonly string[];
  readonly version: string;
  readonly role: string;
  /** Replicas that are connected. */
  readonly replicas: number;
  /** `noeviction` is the one that loses nothing. */
  readonly evictionPolicy: string;
  /** `fsync` is what Redis tells; `unknown` where CONFIG is not allowed. */
  readonly persistence: { readonly aof: boolean; readonly fsync: string; readonly rdb: boolean };
  /** What the server's clock is ahead of this machine's. */
  readonly clockSkewMs: number;
  /** Counters and places that were wrong and have been put right. Always 0, unless something else changed the keys. */
  readonly repaired: number;
}

const fieldOf = (info: string, name: string): string =>
  info
    .split("\n")
    .find((line) => line.startsWith(`${name}:`))
    ?.slice(name.length + 1)
    .trim() ?? "";

async function configOf(node: RedisLink, name: string): Promise<string | undefined> {
  try {
    const [, setting] = (await node.call("CONFIG", "GET", name)) as string[];
    return setting;
  } catch {
    return undefined;
  }
}

/** Pure: what is wrong with a server for this use. */
export function listWarnings(report: Omit<StorageReport, "ok" | "warnings" | "repaired">): string[] {
  const { version, role, evictionPolicy, persistence, clockSkewMs } = report;
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const warnings: string[] = [];
  if (major < 6 || (major === 6 && minor < 2))
    warnings.push(`Redis ${version} is older than 6.2, whose commands this storage needs.`);
  if (role !== "master") warnings.push(`The connection leads to a ${role}, which refuses writes.`);
  if (evictionPolicy !== "noeviction")
    warnings.push(
      `maxmemory-policy is ${evictionPolicy}: Redis may drop keys that hold deliveries or content. Set it to noeviction.`,
    );
  if (!persistence.aof && !persistence.rdb)
    warnings.push(
      "Redis keeps nothing on disk: a restart loses all deliveries and content. Set appendonly to yes.",
    );
  else if (!persistence.aof)
    warnings.push(
      "Redis saves snapshots only: a crash loses minutes of deliveries and content. Set appendonly to yes.",
    );
  else if (persistence.fsync === "no")
    warnings.push("appendfsync is no: a power failure may lose what the system has not written yet.");
  if (Math.abs(clockSkewMs) > SKEW_MS)
    warnings.push(
      `The clock of Redis and that of this machine are ${clockSkewMs} ms apart; signatures carry this machine's.`,
    );
  return warnings;
}

/** Looks at one server. */
export async function inspect(
  node: RedisLink,
  clockSkewMs: number,
): Promise<Omit<StorageReport, "repaired">> {
  const info = String(await node.call("INFO"));
  const save = await configOf(node, "save");
  const report = {
    version: fieldOf(info, "redis_version"),
    role: fieldOf(info, "role"),
    replicas: Number(fieldOf(info, "connected_slaves")),
    evictionPolicy: fieldOf(info, "maxmemory_policy"),
    persistence: {
      aof: fieldOf(info, "aof_enabled") === "1",
      fsync: (await configOf(node, "appendfsync")) ?? "unknown",
      rdb: save === undefined ? fieldOf(info, "rdb_last_bgsave_status") === "ok" : save !== "",
    },
    clockSkewMs,
  };
  const warnings = listWarnings(report);
  return { ...report, ok: warnings.length === 0, warnings };
}

/** Walks a hash of a partition page by page. */
async function eachPage(
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

/** Runs one of the repair scripts on a partition. */
export interface Repairs {
  /** Resolves with how much was corrected. */
  readonly repair: (
    what: "in-flight" | "counters" | "places" | "entries",
    names: readonly string[],
  ) => Promise<number>;
  /** Counts one page of an account's log. */
  readonly tallies: (account: string, after: string, counted: string) => Promise<TalliesReply>;
}

export type TalliesReply = readonly [next: string, counted: string, repaired: number];

async function repairTallies(account: string, tallies: Repairs["tallies"]): Promise<number> {
  let [next, counted, repaired] = await tallies(account, "", "");
  while (next !== "") [next, counted, repaired] = await tallies(account, next, counted);
  return repaired;
}

/** Compares the books of a partition with what they count, a page at a time, and corrects what differs; resolves with how much that was. */
export async function repairPartition(
  partition: Partition,
  call: (command: string, ...args: (string | number)[]) => Promise<unknown>,
  { repair, tallies }: Repairs,
): Promise<number> {
  const scan =
    (command: "HSCAN" | "ZSCAN", key: string) =>
    (cursor: string): Promise<unknown> =>
      call(command, key, cursor, "COUNT", SCANNED_PER_CALL);
  const entries = await eachPage(scan("ZSCAN", partition.key("log")), (own) => repair("entries", own));
  const places = await eachPage(scan("HSCAN", partition.key("deliveries")), (own) => repair("places", own));
  const inFlight = await repair("in-flight", []);
  const counters = await eachPage(scan("HSCAN", partition.key("accounts")), async (own) => {
    let sum = await repair("counters", own);
    for (const account of own) sum += await repairTallies(account, tallies);
    return sum;
  });
  return entries + places + inFlight + counters;
}
