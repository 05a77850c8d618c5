/**
 * Starts hosts of the built package in processes of their own, talks to them and ends them as a
 * test wants.
 */

import { type ChildProcess, fork } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { onTestFinished } from "vitest";
import type {
  Emitted,
  EventInput,
  Registrations,
  WebhooksOptions,
  WebhookWithSecret,
} from "../../../src/index.js";
import type { StorageAddress } from "./storage-under-test.js";

/** Settings that are passed to the process as JSON. */
export interface WorkerOptions {
  readonly storage: StorageAddress;
  /** Trusted authority of the endpoints. */
  readonly ca: string;
  readonly webhooks?:
    | Pick<WebhooksOptions, "delivery" | "retry" | "endpoints" | "limits" | "awaitStorage">
    | undefined;
  /** Another build's worker-process.js. */
  readonly program?: string | undefined;
  /** Where to kill itself (worker-process.js). */
  readonly crashAt?: string | undefined;
  /** Of the resource whose event kills the process. */
  readonly poison?: string | undefined;
  /** How long `canRead` blocks the whole process. */
  readonly stallMs?: number | undefined;
  /** How long `canRead` takes, without blocking anything. */
  readonly answerAfterMs?: number | undefined;
  /** Time that attempts in flight get at SIGTERM. */
  readonly graceMs?: number | undefined;
}

/** The journal of a process, which outlives it. */
export interface JournalEntry {
  readonly claimed?: readonly string[];
  readonly token?: string;
  readonly asked?: string;
  readonly settled?: string;
  readonly as?: string;
  readonly result?: string;
  readonly notified?: "warning" | "disabled";
  readonly disabled?: string;
  readonly warn?: string;
  readonly error?: unknown;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Worker {
  readonly pid: number;
  readonly exited: Promise<Exit>;
  readonly hasExited: () => boolean;
  /**
   * Rejects with `{ code }` as the call did, or with the code `died` where the process ended before
   * it answered.
   */
  readonly emit: (event: EventInput) => Promise<Emitted>;
  readonly create: (...args: Parameters<Registrations["create"]>) => Promise<WebhookWithSecret>;
  readonly update: Registrations["update"];
  readonly remove: Registrations["remove"];
  readonly start: () => Promise<void>;
  /** Creates or converts the tables of a storage that leaves this to the host. */
  readonly migrate: () => Promise<void>;
  readonly closeStorage: () => Promise<void>;
  readonly signal: (signal: NodeJS.Signals) => void;
  readonly kill: () => Promise<Exit>;
  readonly journal: () => readonly JournalEntry[];
}

/** Waits until something that processes and servers bring about is true. */
export async function eventually(
  condition: () => boolean | Promise<boolean>,
  what: string,
  withinMs = 30_000,
): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`Not within ${withinMs} ms: ${what}`);
    await sleep(20);
  }
}

const PROGRAM = join(import.meta.dirname, "worker-process.js");

interface Call {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

type Message = "ready" | { number: number; value?: unknown; code?: string; message?: string };

const failure = (code: string, message: string): Error => Object.assign(new Error(message), { code });

/** Calls into the process, each answered by a message of the same number. */
function callsTo(child: ChildProcess): (command: string, ...args: readonly unknown[]) => Promise<unknown> {
  const calls = new Map<number, Call>();
  let count = 0;
  child.on("message", (message: Message) => {
    if (message === "ready") return;
    const { number, value, code, message: text = "" } = message;
    const call = calls.get(number);
    calls.delete(number);
    if (code === undefined) call?.resolve(value);
    else call?.reject(failure(code, text));
  });
  child.once("exit", () => {
    for (const { reject } of calls.values()) reject(failure("died", "The process ended before it answered."));
  });
  return (command, ...args) =>
    new Promise((resolve, reject) => {
      const number = ++count;
      calls.set(number, { resolve, reject });
      child.send({ number, command, args }, (error) => {
        if (error) reject(failure("died", "The process cannot be called any more."));
      });
    });
}

function readJournal(path: string): readonly JournalEntry[] {
  if (!existsSync(path)) return [];
  // A line that a kill truncated is not an entry.
  const lines = readFileSync(path, "utf8").split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line) as JournalEntry);
}

/** Ready to be called when it resolves. It ends with the test that started it. */
export async function startWorker({
  crashAt,
  program = PROGRAM,
  ...options
}: WorkerOptions): Promise<Worker> {
  const folder = mkdtempSync(join(tmpdir(), "postbell-worker-"));
  const journal = join(folder, "journal");
  const child = fork(program, {
    env: {
      ...process.env,
      WH_OPTIONS: JSON.stringify({ ...options, journal }),
      ...(crashAt === undefined ? {} : { WH_CRASH_AT: crashAt }),
    },
    execArgv: [],
    serialization: "advanced",
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  let exit: Exit | undefined;
  const exited = new Promise<Exit>((resolve) => {
    child.once("exit", (code, signal) => {
      exit = { code, signal };
      resolve(exit);
    });
  });
  const call = callsTo(child);
  const kill = async (): Promise<Exit> => {
    child.kill("SIGKILL");
    return exited;
  };
  onTestFinished(async () => {
    await kill();
    rmSync(folder, { recursive: true, force: true });
  });
  await new Promise<void>((resolve, reject) => {
    child.once("message", () => resolve());
    child.once("exit", () => reject(new Error("A worker ended as it started.")));
  });
  return {
    pid: child.pid ?? Number.NaN,
    exited,
    hasExited: () => exit !== undefined,
    emit: (event) => call("emit", event) as Promise<Emitted>,
    create: (...args) => call("create", ...args) as Promise<WebhookWithSecret>,
    update: (...args) => call("update", ...args) as ReturnType<Registrations["update"]>,
    remove: (...args) => call("remove", ...args) as Promise<void>,
    start: () => call("start") as Promise<void>,
    migrate: () => call("migrate") as Promise<void>,
    closeStorage: () => call("close") as Promise<void>,
    signal: (signal) => void child.kill(signal),
    kill,
    journal: () => readJournal(journal),
  };
}
