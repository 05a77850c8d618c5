/** Builders of the values that the contract passes to a storage. Every field has a default. */

import type { Clock } from "../../core/clock.js";
import { nameUuid } from "../../core/uuid.js";
import type {
  Attempt,
  Claim,
  ClaimRequest,
  EndpointReport,
  EventToAppend,
  Lane,
  Retention,
  Settlement,
  WebhookRecord,
  WebhookStore,
} from "../../webhooks/store.js";

const EVENT_NAMESPACE = "6f1c7f6e-3f0b-5c3a-9d53-6f2f1f3c7b10";
/** A delivery's id starts with the id of its webhook, which is a UUID. */
const UUID_LENGTH = 36;

/** The fields of a claim request that a test can choose. */
export interface ClaimRequestFields {
  /** Room per lane. Default 1 000 each. */
  room?: Partial<Record<Lane, number>> | undefined;
  /** Default {@link LEASE_MS}. */
  leaseMs?: number | undefined;
}

/** The fields of a settlement that a test can choose. */
export type SettlementFields = Partial<Omit<Settlement, "id" | "now" | "outcome">>;

type Idempotency = Parameters<WebhookStore["createWebhook"]>[0]["idempotency"];

/** Builds a report on the endpoint of `claim`: a success, unless `fields` says otherwise. */
export function buildEndpointReport(
  { webhook, lane }: Claim,
  at: number,
  fields: Partial<EndpointReport> = {},
): EndpointReport {
  return { ok: true, generation: webhook.generation, at, noticeAt: at + NOTICE_MS, lane, ...fields };
}

/** Builds the outcome of a delivery whose step `step` is due at `dueAt`. */
export const buildPendingOutcome = (step: number, dueAt: number) =>
  ({ state: "pending", step, dueAt, postponed: 0, crashes: 0 }) as const;

const buildAttempt = (at: number, { step, isExtra }: Claim, isOk: boolean): Attempt => ({
  at,
  durationMs: 12,
  step,
  isExtra,
  kind: isOk ? "delivered" : "http",
  status: isOk ? 200 : 500,
  code: isOk ? "HTTP_200" : "HTTP_500",
  excerpt: isOk ? null : "a response — \u{1F514}",
});

/** Creates the builders of one test. Ids, URLs, secrets and payloads differ from call to call. */
export function createBuilders(store: WebhookStore, clock: Clock) {
  let count = 0;
  const accounts = new Map<string, string>();

  return {
    /** Returns the account of a webhook or delivery by its id, or the clinic if it is unknown. */
    getAccount: (id: string): string => accounts.get(id.slice(0, UUID_LENGTH)) ?? "clinic",

    buildWebhook: (fields: Partial<WebhookRecord> = {}): WebhookRecord => {
      const account = fields.account ?? "clinic";
      const id = store.newWebhookId(account);
      accounts.set(id, account);
      return {
        id,
        account,
        subscriberId: "key-1",
        url: `https://subscriber.example/hooks/${++count}`,
        status: "ENABLED",
        eventTypes: null,
        createdAt: clock.now(),
        updatedAt: clock.now(),
        secret: `whsec_${count}`,
        previousSecret: null,
        rotateAt: null,
        generation: 0,
        failingSince: null,
        warnedAt: null,
        noticeAt: null,
        ...fields,
      };
    },

    /** Builds the argument of `createWebhook`. */
    buildCreation: (webhook: WebhookRecord, idempotency: Idempotency = null) => ({
      webhook,
      enabledLimit: ENABLED_LIMIT,
      accountLimit: ACCOUNT_LIMIT,
      idempotency,
      now: clock.now(),
    }),

    buildEvent: (fields: Partial<EventToAppend> = {}): EventToAppend => ({
      id: nameUuid(EVENT_NAMESPACE, String(++count)),
      account: "clinic",
      type: "patient.updated",
      digest: `digest ${count}`,
      payload: `{"event":${count}}`,
      ...fields,
    }),

    buildClaimRequest: ({ room, leaseMs = LEASE_MS }: ClaimRequestFields = {}): ClaimRequest => ({
      now: clock.now(),
      token: `token ${++count}`,
      leaseUntil: clock.now() + leaseMs,
      room: { fast: 1_000, slow: 1_000, ...room },
    }),

    /** Builds the settlement of `claim`, with an attempt and a report that fit `outcome`. */
    buildSettlement: (
      claim: Claim,
      outcome: Settlement["outcome"],
      fields: SettlementFields = {},
    ): Settlement => {
      const isOk = outcome.state === "delivered";
      const wasSent = outcome.state !== "withheld";
      const now = clock.now();
      return {
        id: claim.id,
        webhookId: claim.webhook.id,
        account: claim.webhook.account,
        token: claim.token,
        now,
        outcome,
        startedAt: claim.startedAt ?? now,
        attempt: wasSent ? buildAttempt(now, claim, isOk) : null,
        endpoint: wasSent ? buildEndpointReport(claim, now, { ok: isOk }) : null,
        ...fields,
      };
    },
  };
}

export type Builders = ReturnType<typeof createBuilders>;

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

export const LEASE_MS = 60 * SECOND_MS;
/** Deliveries that one endpoint may have in flight. */
export const PER_ENDPOINT = 5;
/** ENABLED webhooks of one account. */
export const ENABLED_LIMIT = 15;
/** Webhooks of one account. */
export const ACCOUNT_LIMIT = 100;
/** How long the id of an event is remembered. */
export const REMEMBER_EVENTS_MS = 24 * HOUR_MS;
export const RETENTION: Retention = { keepMs: 72 * HOUR_MS, events: 10_000 };
/** From the first failure of an endpoint to its first health step. */
export const NOTICE_MS = 72 * HOUR_MS;
/** The `room` of a claim that may not return anything. */
export const NO_ROOM = { fast: 0, slow: 0 } as const;
/** The health of an endpoint that does not fail. */
export const HEALTHY = { failingSince: null, warnedAt: null, noticeAt: null } as const;
