/**
 * Reports on a Redis server: how durable it is, and if its settings may lose deliveries or content.
 */

import { PostbellError } from "../../src/core/errors.js";
import type { RedisConnection } from "./connection.js";

/** A larger difference would show in signatures: receivers allow 300 s. */
const SKEW_MS = 5_000;

/**
 * The result of `check()`. If the user of the connection may not call INFO, a warning says so, and
 * what INFO tells is `unknown`, 0 or false.
 */
export interface StorageReport {
  /** True if there are no warnings. */
  readonly ok: boolean;
  /** Sentences that each say what is wrong and what to change. */
  readonly warnings: readonly string[];
  readonly version: string;
  readonly role: string;
  /** Number of connected replicas. */
  readonly replicas: number;
  /** `maxmemory-policy`. Only `noeviction` loses nothing. */
  readonly evictionPolicy: string;
  /** `fsync` is `appendfsync`, or `unknown` if the user may not call CONFIG. */
  readonly persistence: { readonly aof: boolean; readonly fsync: string; readonly rdb: boolean };
  /** How far the server's clock is ahead of this machine's, in ms. */
  readonly clockSkewMs: number;
  /**
   * Counters and queue entries that were wrong and have been corrected. 0 unless something else
   * changed the keys.
   */
  readonly repaired: number;
}

/** Everything about a server except what a repair corrected. */
export type ServerReport = Omit<StorageReport, "repaired">;

const readInfoField = (info: string, name: string): string =>
  info
    .split("\n")
    .find((line) => line.startsWith(`${name}:`))
    ?.slice(name.length + 1)
    .trim() ?? "";

async function readConfig(server: RedisConnection, name: string): Promise<string | undefined> {
  try {
    const [, setting] = (await server.call("CONFIG", "GET", name)) as string[];
    return setting;
  } catch {
    return undefined;
  }
}

/** Lists what makes a server unsafe for deliveries and content. Pure. */
export function listWarnings(report: Omit<ServerReport, "ok" | "warnings">): string[] {
  const { version, role, evictionPolicy, persistence, clockSkewMs } = report;
  const major = Number.parseInt(version, 10);
  const warnings: string[] = [];
  if (major < 7) warnings.push(`Redis ${version} is older than 7, whose functions this storage needs.`);
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

const NO_INFO =
  "The user of the connection may not call INFO, so version, role, replicas, maxmemory-policy and persistence were not checked. Grant it with ACL SETUSER, or check them on the server.";

/** Resolves with `undefined` if the user of the connection may not call INFO. */
async function readInfo(server: RedisConnection): Promise<string | undefined> {
  try {
    return String(await server.call("INFO"));
  } catch (error) {
    if (error instanceof PostbellError && error.reason === "NOPERM info") return undefined;
    throw error;
  }
}

/** `clientWarnings`: about the client of the host. They are added to those about the server. */
export async function inspectServer(
  server: RedisConnection,
  clockSkewMs: number,
  clientWarnings: readonly string[],
): Promise<ServerReport> {
  const info = await readInfo(server);
  if (info === undefined)
    return {
      ok: false,
      warnings: [NO_INFO, ...clientWarnings],
      version: "unknown",
      role: "unknown",
      replicas: 0,
      evictionPolicy: "unknown",
      persistence: { aof: false, fsync: "unknown", rdb: false },
      clockSkewMs,
    };
  const save = await readConfig(server, "save");
  const report = {
    version: readInfoField(info, "redis_version"),
    role: readInfoField(info, "role"),
    replicas: Number(readInfoField(info, "connected_slaves")),
    evictionPolicy: readInfoField(info, "maxmemory_policy"),
    persistence: {
      aof: readInfoField(info, "aof_enabled") === "1",
      fsync: (await readConfig(server, "appendfsync")) ?? "unknown",
      rdb: save === undefined ? readInfoField(info, "rdb_last_bgsave_status") === "ok" : save !== "",
    },
    clockSkewMs,
  };
  const warnings = [...listWarnings(report), ...clientWarnings];
  return { ...report, ok: warnings.length === 0, warnings };
}
