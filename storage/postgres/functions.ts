/**
 * The functions of a schema, from the files in `functions`: those that lease, settle and append in
 * one call each, and the rules of `storage/queue` that they repeat. A rule is a single expression,
 * so that Postgres inlines it where it is called. `vectors.json` proves the rules equal to those in
 * TypeScript.
 */

import * as constants from "../queue/constants.js";
import addToSketch from "./functions/add_to_sketch.sql";
import appendEvents from "./functions/append_events.sql";
import checkEncoding from "./functions/check_encoding.sql";
import compactSketch from "./functions/compact_sketch.sql";
import countClaimed from "./functions/count_claimed.sql";
import countFreeSlots from "./functions/count_free_slots.sql";
import countLeft from "./functions/count_left.sql";
import divideRoom from "./functions/divide_room.sql";
import findFreePlace from "./functions/find_free_place.sql";
import findOpenTime from "./functions/find_open_time.sql";
import findQueueTime from "./functions/find_queue_time.sql";
import findReadyTime from "./functions/find_ready_time.sql";
import findSecond from "./functions/find_second.sql";
import growSlowStart from "./functions/grow_slow_start.sql";
import isEarlier from "./functions/is_earlier.sql";
import keepsTurn from "./functions/keeps_turn.sql";
import leaseDue from "./functions/lease_due.sql";
import nobodySleeps from "./functions/nobody_sleeps.sql";
import settleDelivered from "./functions/settle_delivered.sql";
import sleepKey from "./functions/sleep_key.sql";

/** The numbers of `storage/queue/constants.ts`, each as a function with its name. */
const CONSTANTS = Object.entries(constants).map(
  ([name, value]) =>
    `CREATE FUNCTION ${name.toLowerCase()}() RETURNS bigint LANGUAGE sql IMMUTABLE RETURN ${value};`,
);

/** In this order: a function comes after those that it calls. */
const FUNCTIONS = [
  growSlowStart,
  countFreeSlots,
  findSecond,
  countClaimed,
  countLeft,
  findOpenTime,
  keepsTurn,
  findReadyTime,
  isEarlier,
  findQueueTime,
  divideRoom,
  findFreePlace,
  compactSketch,
  addToSketch,
  checkEncoding,
  sleepKey,
  nobodySleeps,
  leaseDue,
  settleDelivered,
  appendEvents,
];

/**
 * Returns the statements that create the functions in a schema. The files name neither a schema nor
 * a placeholder for one: they create in the first schema of `search_path`, and each function keeps
 * that path. A host that runs the statements in a transaction gets its path back.
 */
export const describeFunctions = (schema: string): string[] => [
  "SELECT set_config('postbell.search_path', current_setting('search_path'), true);",
  `SET LOCAL search_path = "${schema}", pg_temp;`,
  ...CONSTANTS,
  ...FUNCTIONS,
  "SELECT set_config('search_path', current_setting('postbell.search_path'), true);",
];
