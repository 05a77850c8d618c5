/**
 * On Postgres, functions of the schema lease and settle what is common; on SQLite, the same rules
 * stand in TypeScript. The same calls must leave the same rows in both, and return the same.
 */

import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { silentLogger } from "../../src/core/logger.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import type { Claim, Settlement, WebhookStore } from "../../src/webhooks/store.js";
import { postgresStorage } from "../../storage/postgres/index.js";
import { type SqliteHandle, sqliteStorage } from "../../storage/sqlite/index.js";
import { createDatabaseFile, openDatabase } from "../support/sqlite.js";
import { type DatabaseServer, startDatabase } from "./support/database-server.js";

const START = Date.UTC(2026, 0, 1);
const SECOND = 1_000;
const HOUR = 3_600_000;
const PER_ENDPOINT = 3;
const STEPS = 150;

let server: DatabaseServer;
let made = 0;

beforeAll(async () => {
  server = await startDatabase("postgres");
});
afterAll(() => server.stop());

type Row = Readonly<Record<string, unknown>>;

/** Rows that must be the same. Turns are numbers of a process: only their order counts. */
const QUERIES = {
  endpoints: `SELECT id, status, generation, failing_since, warned_at, notice_at, lane, ready_at, in_flight, slow_start,
    pending, delivered, failed, withheld, failed_tests, recent_hour, recent_succeeded, recent_failed, recent_duration_ms, recent_sketch, last_attempt, claimed_second, claimed_count FROM {endpoints} ORDER BY position`,
  hours:
    "SELECT endpoint, place, hour, succeeded, failed, duration_ms, p50, p95 FROM {hours} ORDER BY endpoint, place",
  turns: "SELECT id FROM {endpoints} WHERE ready_at IS NOT NULL ORDER BY lane, ready_at, turn",
  deliveries: `SELECT endpoint, event, serial, state, reason, started_at, step, due_at, extra_at, ended_at, postponed,
    crashes, is_recovered, queued_at, attempts FROM {deliveries} ORDER BY event, endpoint, serial`,
  queue: `SELECT q.endpoint, q.at, d.event, d.serial FROM {queue} q JOIN {deliveries} d ON d.position = q.delivery
    ORDER BY q.endpoint, q.at, q.delivery`,
  completed: "SELECT event, account, place FROM {completed} ORDER BY event",
} as const;

/** Reads which deliveries are leased: their positions may differ. */
async function readLeases({ read }: Side): Promise<readonly string[]> {
  const rows = await read("SELECT position, event, endpoint, serial FROM {deliveries}");
  const names = new Map(
    rows.map(({ position, ...row }) => [
      position,
      JSON.stringify([row["event"], row["endpoint"], row["serial"]]),
    ]),
  );
  const leases = await read("SELECT token, until, deliveries FROM {leases}");
  return leases
    .flatMap(({ token, until, deliveries }) => {
      const positions = JSON.parse(String(deliveries)) as number[];
      return positions.map((own) => JSON.stringify([token, until, names.get(own)]));
    })
    .sort();
}

interface Side {
  readonly store: WebhookStore;
  readonly read: (text: string) => Promise<readonly Row[]>;
}

const OPTIONS = {
  logger: silentLogger,
  perEndpoint: PER_ENDPOINT,
  retention: { keepMs: HOUR, events: 1_000 },
};

interface SideOptions {
  readonly clock: ReturnType<typeof manualClock>;
  readonly perSecond: number | null;
}

function openSqlite({ clock, perSecond }: SideOptions): Side {
  const file = createDatabaseFile();
  const database: SqliteHandle = openDatabase(file.path);
  const storage = sqliteStorage({ database });
  onTestFinished(async () => {
    await storage.close();
    database.close();
    file.destroy();
  });
  return {
    store: storage.webhooks({ clock, perSecond, ...OPTIONS }),
    read: async (text) => database.prepare(text.replaceAll(/\{(\w+)\}/g, "postbell_$1")).all() as Row[],
  };
}

/** `calls`: gets the result of each call of the function that settles. */
async function openPostgres({ clock, perSecond }: SideOptions, calls: unknown[]): Promise<Side> {
  const schema = `same_${++made}`;
  const pool = new pg.Pool({ ...server.address, user: "postgres", database: "postgres", max: 4 });
  pg.types.setTypeParser(20, Number);
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as (...given: unknown[]) => PromiseLike<{ rows: Row[] }>;
    Object.assign(client, {
      query(...given: unknown[]) {
        const sent = query(...given);
        const { text } = given[0] as { readonly text?: string };
        if (text?.startsWith("SELECT") && text.includes("settle_delivered")) {
          sent.then(
            ({ rows: [row] }) => calls.push(row?.["is_settled"]),
            () => {},
          );
        }
        return sent;
      },
    });
  });
  const storage = postgresStorage({ pool, schema, time: "clock" });
  onTestFinished(async () => {
    await storage.close();
    await pool.end();
  });
  await storage.migrate();
  return {
    store: storage.webhooks({ clock, perSecond, ...OPTIONS }),
    read: async (text) => (await pool.query(text.replaceAll(/\{(\w+)\}/g, `"${schema}".$1`))).rows,
  };
}

/** Builds a report on a claim: most are successes. */
function buildSettlement(claim: Claim, now: number, below: (count: number) => number): Settlement {
  const kind = below(12);
  const isOk = kind < 9;
  const { webhook, token, id, step, isExtra, startedAt } = claim;
  const pending = {
    state: "pending",
    step,
    dueAt: now + below(90) * SECOND,
    postponed: 1,
    crashes: 0,
  } as const;
  return {
    ...{ id, webhookId: webhook.id, account: webhook.account, token, now },
    outcome: isOk
      ? { state: "delivered" }
      : kind === 9
        ? { state: "failed", reason: "exhausted" }
        : { ...pending, extraAt: null },
    startedAt: startedAt ?? (kind === 11 ? null : now),
    attempt:
      kind === 11
        ? null
        : {
            ...{ at: now, durationMs: below(900), step, isExtra, kind: isOk ? "delivered" : "http" },
            ...{ status: isOk ? 204 : 500, code: isOk ? "HTTP_204" : "HTTP_500" },
            excerpt: isOk ? null : 'it said: "no\\"\n{,}',
          },
    endpoint:
      kind === 11
        ? null
        : {
            ...{ ok: isOk, generation: webhook.generation, at: now, noticeAt: now + HOUR },
            lane: below(4) === 0 ? "slow" : "fast",
          },
  };
}

const toComparable = (claims: readonly Claim[]) =>
  claims.map(({ webhook, ...claim }) => ({ ...claim, webhook: webhook.id, failing: webhook.failingSince }));

describe("the same calls have the same effects on Postgres and on SQLite", () => {
  it.each([
    ...[1, 2, 3, 4, 5, 6].map((seed) => ({ seed, perSecond: null })),
    ...[7, 8, 9].map((seed) => ({ seed, perSecond: seed - 6 })),
  ])("with seed $seed, and $perSecond a second", async ({ seed, perSecond }) => {
    const clock = manualClock(START, { seed });
    const below = (count: number): number => Math.floor(clock.random() * count);
    const settled: unknown[] = [];
    const options = { clock, perSecond };
    const sides = [openSqlite(options), await openPostgres(options, settled)] as const;
    const [sqlite] = sides;
    /** Runs a call on both, and returns what both return. */
    const both = async <T>(
      call: (store: WebhookStore) => Promise<T>,
      view: (result: T) => unknown,
    ): Promise<T> => {
      const [own, other] = [await call(sides[0].store), await call(sides[1].store)];
      expect(view(other)).toEqual(view(own));
      return own;
    };
    const compareRows = async (): Promise<void> => {
      for (const text of Object.values(QUERIES)) {
        const [own, other] = await Promise.all(sides.map(({ read }) => read(text)));
        expect(other).toEqual(own);
      }
      expect(await readLeases(sides[1])).toEqual(await readLeases(sqlite));
    };
    const accounts = ["a", 'b "{,\\', "c"];
    const webhooks = accounts.flatMap((account, index) =>
      Array.from({ length: index + 1 }, () => ({ id: sqlite.store.newWebhookId(account), account })),
    );
    for (const { id, account } of webhooks) {
      const now = clock.now();
      const webhook = {
        ...({
          id,
          account,
          subscriberId: "key",
          status: "ENABLED",
          url: "https://subscriber.example/",
        } as const),
        ...{ eventTypes: null, createdAt: now, updatedAt: now, secret: "s", previousSecret: null },
        ...{ rotateAt: null, generation: 0, failingSince: null, warnedAt: null, noticeAt: null },
      };
      const request = { webhook, enabledLimit: 10, accountLimit: 10, idempotency: null, now };
      await both(
        (store) => store.createWebhook(request),
        ({ result }) => result,
      );
    }

    let held: Claim[] = [];
    let events = 0;
    const append = async () => {
      const account = accounts[below(3)] ?? "a";
      const keepMs = below(4) === 0 ? 1 + below(2) * HOUR : undefined;
      const event = {
        id: `e${++events}`,
        account,
        type: "t",
        digest: "d",
        payload: `{"n":${events}}`,
        keepMs,
      };
      const request = { events: [event], rememberMs: HOUR, now: clock.now() };
      await both(
        (store) => store.append(request),
        (result) => result,
      );
    };
    const claim = async () => {
      const now = clock.now();
      const token = `token ${events} ${now} ${below(1_000_000)}`;
      const room = { fast: below(12), slow: below(12) };
      const { claims } = await both(
        (store) => store.claim({ now, token, leaseUntil: now + 40 * SECOND, room }),
        (response) => ({ ...response, claims: toComparable(response.claims) }),
      );
      held.push(...claims);
    };
    const reported = new Set<string>();
    /** The common way comes first, and gives endpoints their turns before the general one does. */
    const sort = (settlements: readonly Settlement[]): readonly Settlement[] => {
      const isCommon = ({ webhookId }: Settlement): boolean => {
        const own = settlements.filter((other) => other.webhookId === webhookId);
        const isFresh = own.every(({ id, token }) => !reported.has(`${token} ${id}`));
        const isUnique = new Set(own.map(({ id }) => id)).size === own.length;
        return isFresh && isUnique && own.every(({ outcome }) => outcome.state === "delivered");
      };
      return [...settlements.filter(isCommon), ...settlements.filter((one) => !isCommon(one))];
    };
    const report = async () => {
      const size = Math.min(held.length, 1 + below(8));
      const reports = held.splice(below(held.length - size + 1), size);
      const settlements = reports.map((own) => buildSettlement(own, clock.now(), below));
      if (below(10) === 0) settlements.push(...settlements.slice(0, 1));
      const sorted = sort(settlements);
      await both(
        (store) => store.settle(sorted),
        (results) => results,
      );
      for (const { id, token } of sorted) reported.add(`${token} ${id}`);
      if (below(10) === 0) held.push(...reports);
    };
    const change = async () => {
      const { id, account } = webhooks[below(webhooks.length)] ?? { id: "", account: "" };
      const status = below(3) === 0 ? ("DISABLED" as const) : ("ENABLED" as const);
      const request = { id, account, change: { status }, enabledLimit: 10, now: clock.now() };
      await both(
        (store) => store.updateWebhook(request),
        ({ result }) => result,
      );
    };
    for (let step = 0; step < STEPS; step++) {
      const kind = below(20);
      if (kind < 6) for (let count = below(5); count >= 0; count--) await append();
      else if (kind < 11) await claim();
      else if (kind < 17) await report();
      else if (kind < 18) await change();
      else await clock.advance(below(30) * SECOND);
      if (step % 40 === 39) await clock.advance(HOUR / 2);
      if (held.length > 60) held = held.slice(-20);
      await compareRows();
    }
    // The comparison says nothing unless the common way was taken, and refused, often enough.
    expect(settled.filter((result) => result === "t").length).toBeGreaterThan(5);
    expect(settled.filter((result) => result === "f").length).toBeGreaterThan(0);
  });
});
