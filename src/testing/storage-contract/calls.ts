/** The calls of the storage contract: each passes what `WebhookStore` asks for, with defaults. */

import assert from "node:assert/strict";
import type {
  Claim,
  ClaimRequest,
  DeliveryRecord,
  EventToAppend,
  Settlement,
  SettleResult,
  WebhookChange,
  WebhookRecord,
  WebhookStatus,
  WebhookStore,
} from "../../webhooks/store.js";
import { only, readAllPages, repeat } from "./assertions.js";
import {
  type Builders,
  buildPendingOutcome,
  type ClaimRequestFields,
  DAY_MS,
  ENABLED_LIMIT,
  LEASE_MS,
  NO_ROOM,
  REMEMBER_EVENTS_MS,
  type SettlementFields,
} from "./builders.js";

export interface ContractCallOptions {
  /** The process that makes the call: `store` or `peer`. Default `store`. */
  by?: WebhookStore | undefined;
}

export interface AccountCallOptions extends ContractCallOptions {
  /** The account to name. Default: the account that the webhook was built for. */
  account?: string | undefined;
}

type ClaimOptions = ContractCallOptions & ClaimRequestFields;

export interface AppendCallOptions extends ContractCallOptions {
  rememberMs?: number | undefined;
  /** The only webhook that gets the event. */
  webhookId?: string | undefined;
  /** A claim that is sent with the event. A storage may ignore it. */
  claim?: ClaimRequest | undefined;
}

type SettleOptions = ContractCallOptions & SettlementFields;

/** The fields of a health step that a test can choose. */
export interface HealthStepFields {
  from?: WebhookStatus;
  status?: WebhookStatus;
  warnedAt?: number | null;
  noticeAt?: number | null;
  account?: string;
}

type RecoverOptions = AccountCallOptions &
  Partial<Omit<Parameters<WebhookStore["recover"]>[0], "webhookId" | "now">>;

/** The calls that settle a claim. */
function createSettleCalls(store: WebhookStore, { buildSettlement }: Builders, now: () => number) {
  const settle = async (
    claim: Claim,
    outcome: Settlement["outcome"],
    { by = store, ...fields }: SettleOptions = {},
  ): Promise<SettleResult> => {
    const [result] = await by.settle([buildSettlement(claim, outcome, fields)]);
    assert.ok(result);
    return result;
  };
  const retry = (claim: Claim, delayMs: number, options?: SettleOptions) =>
    settle(claim, buildPendingOutcome(claim.step + 1, now() + delayMs), options);

  return {
    settle,
    /** Settles as delivered and reports the endpoint as healthy. */
    deliver: (claim: Claim, options?: SettleOptions) => settle(claim, { state: "delivered" }, options),
    /** Settles as finally failed and reports the endpoint as failing. */
    fail: (claim: Claim, options?: SettleOptions) =>
      settle(claim, { state: "failed", reason: "exhausted" }, options),
    /** Settles a failed attempt whose next step is due in `delayMs`. */
    retry,
    /** Moves the delivery to its next step, due in `delayMs`, without an attempt or a report. */
    postpone: (claim: Claim, delayMs: number, options?: SettleOptions) =>
      retry(claim, delayMs, { attempt: null, endpoint: null, ...options }),
  };
}

/** The calls on webhooks. */
function createWebhookCalls(store: WebhookStore, builders: Builders, now: () => number) {
  const { buildWebhook, buildCreation, getAccount } = builders;
  const createWebhook = (webhook: WebhookRecord, { by = store }: ContractCallOptions = {}) =>
    by.createWebhook(buildCreation(webhook));
  const readWebhook = async (id: string): Promise<WebhookRecord> => {
    const webhook = await store.getWebhook(id);
    assert.ok(webhook);
    return webhook;
  };

  return {
    createWebhook,
    /** Builds a webhook and creates it, which must succeed. */
    register: async (fields?: Partial<WebhookRecord>): Promise<WebhookRecord> => {
      const webhook = buildWebhook(fields);
      const response = await createWebhook(webhook);
      assert.equal(response.result, "created");
      return webhook;
    },
    /** Reads a webhook that must exist. */
    readWebhook,
    /** Reads the health of a webhook that must exist. */
    readHealth: async (id: string) => {
      const { failingSince, warnedAt, noticeAt } = await readWebhook(id);
      return { failingSince, warnedAt, noticeAt };
    },
    update: (
      id: string,
      change: WebhookChange,
      { by = store, account = getAccount(id), owner }: AccountCallOptions & { owner?: string } = {},
    ) => by.updateWebhook({ id, account, change, owner, enabledLimit: ENABLED_LIMIT, now: now() }),
    remove: (id: string, { by = store, account = getAccount(id) }: AccountCallOptions = {}) =>
      by.removeWebhook({ id, account, now: now() }),
    recover: (
      webhookId: string,
      {
        by = store,
        account = getAccount(webhookId),
        since = 0,
        dueAt = now(),
        everyMs = 0,
        cursor,
        limit = 5,
        ...selection
      }: RecoverOptions = {},
    ) => by.recover({ webhookId, account, since, dueAt, everyMs, now: now(), cursor, limit, ...selection }),
  };
}

/** The calls on health notifications. */
const createHealthCalls = (store: WebhookStore, now: () => number) => ({
  /** Claims the health steps that are due. */
  claimHealthSteps: ({ by = store, limit = 10 } = {}) =>
    by.claimHealthNotifications({ now: now(), leaseUntil: now() + LEASE_MS, limit }),
  /** Settles a health step, by default as the warning about a failure since `failingSince`. */
  settleHealthStep: (
    { id, failingSince }: { id: string; failingSince: number },
    fields: HealthStepFields = {},
    by = store,
  ): Promise<boolean> =>
    by.settleHealthNotification({
      id,
      account: "clinic",
      failingSince,
      from: "ENABLED",
      status: "ENABLED",
      warnedAt: now(),
      noticeAt: now() + DAY_MS,
      now: now(),
      ...fields,
    }),
});

/** The calls on events and deliveries. */
function createDeliveryCalls(store: WebhookStore, builders: Builders, now: () => number) {
  const { buildEvent, buildClaimRequest, getAccount } = builders;
  const appendAll = (
    events: EventToAppend[],
    { by = store, rememberMs = REMEMBER_EVENTS_MS, claim, webhookId }: AppendCallOptions = {},
  ) => by.append({ events, rememberMs, now: now(), claim, webhookId });
  const append = async (event: EventToAppend, options?: AppendCallOptions) => {
    const { results, claimed } = await appendAll([event], options);
    const result = only(results);
    if (result.result === "refused") throw result.error;
    return { ...result, claimed };
  };
  const claimWithNextAt = ({ by = store, ...fields }: ClaimOptions = {}) =>
    by.claim(buildClaimRequest(fields));

  return {
    /** Appends events in order. */
    appendAll,
    /** Appends an event. Rejects with the error if it was refused. */
    append,
    /** Appends a new event, which must be stored. Returns it with the ids of its deliveries. */
    emit: async (fields?: Partial<EventToAppend>, options?: AppendCallOptions) => {
      const event = buildEvent(fields);
      const response = await append(event, options);
      assert.ok(response.result === "stored");
      return { event, ids: response.deliveries.map(({ id }) => id) };
    },
    /** Claims what is due. Returns the claims. */
    claim: async (options?: ClaimOptions): Promise<readonly Claim[]> =>
      (await claimWithNextAt(options)).claims,
    /** Claims what is due. Returns the claims and when to claim next. */
    claimWithNextAt,
    /** Reads a delivery that must exist. */
    readDelivery: async (id: string): Promise<DeliveryRecord> => {
      const delivery = await store.getDelivery(id);
      assert.ok(delivery);
      return delivery;
    },
    /** Resends. Returns the id of the delivery that is attempted, also if it is in flight. */
    resend: async (id: string, { by = store, account = getAccount(id) }: AccountCallOptions = {}) =>
      (await by.resend({ id, account, now: now() }))?.id,
    /** Makes calls that let a storage free what is past its retention. */
    tidy: () => repeat(20, () => claimWithNextAt({ room: NO_ROOM })),
  };
}

/** Creates every call of the contract. `now` is the time that each call passes. */
export const createCalls = (store: WebhookStore, builders: Builders, now: () => number) => ({
  ...createWebhookCalls(store, builders, now),
  ...createDeliveryCalls(store, builders, now),
  ...createSettleCalls(store, builders, now),
  ...createHealthCalls(store, now),
});

/** Creates sequences of calls that many tests begin with. */
export function createSteps({ register, emit, claim, postpone, recover }: ReturnType<typeof createCalls>) {
  return {
    /** Registers a webhook, emits an event and claims its delivery. */
    leaseDelivery: async () => {
      const { id: webhookId } = await register();
      await emit();
      return { webhookId, claim: only(await claim()) };
    },
    /** Emits an event and postpones its delivery by `delayMs`. Returns the id of the event. */
    emitPostponed: async (delayMs: number): Promise<string> => {
      const { event } = await emit();
      await postpone(only(await claim()), delayMs);
      return event.id;
    },
    /** Recovers page by page. Returns how many deliveries were created. */
    recoverAll: async (
      webhookId: string,
      since = 0,
      limit = 2,
      selection: RecoverOptions = {},
    ): Promise<number> => {
      const counts = await readAllPages(async (cursor) => {
        const response = await recover(webhookId, { since, cursor, limit, ...selection });
        assert.ok(response);
        assert.ok(response.count <= limit);
        return { rows: [response.count], next: response.next };
      });
      return counts.reduce((sum, count) => sum + count, 0);
    },
  };
}
