/** Decides about claimed deliveries: a table of pure decisions. */

import { describe, expect, it } from "vitest";
import type { OutboundResponse, OutboundResult } from "../../../src/outbound/types.js";
import {
  classifyResponse,
  evaluateAttempt,
  isPoisonClaim,
  type OutcomeRules,
  postponeAttempt,
  skipAttempt,
} from "../../../src/webhooks/delivery/outcome.js";
import { buildSchedule } from "../../../src/webhooks/delivery/retry-schedule.js";
import { readConfig } from "../../../src/webhooks/options.js";
import type { Attempt, Claim } from "../../../src/webhooks/store.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { HOUR, MINUTE, response } from "../../support/webhook-harness.js";

const START = 1_000_000_000_000;
const settings = readConfig({
  storage: memoryStorage(),
  access: { authenticate: () => null, canRead: () => true },
});
const { retry } = settings;
const rules: OutcomeRules = {
  retry,
  schedule: buildSchedule(retry),
  health: { warnAfterMs: HOUR, disableAfterMs: 2 * HOUR },
  slowAfterMs: 500,
  excerptCharacters: 20,
  random: () => 0,
};

const claimWith = (fields: object = {}): Claim =>
  ({
    id: "delivery",
    token: "token",
    lane: "fast",
    step: 0,
    isExtra: false,
    dueAt: START,
    postponed: 0,
    crashes: 0,
    isRecovered: false,
    startedAt: null,
    webhook: { id: "webhook", account: "clinic", status: "ENABLED", generation: 4 },
    event: { id: "event", type: "patient.updated" },
    ...fields,
  }) as unknown as Claim;

const TEST = { event: { id: "event", type: "webhook.test" } };
const answerWith = (status: number, fields: Partial<OutboundResponse>): OutboundResult => ({
  kind: "response",
  status,
  headers: {},
  body: Buffer.alloc(0),
  complete: true,
  ...fields,
});
const unreachable: OutboundResult = { kind: "connect", code: "ECONNREFUSED", message: "refused" };

function evaluate(answer: OutboundResult, fields: object = {}, { durationMs = 10, now = START } = {}) {
  const claim = claimWith(fields);
  const attempt: Attempt = {
    at: now,
    durationMs,
    step: claim.step,
    isExtra: claim.isExtra,
    ...classifyResponse(answer, rules.excerptCharacters),
  };
  return evaluateAttempt(claim, { attempt, response: answer }, { startedAt: START, now }, rules);
}

describe("an attempt", () => {
  const again = (dueAt: number, step = 1) => ({
    state: "pending",
    step,
    dueAt,
    postponed: 0,
    crashes: 0,
  });
  const cases: readonly (readonly [string, OutboundResult, object, object])[] = [
    ["that got a 204 is delivered", response(204), {}, { state: "delivered" }],
    ["that got a 301 is retried", response(301), {}, again(START + 15 * MINUTE)],
    ["that reached nobody is retried", unreachable, {}, again(START + 15 * MINUTE)],
    [
      "that got a 503 with Retry-After waits for it",
      answerWith(503, { headers: { "retry-after": "1200" } }),
      {},
      again(START + 20 * MINUTE),
    ],
    [
      "that got a 500 with Retry-After does not wait for it",
      answerWith(500, { headers: { "retry-after": "1200" } }),
      {},
      again(START + 15 * MINUTE),
    ],
    ["of the last step fails", response(500), { step: 13 }, { state: "failed", reason: "exhausted" }],
    ["of a test fails at once", response(500), TEST, { state: "failed", reason: "test_failed" }],
    [
      "in addition to the schedule leaves the step its time",
      response(500),
      { isExtra: true, step: 3, dueAt: START + HOUR },
      again(START + HOUR, 3),
    ],
  ];
  it.each(cases)("%s", (_name, answer, fields, outcome) => {
    expect(evaluate(answer, fields).outcome).toEqual(outcome);
  });

  it("reports the endpoint by the generation that it was made under, unless it was a test", () => {
    const failing = { ok: false, generation: 4, at: START, noticeAt: START + HOUR, lane: "fast" };
    expect(evaluate(response(500)).endpoint).toEqual(failing);
    expect(evaluate(response(500), TEST).endpoint).toBeNull();
    expect(evaluate(response(200)).endpoint).toMatchObject({ ok: true });
    expect(evaluate(response(200), {}, { durationMs: 501 }).endpoint).toMatchObject({ lane: "slow" });
  });

  it("is delivered for a 2xx that was cut off after its head", () => {
    const cutOff = answerWith(200, { complete: false });
    expect(evaluate(cutOff)).toMatchObject({
      outcome: { state: "delivered" },
      attempt: { kind: "delivered", status: 200 },
      endpoint: { ok: true },
    });
  });

  it("keeps what the endpoint said on one line, and nothing of a name that led inside", () => {
    const text = answerWith(500, { body: Buffer.from("a\n\u0000b  c".padEnd(90, "d")) });
    expect(evaluate(text).attempt?.excerpt).toBe("a b cddddddddddddddd");
    const inside: OutboundResult = { kind: "refused", code: "R5", message: "private" };
    expect(evaluate(inside).attempt).toMatchObject({ kind: "dns", code: "NO_USABLE_ADDRESS", durationMs: 0 });
  });
});

describe("a claim that is not attempted", () => {
  const skip = (fields: object, now = START) =>
    skipAttempt(claimWith(fields), { startedAt: START, now }, rules)?.outcome;
  const disabled = { webhook: { id: "webhook", account: "clinic", status: "DISABLED", generation: 4 } };

  it("is one of a DISABLED webhook, which uses up its step", () => {
    expect(skip({})).toBeUndefined();
    expect(skip(disabled)).toMatchObject({ state: "pending", step: 1, dueAt: START + 15 * MINUTE });
    expect(skip({ ...disabled, step: 13 })).toEqual({ state: "failed", reason: "disabled" });
  });

  it("is one that crashed its process too often, which uses up no step", () => {
    const crashed = { crashes: 5, isRecovered: true };
    expect(skip({ ...crashed, isRecovered: false })).toBeUndefined();
    expect(skip({ crashes: 4, isRecovered: true })).toBeUndefined();
    expect(skip(crashed)).toMatchObject({
      state: "pending",
      step: 0,
      dueAt: START + 15 * MINUTE,
      crashes: 5,
    });
    expect(skip(crashed, START + retry.windowMs)).toEqual({ state: "failed", reason: "crashed" });
  });

  it("is poison if it crashed its process and is attempted all the same", () => {
    const crashes = [2, 3, 4, 5];
    expect(
      crashes.map((count) => isPoisonClaim(claimWith({ crashes: count, isRecovered: true }), retry)),
    ).toEqual([false, true, true, false]);
    expect(isPoisonClaim(claimWith({ crashes: 5, isRecovered: false }), retry)).toBe(true);
  });

  it("waits longer each time that canRead gives no result, until the window ends", () => {
    const postpone = (postponed: number, now: number) =>
      postponeAttempt(claimWith({ postponed }), { startedAt: START, now }, rules).outcome;
    expect(postpone(0, START)).toMatchObject({ step: 0, dueAt: START + 5_000, postponed: 1 });
    expect(postpone(3, START)).toMatchObject({ step: 0, dueAt: START + 40_000, postponed: 4 });
    const end = START + retry.windowMs;
    expect(postpone(9, end - 1)).toMatchObject({ dueAt: end });
    expect(postpone(9, end)).toEqual({ state: "failed", reason: "access_unknown" });
  });
});
