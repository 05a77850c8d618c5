/** What scripts lease, read: claims with their webhooks and events. */

import { LRUCache } from "lru-cache";
import type { Claim, Lane, WebhookRecord } from "../../src/webhooks/store.js";
import type { Binding } from "./binding.js";
import { idOfSuffix } from "./delivery-id-text.js";
import type { FirstLeases } from "./first-leases.js";
import type { Partition } from "./partition.js";
import { longId, readClaimLine, readStoredEvent, readWebhook, type StoredEvent } from "./texts.js";

/** Webhooks whose text was read lately, per partition: their secrets are opened once. */
const MAX_WEBHOOKS = 2_000;

/** A leased delivery as scripts tell it. `line` is empty where it is leased for the first time. */
export interface LeasedRow {
  readonly ref: string;
  readonly line: string;
}

/** What a script leased. */
export interface LeasedRows {
  readonly rows: readonly LeasedRow[];
  /** Texts of the webhooks by their numbers. */
  readonly webhooks: ReadonlyMap<string, string>;
  /** Texts of events by `A/E`, where the script read them. */
  readonly events: ReadonlyMap<string, string>;
  /** As it is stored. */
  readonly token: string;
  readonly requestToken: string;
}

/** What became of rows: claims to hand out, and rows that cannot be used. */
export interface ReadClaims {
  readonly claims: readonly Claim[];
  /** Their webhooks cannot be used now, so they have to be released. */
  readonly unusable: readonly LeasedRow[];
  /** Their events are missing or cannot be read. */
  readonly unreadable: readonly LeasedRow[];
}

interface KnownWebhook {
  readonly text: string;
  readonly record: WebhookRecord;
  /** The partition's number of its account. */
  readonly account: string;
  readonly lane: Lane;
}

export const webhookNumberOf = (ref: string): string => ref.slice(0, ref.indexOf("/"));
const suffixOf = (ref: string): string => ref.slice(ref.indexOf("/") + 1);
const eventOf = (ref: string): string => suffixOf(ref).split(".", 1)[0] ?? "";

/** Field of a webhook's text that holds its lane. */
const LANE_FIELD = 8;

function readLane(text: string): Lane {
  return text.split(",", LANE_FIELD + 1)[LANE_FIELD] === "f" ? "fast" : "slow";
}

export function createClaimReader(
  { seal, logger, call }: Binding,
  partition: Partition,
  firstLeases: FirstLeases,
): {
  /** Rejects with the error of the storage where the events cannot be fetched. */
  read(rows: LeasedRows): Promise<ReadClaims>;
} {
  const known = new LRUCache<string, KnownWebhook>({ max: MAX_WEBHOOKS });

  const readKnown = (number: string, text: string): KnownWebhook | undefined => {
    const before = known.get(number);
    if (before?.text === text) return before;
    try {
      const { record } = readWebhook(text, seal);
      // Shared by claims, so that a caller cannot change what later ones get.
      Object.freeze(record.eventTypes);
      Object.freeze(record);
      const webhook = { text, record, account: text.slice(0, text.indexOf(",")), lane: readLane(text) };
      known.set(number, webhook);
      return webhook;
    } catch (error) {
      logger.error({ error }, "a webhook cannot be used; its deliveries wait");
      return undefined;
    }
  };

  const fetchTexts = async (
    keys: readonly string[],
    texts: ReadonlyMap<string, string>,
  ): Promise<Map<string, string | null>> => {
    const all = new Map<string, string | null>(texts);
    const missing = [...new Set(keys)].filter((key) => !all.has(key));
    if (missing.length === 0) return all;
    const values = (await call("HMGET", partition.key("events"), ...missing)) as (string | null)[];
    for (const [index, key] of missing.entries()) all.set(key, values[index] ?? null);
    return all;
  };

  const toClaim = (
    { ref, line }: LeasedRow,
    { record: webhook, account, lane }: KnownWebhook,
    { event, createdAt, receivers }: StoredEvent,
    { token, requestToken }: LeasedRows,
  ): Claim => {
    const number = webhookNumberOf(ref);
    const id = idOfSuffix(webhook.id, suffixOf(ref));
    if (line !== "") return { ...readClaimLine(line), id, webhook, event, lane };
    firstLeases.add(id, { ref, webhook: number, account, event: eventOf(ref), receivers, token });
    return {
      token: requestToken,
      startedAt: null,
      step: 0,
      isExtra: false,
      dueAt: createdAt,
      postponed: 0,
      crashes: 0,
      isRecovered: false,
      id,
      webhook,
      event,
      lane,
    };
  };

  return {
    async read(leased) {
      const { rows, webhooks, events: given } = leased;
      const usable = new Map<string, KnownWebhook>();
      for (const [number, text] of webhooks) {
        const webhook = readKnown(number, text);
        if (webhook) usable.set(number, webhook);
      }
      const keyOf = (ref: string): string =>
        `${usable.get(webhookNumberOf(ref))?.account ?? ""}/${eventOf(ref)}`;
      const wanted = rows.filter(({ ref }) => usable.has(webhookNumberOf(ref)));
      const texts = await fetchTexts(
        wanted.map(({ ref }) => keyOf(ref)),
        given,
      );
      const stored = new Map<string, StoredEvent | undefined>();
      const claims: Claim[] = [];
      const unreadable: LeasedRow[] = [];
      for (const row of wanted) {
        const webhook = usable.get(webhookNumberOf(row.ref));
        if (!webhook) continue;
        const key = keyOf(row.ref);
        if (!stored.has(key)) {
          const text = texts.get(key);
          stored.set(
            key,
            text ? readStoredEvent(text, webhook.record.account, longId(eventOf(row.ref))) : undefined,
          );
        }
        const event = stored.get(key);
        if (event) claims.push(toClaim(row, webhook, event, leased));
        else unreadable.push(row);
      }
      const unusable = rows.filter(({ ref }) => !usable.has(webhookNumberOf(ref)));
      return { claims, unusable, unreadable };
    },
  };
}
