/** Events and their deliveries on the way, on Redis: append, claim, settle. */

import { randomBytes } from "node:crypto";
import { formatDeliveryId, parseDeliveryId } from "../../src/webhooks/delivery-id.js";
import type {
  Attempt,
  AttemptSummary,
  Claim,
  ClaimRequest,
  EventRecord,
  Lane,
  Settlement,
  SettleResult,
  WebhookRecord,
  WebhookStore,
} from "../../src/webhooks/store.js";
import { type Batch, createBatch } from "./batch.js";
import { type Binding, full } from "./binding.js";
import type { Argument } from "./client.js";
import type { Partition } from "./partition.js";
import { SCRIPTS } from "./scripts.js";
import {
  encodeText,
  longId,
  numberText,
  readClaimLine,
  readEvent,
  readOwner,
  readWebhook,
  shortId,
} from "./texts.js";

/** Most of one kind in a script, so that none holds Redis up for more than a few milliseconds. */
const APPENDED_PER_CALL = 32;
const APPENDED_BYTES_PER_CALL = 1_048_576;
const SETTLED_PER_CALL = 100;
const CLAIMED_PER_CALL = 250;
/** One under way while the next fills up: under load batches grow by themselves. */
const CALLS_UNDER_WAY = 2;

interface Append {
  readonly event: EventRecord;
  readonly rememberMs: number;
  readonly now: number;
  readonly nonce: string;
  readonly claim: ClaimRequest | undefined;
  readonly webhookId: string | undefined;
}

type ClaimAnswer = Awaited<ReturnType<WebhookStore["claim"]>>;
type Appended = Awaited<ReturnType<WebhookStore["append"]>>;

interface Settling extends Settlement {
  /** Tells a call that is made again, since its answer was lost, from another one. */
  readonly nonce: string;
}

type ClaimReply = [
  nextAt: string,
  claims: [ref: string, lane: string, line: string][],
  webhooks: [number: string, text: string][],
  events: [key: string, text: string][],
  parked: string[],
  mark: string,
];

/** When a partition that failed is asked again, while others work. */
const UNREACHED_MS = 500;
/** How long the deliveries of a webhook wait whose secret cannot be opened, before the next look. */
const UNUSABLE_MS = 60_000;

const NO_ROOM = { fast: 0, slow: 0 } as const;

const LANES: Readonly<Record<string, Lane>> = { f: "fast", s: "slow" };

/** `<event>` or `<event>.<serial>`: what a delivery's reference holds after its webhook. */
const suffixOf = (eventId: string, serial: number): string =>
  serial === 0 ? shortId(eventId) : `${shortId(eventId)}.${serial}`;

const readSuffix = (suffix: string): { readonly eventId: string; readonly serial: number } => {
  const [short = "", serial = "0"] = suffix.split(".");
  return { eventId: longId(short), serial: Number(serial) };
};

/** The suffix of a delivery's id, or `undefined` where it is none. */
export function suffixOfId(id: string): { readonly webhookId: string; readonly suffix: string } | undefined {
  const key = parseDeliveryId(id);
  return key && { webhookId: key.webhookId, suffix: suffixOf(key.eventId, key.serial) };
}

export const idOfSuffix = (webhookId: string, suffix: string): string =>
  formatDeliveryId({ webhookId, ...readSuffix(suffix) });

function outcomeArguments(outcome: Settlement["outcome"]): readonly Argument[] {
  if (outcome.state !== "pending") {
    const reason = outcome.state === "delivered" ? "" : encodeText(outcome.reason);
    return [outcome.state, reason, "", "", "", "", ""];
  }
  const { step, dueAt, postponed, crashes, extraAt } = outcome;
  return ["pending", "", step, dueAt, postponed, crashes, numberText(extraAt)];
}

function claimArguments(
  request: Pick<ClaimRequest, "token" | "leaseUntil" | "room"> | undefined,
): readonly Argument[] {
  if (!request) return ["", "", 0, 0];
  const [fast = 0, slow = 0] = [request.room.fast, request.room.slow].map((most) =>
    Math.min(most, CLAIMED_PER_CALL),
  );
  return [encodeText(request.token), request.leaseUntil, fast, slow];
}

const shortAttempt = ({ at, kind, status, code }: Attempt): string =>
  JSON.stringify({ at, kind, status, code } satisfies AttemptSummary);

function endpointArguments(endpoint: Settlement["endpoint"]): readonly Argument[] {
  if (!endpoint) return ["", "", "", "", ""];
  const { ok, generation, at, noticeAt, lane } = endpoint;
  return [ok ? "1" : "0", generation, at, noticeAt, lane === "fast" ? "f" : "s"];
}

export function deliveryQueue(binding: Binding): Pick<WebhookStore, "append" | "claim" | "settle"> {
  const { partitions, seal, limits, logger, run, runDurably, hint, onReset, isReplicated } = binding;
  const process = randomBytes(6).toString("base64url");
  let count = 0;
  const nonce = (): string => `${process}.${(++count).toString(36)}`;

  const append = async (
    partition: Partition,
    items: readonly Append[],
  ): Promise<readonly (Appended | Error)[]> => {
    const now = await binding.at(Math.max(...items.map((item) => item.now)));
    // One of them is enough to lease what is due; with an answer that waits for a replica the leases would wait too.
    const claimer = isReplicated ? undefined : items.find(({ claim }) => claim !== undefined);
    const args: Argument[] = [limits.pending, limits.pendingPerAccount, ...claimArguments(claimer?.claim)];
    for (const { event, rememberMs, nonce: own, webhookId } of items) {
      const { account, id, type, digest, payload } = event;
      args.push(
        encodeText(account),
        shortId(id),
        encodeText(type),
        JSON.stringify(digest),
        payload,
        rememberMs,
        own,
        webhookId === undefined ? "" : shortId(webhookId),
      );
    }
    const onLate = (late: unknown): void => {
      const claimed = (late as unknown[])[items.length + 1];
      if (claimed) giveBack(claimed as ClaimReply, now);
    };
    const { reply, confirmed } = await runDurably(SCRIPTS.append, partition, now, args, { onLate });
    const answers = reply as [string, string][];
    hint(String(answers[items.length]));
    const leased = claimer && ((reply as unknown[])[items.length + 1] as ClaimReply);
    // Whose event was refused is told so, and does not look for claims.
    const isTaken = claimer && ["stored", "duplicate"].includes(answers[items.indexOf(claimer)]?.[0] ?? "");
    if (leased && !isTaken) giveBack(leased, now);
    const claimed = leased && isTaken ? readClaimReply(partition, leased, now) : undefined;
    return items.map((item, index) => {
      const eventId = item.event.id;
      const own = item === claimer ? { claimed } : {};
      const [result, detail] = answers[index] as [string, string];
      if (result === "full") return full(detail, limits);
      if (result === "conflict") return { result };
      const ids = detail === "" ? [] : detail.split(";").map(longId);
      const deliveries = ids.map((webhookId) => ({
        id: formatDeliveryId({ webhookId, eventId, serial: 0 }),
        webhookId,
      }));
      return {
        result: result as "stored" | "duplicate",
        deliveries,
        ...(confirmed !== undefined && { confirmed }),
        ...own,
      };
    });
  };

  const settle = async (
    partition: Partition,
    items: readonly Settling[],
  ): Promise<readonly SettleResult[]> => {
    const now = await binding.at(items[0]?.now ?? 0);
    const args = items.flatMap((item) => [
      encodeText(item.account),
      item.webhookId,
      suffixOfId(item.id)?.suffix ?? "-",
      encodeText(item.token),
      item.nonce,
      item.now,
      ...outcomeArguments(item.outcome),
      numberText(item.startedAt),
      item.attempt ? JSON.stringify(item.attempt) : "",
      item.attempt ? shortAttempt(item.attempt) : "",
      ...endpointArguments(item.endpoint),
    ]);
    const answers = (await run(SCRIPTS.settle, partition, now, args)) as [...SettleResult[], string];
    hint(answers.at(-1));
    return answers.slice(0, -1) as SettleResult[];
  };

  const batched = <T, R>(
    create: (partition: Partition) => Batch<T, R>,
  ): ((partition: Partition) => Batch<T, R>) => {
    const batches = partitions.all.map(create);
    return ({ number }) => batches[number] as Batch<T, R>;
  };
  const appends = batched((partition) =>
    createBatch<Append, Appended | Error>({
      run: (items) => append(partition, items),
      most: APPENDED_PER_CALL,
      concurrency: CALLS_UNDER_WAY,
      bytesOf: ({ event }) => event.payload.length,
      mostBytes: APPENDED_BYTES_PER_CALL,
    }),
  );
  const settles = batched((partition) =>
    createBatch<Settling, SettleResult>({
      run: (items) => settle(partition, items),
      most: SETTLED_PER_CALL,
      concurrency: CALLS_UNDER_WAY,
    }),
  );

  const settleOne = (settlement: Settlement): Promise<SettleResult> =>
    settles(partitions.ofAccount(settlement.account)).add({ ...settlement, nonce: nonce() });

  /**
   * Gives claims back that cannot be used: due again at `at`, or when they were. No attempt was made, so nothing else changes.
   * `only`: those of these webhooks, by the partition's numbers.
   */
  const giveBack = (
    [, claims, webhookTexts]: ClaimReply,
    now: number,
    { at, only }: { readonly at?: number; readonly only?: ReadonlySet<string> } = {},
  ): void => {
    const texts = new Map(webhookTexts);
    for (const [ref, , line] of claims) {
      const [number = "", suffix = ""] = ref.split("/");
      const owner = (only?.has(number) ?? true) ? readOwner(texts.get(number) ?? "") : undefined;
      if (!owner) continue;
      const { account, id: webhookId } = owner;
      const { token, step, isExtra, dueAt, postponed, crashes } = readClaimLine(line);
      const outcome = {
        state: "pending",
        step,
        dueAt: at ?? dueAt,
        postponed,
        crashes,
        extraAt: isExtra ? (at ?? now) : null,
      } as const;
      const id = idOfSuffix(webhookId, suffix);
      const nothing = { startedAt: null, attempt: null, endpoint: null };
      // Where it fails, the lease runs out.
      settleOne({ id, webhookId, account, token, now, outcome, ...nothing }).catch(() => {});
    }
  };

  const readClaims = (reply: ClaimReply, now: number): Claim[] => {
    const [, claims, webhookTexts, eventTexts] = reply;
    const webhooks = new Map<string, { readonly webhook: WebhookRecord; readonly accountNumber: string }>();
    const unusable = new Set<string>();
    for (const [number, text] of webhookTexts) {
      try {
        const { record: webhook } = readWebhook(text, seal);
        webhooks.set(number, { webhook, accountNumber: text.slice(0, text.indexOf(",")) });
      } catch (error) {
        unusable.add(number);
        logger.error({ error }, "a webhook cannot be used; its deliveries wait");
      }
    }
    if (unusable.size > 0) giveBack(reply, now, { at: now + UNUSABLE_MS, only: unusable });
    const texts = new Map(eventTexts);
    const events = new Map<string, EventRecord>();
    const eventOf = (key: string, short: string, account: string): EventRecord | undefined => {
      const known = events.get(key);
      if (known) return known;
      const text = texts.get(key);
      if (!text) return undefined;
      const event = readEvent(text, account, longId(short));
      events.set(key, event);
      return event;
    };
    return claims.flatMap(([ref, lane, line]) => {
      const [number = "", suffix = ""] = ref.split("/");
      const known = webhooks.get(number);
      if (!known) return [];
      const { webhook, accountNumber } = known;
      const [short = ""] = suffix.split(".", 1);
      const event = eventOf(`${accountNumber}/${short}`, short, webhook.account);
      if (!event) return [];
      const id = idOfSuffix(webhook.id, suffix);
      return [{ ...readClaimLine(line), id, webhook, event, lane: LANES[lane] ?? "slow" }];
    });
  };

  const marks = new Map<number, string>();
  const raiseAlarms = ({ number }: Partition, [, , , , parked, mark]: ClaimReply): void => {
    if (parked.length > 0)
      logger.error(
        { partition: number, deliveries: parked },
        "stored records cannot be read; their deliveries ended as failed",
      );
    const known = marks.get(number);
    if (known !== undefined && known !== mark) {
      logger.error(
        { partition: number, code: "store_reset" },
        "Redis was emptied or replaced: what it held is gone",
      );
      onReset();
    }
    marks.set(number, mark);
  };

  const readClaimReply = (partition: Partition, reply: ClaimReply, now: number): ClaimAnswer => {
    raiseAlarms(partition, reply);
    return { claims: readClaims(reply, now), nextAt: reply[0] === "" ? null : Number(reply[0]) };
  };

  /** The partition that is asked first next time: each has its turn. */
  let first = 0;

  const claimFrom = async (
    partition: Partition,
    { token, leaseUntil, now }: ClaimRequest,
    room: ClaimRequest["room"],
  ): Promise<ClaimAnswer> => {
    const args = claimArguments({ token, leaseUntil, room });
    const onLate = (reply: unknown): void => giveBack(reply as ClaimReply, now);
    const reply = (await run(SCRIPTS.claim, partition, now, args, { onLate })) as ClaimReply;
    return readClaimReply(partition, reply, now);
  };

  /** All are asked what is due, at once; the first in turn gives from the whole room already, the others then, one after another, what is left of it. */
  const claim = async (request: ClaimRequest): ReturnType<WebhookStore["claim"]> => {
    const inTurn = [...partitions.all.slice(first), ...partitions.all.slice(0, first)];
    first = (first + 1) % inTurn.length;
    const errors: unknown[] = [];
    /** A partition that cannot be reached must not cost the others what they leased. It is asked again soon. */
    const ask = (partition: Partition, room: ClaimRequest["room"]): Promise<ClaimAnswer> =>
      claimFrom(partition, request, room).catch((error: unknown) => {
        errors.push(error);
        return { claims: [], nextAt: request.now + UNREACHED_MS };
      });
    const answers = await Promise.all(
      inTurn.map((partition, place) => ask(partition, place === 0 ? request.room : NO_ROOM)),
    );
    if (errors.length === inTurn.length) throw errors[0];
    const claims = [...(answers[0]?.claims ?? [])];
    const left = (lane: Lane): number =>
      request.room[lane] - claims.reduce((sum, own) => sum + (own.lane === lane ? 1 : 0), 0);
    for (const [place, partition] of inTurn.entries()) {
      const { nextAt } = answers[place] ?? { nextAt: null };
      const room = { fast: left("fast"), slow: left("slow") };
      if (place === 0 || nextAt === null || nextAt > request.now || room.fast + room.slow === 0) continue;
      const answer = await ask(partition, room);
      answers[place] = answer;
      claims.push(...answer.claims);
    }
    for (const error of errors) logger.error({ error }, "a partition could not be asked for due deliveries");
    const times = answers.flatMap(({ nextAt }) => (nextAt === null ? [] : [nextAt]));
    return { claims, nextAt: times.length > 0 ? Math.min(...times) : null };
  };

  return {
    async append({ event, rememberMs, now, claim: carried, webhookId }) {
      const item = { event: { ...event }, rememberMs, now, nonce: nonce(), claim: carried, webhookId };
      const answer = await appends(partitions.ofAccount(event.account)).add(item);
      if (answer instanceof Error) throw answer;
      return answer;
    },

    async claim(request) {
      const now = await binding.at(request.now);
      // The times of the request were worked out before the storage's time was known.
      return now === request.now ? claim(request) : { claims: [], nextAt: now + 1 };
    },

    settle: settleOne,
  };
}
