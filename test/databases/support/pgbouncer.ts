/** PgBouncer in transaction mode, in front of a Postgres of a test. */

import { execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { watchOver } from "../../support/redis-server.js";
import { randomPort } from "../../support/tcp-proxy.js";

export interface PgBouncer {
  readonly port: number;
  readonly stop: () => Promise<void>;
}

/** Fewer than a process asks for at once, so that each transaction gets any of them. */
const POOL_SIZE = 4;

function findPgBouncer(): string | undefined {
  // On Debian it is on the PATH of root only.
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin"];
  return folders.map((folder) => join(folder, "pgbouncer")).find(existsSync);
}

/** True if it is on this machine: `apt-get install pgbouncer`. */
export const hasPgBouncer = findPgBouncer() !== undefined;

const idOf = (what: string): number => Number(execFileSync("id", [what, "postgres"], { encoding: "utf8" }));

/** Starts PgBouncer before the Postgres on this port. */
export async function startPgBouncer(postgres: number): Promise<PgBouncer> {
  const program = findPgBouncer();
  if (program === undefined) throw new Error("pgbouncer was not found: apt-get install pgbouncer");
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? { uid: idOf("-u"), gid: idOf("-g") } : undefined;
  const dir = mkdtempSync(join(tmpdir(), "postbell-pgbouncer-"));
  if (user) chownSync(dir, user.uid, user.gid);
  const port = randomPort();
  const config = join(dir, "pgbouncer.ini");
  const settings = [
    "[databases]",
    `postgres = host=127.0.0.1 port=${postgres} user=postgres`,
    "[pgbouncer]",
    ...["listen_addr = 127.0.0.1", `listen_port = ${port}`, "unix_socket_dir =", "auth_type = any"],
    ...["pool_mode = transaction", `default_pool_size = ${POOL_SIZE}`, "max_client_conn = 200"],
    ...["server_login_retry = 0.2", "server_round_robin = 1"],
  ];
  writeFileSync(config, `${settings.join("\n")}\n`);
  const child = spawn(program, [config], {
    ...user,
    cwd: dir,
    stdio: ["ignore", "ignore", "pipe"],
    detached: true,
  });
  if (child.pid !== undefined) child.once("close", watchOver(child.pid, dir));
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
  let log = "";
  await new Promise<void>((resolve, reject) => {
    child.stderr.on("data", (chunk: Buffer) => {
      log += chunk.toString();
      if (/process up/.test(log)) resolve();
    });
    child.once("error", reject);
    child.once("close", () => reject(new Error(`PgBouncer ended at its start:\n${log}`)));
  });
  return {
    port,
    async stop() {
      child.kill("SIGKILL");
      await exited;
      await rm(dir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
