/** A process is killed at each statement that a storage on SQL runs; another one goes on. */

import { fork } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { startForTests } from "./start-for-tests.js";
import type { StorageAddress, StorageUnderTest } from "./storage-under-test.js";

const PROGRAM = join(import.meta.dirname, "statement-process.js");

/** The process is killed at each statement with 1; else at each of so many, to save time. */
const STRIDE = Number(process.env["STATEMENT_STRIDE"] ?? 4);

/** Processes that run at the same time, each on a storage of its own. */
const LANES = 3;

interface Ended {
  readonly signal: NodeJS.Signals | null;
  /** Describes the storage at the end, and counts the statements up to there. */
  readonly report: { readonly statements: number; readonly holds: unknown } | undefined;
}

interface RunOptions {
  readonly storage: StorageAddress;
  readonly journal: string;
  readonly from?: number;
  readonly crashAt?: number;
  readonly isSent?: boolean;
}

function runProgram(options: RunOptions): Promise<Ended> {
  const child = fork(PROGRAM, {
    env: { ...process.env, STATEMENT_OPTIONS: JSON.stringify(options) },
    execArgv: [],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  let report: Ended["report"];
  child.on("message", (message) => {
    report = message as Ended["report"];
  });
  return new Promise((resolve) => {
    child.once("exit", (_, signal) => resolve({ signal, report }));
  });
}

export interface StatementOptions {
  readonly start: () => Promise<StorageUnderTest>;
  /** Also kills while the database carries the statement out. */
  readonly alsoSent: boolean;
}

/** Declares the test on one storage. */
export function describeStatementCrashes({ start, alsoSent }: StatementOptions): void {
  const on = startForTests(start);

  it("killed before or during any statement, leaves nothing half-written, and the next process ends where none was killed", async () => {
    const dir = mkdtempSync(join(tmpdir(), "postbell-statements-"));
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
    const undisturbed = await runProgram({ storage: await on().fresh(), journal: join(dir, "all") });
    if (!undisturbed.report) throw new Error("The program ended early.");
    const { statements, holds } = undisturbed.report;

    const crash = async (crashAt: number, isSent: boolean): Promise<void> => {
      const name = `statement ${crashAt}${isSent ? ", sent" : ""}`;
      const storage = await on().fresh();
      const journal = join(dir, name);
      const { signal } = await runProgram({ storage, journal, crashAt, isSent });
      expect([name, signal]).toEqual([name, "SIGKILL"]);
      const answered = existsSync(journal) ? readFileSync(journal, "utf8").split("\n").length - 1 : 0;
      const { report } = await runProgram({ storage, journal, from: answered });
      expect([name, report?.holds]).toEqual([name, holds]);
      const inspector = on().inspect(storage);
      expect([name, await inspector.findFaults()]).toEqual([name, []]);
      expect([name, await inspector.findContentFaults()]).toEqual([name, []]);
      await inspector.close();
    };
    const places = Array.from({ length: Math.ceil(statements / STRIDE) }, (_, index) => 1 + STRIDE * index);
    const left = places.flatMap((at) =>
      (alsoSent ? [false, true] : [false]).map((isSent) => [at, isSent] as const),
    );
    const count = left.length;
    const lane = async (): Promise<void> => {
      for (let next = left.shift(); next; next = left.shift()) await crash(...next);
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    console.log(
      `${on().kind}: ${count} kills at ${statements} statements, nothing half-written, nothing lost`,
    );
  }, 600_000);
}
