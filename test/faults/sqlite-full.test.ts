/** A SQLite file without room: refused calls store nothing, and what was stored is kept. */

import { describe, expect, it, onTestFinished } from "vitest";
import { silentLogger } from "../../src/core/logger.js";
import { createWebhooks, type Webhooks } from "../../src/index.js";
import type { SqliteHandle } from "../../storage/sqlite/index.js";
import { sqliteStorage } from "../../storage/sqlite/index.js";
import { callsOf } from "../support/content-call.js";
import { contentSite } from "../support/content-site.js";
import { openDatabase } from "../support/sqlite.js";
import { held } from "../support/webhook-harness.js";
import { balanced, openChecker } from "./support/checker.js";
import { KEY, patientEvent } from "./support/ledger.js";
import { startSubscriber } from "./support/ledger-subscriber.js";
import { startSqliteUnderTest, toFile } from "./support/sqlite-under-test.js";
import { startForTests } from "./support/start-for-tests.js";
import { codeOf, listLogger } from "./support/store-driver.js";
import { eventually } from "./support/worker-host.js";

const on = startForTests(startSqliteUnderTest);

/** Deliveries that are in flight when there is no more room. */
const STARTED = 4;
const NOT_SETTLED = "a delivery could not be settled";

/** A file that a test makes full, in one of two ways. */
async function openFillable() {
  const address = await on().fresh();
  const database = openDatabase(toFile(address));
  onTestFinished(() => void database.close());
  let isDiskFull = false;
  let isWriting = false;
  const handle: SqliteHandle = {
    prepare: (text) => database.prepare(text),
    close: () => database.close(),
    exec(text) {
      if (text.startsWith("BEGIN")) isWriting = text === "BEGIN IMMEDIATE";
      // The log of changes grows with each change, so a full disk refuses every one.
      if (isDiskFull && isWriting && text === "COMMIT") {
        throw Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
      }
      return database.exec(text);
    },
  };
  const checker = openChecker(on(), address);
  // Creates the tables.
  await checker.store.stats();
  const fillings: Readonly<Record<"file" | "disk", Filling>> = {
    file: createFiller(database),
    disk: {
      fill() {
        isDiskFull = true;
      },
      makeRoom() {
        isDiskFull = false;
      },
    },
  };
  return { storage: sqliteStorage({ database: handle }), checker, fillings };
}

interface Filling {
  readonly fill: () => void;
  readonly makeRoom: () => void;
}

/** Fills the file to its last page. */
function createFiller(database: SqliteHandle): Filling {
  return {
    fill() {
      database.exec("CREATE TABLE filler (bytes BLOB)");
      const pages = (database.prepare("PRAGMA page_count").all()[0] as { page_count: number }).page_count;
      database.exec(`PRAGMA max_page_count = ${pages + 40}`);
      for (const bytes of [10_000, 1_000, 100, 10]) {
        try {
          for (;;) database.exec(`INSERT INTO filler VALUES (zeroblob(${bytes}))`);
        } catch (error) {
          expect(String(error)).toMatch(/full/);
        }
      }
    },
    makeRoom() {
      database.exec("DROP TABLE filler");
      database.exec("PRAGMA max_page_count = 1000000");
    },
  };
}

describe.each(["file", "disk"] as const)("a full %s", (kind) => {
  it("refuses emits with storage_full, keeps what was delivered meanwhile, and delivers all once there is room", async () => {
    const { storage, checker, fillings } = await openFillable();
    const { fill, makeRoom } = fillings[kind];
    const { logger, log } = listLogger();
    let isFull = false;
    const first = held<number>();
    const subscriber = await startSubscriber({ answer: () => (isFull ? 204 : first.promise) });
    const webhooks: Webhooks = createWebhooks({
      storage,
      access: { authenticate: () => null, canRead: () => true },
      destinations: { allowPrivateNetworks: true, ca: subscriber.ca, resolve: async () => ["127.0.0.1"] },
      retry: { intervalsMs: [200], everyMs: 500, windowMs: 60_000, jitter: 0 },
      logger,
    });
    onTestFinished(() => webhooks.stop({ graceMs: 0 }));
    const { webhook, secret } = await webhooks.registrations.create({
      subscriber: KEY,
      url: subscriber.url("/"),
    });
    subscriber.trust(webhook.id, secret);
    const promised = new Set<string>();
    const emit = async (): Promise<void> => {
      const { deliveries } = await webhooks.emit(patientEvent("p1", 2_000));
      for (const { id } of deliveries) promised.add(id);
    };
    await webhooks.start();
    for (let event = 0; event < STARTED; event++) await emit();
    await eventually(() => subscriber.received.length === STARTED, "the endpoint has all requests");

    isFull = true;
    fill();
    const codes = await Promise.all(Array.from({ length: 50 }, () => codeOf(emit())));
    expect(codes).toContain("storage_full");
    expect(new Set([...codes, "resolved", "storage_full"]).size).toBe(2);
    expect(await checker.inspector.findFaults()).toEqual([]);
    expect((await checker.store.stats()).events).toBe(
      STARTED + codes.filter((code) => code === "resolved").length,
    );
    const before = log.length;
    first.resolve(204);
    // A file without free pages has room for the result of an attempt, a full disk has none.
    const hasEnded = async (): Promise<boolean> =>
      kind === "disk"
        ? log.slice(before).some(({ message }) => message === NOT_SETTLED)
        : (await checker.store.stats()).ended === STARTED;
    await eventually(hasEnded, "the attempts have results");

    makeRoom();
    await emit();
    await checker.drained();
    expect(log.filter(({ message }) => message === NOT_SETTLED).length).toBeLessThanOrEqual(1);
    const books = await checker.books({ promised }, subscriber);
    expect(books).toEqual({ ...balanced, deliveries: promised.size, duplicates: 0 });
    await webhooks.stop();
    await storage.close();
  });

  it("answers writes of content with 503 and Retry-After, and reads as before", async () => {
    const { storage, checker, fillings } = await openFillable();
    const { fill, makeRoom } = fillings[kind];
    const call = callsOf(contentSite({ storage, logger: silentLogger }));
    const create = (title: string) =>
      call("POST /posts", {
        as: "administrator",
        body: { title, status: "publish", content: "x".repeat(9_000) },
      });
    const first = await create("First");
    expect(first.status).toBe(201);
    fill();
    const answers = await Promise.all(Array.from({ length: 20 }, (_, post) => create(`Post ${post}`)));
    const refused = answers.filter(({ status }) => status !== 201);
    expect(refused.length).toBeGreaterThan(0);
    for (const { status, headers, body } of refused) {
      expect([status, headers["Retry-After"], body.code]).toEqual([503, "5", "rest_storage_full"]);
    }
    const stored = 1 + answers.length - refused.length;
    const list = await call("GET /posts", { query: { per_page: 100 } });
    expect([list.status, list.headers["X-WP-Total"]]).toEqual([200, String(stored)]);
    expect(await checker.inspector.findContentFaults()).toEqual([]);
    makeRoom();
    expect((await create("Last")).status).toBe(201);
    expect((await call("GET /posts")).headers["X-WP-Total"]).toBe(String(stored + 1));
    await storage.close();
  });
});
