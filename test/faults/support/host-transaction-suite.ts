/** Hosts that emit in their own transactions are killed, again and again. */

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import type { SqlConnection } from "./sql-inspector.js";
import { startForTests } from "./start-for-tests.js";
import type { StorageAddress, StorageUnderTest } from "./storage-under-test.js";
import { eventually } from "./worker-host.js";
import { openScene } from "./worker-scene.js";

const PROGRAM = join(import.meta.dirname, "host-process.js");
const KILLS = 15;

export interface HostTransactionOptions {
  readonly start: () => Promise<StorageUnderTest>;
  readonly connect: (address: StorageAddress) => SqlConnection;
}

/** Declares the test on one storage. */
export function describeHostTransactions({ start, connect }: HostTransactionOptions): void {
  const on = startForTests(start);

  it("sends one event for each record, and none for a record that was rolled back, whenever the host is killed", async () => {
    const { options, ledger, checker, subscriber, launch } = await openScene(on());
    const webhookId = await ledger.register("/");
    const database = connect(options.storage);
    onTestFinished(() => database.close());
    await database.all("CREATE TABLE host_records (id TEXT PRIMARY KEY)");
    const dir = mkdtempSync(join(tmpdir(), "postbell-host-"));
    const journal = join(dir, "journal");
    const children = new Set<ChildProcess>();
    onTestFinished(() => {
      for (const child of children) child.kill("SIGKILL");
      rmSync(dir, { recursive: true, force: true });
    });
    const lines = (): readonly string[] =>
      existsSync(journal) ? readFileSync(journal, "utf8").split("\n").slice(0, -1) : [];
    const startHost = (): ChildProcess => {
      const child = fork(PROGRAM, {
        env: { ...process.env, HOST_OPTIONS: JSON.stringify({ storage: options.storage, journal }) },
        execArgv: [],
        stdio: ["ignore", "ignore", "inherit", "ipc"],
      });
      children.add(child);
      return child;
    };

    await launch();
    for (let kill = 0; kill < KILLS; kill++) {
      const [victim, before] = [startHost(), lines().length];
      await eventually(() => lines().length > before + 5, "the host writes");
      await sleep((kill * 7) % 20);
      victim.kill("SIGKILL");
      await once(victim, "exit");
    }
    await checker.drained();

    const rows = await database.all("SELECT id FROM host_records");
    const records = rows.map(({ id }) => String(id)).sort();
    const sent = subscriber.received.map(({ eventId }) => eventId).sort();
    expect(sent).toEqual(records);
    const known = lines().map((line) => line.split(" "));
    const committed = known.filter(([how]) => how === "committed").map(([, id]) => id ?? "");
    const undone = known.filter(([how]) => how === "undone").map(([, id]) => id ?? "");
    expect(records).toEqual(expect.arrayContaining(committed));
    expect(sent.filter((id) => undone.includes(id))).toEqual([]);
    expect(new Set(subscriber.received.map((request) => request.webhookId))).toEqual(new Set([webhookId]));
    expect(await checker.inspector.findFaults()).toEqual([]);
    console.log(
      `${on().kind}: ${KILLS} kills of hosts, ${records.length} records with one event each, ${undone.length} rolled back without`,
    );
  });
}
