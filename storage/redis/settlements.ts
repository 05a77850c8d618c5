/**
 * Settlements on Redis: the short way through `exchange`, the general one, and claims that are
 * released.
 */

import type { Attempt, Claim, Settlement, SettleResult, WebhookStore } from "../../src/webhooks/store.js";
import { createBatch } from "./batch.js";
import { type LeasedRow, type LeasedRows, readWebhookNumber } from "./claim-reader.js";
import type { RedisArgument } from "./client.js";
import { decodeClaimLine, decodeOwner, encodeNumber, encodeText } from "./codec.js";
import { decodeDeliveryId, encodeDeliveryId } from "./delivery-id-codec.js";
import { attemptSummary, type ClaimExchange, type FirstSettlement } from "./exchange.js";
import { type FirstLeases, isFirstDelivered } from "./first-leases.js";
import type { Partition } from "./partition.js";
import { SCRIPTS } from "./scripts.js";
import type { RedisStoreContext } from "./store-context.js";

/** A script holds Redis up for no longer than a few milliseconds. */
const SETTLED_PER_CALL = 100;
/** While these are in flight, the next one fills up: under load batches grow by themselves. */
const CONCURRENT_CALLS = 2;

interface NamedSettlement extends Settlement {
  /** Tells a call that is made again, since its answer was lost, from another one. */
  readonly nonce: string;
}

export interface Settlements {
  /** All of one partition. */
  readonly settle: WebhookStore["settle"];
  /**
   * Releases claims without an attempt: due again when they were. Never rejects; where it fails,
   * the leases run out.
   */
  release(claims: readonly Claim[], now: number): void;
  /**
   * The same for rows that did not become claims. `at`: due again then; otherwise those of first
   * leases are due at once.
   */
  releaseRows(rows: readonly LeasedRow[], leased: LeasedRows, now: number, at?: number): void;
}

function outcomeArguments(outcome: Settlement["outcome"]): readonly RedisArgument[] {
  if (outcome.state !== "pending") {
    const reason = outcome.state === "delivered" ? "" : encodeText(outcome.reason);
    return [outcome.state, reason, "", "", "", "", ""];
  }
  const { step, dueAt, postponed, crashes, extraAt } = outcome;
  return ["pending", "", step, dueAt, postponed, crashes, encodeNumber(extraAt)];
}

const attemptArguments = (attempt: Attempt | null): readonly RedisArgument[] =>
  attempt === null ? ["", ""] : [JSON.stringify(attempt), attemptSummary(attempt)];

function endpointArguments(endpoint: Settlement["endpoint"]): readonly RedisArgument[] {
  if (!endpoint) return ["", "", "", "", ""];
  const { ok, generation, at, noticeAt, lane } = endpoint;
  return [ok ? "1" : "0", generation, at, noticeAt, lane === "fast" ? "f" : "s"];
}

const settlementArguments = (item: NamedSettlement): readonly RedisArgument[] => [
  encodeText(item.account),
  item.webhookId,
  encodeDeliveryId(item.id)?.suffix ?? "-",
  encodeText(item.token),
  item.nonce,
  item.now,
  ...outcomeArguments(item.outcome),
  encodeNumber(item.startedAt),
  ...attemptArguments(item.attempt),
  ...endpointArguments(item.endpoint),
];

type Released = Pick<Claim, "token" | "step" | "isExtra" | "dueAt" | "postponed" | "crashes">;

const toRelease = (
  { token, step, isExtra, dueAt, postponed, crashes }: Released,
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
  exchangeOf: (partition: Partition) => ClaimExchange,
  firstLeases: FirstLeases,
  nonce: () => string,
): Settlements {
  const { partitions } = context;
  const lines = partitions.all.map((partition) =>
    createBatch<NamedSettlement, SettleResult>({
      run: async (items) => {
        const now = await context.at(items[0]?.now ?? 0);
        const args = items.flatMap(settlementArguments);
        const answers = (await context.run(SCRIPTS.settle, partition, args, { now })) as [
          ...SettleResult[],
          string,
        ];
        context.notifyWorkers(answers.at(-1));
        return answers.slice(0, -1) as SettleResult[];
      },
      most: SETTLED_PER_CALL,
      concurrency: CONCURRENT_CALLS,
    }),
  );
  /** By the script that knows every case. */
  const settleAny = ({ number }: Partition, settlement: Settlement): Promise<SettleResult> => {
    const line = lines[number];
    if (line === undefined) throw new RangeError("every partition has a line");
    return line.add({ ...settlement, nonce: nonce() });
  };

  const settleAll = (partition: Partition, settlements: readonly Settlement[]) =>
    Promise.all(settlements.map((settlement) => settleAny(partition, settlement)));

  const settle: Settlements["settle"] = async (settlements) => {
    const [first] = settlements;
    if (first === undefined) return [];
    const partition = partitions.ofWebhook(first.webhookId);
    const short: FirstSettlement[] = [];
    const isShort = settlements.map((settlement) => {
      const lease = firstLeases.take(settlement.id, encodeText(settlement.token));
      // What is kept for no time at all is freed by the general script.
      if (lease === undefined || context.retentionMs === 0 || !isFirstDelivered(settlement)) return false;
      short.push({ lease, settlement });
      return true;
    });
    const [recorded, others] = await Promise.all([
      short.length === 0 ? [] : exchangeOf(partition).settle(short),
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
        releaseOne(toRelease(claim, { id: claim.id, webhookId, account }, now, undefined));
      }
    },
    releaseRows(rows, { webhooks, requestToken }, now, at) {
      const fresh = { token: requestToken, step: 0, isExtra: false, dueAt: now, postponed: 0, crashes: 0 };
      for (const { ref, line } of rows) {
        const number = readWebhookNumber(ref);
        const owner = decodeOwner(webhooks.get(number) ?? "");
        if (!owner) continue;
        const { account, id: webhookId } = owner;
        const id = decodeDeliveryId(webhookId, ref.slice(number.length + 1));
        releaseOne(
          toRelease(line === "" ? fresh : decodeClaimLine(line), { id, webhookId, account }, now, at),
        );
      }
    },
  };
}
