/** Rows that a race between two processes may leave behind. */

import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLogger } from "../../../src/core/logger.js";
import { type ManualClock, manualClock } from "../../../src/testing/manual-clock.js";
import type { WebhookStore } from "../../../src/webhooks/store.js";
import { type SqliteHandle, type SqliteStorage, sqliteStorage } from "../../../storage/sqlite/index.js";
import { createDatabaseFile, openDatabase } from "../../support/sqlite.js";

const START = Date.UTC(2026, 0, 1);
const HOUR = 3_600_000;

let file: ReturnType<typeof createDatabaseFile>;
let database: SqliteHandle;
let storage: SqliteStorage;

beforeEach(() => {
  file = createDatabaseFile();
  database = openDatabase(file.path);
  storage = sqliteStorage({ database });
});
afterEach(async () => {
  await storage.close();
  database.close();
  file.destroy();
});

/** A store with a webhook of an account, and an event for it. */
async function openStore(clock: ManualClock) {
  const retention = { keepMs: 1_000, events: 100 };
  const store = storage.webhooks({ clock, logger: silentLogger, perEndpoint: 5, retention });
  const account = "clinic";
  const id = store.newWebhookId(account);
  await store.createWebhook({
    webhook: {
      ...{ id, account, subscriberId: "key", status: "ENABLED", url: "https://subscriber.example/" },
      ...{ eventTypes: null, createdAt: START, updatedAt: START, secret: "s", previousSecret: null },
      ...{ rotateAt: null, generation: 0, failingSince: null, warnedAt: null, noticeAt: null },
    },
    ...{ enabledLimit: 10, accountLimit: 10, idempotency: null, now: START },
  });
  const event = { id: "e1", account, type: "patient.updated", digest: "d", payload: "{}" };
  await store.append({ events: [event], rememberMs: HOUR, now: START });
  return store;
}

const claimAll = async (store: WebhookStore) => {
  const now = store.now();
  const request = { now, token: "t", leaseUntil: now + HOUR, room: { fast: 5, slow: 5 } };
  const { claims } = await store.claim(request);
  return claims.map((claim) => claim.event.id);
};

test("an event that counts as completed although a delivery is pending is delivered, and not freed", async () => {
  const clock = manualClock(START);
  const store = await openStore(clock);
  // As after a resend while the only delivery was in flight.
  database.exec("INSERT INTO postbell_completed (event, account, place) VALUES (1, 'clinic', 0)");

  await clock.advance(10_000);
  expect(await claimAll(store)).toEqual(["e1"]);
  expect(await store.stats()).toMatchObject({ events: 1, pending: 1, leased: 1 });
});
