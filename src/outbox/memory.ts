/** A source in memory, for tests and as the shortest example of a source. */

import { type Clock, systemClock } from "../core/clock.js";
import { readOptions, value } from "../core/options.js";
import type { AnyEventInput } from "../webhooks/service.js";
import { type EventRow, listRowIds, toEventRows } from "./event-row.js";
import type { OutboxClaim, OutboxSource, ParkedRow } from "./outbox-source.js";

export interface MemorySource extends OutboxSource {
  /**
   * Adds an event or several at once, without a transaction. Resolves with the ids.
   *
   * @throws `invalid_argument`
   */
  add(event: AnyEventInput): Promise<string>;
  /** Adds several events. */
  add(events: readonly AnyEventInput[]): Promise<string[]>;
}

interface Row extends EventRow {
  key: string;
  addedAt: number;
  claims: number;
  retries: number;
  /** `null` while the row is parked. */
  dueAt: number | null;
  unsureSince: number | null;
  parkedAt: number;
  reason: string;
}

const memorySourceOptions = {
  clock: value<Clock>("a clock", (value) => typeof value === "object" && value !== null, systemClock),
};

/**
 * Creates a source that lives as long as the process.
 *
 * @throws `invalid_option`
 */
export function memorySource(options?: { clock?: Clock | undefined }): MemorySource {
  const { clock } = readOptions("memorySource", memorySourceOptions, options);
  const rows = new Map<string, Row>();
  let lastKey = 0;

  const insert = ({ id, event }: EventRow): void => {
    const now = clock.now();
    const key = String(++lastKey);
    const initial = { claims: 0, retries: 0, dueAt: now, unsureSince: null, parkedAt: 0, reason: "" };
    rows.set(key, { key, id, event, addedAt: now, ...initial });
  };

  const claimRow = (row: Row, now: number, leaseMs: number): OutboxClaim => {
    const unsureMs = row.unsureSince === null ? null : now - row.unsureSince;
    row.unsureSince ??= now;
    row.dueAt = now + leaseMs;
    row.claims += 1;
    const { key, id, event, addedAt, claims, retries } = row;
    return { key, id, event, addedAt, claims, retries, unsureMs };
  };

  /** Returns the row of a claim, unless the row was claimed again. */
  const findClaimed = (key: string, claims: number): Row | undefined => {
    const row = rows.get(key);
    return row?.claims === claims ? row : undefined;
  };

  const listWaiting = (): Row[] => [...rows.values()].filter(({ dueAt }) => dueAt !== null);
  const listParked = (): Row[] => [...rows.values()].filter(({ dueAt }) => dueAt === null);

  function add(event: AnyEventInput): Promise<string>;
  function add(events: AnyEventInput[]): Promise<string[]>;
  async function add(events: AnyEventInput | AnyEventInput[]): Promise<string | string[]> {
    const added = toEventRows(events);
    added.forEach(insert);
    return listRowIds(events, added);
  }

  return Object.freeze<MemorySource>({
    add,
    async claim({ limit, leaseMs }) {
      const now = clock.now();
      return listWaiting()
        .filter(({ dueAt }) => (dueAt ?? 0) <= now)
        .sort((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0))
        .slice(0, limit)
        .map((row) => claimRow(row, now, leaseMs));
    },
    async remove(keys) {
      for (const key of keys) rows.delete(key);
    },
    async retry({ key, claims, delayMs, isUnsure }) {
      const row = findClaimed(key, claims);
      if (!row || row.dueAt === null) return;
      row.retries += 1;
      row.dueAt = clock.now() + delayMs;
      if (!isUnsure) row.unsureSince = null;
    },
    async park({ key, claims, reason }) {
      const row = findClaimed(key, claims);
      if (row) Object.assign(row, { dueAt: null, parkedAt: clock.now(), reason });
    },
    async parked({ limit }) {
      const sorted = listParked().sort((a, b) => a.parkedAt - b.parkedAt);
      return sorted
        .slice(0, limit)
        .map(({ key, id, addedAt, parkedAt, reason }): ParkedRow => ({ key, id, addedAt, parkedAt, reason }));
    },
    async release(keys) {
      for (const key of keys) {
        const row = rows.get(key);
        if (row?.dueAt === null)
          Object.assign(row, { dueAt: clock.now(), retries: row.claims, unsureSince: null });
      }
    },
    async stats() {
      const addedAt = listWaiting().map((row) => row.addedAt);
      const oldestMs = addedAt.length === 0 ? null : clock.now() - Math.min(...addedAt);
      return { waiting: addedAt.length, parked: listParked().length, oldestMs };
    },
  });
}
