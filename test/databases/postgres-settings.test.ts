/** Settings of a host's sessions change nothing of what is stored, or an error names them. */

import { randomUUID } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { ContentStorage } from "../../src/content/store.js";
import { silentLogger } from "../../src/core/logger.js";
import { createWebhooks, type EventInput, type Webhooks } from "../../src/index.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { pgSource } from "../../storage/outbox/index.js";
import { type PostgresStorage, postgresStorage } from "../../storage/postgres/index.js";
import { callsOf } from "../support/content-call.js";
import { contentSite } from "../support/content-site.js";
import { eventually } from "../support/eventually.js";
import { response } from "../support/webhook-harness.js";
import { type DatabaseServer, startDatabase } from "./support/database-server.js";

const SETTINGS: readonly (readonly [name: string, value: string])[] = [
  ["array_nulls", "off"],
  ["search_path", "shadow"],
  ["standard_conforming_strings", "off"],
  ["backslash_quote", "off"],
  ["transform_null_equals", "on"],
  ["DateStyle", "German"],
  ["IntervalStyle", "sql_standard"],
  ["TimeZone", "Asia/Kathmandu"],
  ["bytea_output", "escape"],
  ["extra_float_digits", "-15"],
  ["client_encoding", "SQL_ASCII"],
  ["statement_timeout", "10000"],
  ["lock_timeout", "10000"],
  ["default_transaction_isolation", "serializable"],
  ["default_transaction_isolation", "repeatable read"],
  ["row_security", "off"],
  ["plan_cache_mode", "force_custom_plan"],
  ["enable_hashjoin", "off"],
  ["enable_nestloop", "off"],
  ["enable_sort", "off"],
  ["force_parallel_mode", "on"],
  ["quote_all_identifiers", "on"],
  ["xmloption", "document"],
  ["plpgsql.variable_conflict", "use_column"],
];

/** Names that a careless statement would take for those of Postbell. */
const SHADOW = `CREATE SCHEMA shadow; CREATE DOMAIN shadow.text AS varchar(3);
  CREATE TABLE shadow.events (id int); CREATE TABLE shadow.webhooks (id int); CREATE TABLE shadow.endpoints (id int)`;

/** Names that a careless function would take for those of Postgres, if their schema comes first. */
const SHADOW_FUNCTIONS = `
  CREATE FUNCTION shadow.unnest(pg_catalog.text[]) RETURNS SETOF pg_catalog.text LANGUAGE sql AS $$ SELECT 'shadow'::pg_catalog.text $$;
  CREATE FUNCTION shadow.nextval(regclass) RETURNS bigint LANGUAGE sql AS $$ SELECT 666::bigint $$;
  CREATE FUNCTION shadow.json_build_array(bigint, bigint) RETURNS json LANGUAGE sql AS $$ SELECT '[666]'::json $$`;

/** Texts that could end a literal of an array, a string of SQL or a pattern. */
const TEXTS = [
  "NULL",
  "",
  "\\",
  "\\x41",
  "E'\\n' it's",
  '{"a",NULL}',
  "$1 %_[1, -- /* ;",
  "\t\r\n\u0001",
  "é \u{1f514}",
];
const ACCOUNTS = ["NULL", '{"a",NULL}\\', "it's $1 %_[1,\t\\N -- /*", "é \u{1f514}"];

interface Patient {
  readonly resourceType: "Patient";
  readonly id?: string;
  readonly note: string;
}

/** The records of one account, without a subject and with one. */
const RECORDS: readonly Patient[] = [
  ...TEXTS.map((note) => ({ resourceType: "Patient" as const, note })),
  { resourceType: "Patient", id: "NULL", note: TEXTS.join("") },
];
const SUBJECTS = RECORDS.map(({ id }) => (id === undefined ? null : `Patient/${id}`));

let server: DatabaseServer;
let plain: pg.Pool;
let storage: PostgresStorage;
let made = 0;

beforeAll(async () => {
  server = await startDatabase("postgres");
  plain = new pg.Pool({ ...server.address, user: "postgres", database: "postgres", max: 6 });
  await plain.query(`${SHADOW};${SHADOW_FUNCTIONS}`);
  storage = postgresStorage({ pool: plain, schema: "plain" });
  await storage.migrate();
});
afterAll(async () => {
  await storage.close();
  await plain.end();
  await server.stop();
});

/** A pool whose sessions begin with a setting. */
function openPool(name: string, value: string): pg.Pool {
  const options = `-c ${name}=${value.replaceAll(" ", "\\ ")}`;
  const pool = new pg.Pool({ ...server.address, user: "postgres", database: "postgres", max: 4, options });
  onTestFinished(() => pool.end());
  return pool;
}

/** A service whose requests arrive in a list instead of at an endpoint. */
function openService(own: PostgresStorage) {
  const sent: { readonly url: string; readonly resource: unknown }[] = [];
  const webhooks: Webhooks = createWebhooks({
    storage: own,
    logger: silentLogger,
    access: { authenticate: () => null, canRead: () => true },
    delivery: {
      async send({ url, body }) {
        const { event } = JSON.parse(Buffer.from(body ?? []).toString());
        sent.push({ url, resource: event.context[0].resource.entry[0].resource });
        return response(204);
      },
    },
  });
  onTestFinished(() => webhooks.stop());
  return { webhooks, sent };
}

/** Accounts with a webhook each, and events for them. */
async function register({ webhooks }: ReturnType<typeof openService>) {
  made += 1;
  const accounts = await Promise.all(
    ACCOUNTS.map(async (name) => {
      const account = `${name} ${made}`;
      const url = `https://hooks.example.com/${encodeURIComponent(account)}`;
      const { webhook } = await webhooks.registrations.create({ subscriber: { id: account, account }, url });
      return { account, url, webhookId: webhook.id };
    }),
  );
  const events = accounts.flatMap(({ account }) =>
    RECORDS.map((resource): EventInput => ({ type: "patient.updated", account, resource })),
  );
  return { accounts, events };
}
type Registered = Awaited<ReturnType<typeof register>>;

const listSorted = (values: readonly unknown[]): readonly string[] =>
  values.map((value) => JSON.stringify(value)).sort();

/** Delivers everything, and compares what is listed and sent with what was emitted. */
async function expectDelivered(
  { webhooks, sent }: ReturnType<typeof openService>,
  { accounts }: Registered,
): Promise<void> {
  await webhooks.start();
  await webhooks.idle();
  for (const { url, webhookId } of accounts) {
    const { items: deliveries } = await webhooks.deliveries.list({ webhookId, limit: 100 });
    expect(listSorted(deliveries.map(({ subject }) => subject))).toEqual(listSorted(SUBJECTS));
    expect(new Set(deliveries.map(({ state }) => state))).toEqual(new Set(["delivered"]));
    const resources = sent.filter((one) => one.url === url).map(({ resource }) => resource);
    expect(listSorted(resources)).toEqual(listSorted(RECORDS));
  }
}

/** Runs `work` in a transaction of the host, which commits. */
async function inTransaction<T>(begin: string, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await plain.connect();
  try {
    await client.query(begin);
    const result = await work(client);
    await client.query("COMMIT");
    return result;
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  } finally {
    client.release();
  }
}

/** Creates an outbox in a pool. */
async function openOutbox(pool: pg.Pool) {
  made += 1;
  const table = `public.outbox_${made}`;
  const source = pgSource({ pool, table });
  await source.install();
  return { source, table };
}

describe("in a transaction of the host", () => {
  it.each([...SETTINGS, ["search_path", "shadow, pg_catalog"] as const])(
    "%s = %s changes nothing of events",
    async (name, value) => {
      const service = openService(storage);
      const registered = await register(service);
      const { events } = registered;
      const { source } = await openOutbox(plain);
      const unwanted = { ...events[0], account: `nobody's \\NULL ${made}`, id: randomUUID() } as EventInput;
      const own = name.replace("default_transaction_", "transaction_");
      const set = name === "search_path" ? value : `'${value}'`;
      await inTransaction(`BEGIN; SET LOCAL ${own} = ${set}`, async (client) => {
        // The first reads the webhooks, and those after it take them for granted.
        for (const event of events) await service.webhooks.emit(event, { transaction: client });
        for (const isKnown of [false, true]) {
          const result = await service.webhooks.emit(unwanted, { transaction: client });
          expect(result).toMatchObject({ duplicate: isKnown });
        }
        if (value !== "shadow, pg_catalog") await source.add(client, events);
      });
      await expectDelivered(service, registered);
      const claims = await source.claim({ limit: 1_000, leaseMs: 60_000 });
      const added = value === "shadow, pg_catalog" ? [] : events;
      expect(listSorted(claims.map(({ event }) => JSON.parse(event)))).toEqual(listSorted(added));
    },
  );

  it.each([
    ["BEGIN READ ONLY", "The transaction is read-only"],
    ["BEGIN; SET LOCAL client_encoding = LATIN1", "client_encoding of the transaction is not UTF8"],
    ["BEGIN; SAVEPOINT a; SELECT 1 / 0", "An earlier statement of the transaction has failed"],
  ])("%s has emit say what is wrong, and nothing is stored", async (begin, reason) => {
    const service = openService(storage);
    const { accounts, events } = await register(service);
    const [{ account, webhookId } = { account: "", webhookId: "" }] = accounts;
    const event = { ...events[0], account } as EventInput;
    const refuse = async (given: EventInput): Promise<void> => {
      const client = await plain.connect();
      await client.query(begin).catch(() => {});
      await expect(service.webhooks.emit(given, { transaction: client })).rejects.toMatchObject({
        ...{ code: "invalid_argument", field: "transaction", message: expect.stringContaining(reason) },
      });
      await client.query("ROLLBACK");
      client.release();
    };
    await refuse(event);
    await refuse({ ...event, account: `nobody é ${made}` });
    await inTransaction("BEGIN", (client) => service.webhooks.emit(event, { transaction: client }));
    // Now the webhooks are known, and the first statement is the one that stores.
    await refuse(event);
    expect((await service.webhooks.deliveries.list({ webhookId })).items).toHaveLength(1);
  });

  it.each(["REPEATABLE READ", "SERIALIZABLE"])(
    "%s, emit says to run the transaction again if another one has stored the event",
    async (level) => {
      const service = openService(storage);
      const { events } = await register(service);
      const event = { ...events[0], id: randomUUID() } as EventInput;
      const emitted = inTransaction(`BEGIN ISOLATION LEVEL ${level}`, async (client) => {
        await client.query("SELECT count(*) FROM pg_class");
        await service.webhooks.emit(event);
        return service.webhooks.emit(event, { transaction: client });
      });
      await expect(emitted).rejects.toMatchObject({
        code: "storage_unavailable",
        effect: "none",
        message: expect.stringContaining("(40001); the event was not stored. Roll the transaction back"),
      });
    },
  );
});

/** Creates posts with each text. Resolves with what the interface says of them. */
async function writePosts(content: ContentStorage): Promise<readonly unknown[]> {
  const call = callsOf(contentSite({ storage: content, logger: silentLogger }));
  const posts: unknown[] = [];
  for (const text of TEXTS) {
    const body = { title: text, content: `<p>${text}</p>`, excerpt: text, status: "publish" };
    const { body: post } = await call("POST /posts", { as: "administrator", body });
    posts.push([post.id, post.slug, post.title?.raw, post.content?.raw, post.excerpt?.raw]);
  }
  const { body } = await call("GET /posts", { query: { search: "NULL", per_page: 100 } });
  return [...posts, body.map(({ id }: { id: number }) => id)];
}

describe("in the sessions of the host's pool", () => {
  it.each(SETTINGS)("%s = %s changes nothing of webhooks, content and the outbox", async (name, value) => {
    const pool = openPool(name, value);
    const own = postgresStorage({ pool, schema: `own_${++made}` });
    onTestFinished(() => own.close());
    await own.migrate();
    const service = openService(own);
    const registered = await register(service);
    await Promise.all(registered.events.map((event) => service.webhooks.emit(event)));
    await expectDelivered(service, registered);
    expect(await writePosts(own)).toEqual(await writePosts(memoryStorage()));

    const { source, table } = await openOutbox(pool);
    const client = await pool.connect();
    await source.add(client, registered.events);
    client.release();
    const claims = await source.claim({ limit: 1_000, leaseMs: 60_000 });
    expect(listSorted(claims.map(({ event }) => JSON.parse(event)))).toEqual(listSorted(registered.events));
    for (const claim of claims) await source.park({ ...claim, reason: "NULL" });
    const { rows } = await plain.query(
      `SELECT seq::text AS key, trunc(extract(epoch FROM added_at) * 1000)::float8 AS added, trunc(extract(epoch FROM parked_at) * 1000)::float8 AS parked, reason FROM ${table}`,
    );
    const parked = (await source.parked({ limit: 1_000 })).map(({ key, addedAt, parkedAt, reason }) => ({
      ...{ key, added: Math.trunc(addedAt), parked: Math.trunc(parkedAt), reason },
    }));
    expect(listSorted(parked)).toEqual(listSorted(rows));
    expect(new Set(rows.map(({ reason }) => reason))).toEqual(new Set(["NULL"]));
  });

  it("default_transaction_read_only is named by an emit that cannot store", async () => {
    const { accounts, events } = await register(openService(storage));
    const readOnly = postgresStorage({
      pool: openPool("default_transaction_read_only", "on"),
      schema: "plain",
    });
    onTestFinished(() => readOnly.close());
    const { webhooks } = openService(readOnly);
    for (const event of [events[0], { ...events[0], account: "nobody" }]) {
      await expect(webhooks.emit(event as EventInput)).rejects.toMatchObject({
        code: "storage_unavailable",
        effect: "none",
        message: expect.stringContaining("set default_transaction_read_only = off"),
      });
    }
    const webhookId = accounts[0]?.webhookId ?? "";
    expect((await webhooks.deliveries.list({ webhookId })).items).toEqual([]);
  });

  it.each([
    ["statement_timeout", "500"],
    ["lock_timeout", "500"],
    ["default_transaction_isolation", "repeatable read"],
    ["default_transaction_isolation", "serializable"],
  ])("%s = %s has migrations of several processes wait for each other all the same", async (name, value) => {
    const schema = `migrated_${++made}`;
    const pools = [openPool(name, value), openPool(name, value)];
    let migrated: Promise<unknown> = Promise.resolve();
    await inTransaction("BEGIN", async (client) => {
      await client.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [`${schema} migrate`]);
      migrated = Promise.allSettled(pools.map((pool) => postgresStorage({ pool, schema }).migrate()));
      const haveWaited = async (): Promise<boolean> => {
        const { rows } = await plain.query(
          "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory' AND clock_timestamp() - query_start > interval '700 ms'",
        );
        return rows.length === 2;
      };
      await Promise.race([migrated, eventually(haveWaited, "both wait for the lock")]);
    });
    const done = { status: "fulfilled", value: { version: 1 } };
    expect(await migrated).toEqual([done, done]);
  });
});
