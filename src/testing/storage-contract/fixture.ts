/**
 * The fixture of the storage contract: an empty storage, bound by two processes, and a clock that
 * stands still. Its methods are in `builders.ts` and `calls.ts`.
 */

import assert from "node:assert/strict";
import { type Logger, silentLogger } from "../../core/logger.js";
import type { DeliveryRecord, Retention, Storage, WebhookStore } from "../../webhooks/store.js";
import { manualClock } from "../manual-clock.js";
import { readAllPages } from "./assertions.js";
import { createBuilders, PER_ENDPOINT, RETENTION } from "./builders.js";
import { createCalls, createSteps } from "./calls.js";

const START_MS = Date.UTC(2026, 0, 5, 8);

/** An empty storage. */
export interface StorageUnderTest {
  storage: Storage;
  /**
   * Another connection to the same records, as a second process has it. Default: the same storage,
   * bound a second time.
   */
  peer?: Storage | undefined;
  /**
   * Returns how much work the storage has done so far, in a unit that grows with each record it
   * touches: database commands and their elements, or rows examined. If it is present, the contract
   * also checks that the work of a call does not grow with the log of its account.
   */
  work?: (() => number | Promise<number>) | undefined;
  /** False for a storage without data keys, which refuses `sealEvents`. Default true. */
  hasDataKeys?: boolean | undefined;
  /** Called after the test, when the storages are closed. */
  destroy?: (() => unknown) | undefined;
}

/** The settings of a fixture that a test can choose. */
export interface ScenarioOptions {
  /** Seed of the clock's `random()`. Default 1. */
  seed?: number | undefined;
  /** Default {@link PER_ENDPOINT}. */
  perEndpoint?: number | undefined;
  /** Default: no limit. */
  perSecond?: number | undefined;
  /** Default {@link RETENTION}. */
  retention?: Retention | undefined;
  /** Default: silent. */
  logger?: Logger | undefined;
}

/** Declares one test, which gets a separate fixture. */
export type DeclareTest = (
  name: string,
  run: (scenario: Scenario) => Promise<void>,
  options?: ScenarioOptions,
) => void;

/** A filter of the delivery log. */
export type DeliveryQuery = { webhookId: string } & Partial<Parameters<WebhookStore["listDeliveries"]>[0]>;

/** Creates the fixture of one test. Its clock stands still until `advance` moves it. */
export function createScenario(
  { storage, peer: peerStorage = storage, work, hasDataKeys = true }: StorageUnderTest,
  {
    seed = 1,
    perEndpoint = PER_ENDPOINT,
    perSecond,
    retention = RETENTION,
    logger = silentLogger,
  }: ScenarioOptions = {},
) {
  const clock = manualClock(START_MS, { seed });
  const context = { clock, logger, perEndpoint, perSecond: perSecond ?? null, retention };
  const store = storage.webhooks(context);
  const peer = peerStorage.webhooks(context);
  const builders = createBuilders(store, clock);
  const now = (): number => clock.now();
  /** Returns the process for call number `index`: `store` and `peer` in turn. */
  const alternate = (index: number): WebhookStore => (index % 2 ? peer : store);
  const calls = createCalls(store, builders, now);

  return {
    /** The storage as the first process uses it. */
    store,
    /** The same records as a second process uses them. */
    peer,
    /** Binds the storage as a process does that starts later, with another retention. */
    bindWithRetention: (other: Retention): WebhookStore => storage.webhooks({ ...context, retention: other }),
    work,
    hasDataKeys,
    clock,
    now,
    advance: (ms: number) => clock.advance(ms),
    ...builders,
    ...calls,
    ...createSteps(calls),
    alternate,
    /** Makes `count` calls at once, alternating between the two processes. */
    callConcurrently: <T>(count: number, call: (by: WebhookStore) => Promise<T>): Promise<T[]> =>
      Promise.all(Array.from({ length: count }, (_, index) => call(alternate(index)))),
  };
}

export type Scenario = ReturnType<typeof createScenario>;

/** Reads the deliveries that `query` matches, newest first, page by page. */
export const readDeliveryLog = (
  { store }: Scenario,
  query: DeliveryQuery,
  limit = 2,
  between?: () => Promise<unknown>,
): Promise<DeliveryRecord[]> =>
  readAllPages(async (cursor) => {
    const { deliveries, next } = await store.listDeliveries({ ...query, cursor, limit });
    assert.ok(deliveries.length <= limit);
    return { rows: deliveries, next };
  }, between);
