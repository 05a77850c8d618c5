/** Events and their deliveries until these are completed, on Redis: append, claim, settle. */

import { randomBytes } from "node:crypto";
import { formatDeliveryId } from "../../src/webhooks/delivery-id.js";
import type { ClaimRequest, EventRecord, WebhookStore } from "../../src/webhooks/store.js";
import { createBatch } from "./batch.js";
import { type Binding, full } from "./binding.js";
import type { LeasedRows } from "./claim-reader.js";
import { type Alarms, type ClaimReply, createClaiming, leaseArguments } from "./claiming.js";
import type { Argument } from "./client.js";
import { createExchange, type Exchange } from "./exchange.js";
import { createFirstLeases } from "./first-leases.js";
import type { Partition } from "./partition.js";
import { SCRIPTS } from "./scripts.js";
import { createSettlements } from "./settlements.js";
import { encodeText, longId, shortId } from "./texts.js";

/** Most of one kind in a script, so that none holds Redis up for more than a few milliseconds. */
const APPENDED_PER_CALL = 32;
const APPENDED_BYTES_PER_CALL = 1_048_576;
/** While these are in flight, the next one fills up: under load batches grow by themselves. */
const CONCURRENT_CALLS = 2;

const NOTHING: readonly Argument[] = ["", "", 0, 0];

interface Append {
  readonly event: EventRecord;
  readonly rememberMs: number;
  readonly now: number;
  readonly nonce: string;
  readonly claim: ClaimRequest | undefined;
  readonly webhookId: string | undefined;
}

type Appended = Awaited<ReturnType<WebhookStore["append"]>>;

/** What `claimDue` of the scripts answers. */
type LeasedReply = [
  nextAt: string,
  claims: [ref: string, lane: string, line: string][],
  webhooks: [number: string, text: string][],
  events: [key: string, text: string][],
  parked: string[],
  mark: string,
];

const toLeased = (
  [, claims, webhooks, events, parked, mark]: LeasedReply,
  requestToken: string,
): LeasedRows & Alarms => ({
  rows: claims.map(([ref, , line]) => ({ ref, line })),
  webhooks: new Map(webhooks),
  events: new Map(events),
  token: encodeText(requestToken),
  requestToken,
  parked,
  mark,
});

const appendArguments = ({ event, rememberMs, nonce, webhookId }: Append): readonly Argument[] => [
  encodeText(event.account),
  shortId(event.id),
  encodeText(event.type),
  JSON.stringify(event.digest),
  event.payload,
  rememberMs,
  nonce,
  webhookId === undefined ? "" : shortId(webhookId),
];

export function deliveryQueue(binding: Binding): Pick<WebhookStore, "append" | "claim" | "settle"> {
  const { partitions, limits, runDurably, hint, isReplicated } = binding;
  const process = randomBytes(6).toString("base64url");
  let count = 0;
  const nonce = (): string => `${process}.${(++count).toString(36)}`;

  const firstLeases = createFirstLeases();
  const exchanges = partitions.all.map((partition) => createExchange(binding, partition, nonce));
  const exchangeOf = ({ number }: Partition): Exchange => {
    const exchange = exchanges[number];
    if (exchange === undefined) throw new RangeError("every partition has an exchange");
    return exchange;
  };
  const settlements = createSettlements(binding, exchangeOf, firstLeases, nonce);
  const claiming = createClaiming(binding, exchangeOf, settlements, firstLeases);

  const toAppended = (
    { event }: Append,
    [result, detail]: [string, string],
    more: Pick<Extract<Appended, { result: "stored" | "duplicate" }>, "confirmed" | "claimed">,
  ): Appended | Error => {
    if (result === "full") return full(detail, limits);
    if (result === "conflict") return { result };
    const ids = detail === "" ? [] : detail.split(";").map(longId);
    const deliveries = ids.map((webhookId) => ({
      id: formatDeliveryId({ webhookId, eventId: event.id, serial: 0 }),
      webhookId,
    }));
    return { result: result as "stored" | "duplicate", deliveries, ...more };
  };

  const append = async (
    partition: Partition,
    items: readonly Append[],
  ): Promise<readonly (Appended | Error)[]> => {
    const now = await binding.at(Math.max(...items.map((item) => item.now)));
    // One of them is enough to lease what is due; with an answer that waits for a replica the leases would wait too.
    const claimer = isReplicated ? undefined : items.find(({ claim }) => claim !== undefined);
    const token = claimer?.claim?.token ?? "";
    const lease = claimer?.claim ? leaseArguments(claimer.claim) : NOTHING;
    const args = [limits.pending, limits.pendingPerAccount, ...lease, ...items.flatMap(appendArguments)];
    const onLate = (reply: unknown): void => {
      const late = (reply as unknown[])[items.length + 1] as LeasedReply | undefined;
      if (late === undefined) return;
      const leased = toLeased(late, token);
      settlements.releaseRows(leased.rows, leased, now);
    };
    const { reply, confirmed } = await runDurably(SCRIPTS.append, partition, now, args, { onLate });
    const answers = reply as [string, string][];
    hint(String(answers[items.length]));
    const leasedReply = claimer && ((reply as unknown[])[items.length + 1] as LeasedReply);
    // Whose event was refused is told so, and does not look for claims.
    const isTaken = claimer && ["stored", "duplicate"].includes(answers[items.indexOf(claimer)]?.[0] ?? "");
    let claimed: ClaimReply | undefined;
    if (leasedReply) {
      const leased = toLeased(leasedReply, token);
      if (isTaken) {
        const claims = await claiming.take(partition, leased, now);
        claimed = { claims, nextAt: leasedReply[0] === "" ? null : Number(leasedReply[0]) };
      } else {
        settlements.releaseRows(leased.rows, leased, now);
      }
    }
    return items.map((item, index) =>
      toAppended(item, answers[index] ?? ["", ""], {
        ...(confirmed !== undefined && { confirmed }),
        ...(item === claimer && { claimed }),
      }),
    );
  };

  const appends = partitions.all.map((partition) =>
    createBatch<Append, Appended | Error>({
      run: (items) => append(partition, items),
      most: APPENDED_PER_CALL,
      concurrency: CONCURRENT_CALLS,
      bytesOf: ({ event }) => event.payload.length,
      mostBytes: APPENDED_BYTES_PER_CALL,
    }),
  );

  return {
    async append({ event, rememberMs, now, claim, webhookId }) {
      const batch = appends[partitions.ofAccount(event.account).number];
      if (batch === undefined) throw new RangeError("every account has a partition");
      const item = { event: { ...event }, rememberMs, now, nonce: nonce(), claim, webhookId };
      const answer = await batch.add(item);
      if (answer instanceof Error) throw answer;
      return answer;
    },
    claim: claiming.claim,
    settle: settlements.settle,
  };
}
