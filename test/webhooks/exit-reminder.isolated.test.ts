/** A process that ends without having called `start()` is told that its events wait. */

import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { silentLogger } from "../../src/core/logger.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { createStartReminder } from "../../src/webhooks/start-reminder.js";
import { createDatabaseFile } from "../support/sqlite.js";

const root = resolve(import.meta.dirname, "../..");
const WARNING =
  "postbell: start() was never called, so this process delivered none of its events: call start(), or stop() at the end of a process that only emits";

const PRELUDE = `
  import { createWebhooks } from "postbell";
  import { memoryStorage } from "postbell/memory";
  import { sqliteStorage } from "postbell/sqlite";
  const others = process.listenerCount("exit");
  const access = { authenticate: () => null, canRead: () => true };
  const create = (options = {}) => createWebhooks({ storage: memoryStorage(), access, ...options });
  const key = { id: "key-1", account: "clinic" };
  const event = { type: "patient.updated", account: "clinic", resource: { resourceType: "Patient", id: "1" } };
  const register = (webhooks) => webhooks.registrations.create({ subscriber: key, url: "https://hooks.example.com/in" });
`;

/** Runs a script with the built package, and returns what the logger wrote to the console. */
async function runScript(script: string): Promise<readonly string[]> {
  const args = ["--no-warnings", "--input-type=module", "-e", `${PRELUDE}\n${script}`];
  const { stderr } = await promisify(execFile)(process.execPath, args, { cwd: root });
  return stderr.split("\n").filter((line) => line !== "");
}

describe("a process that forgot start()", () => {
  it("is told at its end, with the number of events", async () => {
    const lines = await runScript(`
      const webhooks = create();
      await register(webhooks);
      await webhooks.emit(event);
      await webhooks.emit([event, event]);`);
    expect(lines).toEqual([`${WARNING} {"events":3}`]);
  });

  it("is told with a durable storage too", async () => {
    const file = createDatabaseFile();
    const lines = await runScript(`
      const webhooks = create({ storage: sqliteStorage({ file: ${JSON.stringify(file.path)} }) });
      await register(webhooks);
      await webhooks.emit(event);`);
    file.destroy();
    expect(lines).toEqual([`${WARNING} {"events":1}`]);
  });

  it("is told if it ends by process.exit()", async () => {
    const lines = await runScript(`
      const webhooks = create();
      await register(webhooks);
      await webhooks.emit(event);
      process.exit();`);
    expect(lines).toEqual([`${WARNING} {"events":1}`]);
  });

  it("is told by each service, through one listener", async () => {
    const lines = await runScript(`
      for (let count = 1; count <= 20; count++) {
        const warn = (fields) => console.error("service", count, fields.events);
        const webhooks = create({ logger: { ...console, debug() {}, warn } });
        await register(webhooks);
        await webhooks.emit(event);
      }
      console.error(process.listenerCount("exit") - others);`);
    expect(lines).toEqual(["1", ...Array.from({ length: 20 }, (_, index) => `service ${index + 1} 1`)]);
  });
});

describe("nothing is said at the end of a process", () => {
  it.each([
    ["that started", "await webhooks.start(); await webhooks.emit(event);"],
    ["that starts after it emitted", "await webhooks.emit(event); await webhooks.start();"],
    ["that only emits, and says so by stop()", "await webhooks.emit(event); await webhooks.stop();"],
    ["that stopped before it emitted", "await webhooks.stop(); await webhooks.emit(event);"],
    ["whose events nobody gets", 'await webhooks.emit({ ...event, account: "Clinic" });'],
    ["that emitted nothing", ""],
    [
      "whose start() was refused",
      `const away = create({ storage: { ...memoryStorage(), webhooks: (context) => ({ ...memoryStorage().webhooks(context), stats: () => Promise.reject(new Error("away")) }) } });
       await register(away);
       await away.emit(event);
       await away.start().catch(() => {});`,
    ],
    [
      "that logs nothing",
      "const silent = create({ logger: false }); await register(silent); await silent.emit(event);",
    ],
    [
      "with a clock of its own, as tests have",
      `const { manualClock } = await import("postbell/testing");
       const tested = create({ clock: manualClock(0) });
       await register(tested);
       await tested.emit(event);`,
    ],
  ])("%s", async (_, script) => {
    const lines = await runScript(`
      const webhooks = create();
      await register(webhooks);
      ${script}
      console.error(process.listenerCount("exit") - others);
      process.exit();`);
    expect(lines).toEqual(["0"]);
  });
});

describe("the listener on the process", () => {
  /** The listeners that the reminder of this file has added. */
  const count = (): number => process.listenerCount("exit");
  const stats = {
    webhooks: 1,
    events: 1,
    pending: 1,
    due: 1,
    leased: 0,
    endpoints: null,
    ended: 0,
    bytes: 0,
  };
  const createReminder = (answer: Partial<typeof stats>) => {
    const clock = manualClock(Date.UTC(2026, 0, 1));
    const store = { stats: async () => ({ ...stats, ...answer }) };
    return {
      clock,
      reminder: createStartReminder({ store, clock, logger: silentLogger, warnsAtExit: true }),
    };
  };

  it("is there from the first event until start() or stop() is called", () => {
    const before = count();
    const { reminder } = createReminder({});
    reminder.expectStart(0);
    expect(count()).toBe(before);
    reminder.expectStart(1);
    reminder.expectStart(1);
    expect(count()).toBe(before + 1);
    reminder.dismissAtExit();
    reminder.expectStart(1);
    expect(count()).toBe(before);
    reminder.started();
  });

  it.each([
    ["another process attempts deliveries", { leased: 1 }],
    ["another process has attempted them", { due: 0 }],
  ])("is removed, and never comes back, once %s", async (_, answer) => {
    const before = count();
    const { clock, reminder } = createReminder(answer);
    reminder.expectStart(1);
    expect(count()).toBe(before + 1);
    await clock.advance(20_000);
    expect(count()).toBe(before);
    reminder.expectStart(1);
    expect(count()).toBe(before);
    reminder.started();
  });
});
