/**
 * The delivery queue on Redis: stores events, claims due deliveries and records their results, with
 * one function of the library for each. Expired leases take two more calls: `tidy` ends them, and a
 * further claim leases them again.
 */

import { randomBytes } from "node:crypto";
import type {
  Claim,
  ClaimRequest,
  ClaimResponse,
  Lane,
  Settlement,
  SettleResult,
  WebhookStore,
} from "../../src/webhooks/store.js";
import { sketchDurations } from "../queue/recent-attempts.js";
import { createAppend } from "./append.js";
import {
  CLAIM_WITHIN_MS,
  ClaimReader,
  type ClaimReply,
  createEventCache,
  decodeClaimReply,
  encodeClaim,
  type Leased,
  type LeasedRow,
  parseWebhookNumber,
} from "./claim-reader.js";
import {
  decodeClaimLine,
  decodeDeliveryId,
  encodeAttempt,
  encodeAttemptSummary,
  encodeDeliveryId,
  encodeLane,
  encodeText,
  isPlainAttempt,
} from "./codec.js";
import type { Partition } from "./partition.js";
import { resultUnknown } from "./redis-errors.js";
import type { RedisStoreContext } from "./session.js";
import { Upkeep } from "./upkeep.js";
import { decodeOwner } from "./webhook-codec.js";

/** The most in a call, so that none holds Redis up for more than a few milliseconds. */
const MAX_SETTLED = 250;

/**
 * If all partitions together took longer than this, the others are claimed from with the next
 * claim.
 */
const CLAIM_OTHERS_WITHIN_MS = 1_000;
/** When to claim again from a partition that failed, while the others work. */
const UNREACHED_MS = 500;
/** How long the deliveries of a webhook wait if its secret cannot be unsealed. */
const UNUSABLE_MS = 60_000;

const EMPTY_ROOM = { fast: 0, slow: 0 };

/** The room of a request that its claims have left. */
function getRoomLeft(room: ClaimRequest["room"], claims: readonly Claim[]): Record<Lane, number> {
  const left = { fast: room.fast, slow: room.slow };
  for (const { lane } of claims) left[lane] -= 1;
  return { fast: Math.max(0, left.fast), slow: Math.max(0, left.slow) };
}

function getEarliest(times: (number | null)[]): number | null {
  const due = times.filter((at) => at !== null);
  return due.length > 0 ? Math.min(...due) : null;
}

/** Encodes what settle.lua records: a line for a success that most deliveries have, or JSON. */
function encodeResult({ outcome, startedAt, attempt, endpoint, now }: Settlement): string {
  const line = attempt === null ? "" : encodeAttempt(attempt);
  const ms = attempt === null ? 0 : Math.round(attempt.durationMs);
  const sketch = attempt === null ? "" : sketchDurations([attempt.durationMs]);
  const isPlain = line !== "" && isPlainAttempt(line) && startedAt !== null;
  if (isPlain && outcome.state === "delivered" && endpoint?.ok)
    return `${endpoint.generation},${encodeLane(endpoint.lane)},${ms},${sketch},${startedAt},${now}\n${line}`;
  const about = attempt && { attempt: line, summary: encodeAttemptSummary(attempt), ms, sketch };
  const report = endpoint && {
    ok: endpoint.ok,
    generation: String(endpoint.generation),
    at: endpoint.at,
    noticeAt: endpoint.noticeAt,
    lane: encodeLane(endpoint.lane),
  };
  return JSON.stringify({
    ...about,
    ...outcome,
    outcome: outcome.state,
    reason: "reason" in outcome ? encodeText(outcome.reason) : undefined,
    startedAt,
    report,
  });
}

export class RedisQueue implements Pick<WebhookStore, "append" | "claim" | "settle"> {
  readonly append: WebhookStore["append"];
  readonly #context: RedisStoreContext;
  readonly #upkeep: Upkeep;
  readonly #readers: ClaimReader[];
  readonly #process = randomBytes(6).toString("base64url");
  #calls = 0;
  /** The partition that comes first in the next claim. */
  #first = 0;

  constructor(context: RedisStoreContext) {
    const cache = createEventCache();
    this.#context = context;
    this.#upkeep = new Upkeep(context, cache);
    this.#readers = context.partitions.all.map((partition) => new ClaimReader(context, partition, cache));
    this.append = createAppend(context, cache, this.#upkeep, this);
  }

  /** Names a call, so that a repetition after a lost reply is recognised. */
  createNonce(): string {
    this.#calls += 1;
    return `${this.#process}.${this.#calls.toString(36)}`;
  }

  /**
   * Calls all partitions at once: the first in turn with the whole room, the others only to learn
   * when something is due. The room that is left goes to the others, one after another.
   */
  async claim(request: ClaimRequest): Promise<ClaimResponse> {
    const { clock } = this.#context;
    const began = clock.monotonic();
    const now = await this.#context.connect(request.now);
    // The caller computed the times of the request before the storage's time was known.
    if (now !== request.now) return { claims: [], nextAt: now + 1 };
    const result = await this.#claimFromAll(request, began);
    if (result.claims.length === 0 || clock.monotonic() - began < CLAIM_WITHIN_MS) return result;
    this.release(result.claims, now);
    throw resultUnknown("no reply in time");
  }

  async settle(settlements: readonly Settlement[]): Promise<SettleResult[]> {
    const results: SettleResult[] = [];
    for (let from = 0; from < settlements.length; from += MAX_SETTLED)
      results.push(...(await this.#settleTogether(settlements.slice(from, from + MAX_SETTLED))));
    return results;
  }

  /** Makes claims of what a call leased. Releases the rows that cannot be used. */
  async toClaims(partition: Partition, leased: Leased, now: number): Promise<ClaimResponse> {
    this.#upkeep.raiseAlarms(partition, leased);
    const reader = this.#readers[partition.number];
    if (reader === undefined || leased.rows.length === 0) return { claims: [], nextAt: leased.nextAt };
    const { claims, unusable, unreadable } = await reader.read(leased, now).catch((error: unknown) => {
      this.releaseLeased(leased, now);
      throw error;
    });
    this.#releaseRows(unusable, leased, now, now + UNUSABLE_MS);
    // If this fails, the leases expire.
    if (unreadable.length > 0) await this.#upkeep.tidy(partition, now, { unreadable }).catch(() => {});
    return { claims, nextAt: leased.nextAt };
  }

  /**
   * Releases claims without an attempt: they are due again when they were. Errors are ignored,
   * because the leases then expire.
   */
  release(claims: readonly Claim[], now: number): void {
    this.#settleInBackground(
      claims.map(({ id, webhook, token, step, isExtra, dueAt, postponed, crashes }) => ({
        id,
        webhookId: webhook.id,
        account: webhook.account,
        token,
        now,
        outcome: { state: "pending", step, dueAt, postponed, crashes, extraAt: isExtra ? now : null },
        startedAt: null,
        attempt: null,
        endpoint: null,
      })),
    );
  }

  /** Releases everything that a call leased. */
  releaseLeased(leased: Leased, now: number): void {
    this.#releaseRows(leased.rows, leased, now, undefined);
  }

  /** Releases rows that did not become claims. They are due at `at`, or when they were. */
  #releaseRows(rows: LeasedRow[], { webhooks, token }: Leased, now: number, at: number | undefined): void {
    const settlements: Settlement[] = [];
    for (const { ref, line } of rows) {
      const number = parseWebhookNumber(ref);
      const owner = decodeOwner(webhooks.get(number) ?? "");
      if (!owner) continue;
      const id = decodeDeliveryId(owner.id, ref.slice(number.length + 1));
      const { step, dueAt, postponed, crashes, isExtra } = decodeClaimLine(line, now);
      const extraAt = isExtra ? (at ?? now) : null;
      settlements.push({
        id,
        webhookId: owner.id,
        account: owner.account,
        token,
        now,
        outcome: { state: "pending", step, dueAt: at ?? dueAt, postponed, crashes, extraAt },
        startedAt: null,
        attempt: null,
        endpoint: null,
      });
    }
    this.#settleInBackground(settlements);
  }

  /** Settles deliveries of any partitions. Errors are ignored, because the leases then expire. */
  #settleInBackground(settlements: Settlement[]): void {
    const { partitions } = this.#context;
    for (const partition of partitions.all) {
      const here = settlements.filter(({ webhookId }) => partitions.ofWebhook(webhookId) === partition);
      this.settle(here).catch(() => {});
    }
  }

  async #claimFromAll(request: ClaimRequest, began: number): Promise<ClaimResponse> {
    const { partitions, logger, clock } = this.#context;
    const inTurn = [...partitions.all.slice(this.#first), ...partitions.all.slice(0, this.#first)];
    this.#first = (this.#first + 1) % inTurn.length;
    const errors: unknown[] = [];
    /** A partition that fails must not cost the others their claims. It is called again soon. */
    const claimFrom = (partition: Partition, room: ClaimRequest["room"]): Promise<ClaimResponse> =>
      this.#claimFrom(partition, { ...request, room }).catch((error: unknown) => {
        errors.push(error);
        return { claims: [], nextAt: request.now + UNREACHED_MS };
      });
    const results = await Promise.all(
      inTurn.map((partition, place) => claimFrom(partition, place === 0 ? request.room : EMPTY_ROOM)),
    );
    if (errors.length === inTurn.length) throw errors[0];
    const isLate = clock.monotonic() - began > CLAIM_OTHERS_WITHIN_MS;
    const claims = [...(results[0]?.claims ?? [])];
    for (const [place, partition] of inTurn.entries()) {
      const nextAt = results[place]?.nextAt ?? null;
      const room = getRoomLeft(request.room, claims);
      const isDue = nextAt !== null && nextAt <= request.now;
      if (place === 0 || isLate || !isDue || room.fast + room.slow === 0) continue;
      const result = await claimFrom(partition, room);
      results[place] = result;
      claims.push(...result.claims);
    }
    for (const error of errors) logger.error({ error }, "due deliveries of a partition could not be claimed");
    return { claims, nextAt: getEarliest(results.map(({ nextAt }) => nextAt)) };
  }

  /** Claims from one partition, with the upkeep that it needs. */
  async #claimFrom(partition: Partition, request: ClaimRequest): Promise<ClaimResponse> {
    const { now } = request;
    const leased = await this.#lease(partition, request);
    const { claims, nextAt } = await this.toClaims(partition, leased, now);
    if (leased.isOverdue) this.#upkeep.start(partition, now);
    if (!leased.hasExpired) return { claims, nextAt };
    try {
      await this.#upkeep.tidy(partition, now);
      const room = getRoomLeft(request.room, claims);
      // With the same token the function would return what it leased before.
      const again = await this.#lease(partition, { ...request, token: `${request.token}.more`, room });
      const more = await this.toClaims(partition, again, now);
      return { claims: [...claims, ...more.claims], nextAt: more.nextAt };
    } catch (error) {
      if (claims.length === 0) throw error;
      this.#context.logger.error({ error }, "expired leases of a partition could not be recovered");
      return { claims, nextAt: now + UNREACHED_MS };
    }
  }

  async #lease(partition: Partition, request: ClaimRequest): Promise<Leased> {
    const { now, token } = request;
    const reply = await this.#context.run("claim", partition, {
      now,
      options: encodeClaim(request),
      onLate: (late) => this.releaseLeased(decodeClaimReply(late as ClaimReply, token), now),
    });
    const leased = decodeClaimReply(reply as ClaimReply, token);
    this.#context.notifyWorkers(leased.notifyAt);
    return leased;
  }

  /** Settles deliveries of one partition by one call. */
  async #settleTogether(settlements: readonly Settlement[]): Promise<SettleResult[]> {
    const partition = this.#context.partitions.ofWebhook(settlements[0]?.webhookId ?? "");
    const now = await this.#context.connect(settlements[0]?.now ?? 0);
    const webhooks: { id: string; account: string }[] = [];
    const places = new Map<string, number>();
    const items: (string | number)[] = [];
    for (const settlement of settlements) {
      const { id, webhookId, account, token } = settlement;
      const key = `${webhookId} ${account}`;
      let place = places.get(key);
      if (place === undefined) {
        place = webhooks.push({ id: webhookId, account: encodeText(account) });
        places.set(key, place);
      }
      items.push(place, encodeDeliveryId(id)?.suffix ?? "-", encodeText(token), encodeResult(settlement));
    }
    const options = { nonce: this.createNonce(), webhooks };
    const reply = await this.#context.run("settle", partition, { now, options, items });
    const [results, notifyAt, excess] = reply as [string, string, string[]];
    this.#context.notifyWorkers(notifyAt);
    await this.#upkeep.freeExcess(partition, now, excess);
    return results.split(" ") as SettleResult[];
  }
}
