/** A SQLite file is copied while processes write to it, and the copy is used in its place. */

import { existsSync } from "node:fs";
import { expect, it, onTestFinished } from "vitest";
import { openDatabase } from "../support/sqlite.js";
import { openChecker } from "./support/checker.js";
import { patientEvent } from "./support/ledger.js";
import { startSqliteUnderTest, toFile } from "./support/sqlite-under-test.js";
import { startForTests } from "./support/start-for-tests.js";
import { eventually } from "./support/worker-host.js";
import { openScene } from "./support/worker-scene.js";

const on = startForTests(startSqliteUnderTest);
const COPIES = 5;

it("holds what was promised before the copy began, whole, and delivers what was pending in it", async () => {
  const scene = await openScene(on());
  const { ledger, checker, subscriber, launch, options } = scene;
  for (const path of ["/1", "/2", "/3"]) await ledger.register(path);
  const worker = await launch();
  let isOver = false;
  const emitting = (async () => {
    while (!isOver)
      await Promise.all(Array.from({ length: 5 }, () => ledger.emit(patientEvent("p1", 2_000))));
  })();
  const source = openDatabase(toFile(options.storage));
  onTestFinished(() => void source.close());
  const copies: { readonly file: string; readonly promised: readonly string[] }[] = [];
  for (let copy = 0; copy < COPIES; copy++) {
    const before = ledger.promised.size;
    await eventually(() => ledger.promised.size > before + 50, "events are emitted");
    const file = `${toFile(options.storage)}.${copy}`;
    const promised = [...ledger.promised];
    source.exec(`VACUUM INTO '${file}'`);
    copies.push({ file, promised });
  }
  isOver = true;
  await emitting;
  await checker.drained();
  await worker.kill();

  for (const { file, promised } of copies) {
    expect(existsSync(`${file}-wal`)).toBe(false);
    const storage = { kind: "sqlite", file } as const;
    const restored = openChecker(on(), storage);
    expect(await restored.inspector.findFaults()).toEqual([]);
    for (const id of promised) expect((await restored.delivery(id)).id).toBe(id);
    // Its leases are those of processes that use the other file.
    await restored.inspector.expireLeases(
      worker.journal().flatMap(({ token }) => (token === undefined ? [] : [token.split(".")[0] ?? ""])),
    );
    const next = await launch({ storage });
    await restored.drained();
    await next.kill();
    for (const id of promised) expect((await restored.delivery(id)).state).toBe("delivered");
  }
  expect(subscriber.received.every(({ isSigned }) => isSigned)).toBe(true);
});
