/**
 * The numbers of the rules of the delivery queue that more than one language needs. TypeScript
 * imports them, the Lua library begins with them (`CONSTANTS` of `storage/redis/library.ts`), and
 * each is a function of the schema on Postgres (`storage/postgres/functions.ts`).
 */

/** A first attempt is queued so much before its time that it comes before retries. */
export { FIRST_ATTEMPT_HEAD_START_MS as HEAD_START_MS } from "../../src/webhooks/store.js";

export const MS_PER_SECOND = 1_000;
export const MS_PER_HOUR = 3_600_000;

/**
 * How many seconds a counted second may be ahead of the caller's clock. Clocks of processes differ
 * a little, and the later second then counts for all. One that is further ahead was counted before
 * the clock was set back.
 */
export const MAX_SECONDS_AHEAD = 60;

/**
 * The places of completed events that have a `keepMs` of their own begin here. Times reach it in
 * 2248, and Redis writes places with eleven hexadecimal digits.
 */
export const KEPT_FROM = 0x80000000000;

/** Attempts that one delivery keeps. The schedule has 14; further ones come from `resend`. */
export const MAX_ATTEMPTS = 50;

/** Hours whose attempts are kept, with the current one. */
export const MAX_HOURS = 72;

/** A sketch of durations that would be longer is compacted. */
export const MAX_SKETCH_CHARACTERS = 512;
