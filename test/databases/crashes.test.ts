/**
 * Processes and servers are killed at each step on the way of an event from the host's transaction
 * to Postbell; what is left goes on.
 */

import { execFileSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../faults/support/worker-host.js";
import { DATABASES, type Database, type Table } from "./support/database.js";
import { eventFor, openScene } from "./support/scene.js";

const EVENTS = 12;

interface Crash {
  readonly at: string;
  readonly title: string;
  readonly only?: Database["kind"];
  /** Events that Postbell has at the moment of death: none, all, or either. */
  readonly held?: number;
  /** Rows left in the table then. */
  readonly left?: number;
}

const CRASHES: readonly Crash[] = [
  { at: "claim:before", title: "before it takes rows", held: 0, left: EVENTS },
  { at: "claim:sent", title: "while it takes rows", held: 0, left: EVENTS },
  { at: "commit:before", title: "before the taking commits", only: "mariadb", held: 0, left: EVENTS },
  { at: "commit:sent", title: "while the taking commits", only: "mariadb", held: 0, left: EVENTS },
  { at: "claim:after", title: "after it took rows", held: 0, left: EVENTS },
  { at: "emit:before", title: "before the first emit", held: 0, left: EVENTS },
  { at: "emit:sent", title: "while it emits", left: EVENTS },
  { at: "emit:after", title: "after an emit was answered", left: EVENTS },
  { at: "remove:before", title: "after all emits, before it removes the rows", held: EVENTS, left: EVENTS },
  { at: "remove:sent", title: "while it removes the rows", held: EVENTS },
  { at: "remove:after", title: "after it removed the rows", held: EVENTS, left: 0 },
];

const waitingIn = async (table: Table): Promise<number> => (await table.source.stats()).waiting;

const isStopped = (pid = 0): boolean =>
  execFileSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" }).startsWith("T");

const sorted = (ids: readonly string[]): string[] => [...ids].sort();

describe.each(["postgres", "mariadb"] as const)("an outbox on %s", (kind) => {
  let database: Database;
  beforeAll(async () => {
    database = await DATABASES[kind]();
  });
  afterAll(() => database.close());

  describe("whose process is killed", () => {
    it.each(CRASHES.filter(({ only = kind }) => only === kind))(
      "$title: each event is there once",
      async (crash) => {
        const { table, write, launch, drain, held } = await openScene(database);
        const ids = await write(EVENTS);
        const { exited } = launch({ crashAt: crash.at });
        expect(await exited).toBe("SIGKILL");
        const before = await held();
        const left = await waitingIn(table);
        expect([before.length, left]).toEqual([crash.held ?? before.length, crash.left ?? left]);
        // Whatever Postbell held of what was left, it is told again.
        const known = before.length - (EVENTS - left);
        expect(await drain()).toBe(known);
        expect(sorted(await held())).toEqual(sorted(ids));
      },
    );
  });

  it.each(["claim:after", "emit:after", "remove:before"])(
    "whose process stands still at %s gives its rows up, and does no harm when it goes on",
    async (crashAt) => {
      const { table, write, launch, drain, held } = await openScene(database);
      const ids = await write(EVENTS);
      const { child, exited } = launch({ crashAt, signal: "SIGSTOP" });
      await eventually(() => isStopped(child.pid), "it stands still");
      await drain();
      expect(sorted(await held())).toEqual(sorted(ids));
      child.kill("SIGCONT");
      const more = await write(3);
      await eventually(async () => (await waitingIn(table)) === 0, "it moves what came meanwhile");
      child.kill("SIGTERM");
      await exited;
      expect(sorted(await held())).toEqual(sorted([...ids, ...more]));
    },
  );

  it("emits nothing of a transaction that is rolled back, or whose host dies before it commits", async () => {
    const { table, write, drain, held } = await openScene(database);
    const undone = await table.begin();
    await undone.add(eventFor("undone"));
    await undone.rollback();
    const [id] = await write(1);
    await drain();
    expect(await held()).toEqual([id]);
  });

  it("moves each event once with three processes side by side, writers of every kind, and a kill every moment", async () => {
    const { table, launch, drain, held } = await openScene(database);
    const committed: string[] = [];
    let isOver = false;
    const writer = async (index: number): Promise<void> => {
      for (let round = 0; round < 60; round++) {
        const transaction = await table.begin();
        const id = await transaction.add(eventFor(`w${index}-${round}`));
        // Those that commit late stand before others that were committed long ago.
        await sleep((index * 7 + round * 3) % 40);
        if (round % 7 === 3) await transaction.rollback();
        else {
          await transaction.commit();
          committed.push(id);
        }
      }
    };
    const mover = async (): Promise<number> => {
      let kills = 0;
      while (!isOver) {
        const { child, exited } = launch({ batch: 5 });
        await Promise.race([sleep(1_200 + 300 * kills), exited]);
        child.kill("SIGKILL");
        await exited;
        kills++;
        await table.expire();
      }
      return kills;
    };
    const movers = [mover(), mover(), mover()];
    await Promise.all(Array.from({ length: 8 }, (_, index) => writer(index)));
    await sleep(2_000);
    isOver = true;
    const kills = await Promise.all(movers);
    expect(Math.min(...kills)).toBeGreaterThanOrEqual(1);
    await drain();
    expect(committed.length).toBe(8 * 51);
    expect(sorted(await held())).toEqual(sorted(committed));
  });

  it("loses nothing and adds nothing when the server is killed, again and again", async () => {
    const { table, launch, drain, held } = await openScene(database);
    const committed: string[] = [];
    /** Those whose COMMIT was not answered: it may have been carried out. */
    const unknown: string[] = [];
    const undone: string[] = [];
    let isOver = false;
    const writer = async (index: number): Promise<void> => {
      for (let round = 0; !isOver; round++) {
        const transaction = await table.begin().catch(() => undefined);
        try {
          if (!transaction) throw new Error("the server is away");
          const id = await transaction.add(eventFor(`w${index}-${round}`));
          if (round % 5 === 2) {
            undone.push(id);
            await transaction.rollback();
            continue;
          }
          unknown.push(id);
          await transaction.commit();
          unknown.splice(unknown.indexOf(id), 1);
          committed.push(id);
        } catch {
          await transaction?.rollback().catch(() => {});
          await sleep(50);
        }
        await sleep(5);
      }
    };
    const writers = [writer(1), writer(2), writer(3)];
    const { child, exited } = launch({ batch: 5 });
    for (let kills = 0; kills < 3; kills++) {
      await sleep(1_200);
      await database.server.kill();
      await sleep(200);
      await database.server.restart();
    }
    await sleep(1_000);
    isOver = true;
    await Promise.all(writers);
    child.kill("SIGTERM");
    expect(await exited).toBe(null);
    await drain();
    const found = await held();
    expect(new Set(found).size).toBe(found.length);
    expect(found).toEqual(expect.arrayContaining(committed));
    expect(found.filter((id) => !committed.includes(id) && !unknown.includes(id))).toEqual([]);
    expect(committed.length).toBeGreaterThan(20);
    expect(found.filter((id) => undone.includes(id))).toEqual([]);
  });
});
