/**
 * The rules of the delivery queue that the functions of Postgres repeat decide as
 * `storage/queue/vectors.json` says. A rule that is changed in one language only fails here.
 * `test/storage/queue/vectors.test.ts` plays the same file against TypeScript and Lua.
 */

import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { postgresStorage } from "../../storage/postgres/index.js";
import { addToSketch } from "../../storage/queue/recent-attempts.js";
import type { Vector } from "../storage/queue/decisions.js";
import { type DatabaseServer, startDatabase } from "./support/database-server.js";

const STORAGE = resolve(import.meta.dirname, "../../storage");
const VECTORS = JSON.parse(readFileSync(`${STORAGE}/queue/vectors.json`, "utf8")) as Record<string, Vector[]>;
const SCHEMA = "vectors";

let server: DatabaseServer;
let pool: pg.Pool;

beforeAll(async () => {
  server = await startDatabase("postgres");
  pool = new pg.Pool({ ...server.address, user: "postgres", database: "postgres", max: 1 });
  const storage = postgresStorage({ pool, schema: SCHEMA });
  await storage.migrate();
  await storage.close();
});
afterAll(async () => {
  await pool.end();
  await server.stop();
});

/** Reads what a rule is given: in the text of a query, `g` is the input of one vector. */
const NUMBER = (name: string): string => `(g ->> '${name}')::bigint`;
const CLAIMED = "(g -> 'claimed' ->> 'second')::bigint, p_count => (g -> 'claimed' ->> 'count')::bigint";
const NOW = `p_now => ${NUMBER("now")}`;
const SLOW_START = `p_slow_start => ${NUMBER("slowStart")}`;
const PER_ENDPOINT = `p_per_endpoint => ${NUMBER("perEndpoint")}`;
const PER_SECOND = `p_per_second => ${NUMBER("perSecond")}`;

/** How each rule is called in SQL, and for which vectors: Postgres repeats a part of some rules. */
const CALLS: Record<string, { call: string; applies?: (given: Record<string, unknown>) => boolean }> = {
  growSlowStart: {
    call: `grow_slow_start(${SLOW_START}, p_successes => ${NUMBER("successes")}, ${PER_ENDPOINT})`,
  },
  countFreeSlots: {
    call: `count_free_slots(${SLOW_START}, p_in_flight => ${NUMBER("inFlight")}, ${PER_ENDPOINT})`,
  },
  countLeft: {
    call: `coalesce(count_left(${PER_SECOND}, p_second => ${CLAIMED}, ${NOW})::text, '"Infinity"')::json`,
  },
  findOpenTime: { call: `find_open_time(${PER_SECOND}, p_second => ${CLAIMED}, ${NOW})` },
  addClaimed: {
    call: `json_build_object('second', find_second((g -> 'claimed' ->> 'second')::bigint, ${NOW}),
      'count', count_claimed(p_second => ${CLAIMED}, ${NOW}) + ${NUMBER("count")})`,
  },
  keepsTurn: { call: `keeps_turn(p_ready_at => ${NUMBER("readyAt")}, ${NOW})` },
  findReadyTime: {
    call: `find_ready_time(p_head => ${NUMBER("head")}, p_free_slots => ${NUMBER("freeSlots")}, p_open_time => ${NUMBER("openTime")})`,
  },
  isEarlier: { call: `is_earlier(p_ready_at => ${NUMBER("readyAt")}, p_before => ${NUMBER("before")})` },
  // Only successes of healthy endpoints are settled in SQL.
  applyReport: {
    applies: ({ status, failingSince, ok, generation }) =>
      status === "ENABLED" && failingSince === null && ok === true && generation === 2,
    call: `json_build_object('lane', 'fast', 'slowStart',
      grow_slow_start(${SLOW_START}, p_successes => ${NUMBER("attempts")}, p_per_endpoint => 5), 'health', null)`,
  },
  findQueueTime: {
    call: `find_queue_time(p_started_at => ${NUMBER("startedAt")}, p_due_at => ${NUMBER("dueAt")}, p_extra_at => ${NUMBER("extraAt")}, ${NOW})`,
  },
  divideRoom: {
    call: `divide_room(p_room => ${NUMBER("room")}, p_endpoints => ${NUMBER("endpoints")}, p_index => ${NUMBER("index")})`,
  },
  findFreePlace: { call: `find_free_place(${NOW}, p_keep_ms => ${NUMBER("keepMs")})` },
};

/** Rules that are decided in TypeScript alone, also where a function then writes the rows. */
const IN_TYPESCRIPT = ["classifySettlement", "receives", "compareKnown", "isKept"];

/** Returns the vectors with what Postgres decides. */
async function decideInSql(call: string, vectors: readonly Vector[]): Promise<Vector[]> {
  const text = `SELECT to_json(${call}) AS decision FROM json_array_elements($1) WITH ORDINALITY AS v(g, n) ORDER BY n`;
  const client = await pool.connect();
  try {
    await client.query(`SET search_path = ${SCHEMA}`);
    const { rows } = await client.query<{ decision: unknown }>(text, [
      JSON.stringify(vectors.map(({ given }) => given)),
    ]);
    return vectors.map(({ given }, index) => ({ given, expected: rows[index]?.decision ?? null }));
  } finally {
    client.release();
  }
}

test("every rule of the file is called in SQL, or stands in TypeScript alone", () => {
  expect([...Object.keys(CALLS), ...IN_TYPESCRIPT].sort()).toEqual(Object.keys(VECTORS).sort());
});

describe.each(Object.entries(CALLS))("%s decides as its vectors say", (rule, { call, applies }) => {
  const vectors = (VECTORS[rule] ?? []).filter(({ given }) => applies?.(given) ?? true);

  test("in SQL", async () => {
    expect(vectors.length).toBeGreaterThan(3);
    expect(await decideInSql(call, vectors)).toEqual(vectors);
  });
});

test.each([
  ["", "bd3"],
  ["bd3ch1", "bd1"],
  ["bd3ch1".repeat(80), "aa2"],
  ["bd3ch1".repeat(90), "aa2jj15"],
])("a sketch of %s and %s has the same text in SQL as in TypeScript", async (sketch, added) => {
  const { rows } = await pool.query(`SELECT ${SCHEMA}.add_to_sketch($1, $2) AS sum`, [sketch, added]);
  expect(rows).toEqual([{ sum: addToSketch(sketch, added) }]);
});

test("no number of the rules is typed again in SQL", () => {
  const files = readdirSync(`${STORAGE}/postgres/functions`);
  expect(files.length).toBeGreaterThan(10);
  const typed = files.flatMap((file) => {
    const text = readFileSync(`${STORAGE}/postgres/functions/${file}`, "utf8").replace(/--.*|'[^'\n]*'/g, "");
    return [...text.matchAll(/\b[0-9]{2,}\b/g)].map(([number]) => `${file} ${number}`);
  });
  expect(typed).toEqual([]);
});
