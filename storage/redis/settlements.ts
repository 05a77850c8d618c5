/**
 * Settles deliveries on Redis. Successes at the first attempt take the short way through
 * `settle-and-claim`, all other settlements the general script. Releasing a claim is a settlement,
 * too.
 */

import type { Attempt, Claim, Settlement, SettleResult, WebhookStore } from "../../src/webhooks/store.js";
import { createBatcher } from "../batcher.js";
import { sketchDurations } from "../queue/recent-attempts.js";
import type { RedisArgument } from "./clients.js";
import { decodeClaimLine, decodeDeliveryId, encodeDeliveryId } from "./delivery-codec.js";
import { type FirstLeases, isFirstDelivered } from "./first-leases.js";
import { type LeasedRow, type LeasedRows, parseWebhookNumber } from "./lease-codec.js";
import type { Partition } from "./partition.js";
import { SCRIPTS } from "./scripts.js";
import { type CommonPath, encodeAttemptSummary, type FirstSettlement } from "./settle-and-claim.js";
import type { RedisStoreContext } from "./store-context.js";
import { encodeNumber, encodeText } from "./text-codec.js";
import { decodeOwner, encodeLane } from "./webhook-codec.js";

/**
 * The most settlements in a script, so that none holds Redis up for more than a few milliseconds.
 */
const SETTLED_PER_CALL = 100;
/** The most calls in flight. Meanwhile the next call gathers items, so batches grow under load. */
const CONCURRENT_CALLS = 2;

interface NamedSettlement extends Settlement {
  /** Identifies the call, so that a repetition after a lost reply is recognised. */
  readonly nonce: string;
}

export interface Settlements {
  /** All settlements have to be of one partition. */
  readonly settle: WebhookStore["settle"];
  /**
   * Releases claims without an attempt: they are due again when they were. Errors are ignored,
   * because the leases then expire.
   */
  release(claims: readonly Claim[], now: number): void;
  /**
   * The same for rows that did not become claims. They are due at `at`, or when they were; rows of
   * first leases are due at once.
   */
  releaseRows(rows: readonly LeasedRow[], leased: LeasedRows, now: number, at?: number): void;
}

function encodeOutcome(outcome: Settlement["outcome"]): readonly RedisArgument[] {
  if (outcome.state !== "pending") {
    const reason = outcome.state === "delivered" ? "" : encodeText(outcome.reason);
    return [outcome.state, reason, "", "", "", "", ""];
  }
  const { step, dueAt, postponed, crashes, extraAt } = outcome;
  return ["pending", "", step, dueAt, postponed, crashes, encodeNumber(extraAt)];
}

const encodeAttempt = (attempt: Attempt | null): readonly RedisArgument[] =>
  attempt === null
    ? ["", "", ""]
    : [JSON.stringify(attempt), encodeAttemptSummary(attempt), Math.round(attempt.durationMs)];

function encodeReport(endpoint: Settlement["endpoint"]): readonly RedisArgument[] {
  if (!endpoint) return ["", "", "", "", ""];
  const { ok, generation, at, noticeAt, lane } = endpoint;
  return [ok ? "1" : "0", generation, at, noticeAt, encodeLane(lane)];
}

const encodeSettlement = (item: NamedSettlement): readonly RedisArgument[] => [
  encodeText(item.account),
  item.webhookId,
  encodeDeliveryId(item.id)?.suffix ?? "-",
  encodeText(item.token),
  item.nonce,
  item.now,
  ...encodeOutcome(item.outcome),
  encodeNumber(item.startedAt),
  ...encodeAttempt(item.attempt),
  ...encodeReport(item.endpoint),
  item.attempt === null ? "" : sketchDurations([item.attempt.durationMs]),
];

type ReleasedClaim = Pick<Claim, "token" | "step" | "isExtra" | "dueAt" | "postponed" | "crashes">;

const toReleaseSettlement = (
  { token, step, isExtra, dueAt, postponed, crashes }: ReleasedClaim,
  delivery: Pick<Settlement, "id" | "webhookId" | "account">,
  now: number,
  at: number | undefined,
): Settlement => ({
  ...delivery,
  token,
  now,
  outcome: {
    state: "pending",
    step,
    dueAt: at ?? dueAt,
    postponed,
    crashes,
    extraAt: isExtra ? (at ?? now) : null,
  },
  startedAt: null,
  attempt: null,
  endpoint: null,
});

export function createSettlements(
  context: RedisStoreContext,
  getCommonPath: (partition: Partition) => CommonPath,
  firstLeases: FirstLeases,
  nonce: () => string,
): Settlements {
  const { partitions } = context;
  const batchers = partitions.all.map((partition) =>
    createBatcher<NamedSettlement, SettleResult>({
      run: async (items) => {
        const now = await context.connect(items[0]?.now ?? 0);
        const args = items.flatMap(encodeSettlement);
        const replies = (await context.run(SCRIPTS.settle, partition, args, { now })) as [
          ...SettleResult[],
          string,
        ];
        context.notifyWorkers(replies.at(-1));
        return replies.slice(0, -1) as SettleResult[];
      },
      most: SETTLED_PER_CALL,
      concurrency: CONCURRENT_CALLS,
    }),
  );
  /** Uses the general script, which handles every case. */
  const settleGeneral = ({ number }: Partition, settlement: Settlement): Promise<SettleResult> => {
    const batcher = batchers[number];
    if (batcher === undefined) throw new RangeError("every partition has a batcher");
    return batcher.add({ ...settlement, nonce: nonce() });
  };

  const settleAll = (partition: Partition, settlements: readonly Settlement[]) =>
    Promise.all(settlements.map((settlement) => settleGeneral(partition, settlement)));

  const settle: Settlements["settle"] = async (settlements) => {
    const [first] = settlements;
    if (first === undefined) return [];
    const partition = partitions.ofWebhook(first.webhookId);
    const short: FirstSettlement[] = [];
    const isShort = settlements.map((settlement) => {
      const lease = firstLeases.take(settlement.id, encodeText(settlement.token));
      // Without retention an event is freed at once, which only the general script does.
      if (lease === undefined || context.retentionMs === 0 || !isFirstDelivered(settlement)) return false;
      short.push({ lease, settlement });
      return true;
    });
    const [recorded, others] = await Promise.all([
      short.length === 0 ? [] : getCommonPath(partition).settle(short),
      settleAll(
        partition,
        settlements.filter((_, place) => !isShort[place]),
      ),
    ]);
    const unmatched = short.filter((_, place) => recorded[place] === "unmatched");
    const late = await settleAll(
      partition,
      unmatched.map(({ settlement }) => settlement),
    );
    let [atShort, atOther, atLate] = [0, 0, 0];
    return isShort.map((is) => {
      if (!is) return others[atOther++] as SettleResult;
      const result = recorded[atShort++];
      return result === "settled" ? result : (late[atLate++] as SettleResult);
    });
  };

  const releaseOne = (settlement: Settlement): void => {
    settle([settlement]).catch(() => {});
  };

  return {
    settle,
    release(claims, now) {
      for (const claim of claims) {
        const { id: webhookId, account } = claim.webhook;
        releaseOne(toReleaseSettlement(claim, { id: claim.id, webhookId, account }, now, undefined));
      }
    },
    releaseRows(rows, { webhooks, requestToken }, now, at) {
      const firstClaim = {
        token: requestToken,
        step: 0,
        isExtra: false,
        dueAt: now,
        postponed: 0,
        crashes: 0,
      };
      for (const { ref, line } of rows) {
        const number = parseWebhookNumber(ref);
        const owner = decodeOwner(webhooks.get(number) ?? "");
        if (!owner) continue;
        const { account, id: webhookId } = owner;
        const id = decodeDeliveryId(webhookId, ref.slice(number.length + 1));
        releaseOne(
          toReleaseSettlement(
            line === "" ? firstClaim : decodeClaimLine(line),
            { id, webhookId, account },
            now,
            at,
          ),
        );
      }
    },
  };
}
