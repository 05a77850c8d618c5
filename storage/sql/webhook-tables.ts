/** The tables of the webhook store. Rows refer to each other by position. */

import type { RowOf, SqlTable } from "./table.js";

/** The settings of webhooks, which users change. */
export const webhooks = {
  name: "webhooks",
  columns: {
    position: "position",
    id: "text",
    account: "text",
    subscriber_id: "text",
    url: "text",
    /** A JSON list; null for every type. */
    event_types: "text?",
    created_at: "int",
    secret: "text",
    previous_secret: "text?",
    rotate_at: "int?",
    description: "text?",
    /** A JSON object of texts. */
    metadata: "text?",
    /** An `EventFilter` as JSON. */
    filter: "text?",
    /** A JSON object of secret headers, sealed. */
    headers: "text?",
  },
  unique: [["id"]],
  indexes: [{ columns: ["account", "position"] }],
} as const satisfies SqlTable;

/**
 * The part of a webhook that deliveries change, with the same position. A transaction that changes
 * the queue, the leases or the health of an endpoint holds the lock of its row.
 */
export const endpoints = {
  name: "endpoints",
  columns: {
    position: "int",
    id: "text",
    account: "text",
    status: "text",
    updated_at: "int",
    generation: "int",
    failing_since: "int?",
    warned_at: "int?",
    notice_at: "int?",
    lane: "text",
    /** When a delivery may be claimed; null if none waits or no slot is free. */
    ready_at: "int?",
    /** Orders the endpoints that are ready since the same time: those served last come last. */
    turn: "int",
    in_flight: "int",
    slow_start: "int?",
    pending: "int",
    delivered: "int",
    failed: "int",
    withheld: "int",
    failed_tests: "int",
    /** How many events its filter has refused. */
    filtered: "int",
    /** The newest hour with attempts, counted from 1970, and what it has counted. */
    recent_hour: "int?",
    recent_succeeded: "int",
    recent_failed: "int",
    recent_duration_ms: "int",
    recent_sketch: "text",
    /** An attempt as JSON, without its excerpt. */
    last_attempt: "text?",
    /** A second, and how many deliveries were claimed in it, if the rate is limited. */
    claimed_second: "int?",
    claimed_count: "int?",
    /** The limit of this endpoint; null: the limit of all. */
    per_second: "int?",
  },
  primaryKey: ["position"],
  unique: [["id"]],
  indexes: [
    { columns: ["lane", "ready_at", "turn"], present: "ready_at" },
    { columns: ["notice_at"], present: "notice_at" },
    { columns: ["failing_since", "position"], present: "failing_since" },
  ],
} as const satisfies SqlTable;

/** The hours before, written when they are over. Each replaces the one 72 hours earlier. */
export const hours = {
  name: "hours",
  columns: {
    endpoint: "int",
    /** The hour modulo 72. */
    place: "int",
    hour: "int",
    succeeded: "int",
    failed: "int",
    duration_ms: "int",
    p50: "int?",
    p95: "int?",
  },
  primaryKey: ["endpoint", "place"],
} as const satisfies SqlTable;

/**
 * Counts that transactions add without locking an endpoint: appends, and retention. The next claim
 * adds them up. A row has those of many endpoints, since Postgres reads rows that were deleted
 * again and again until it vacuums the table.
 */
export const changes = {
  name: "changes",
  columns: {
    position: "position",
    /** A JSON list of `EndpointCounts`. */
    counts: "text",
    events: "int",
    bytes: "int",
  },
} as const satisfies SqlTable;

/** One row: how many events are stored, and how many bytes they have. */
const totals = {
  name: "totals",
  columns: { name: "text", events: "int", bytes: "int" },
  primaryKey: ["name"],
} as const satisfies SqlTable;

export const events = {
  name: "events",
  columns: {
    position: "position",
    account: "text",
    id: "text",
    type: "text",
    subject: "text?",
    /** A JSON list. */
    tags: "text?",
    digest: "text",
    bytes: "int",
    stored_at: "int",
    remember_until: "int",
    /** A JSON list of the ids of the webhooks it went to. */
    receivers: "text",
    /** 1 for a test of one webhook, which no other webhook receives or recovers. */
    is_test: "int",
    /** How many deliveries it has had. One with several is locked when one of them is completed. */
    deliveries: "int",
    /** How long it is kept once it is completed; null for the retention of all. */
    keep_ms: "int?",
  },
  unique: [["account", "id"]],
  indexes: [
    { columns: ["account", "stored_at", "position"] },
    { columns: ["account", "subject", "position"], present: "subject" },
  ],
  isUpdatedInPlace: true,
} as const satisfies SqlTable;

/** Each tag of an event. */
export const eventTags = {
  name: "event_tags",
  columns: { account: "text", tag: "text", event: "int" },
  primaryKey: ["account", "tag", "event"],
} as const satisfies SqlTable;

/** The payloads of events, apart from their counts: a payload is written once. */
export const bodies = {
  name: "bodies",
  columns: { event: "int", payload: "text" },
  primaryKey: ["event"],
} as const satisfies SqlTable;

/**
 * The events without a pending delivery, in the order in which they are freed: `place` is that of
 * `findFreePlace` when they became so. One that was resent or recovered while its only delivery was
 * in flight may be here too, so freeing an event checks it again.
 */
export const completed = {
  name: "completed",
  columns: { event: "int", account: "text", place: "int" },
  primaryKey: ["event"],
  indexes: [{ columns: ["place"] }, { columns: ["account", "place", "event"] }],
} as const satisfies SqlTable;

/** The ids of events that are not stored any more. */
export const remembered = {
  name: "remembered",
  columns: { account: "text", id: "text", digest: "text", receivers: "text", expires_at: "int" },
  primaryKey: ["account", "id"],
  indexes: [{ columns: ["expires_at"] }],
} as const satisfies SqlTable;

export const deliveries = {
  name: "deliveries",
  columns: {
    position: "position",
    endpoint: "int",
    event: "int",
    serial: "int",
    created_at: "int",
    state: "text",
    reason: "text?",
    started_at: "int?",
    step: "int",
    due_at: "int",
    extra_at: "int?",
    ended_at: "int?",
    postponed: "int",
    crashes: "int",
    is_recovered: "int",
    /** Its place in the queue, while it has one. */
    queued_at: "int",
    /** Attempts as JSON, a line for each. */
    attempts: "text",
  },
  unique: [["event", "endpoint", "serial"]],
  indexes: [{ columns: ["endpoint", "created_at", "position"] }],
  isUpdatedInPlace: true,
} as const satisfies SqlTable;

/** The deliveries that wait, by endpoint and by when they may be claimed. */
export const queue = {
  name: "queue",
  columns: { endpoint: "int", at: "int", delivery: "int" },
  primaryKey: ["endpoint", "at", "delivery"],
} as const satisfies SqlTable;

/** The leases of each claim that are not settled yet: one row, however many deliveries it has. */
export const leases = {
  name: "leases",
  columns: {
    position: "position",
    token: "text",
    until: "int",
    /** A JSON list of positions. */
    deliveries: "text",
  },
  indexes: [{ columns: ["token"] }, { columns: ["until"] }],
} as const satisfies SqlTable;

/** The positions of removed webhooks whose deliveries are still to be deleted. */
export const removals = {
  name: "removals",
  columns: { endpoint: "int" },
  primaryKey: ["endpoint"],
} as const satisfies SqlTable;

/** Creates that are remembered for their `Idempotency-Key`. */
export const replays = {
  name: "replays",
  columns: { account: "text", key: "text", digest: "text", webhook: "text", expires_at: "int" },
  primaryKey: ["account", "key"],
  indexes: [{ columns: ["expires_at"] }],
} as const satisfies SqlTable;

/** The audit log. */
export const audit = {
  name: "audit",
  columns: {
    position: "position",
    account: "text",
    at: "int",
    /** 1 for an entry about a delivery, 0 for others. */
    is_delivery: "int",
    /** JSON. */
    entry: "text",
  },
  indexes: [{ columns: ["account", "position"] }, { columns: ["account", "is_delivery", "position"] }],
} as const satisfies SqlTable;

/** The keys that encrypt the bodies of events, one for each account that has such events. */
export const dataKeys = {
  name: "data_keys",
  columns: {
    account: "text",
    name: "text",
    /** Sealed. */
    key: "text",
  },
  primaryKey: ["account"],
} as const satisfies SqlTable;

/** The names of erased data keys. They say nothing about the account. */
export const erasedKeys = {
  name: "erased_keys",
  columns: { name: "text", forget_at: "int" },
  primaryKey: ["name"],
} as const satisfies SqlTable;

export const WEBHOOK_TABLES: readonly SqlTable[] = [
  webhooks,
  endpoints,
  hours,
  changes,
  totals,
  events,
  eventTags,
  bodies,
  completed,
  remembered,
  deliveries,
  queue,
  leases,
  removals,
  replays,
  audit,
  dataKeys,
  erasedKeys,
];

export type HourRow = RowOf<typeof hours>;

export type DeliveryRow = RowOf<typeof deliveries>;

/** The texts of an event, as they are stored. */
export interface EventTexts {
  type: string;
  subject: string | null;
  tags: string | null;
  digest: string;
  payload: string | null;
}

/** A due delivery with its event, as a claim reads it. */
export type DueRow = Omit<
  DeliveryRow,
  "created_at" | "state" | "reason" | "ended_at" | "queued_at" | "attempts"
> &
  EventTexts & {
    at: number;
    /**
     * 1 if settling it need not lock its event: that had no other delivery, and has no `keep_ms`.
     */
    is_only: number;
    /** Null if they are too long to be remembered. */
    attempts: string | null;
    event_id: string;
    /** Null if the database has lost it: the core then reports the event as unreadable. */
    payload: string | null;
  };

// The row of an endpoint.

export type EndpointRow = RowOf<typeof endpoints>;
