/**
 * Real Redis (or Valkey) servers on loopback that a test may kill, start again and join to a
 * cluster.
 */

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { randomPort } from "./tcp-proxy.js";

const run = promisify(execFile);

export type Persistence = "none" | "aof-always" | "aof-everysec" | "rdb";

export interface RedisOptions {
  /** Default: one that is free. */
  readonly port?: number | undefined;
  /** Further settings, as on the command line. They must leave the log on standard output. */
  readonly args?: readonly string[] | undefined;
  /** `rdb` saves at an orderly end and when told to. Default: none. */
  readonly persistence?: Persistence | undefined;
  /** Stays when the server stops. Default: a folder of its own, which goes with the server. */
  readonly dir?: string | undefined;
}

export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** Of the process started last. */
  readonly pid: number;
  readonly dir: string;
  /** As a power cut: no last write, no goodbye. */
  readonly kill: () => Promise<void>;
  /** Same port, same folder; ready when it resolves. A server still running ends in order first. */
  readonly restart: () => Promise<void>;
  readonly stop: () => Promise<void>;
  /** The printed reply to one command. Rejects on an error reply from version 7 on; 6 prints it. */
  readonly cli: (...args: string[]) => Promise<string>;
}

/** A master with replicas, and Sentinels that replace it when it has been silent for a second. */
export interface SentinelSet {
  readonly sentinels: readonly { readonly host: string; readonly port: number }[];
  readonly name: string;
  readonly master: RedisServer;
  readonly replicas: readonly RedisServer[];
  readonly stop: () => Promise<void>;
}

export interface RedisCluster {
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  /** Kills all masters at once and starts them again; takes commands when it resolves. */
  readonly restart: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

interface Program {
  readonly server: string;
  readonly cli: string;
  readonly major: number;
}

interface Running {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly exited: Promise<void>;
}

const HOST = "127.0.0.1";
const SLOTS = 16_384;
const ORDERLY_END_MS = 3_000;
/** Counted, since a busy machine takes longer to form a cluster and to look. */
const MAX_LOOKS = 1_000;

const PERSISTENCE: Readonly<Record<Persistence, readonly string[]>> = {
  none: ["--save", "", "--appendonly", "no"],
  "aof-always": ["--save", "", "--appendonly", "yes", "--appendfsync", "always"],
  "aof-everysec": ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"],
  rdb: ["--save", "3600 1", "--appendonly", "no"],
};

async function findProgram(): Promise<Program> {
  for (const name of ["redis", "valkey"]) {
    try {
      const { stdout } = await run(`${name}-server`, ["--version"]);
      return { server: `${name}-server`, cli: `${name}-cli`, major: Number(/v=(\d+)/.exec(stdout)?.[1]) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
  throw new Error(
    "Neither redis-server nor valkey-server is on the PATH: run `npm run servers`, or install one (Debian: apt-get install redis-server, macOS: brew install redis).",
  );
}

let program: Promise<Program> | undefined;

/**
 * Ends `pid` with all it forked, and removes `dir`, when this process is gone, however it went: the
 * kernel then closes the pipe, and the shell reads its end. A line on the pipe calls it off.
 */
export function watchOver(pid: number, dir: string): () => void {
  const script = 'read -r _ || { kill -s KILL -- "-$1"; rm -rf -- "$2"; }';
  const shell = spawn("/bin/sh", ["-c", script, "sh", String(pid), dir], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  shell.stdin?.on("error", () => {});
  return () => shell.stdin?.end("\n");
}

/** Matches the line that a server or a Sentinel logs when it takes connections. */
const READY = /ready to accept connections|\+monitor master/i;

/** Resolves when the server takes connections; rejects with its log when it ends before. */
async function launch(command: string, args: readonly string[], dirToRemove: string): Promise<Running> {
  // A process group of its own keeps Ctrl-C in a terminal from it, so that a test run ends its
  // servers itself.
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], detached: true });
  const { pid } = child;
  const callOff = pid === undefined ? () => {} : watchOver(pid, dirToRemove);
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
  child.once("close", callOff);

  await new Promise<void>((resolve, reject) => {
    let log = "";
    const read = (chunk: Buffer): void => {
      log += chunk.toString();
      if (!READY.test(log)) return;
      for (const stream of [child.stdout, child.stderr]) stream.off("data", read).resume();
      resolve();
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("error", reject);
    child.once("close", () => reject(new Error(`${command} ended at its start:\n${log}`)));
  });
  return { child, pid: pid ?? Number.NaN, exited };
}

/** A paused or busy server does not hear the request to end; it is killed then. */
async function endInOrder({ child, exited }: Running): Promise<void> {
  child.kill("SIGTERM");
  const impatience = setTimeout(() => child.kill("SIGKILL"), ORDERLY_END_MS);
  await exited;
  clearTimeout(impatience);
}

export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  program ??= findProgram();
  const { server, cli, major } = await program;
  // Nothing is awaited from here until the folder is watched over, so that no end of this process
  // leaves it behind.
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), "postbell-redis-"));
  const dirToRemove = options.dir === undefined ? dir : "";
  const removeDir = async (): Promise<void> => {
    if (dirToRemove !== "") await rm(dirToRemove, { recursive: true, force: true, maxRetries: 5 });
  };

  const launchOn = (port: number): Promise<Running> => {
    const place = ["--bind", HOST, "--port", String(port), "--dir", dir];
    const debug = major >= 7 ? ["--enable-debug-command", "yes"] : [];
    const persistence = PERSISTENCE[options.persistence ?? "none"];
    return launch(server, [...place, ...debug, ...persistence, ...(options.args ?? [])], dirToRemove);
  };
  // The server itself finds out whether a port is free: asking before would leave time to lose it.
  const launchAnywhere = async (triesLeft = 10): Promise<{ port: number; running: Running }> => {
    const port = options.port ?? randomPort();
    try {
      return { port, running: await launchOn(port) };
    } catch (error) {
      const isTaken = options.port === undefined && /address already in use/i.test(String(error));
      if (isTaken && triesLeft > 1) return launchAnywhere(triesLeft - 1);
      await removeDir();
      throw error;
    }
  };

  const { port, running: first } = await launchAnywhere();
  let running = first;
  const errorCode = major >= 7 ? ["-e"] : [];
  return {
    url: `redis://${HOST}:${port}`,
    port,
    get pid() {
      return running.pid;
    },
    dir,
    kill: async () => {
      running.child.kill("SIGKILL");
      await running.exited;
    },
    restart: async () => {
      await endInOrder(running);
      running = await launchOn(port);
    },
    stop: async () => {
      await endInOrder(running);
      await removeDir();
    },
    cli: async (...args) => {
      const { stdout } = await run(cli, ["-h", HOST, "-p", String(port), ...errorCode, ...args]);
      return stdout.trimEnd();
    },
  };
}

/** Gives each server an even share of the slots and introduces them; works from version 6 on. */
async function joinCluster(servers: readonly RedisServer[]): Promise<void> {
  const firstSlot = (index: number): number => Math.floor((index * SLOTS) / servers.length);
  for (const [index, server] of servers.entries()) {
    const slots = Array.from({ length: firstSlot(index + 1) - firstSlot(index) }, (_, n) =>
      String(firstSlot(index) + n),
    );
    await server.cli("CLUSTER", "ADDSLOTS", ...slots);
    // Masters that start with the same epoch would first have to settle who yields.
    await server.cli("CLUSTER", "SET-CONFIG-EPOCH", String(index + 1));
  }
  for (const { port } of servers.slice(1)) await servers[0]?.cli("CLUSTER", "MEET", HOST, String(port));
}

/** A master takes no writes in its first two seconds, so this is slow however it is done. */
async function clusterIsReady(servers: readonly RedisServer[]): Promise<void> {
  const isReady = async (server: RedisServer): Promise<boolean> => {
    const info = await server.cli("CLUSTER", "INFO");
    return /cluster_state:ok/.test(info) && new RegExp(`cluster_known_nodes:${servers.length}\\b`).test(info);
  };
  for (const server of servers) {
    for (let looks = 0; !(await isReady(server)); looks++) {
      if (looks === MAX_LOOKS) throw new Error(`The cluster did not form after ${MAX_LOOKS} looks at it.`);
      await sleep(50);
    }
  }
}

export async function startCluster(masters = 3, persistence?: Persistence): Promise<RedisCluster> {
  const servers: RedisServer[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.stop()));
  };
  try {
    while (servers.length < masters) {
      servers.push(
        await startRedis({
          args: ["--cluster-enabled", "yes", "--cluster-node-timeout", "30000"],
          persistence,
        }),
      );
    }
    await joinCluster(servers);
    await clusterIsReady(servers);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    nodes: servers.map(({ port }) => ({ host: HOST, port })),
    async restart() {
      await Promise.all(servers.map((server) => server.kill()));
      await Promise.all(servers.map((server) => server.restart()));
      await clusterIsReady(servers);
    },
    stop,
  };
}

async function startSentinel(name: string, master: RedisServer, quorum: number) {
  program ??= findProgram();
  const { server } = await program;
  const dir = mkdtempSync(join(tmpdir(), "postbell-sentinel-"));
  const port = randomPort();
  const file = join(dir, "sentinel.conf");
  writeFileSync(
    file,
    [
      `bind ${HOST}`,
      `port ${port}`,
      `dir ${dir}`,
      `sentinel monitor ${name} ${HOST} ${master.port} ${quorum}`,
      `sentinel down-after-milliseconds ${name} 1000`,
      `sentinel failover-timeout ${name} 3000`,
    ].join("\n"),
  );
  const running = await launch(server, [file, "--sentinel"], dir);
  const stop = async (): Promise<void> => {
    await endInOrder(running);
    await rm(dir, { recursive: true, force: true, maxRetries: 5 });
  };
  return { port, stop };
}

export async function startSentinels(persistence?: Persistence): Promise<SentinelSet> {
  const args = ["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"];
  const [master, replica] = await Promise.all([
    startRedis({ args, persistence }),
    startRedis({ args, persistence }),
  ]);
  await replica.cli("REPLICAOF", HOST, String(master.port));
  const name = "clinic";
  const sentinels = await Promise.all([1, 2, 3].map(() => startSentinel(name, master, 2)));
  // Each knows the replica and the other two Sentinels.
  const knowsAll = async (port: number): Promise<boolean> => {
    const { stdout } = await run((await findProgram()).cli, ["-p", String(port), "SENTINEL", "MASTER", name]);
    return /num-slaves\s+1\s/.test(stdout) && /num-other-sentinels\s+2\s/.test(stdout);
  };
  for (const { port } of sentinels)
    for (let looks = 0; !(await knowsAll(port)); looks++) {
      if (looks === MAX_LOOKS) throw new Error("The Sentinels did not find each other.");
      await sleep(50);
    }
  return {
    sentinels: sentinels.map(({ port }) => ({ host: HOST, port })),
    name,
    master,
    replicas: [replica],
    async stop() {
      await Promise.all(sentinels.map((sentinel) => sentinel.stop()));
      await Promise.all([master.stop(), replica.stop()]);
    },
  };
}
