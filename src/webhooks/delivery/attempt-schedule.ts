/** Decides when a claimed delivery is due next, and ends deliveries that must not be attempted. */

import type { Clock } from "../../core/clock.js";
import { TEST_EVENT_TYPE } from "../event-types/catalogue.js";
import type { Claim } from "../store.js";
import { type AttemptResult, buildAttemptResult, reschedule, retryOrFail } from "./attempt-result.js";
import {
  accessDelayMs,
  crashDelayMs,
  type NextStep,
  nextStep,
  type RetryPolicy,
  type Schedule,
} from "./retry-schedule.js";

/**
 * A test is attempted once, because its sender waits for the result. It contains no record, so
 * `canRead` is not called. A failed test does not count for the health of the endpoint: no retry
 * follows that could show that the endpoint works again.
 */
export const isTest = ({ event }: Claim): boolean => event.type === TEST_EVENT_TYPE;

export interface AttemptSchedule {
  /** Returns the step after this attempt, or `null` if there is no further attempt. */
  readonly findNextStep: (
    claim: Claim,
    startedAt: number,
    now: number,
    retryAfterMs: number | null,
  ) => NextStep | null;
  /** Reschedules a delivery because `canRead` gave no result. Fails it after the retry window. */
  readonly postpone: (claim: Claim, startedAt: number, now: number) => AttemptResult;
  /** Returns the result of a delivery that must not be attempted now: poison, or DISABLED. */
  readonly skip: (claim: Claim, startedAt: number, now: number) => AttemptResult | undefined;
}

export function createAttemptSchedule(
  policy: RetryPolicy,
  schedule: Schedule,
  clock: Clock,
): AttemptSchedule {
  const random = (): number => clock.random();

  const findNextStep: AttemptSchedule["findNextStep"] = (claim, startedAt, now, retryAfterMs) => {
    if (isTest(claim)) return null;
    if (claim.isExtra) return { step: claim.step, dueAt: claim.dueAt };
    return nextStep({ policy, schedule, startedAt, step: claim.step, now, random, retryAfterMs });
  };

  return Object.freeze<AttemptSchedule>({
    findNextStep,

    postpone(claim, startedAt, now) {
      const windowEnd = startedAt + policy.windowMs;
      if (now >= windowEnd)
        return buildAttemptResult(claim, { state: "failed", reason: "access_unknown" }, startedAt);
      const { postponed } = claim;
      const at = Math.min(now + accessDelayMs(postponed), windowEnd);
      return buildAttemptResult(claim, { ...reschedule(claim, at), postponed: postponed + 1 }, startedAt);
    },

    skip(claim, startedAt, now) {
      const quarantineMs = claim.isRecovered ? crashDelayMs(claim.crashes, policy) : 0;
      if (quarantineMs > 0) {
        const isOver = now >= startedAt + policy.windowMs;
        const outcome = isOver
          ? ({ state: "failed", reason: "crashed" } as const)
          : reschedule(claim, now + quarantineMs);
        return buildAttemptResult(claim, outcome, startedAt);
      }
      if (claim.webhook.status !== "DISABLED") return undefined;
      const outcome = retryOrFail(findNextStep(claim, startedAt, now, null), "disabled");
      return buildAttemptResult(claim, outcome, startedAt);
    },
  });
}
