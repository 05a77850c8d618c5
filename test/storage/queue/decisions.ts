/**
 * The decisions of the delivery queue by name, and the inputs that `storage/queue/vectors.json` has
 * for each. `WRITE_VECTORS=yes npx vitest run test/storage/queue` writes the file again; a person
 * reviews the difference.
 */

import type { DeliveryState, Settlement, WebhookStatus } from "../../../src/webhooks/store.js";
import { compareKnown, findFreePlace, isKept, receives } from "../../../storage/queue/append.js";
import * as endpoint from "../../../storage/queue/endpoint.js";
import { divideRoom, findQueueTime } from "../../../storage/queue/endpoint.js";

/** One decision: what a rule is given, and what it returns. `null` stands for nothing. */
export interface Vector {
  given: Record<string, unknown>;
  expected: unknown;
}

/** The values of each parameter of a rule: all combinations are decided. */
type Choices<Given> = { [Name in keyof Given]: readonly Given[Name][] };

function* combine<Given extends object>(choices: Choices<Given>): Generator<Given> {
  const [[name, values] = [], ...others] = Object.entries(choices) as [keyof Given, readonly unknown[]][];
  if (name === undefined || values === undefined) {
    yield {} as Given;
    return;
  }
  const rest = Object.fromEntries(others) as Choices<Given>;
  for (const value of values) {
    for (const given of combine(rest)) yield { [name]: value, ...given } as Given;
  }
}

const NOW = 1_767_225_600_250;
const SECOND = 1_767_225_600;

const decide = <Given extends object>(
  rule: (given: Given) => unknown,
  ...choices: Choices<Given>[]
): Vector[] =>
  choices.flatMap((some) =>
    [...combine(some)].map((given) => {
      const expected = rule(given) ?? null;
      return {
        given: given as Record<string, unknown>,
        expected: expected === Number.POSITIVE_INFINITY ? "Infinity" : expected,
      };
    }),
  );

interface Rate {
  perSecond: number | null;
  claimed: endpoint.ClaimedSecond | null;
  now: number;
}

const RATE: Choices<Rate> = {
  perSecond: [null, 1, 3],
  claimed: [
    null,
    { second: SECOND - 1, count: 3 },
    { second: SECOND, count: 0 },
    { second: SECOND, count: 2 },
    { second: SECOND, count: 3 },
    { second: SECOND, count: 9 },
    { second: SECOND + 60, count: 3 },
    { second: SECOND + 61, count: 3 },
  ],
  now: [NOW],
};

interface Reported {
  status: WebhookStatus;
  failingSince: number | null;
  slowStart: number | null;
  ok: boolean;
  generation: number;
  attempts: number;
}

const report = ({ ok, generation, attempts, ...reported }: Reported): unknown => {
  const noticeAt = NOW + 1_000;
  const change = endpoint.applyReport(
    { ...reported, generation: 2 },
    { ok, generation, at: NOW, noticeAt, lane: ok ? "fast" : "slow" },
    attempts,
    5,
  );
  return change && { ...change, health: change.health ?? null };
};

interface Settled {
  state: DeliveryState;
  token: string | null;
  outcome: Settlement["outcome"]["state"];
  by: string;
}

interface Received {
  status: WebhookStatus;
  eventTypes: readonly string[] | null;
  type: string;
  target: string | null;
}

/** The rules by name, each with its vectors. */
export const decideAll = (): Record<string, Vector[]> => ({
  growSlowStart: decide(
    (given: { slowStart: number | null; successes: number; perEndpoint: number }) =>
      endpoint.growSlowStart(given.slowStart, given.successes, given.perEndpoint),
    { slowStart: [null, 1, 2, 4, 5, 7], successes: [1, 3], perEndpoint: [1, 5] },
  ),
  countFreeSlots: decide(
    (given: { slowStart: number | null; inFlight: number; perEndpoint: number }) =>
      endpoint.countFreeSlots(given.slowStart, given.inFlight, given.perEndpoint),
    { slowStart: [null, 1, 3, 9], inFlight: [0, 2, 5, 7], perEndpoint: [5] },
  ),
  countLeft: decide((given: Rate) => endpoint.countLeft(given.perSecond, given.claimed, given.now), RATE),
  findOpenTime: decide(
    (given: Rate) => endpoint.findOpenTime(given.perSecond, given.claimed, given.now),
    RATE,
  ),
  addClaimed: decide(
    (given: Omit<Rate, "perSecond"> & { count: number }) =>
      endpoint.addClaimed(given.claimed, given.now, given.count),
    { claimed: RATE.claimed, now: [NOW], count: [0, 2] },
  ),
  keepsTurn: decide(
    (given: { readyAt: number | null; now: number }) => endpoint.keepsTurn(given.readyAt, given.now),
    { readyAt: [null, NOW - 1, NOW, NOW + 1], now: [NOW] },
  ),
  findReadyTime: decide(
    (given: { head: number | null; freeSlots: number; openTime: number }) =>
      endpoint.findReadyTime(given.head, given.freeSlots, given.openTime),
    { head: [null, NOW - 3_600_000, NOW + 5_000], freeSlots: [-1, 0, 1], openTime: [NOW, NOW + 750] },
  ),
  isEarlier: decide(
    (given: { readyAt: number | null; before: number | null }) =>
      endpoint.isEarlier(given.readyAt, given.before),
    { readyAt: [null, NOW], before: [null, NOW - 1, NOW, NOW + 1] },
  ),
  applyReport: decide(
    report,
    {
      status: ["ENABLED", "DISABLED"],
      failingSince: [null, NOW - 9_000],
      slowStart: [null, 1, 4],
      ok: [true, false],
      generation: [2],
      attempts: [1],
    },
    {
      status: ["ENABLED"],
      failingSince: [null, NOW - 9_000],
      slowStart: [1],
      ok: [true, false],
      generation: [1],
      attempts: [1],
    },
    {
      status: ["ENABLED"],
      failingSince: [null],
      slowStart: [null, 1, 2, 3],
      ok: [true],
      generation: [2],
      attempts: [3],
    },
  ),
  findQueueTime: decide(
    (given: { startedAt: number | null; dueAt: number; extraAt: number | null; now: number }) =>
      findQueueTime(given, given.now),
    {
      startedAt: [null, NOW - 60_000],
      dueAt: [NOW - 5, NOW, NOW + 5],
      extraAt: [null, NOW - 1, NOW + 1],
      now: [NOW],
    },
  ),
  divideRoom: decide(
    (given: { room: number; endpoints: number; index: number }) =>
      divideRoom(given.room, given.endpoints, given.index),
    { room: [1], endpoints: [1], index: [0] },
    { room: [3, 5, 100], endpoints: [3], index: [0, 1, 2] },
    { room: [64], endpoints: [7], index: [0, 1, 6] },
  ),
  findFreePlace: decide(
    (given: { now: number; keepMs: number | null }) => findFreePlace(given.now, given.keepMs),
    { now: [NOW, NOW + 1], keepMs: [null, 1, 31_536_000_000] },
  ),
  classifySettlement: decide(
    ({ state, token, outcome, by }: Settled) =>
      endpoint.classifySettlement(state, token, {
        token: by,
        outcome: { state: outcome } as Settlement["outcome"],
      }),
    {
      state: ["pending"],
      token: [null, "a", "b"],
      outcome: ["delivered", "failed", "withheld", "pending"],
      by: ["a"],
    },
    {
      state: ["delivered", "failed", "withheld"],
      token: [null],
      outcome: ["delivered", "failed", "withheld", "pending"],
      by: ["a"],
    },
  ),
  receives: decide(
    ({ target, type, ...webhook }: Received) =>
      receives({ id: "one", ...webhook }, type, target ?? undefined),
    {
      status: ["ENABLED", "DISABLED"],
      eventTypes: [null],
      type: ["order.paid"],
      target: [null, "one", "two"],
    },
    {
      status: ["ENABLED"],
      eventTypes: [
        ["*"],
        ["order.*"],
        ["order.paid"],
        ["order.line.*"],
        ["ord.*"],
        ["paid", "order.line.added"],
        [],
      ],
      type: ["order.paid", "order.line.added"],
      target: [null],
    },
    { status: ["ENABLED"], eventTypes: [["invoice.sent"]], type: ["order.paid"], target: ["one", "two"] },
  ),
  compareKnown: decide(
    (given: { known: string; digest: string }) => compareKnown(given.known, given.digest),
    { known: ["a", "b"], digest: ["a"] },
  ),
  isKept: decide(isKept, {
    isTest: [false, true],
    receivers: [0, 2],
    webhooks: [0, 2],
    retentionMs: [0, 259_200_000],
  }),
});
