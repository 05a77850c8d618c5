/** Real Postgres and MariaDB servers on this machine that a test may kill and start again. */

import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { chownSync, mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import pg from "pg";
import { findProgram } from "../../../scripts/databases-for-tests.js";
import { watchOver } from "../../support/redis-server.js";
import { randomPort } from "../../support/tcp-proxy.js";

const run = promisify(execFile);

export interface DatabaseServer {
  /** For `pg`: host and port. For `mysql2`: the path of the socket. */
  readonly address: { readonly host: string; readonly port: number } | { readonly socketPath: string };
  /**
   * As a power cut: no last write, no goodbye. With SIGINT, Postgres ends in order, and tells the
   * clients.
   */
  readonly kill: (signal?: "SIGKILL" | "SIGINT") => Promise<void>;
  /** Same place, same data; takes connections when it resolves. */
  readonly restart: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

const START_MS = 60_000;

/** Neither server runs as root: there it becomes the user that the distribution made for it. */
function userFor(name: string): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const idOf = (what: string): number => Number(execFileSync("id", [what, name], { encoding: "utf8" }));
  return { uid: idOf("-u"), gid: idOf("-g") };
}

interface Recipe {
  readonly user: string;
  readonly prepare: (dir: string) => readonly [command: string, args: readonly string[]];
  readonly serve: (dir: string, port: number) => readonly [command: string, args: readonly string[]];
  readonly ready: RegExp;
  readonly address: (dir: string, port: number) => DatabaseServer["address"];
}

const HOST = "127.0.0.1";

const RECIPES = {
  postgres: {
    user: "postgres",
    prepare: (dir) => [
      findProgram("initdb"),
      ["-D", `${dir}/data`, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync"],
    ],
    serve: (dir, port) => [
      findProgram("postgres"),
      [
        ["-D", `${dir}/data`, "-p", String(port), "-c", `listen_addresses=${HOST}`],
        ["-c", "unix_socket_directories=", "-c", "max_connections=60", "-c", "shared_buffers=16MB"],
        ["-c", "max_prepared_transactions=2"],
      ].flat(),
    ],
    ready: /database system is ready to accept connections/,
    address: (_, port) => ({ host: HOST, port }),
  },
  mariadb: {
    user: "mysql",
    prepare: (dir) => [
      findProgram("mariadb-install-db"),
      [
        "--no-defaults",
        `--datadir=${dir}/data`,
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
      ],
    ],
    serve: (dir) => [
      findProgram("mariadbd"),
      [
        ["--no-defaults", `--datadir=${dir}/data`, `--socket=${dir}/socket`, `--pid-file=${dir}/pid`],
        ["--skip-networking", "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M"],
      ].flat(),
    ],
    ready: /ready for connections/,
    address: (dir) => ({ socketPath: `${dir}/socket` }),
  },
} satisfies Record<string, Recipe>;

interface Running {
  readonly child: ChildProcess;
  readonly exited: Promise<void>;
}

/** Resolves when the server takes connections; rejects with its log when it ends before. */
async function launch(recipe: Recipe, dir: string, port: number): Promise<Running> {
  const [command, args] = recipe.serve(dir, port);
  const child = spawn(command, args, {
    ...userFor(recipe.user),
    cwd: dir,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  if (child.pid !== undefined) child.once("close", watchOver(child.pid, dir));
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
  let log = "";
  await new Promise<void>((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      log += chunk.toString();
      if (recipe.ready.test(log)) resolve();
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("error", reject);
    child.once("close", () => reject(new Error(`${command} ended at its start:\n${log}`)));
  });
  return { child, exited };
}

export async function startDatabase(kind: keyof typeof RECIPES): Promise<DatabaseServer> {
  const recipe: Recipe = RECIPES[kind];
  const user = userFor(recipe.user);
  const dir = mkdtempSync(join(tmpdir(), `postbell-${kind}-`));
  if (user.uid !== undefined && user.gid !== undefined) chownSync(dir, user.uid, user.gid);
  const [command, args] = recipe.prepare(dir);
  await run(command, [...args], { ...user, cwd: dir });
  const port = randomPort();

  /** After a kill, what is left of the old server may hold the data for a moment. */
  const launchSoon = async (): Promise<Running> => {
    const deadline = Date.now() + START_MS;
    for (;;) {
      try {
        return await launch(recipe, dir, port);
      } catch (error) {
        if (Date.now() > deadline) throw error;
        await sleep(200);
      }
    }
  };
  let running = await launch(recipe, dir, port);
  return {
    address: recipe.address(dir, port),
    kill: async (signal = "SIGKILL") => {
      running.child.kill(signal);
      await running.exited;
    },
    restart: async () => {
      running = await launchSoon();
    },
    stop: async () => {
      running.child.kill("SIGKILL");
      await running.exited;
      await rm(dir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** A Postgres with a pool of connections to it. `stop` ends both. */
export async function startPostgresPool(max: number) {
  const server = await startDatabase("postgres");
  if (!("port" in server.address)) throw new Error("Postgres has no port");
  const url = `postgres://postgres@${HOST}:${server.address.port}/postgres`;
  const pool = new pg.Pool({ connectionString: url, max });
  const stop = async (): Promise<void> => {
    await pool.end();
    await server.stop();
  };
  return { url, pool, stop };
}
