/** Events and their deliveries on the way, on Redis: append, claim, settle. */

import { randomBytes } from "node:crypto";
import { formatDeliveryId, parseDeliveryId } from "../../src/webhooks/delivery-id.js";
import type {
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
import { encodeText, longId, numberText, readClaim, readEvent, readWebhook, shortId } from "./texts.js";

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
    for (const { event, rememberMs, nonce: own } of items) {
      const { account, id, type, digest, payload } = event;
      args.push(
        encodeText(account),
        shortId(id),
        encodeText(type),
        JSON.stringify(digest),
        payload,
        rememberMs,
        own,
      );
    }
    const onLate = (late: unknown): void => {
      const claimed = (late as unknown[])[items.length + 1];
      if (claimed) giveBack(claimed, now);
    };
    const { reply, confirmed } = await runDurably(SCRIPTS.append, partition, now, args, { onLate });
    const answers = reply as [string, string][];
    hint(String(answers[items.length]));
    const claimed =
      claimer && readClaimReply(partition, (reply as unknown[])[items.length + 1] as ClaimReply);
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

  const readClaims = ([, claims, webhookTexts, eventTexts]: ClaimReply): Claim[] => {
    const webhooks = new Map<string, { readonly webhook: WebhookRecord; readonly accountNumber: string }>();
    for (const [number, text] of webhookTexts) {
      try {
        webhooks.set(number, {
          webhook: readWebhook(text, seal).record,
          accountNumber: text.slice(0, text.indexOf(",")),
        });
      } catch (error) {
        // Its deliveries wait for their lease, and for the key that is missing.
        logger.error({ error }, "a webhook cannot be used");
      }
    }
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
      const slash = ref.indexOf("/");
      const suffix = ref.slice(slash + 1);
      const known = webhooks.get(ref.slice(0, slash));
      if (!known) return [];
      const { webhook, accountNumber } = known;
      const [short = ""] = suffix.split(".", 1);
      const event = eventOf(`${accountNumber}/${short}`, short, webhook.account);
      if (!event) return [];
      return [
        readClaim(line, { id: idOfSuffix(webhook.id, suffix), webhook, event, lane: LANES[lane] ?? "slow" }),
      ];
    });
  };

  /** Gives back what an answer holds that came too late to be used. */
  const giveBack = (reply: unknown, now: number): void => {
    for (const claim of readClaims(reply as ClaimReply)) {
      const { id, token, webhook, startedAt, step, isExtra, dueAt, postponed, crashes } = claim;
      const outcome = {
        state: "pending",
        step,
        dueAt,
        postponed,
        crashes,
        extraAt: isExtra ? now : null,
      } as const;
      const { account, id: webhookId } = webhook;
      const settlement = {
        id,
        webhookId,
        account,
        token,
        now,
        outcome,
        startedAt,
        attempt: null,
        endpoint: null,
      };
      void settleOne(settlement).catch(() => {});
    }
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

  const readClaimReply = (partition: Partition, reply: ClaimReply): ClaimAnswer => {
    raiseAlarms(partition, reply);
    return { claims: readClaims(reply), nextAt: reply[0] === "" ? null : Number(reply[0]) };
  };

  /** The partition that is asked first next time: each has its turn. */
  let first = 0;

  const claimFrom = async (
    partition: Partition,
    { token, leaseUntil, now }: ClaimRequest,
    room: ClaimRequest["room"],
  ): Promise<ClaimAnswer> => {
    const args = claimArguments({ token, leaseUntil, room });
    const onLate = (reply: unknown): void => giveBack(reply, now);
    const reply = (await run(SCRIPTS.claim, partition, now, args, { onLate })) as ClaimReply;
    return readClaimReply(partition, reply);
  };

  /** All are asked what is due, at once; the first in turn gives from the whole room already, the others then, one after another, what is left of it. */
  const claim = async (request: ClaimRequest): ReturnType<WebhookStore["claim"]> => {
    const inTurn = [...partitions.all.slice(first), ...partitions.all.slice(0, first)];
    first = (first + 1) % inTurn.length;
    const answers = await Promise.all(
      inTurn.map((partition, place) => claimFrom(partition, request, place === 0 ? request.room : NO_ROOM)),
    );
    const claims = [...(answers[0]?.claims ?? [])];
    const left = (lane: Lane): number =>
      request.room[lane] - claims.reduce((sum, own) => sum + (own.lane === lane ? 1 : 0), 0);
    for (const [place, partition] of inTurn.entries()) {
      const { nextAt } = answers[place] ?? { nextAt: null };
      const room = { fast: left("fast"), slow: left("slow") };
      if (place === 0 || nextAt === null || nextAt > request.now || room.fast + room.slow === 0) continue;
      const answer = await claimFrom(partition, request, room);
      answers[place] = answer;
      claims.push(...answer.claims);
    }
    const times = answers.flatMap(({ nextAt }) => (nextAt === null ? [] : [nextAt]));
    return { claims, nextAt: times.length > 0 ? Math.min(...times) : null };
  };

  return {
    async append({ event, rememberMs, now, claim: carried }) {
      const item = { event: { ...event }, rememberMs, now, nonce: nonce(), claim: carried };
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
