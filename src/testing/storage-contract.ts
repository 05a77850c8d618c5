/** The contract of `WebhookStore`: tests that run in any test runner against any storage. */

import { closeStorages } from "./close-storages.js";
import { testAccountList, testAccountPages, testFailingAccounts } from "./storage-contract/account-list.js";
import { testEndpointLimit, testLanes, testTurns } from "./storage-contract/claim-order.js";
import { testClaimRate, testCountedClaims, testEndpointRate } from "./storage-contract/claim-rate.js";
import { testClaims, testLeases } from "./storage-contract/claims.js";
import { testDataKeys } from "./storage-contract/data-keys.js";
import { testAccountLog, testDeliveryLists, testDeliveryLookup } from "./storage-contract/delivery-log.js";
import { testEndpointReports } from "./storage-contract/endpoint-health.js";
import {
  testAccountErasure,
  testErasedEvents,
  testErasureSteps,
  testEventErasure,
  testForeignErasure,
} from "./storage-contract/erasure.js";
import { testEventFeed } from "./storage-contract/event-feed.js";
import { testEventIds } from "./storage-contract/event-ids.js";
import { testEventKeyRemoval, testEventKeys } from "./storage-contract/event-keys.js";
import { testFanOut, testPayloads, testWebhookCounts } from "./storage-contract/events.js";
import { testFilters, testRecoveryFilters } from "./storage-contract/filters.js";
import { createScenario, type DeclareTest, type StorageUnderTest } from "./storage-contract/fixture.js";
import { testHealthClaims, testHealthSettlements } from "./storage-contract/health-notifications.js";
import { testHourlyStats } from "./storage-contract/hourly-stats.js";
import { testIdempotencyKeys } from "./storage-contract/idempotency-keys.js";
import {
  testBoundedKeepTimes,
  testKeepTimes,
  testRestartedKeepTimes,
} from "./storage-contract/keep-times.js";
import { testLateSuccesses, testStaleSettlements } from "./storage-contract/late-settlement.js";
import { testLists } from "./storage-contract/lists.js";
import { testAuditLog, testLongLogs } from "./storage-contract/long-logs.js";
import { MODEL_RETENTION } from "./storage-contract/model.js";
import { runModel } from "./storage-contract/model-run.js";
import { testRecovery, testRecoverySchedule, testRecoverySelection } from "./storage-contract/recovery.js";
import { testRecoveryOfWaiting, testReplay } from "./storage-contract/repair.js";
import { testResend, testResendInFlight } from "./storage-contract/resend.js";
import { testNoRetention, testRetention } from "./storage-contract/retention.js";
import { testAttempts, testBatches, testOutcomes } from "./storage-contract/settlement.js";
import { testSimilarNames } from "./storage-contract/similar-names.js";
import { testStats, testStorageTime } from "./storage-contract/stats-and-time.js";
import { testSubjectsAndRecentAttempts } from "./storage-contract/subjects-and-recent-attempts.js";
import { testTestEvents } from "./storage-contract/test-events.js";
import { testWebhookLimits } from "./storage-contract/webhook-limits.js";
import { testOwnership, testSecretRotation } from "./storage-contract/webhook-ownership.js";
import { testWebhookRemoval } from "./storage-contract/webhook-removal.js";
import { testWebhookDetails, testWebhookPages, testWebhookRecords } from "./storage-contract/webhooks.js";
import { testWorkPerCall } from "./storage-contract/work-per-call.js";
import { testWorkerNotifications } from "./storage-contract/worker-notifications.js";

export type { StorageUnderTest } from "./storage-contract/fixture.js";

const SUITES = [
  testWebhookLimits,
  testIdempotencyKeys,
  testWebhookRecords,
  testWebhookPages,
  testWebhookDetails,
  testSecretRotation,
  testOwnership,
  testWebhookRemoval,
  testSimilarNames,
  testFanOut,
  testPayloads,
  testWebhookCounts,
  testLists,
  testEventIds,
  testTestEvents,
  testSubjectsAndRecentAttempts,
  testEventKeys,
  testEventKeyRemoval,
  testHourlyStats,
  testClaims,
  testLeases,
  testLanes,
  testEndpointLimit,
  testTurns,
  testClaimRate,
  testCountedClaims,
  testEndpointRate,
  testOutcomes,
  testAttempts,
  testBatches,
  testStaleSettlements,
  testLateSuccesses,
  testEndpointReports,
  testDeliveryLists,
  testDeliveryLookup,
  testAccountLog,
  testEventFeed,
  testResend,
  testResendInFlight,
  testRecovery,
  testRecoverySchedule,
  testRecoverySelection,
  testRecoveryOfWaiting,
  testReplay,
  testFilters,
  testRecoveryFilters,
  testRetention,
  testNoRetention,
  testKeepTimes,
  testRestartedKeepTimes,
  testBoundedKeepTimes,
  testHealthClaims,
  testHealthSettlements,
  testStats,
  testStorageTime,
  testLongLogs,
  testAuditLog,
  testAccountList,
  testAccountPages,
  testFailingAccounts,
  testAccountErasure,
  testErasureSteps,
  testForeignErasure,
  testEventErasure,
  testErasedEvents,
  testDataKeys,
  testWorkPerCall,
] as const;

/** The options of {@link storageContract}. */
export interface StorageContractOptions {
  /** The runner's function that declares a test: `test` of Vitest, `node:test` or Jest. */
  test: (name: string, run: () => Promise<void>) => unknown;
  /** Creates an empty storage. Called once in each test. */
  create: () => StorageUnderTest | Promise<StorageUnderTest>;
  /** False for a storage whose `watch` never calls its listeners. Default true. */
  hints?: boolean | undefined;
  /** Seeds of the random runs, one test each. Default 1 to 5. */
  seeds?: number[] | undefined;
  /** Commands in each random run. Default 400. */
  steps?: number | undefined;
}

/**
 * Declares the tests that every storage must pass. They check what its port, `WebhookStore`,
 * guarantees.
 *
 * Time is a {@link manualClock} that the tests move. Each call gets its `now` from that clock, and
 * a storage must not mix it with a separate clock. The tests leave open what the port leaves
 * open: `nextAt` and notifications may come early, and later calls may free expired events.
 * Each test closes its storages, then calls `destroy`.
 *
 * @example
 * import { test } from "node:test";
 * import { memoryStorage } from "postbell/memory";
 * import { storageContract } from "postbell/testing";
 *
 * storageContract({ test, create: () => ({ storage: memoryStorage() }) });
 */
export function storageContract({
  test,
  create,
  hints = true,
  seeds = [1, 2, 3, 4, 5],
  steps = 400,
}: StorageContractOptions): void {
  const it: DeclareTest = (name, run, options) => {
    test(name, async () => {
      const underTest = await create();
      try {
        await run(createScenario(underTest, options));
      } finally {
        await closeStorages(underTest);
      }
    });
  };
  for (const suite of SUITES) suite(it);
  if (hints) testWorkerNotifications(it);
  for (const seed of seeds) {
    it(
      `a random run of two processes agrees with a model of the store (seed ${seed})`,
      (scenario) => runModel(scenario, steps),
      { seed, retention: MODEL_RETENTION },
    );
  }
}
