/** What the tests of the storage contract work with: a fresh storage bound twice, a clock that stands still, and short words for the calls. */

import assert from "node:assert/strict";
import { type Logger, silentLogger } from "../../src/core/logger.js";
import { nameUuid } from "../../src/core/uuid.js";
import type {
  Attempt,
  Claim,
  ClaimRequest,
  EndpointReport,
  EventRecord,
  Lane,
  Retention,
  Settlement,
  SettleResult,
  Storage,
  WebhookChange,
  WebhookRecord,
  WebhookStore,
} from "../../src/webhooks/store.js";
import { type ManualClock, manualClock } from "../manual-clock.js";
import { times } from "./lists.js";

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;

export const LEASE_MS = MINUTE_MS;
export const PER_ENDPOINT = 5;
export const ENABLED_LIMIT = 15;
export const ACCOUNT_LIMIT = 100;
export const REMEMBER_EVENTS_MS = 24 * HOUR_MS;
export const RETENTION: Retention = { ms: 72 * HOUR_MS, events: 10_000 };
/** After the first failure of an endpoint. */
export const NOTICE_MS = 72 * HOUR_MS;

const START_MS = Date.UTC(2026, 0, 5, 8);
const EVENT_NAMESPACE = "6f1c7f6e-3f0b-5c3a-9d53-6f2f1f3c7b10";

/** A storage with nothing in it. */
export interface StorageUnderTest {
  readonly storage: Storage;
  /** Another connection to the same records, as a second process would have it. Default: the same storage, bound a second time. */
  readonly peer?: Storage | undefined;
  /**
   * How much work the storage has done so far, in a unit that grows with each record it touches: database commands and their elements, rows examined.
   * Where it is given, the contract also checks that the work of a call does not grow with the log of its account.
   */
  readonly work?: (() => number | Promise<number>) | undefined;
  /** Called after the test, once the storages are closed. */
  readonly destroy?: (() => unknown) | undefined;
}

/** Of an id in a delivery's id, too: it starts with the webhook's. */
const UUID_LENGTH = 36;

interface By {
  /** The binding to call. Default: `store`. */
  readonly by?: WebhookStore | undefined;
}

interface Of extends By {
  /** The account to name. Default: the one that the webhook was registered for. */
  readonly account?: string | undefined;
}

export interface ClaimOptions extends By {
  readonly room?: Partial<Record<Lane, number>> | undefined;
  readonly leaseMs?: number | undefined;
}

export interface AppendOptions extends By {
  readonly rememberMs?: number | undefined;
  /** The only webhook that the event is for. */
  readonly webhookId?: string | undefined;
  /** Carried along; a storage may answer it. */
  readonly claim?: ClaimRequest | undefined;
}

export type SettleOptions = By & Partial<Omit<Settlement, "id" | "now" | "outcome">>;

export type Scenario = ReturnType<typeof createScenario>;

/** What a test needs other than the rest. */
export interface ScenarioOptions {
  /** Of `random()` of the clock. Default 1. */
  readonly seed?: number | undefined;
  /** Default {@link PER_ENDPOINT}. */
  readonly perEndpoint?: number | undefined;
  /** Default {@link RETENTION}. */
  readonly retention?: Retention | undefined;
  /** Default: silent. */
  readonly logger?: Logger | undefined;
}

/** Declares one test of the contract. */
export type DeclareTest = (
  name: string,
  run: (scenario: Scenario) => Promise<void>,
  options?: ScenarioOptions,
) => void;

export const NO_DELIVERIES = { fast: 0, slow: 0 } as const;

export function reportOn(
  { webhook, lane }: Pick<Claim, "webhook" | "lane">,
  at: number,
  fields: Partial<EndpointReport> = {},
): EndpointReport {
  return { ok: true, generation: webhook.generation, at, noticeAt: at + NOTICE_MS, lane, ...fields };
}

const attemptAt = (at: number, { step, isExtra }: Claim, isOk: boolean): Attempt => ({
  at,
  durationMs: 12,
  step,
  isExtra,
  kind: isOk ? "delivered" : "http",
  status: isOk ? 200 : 500,
  code: isOk ? "HTTP_200" : "HTTP_500",
  excerpt: isOk ? null : "an answer — \u{1F514}",
});

export function createScenario(
  { storage, peer = storage, work }: StorageUnderTest,
  {
    seed = 1,
    perEndpoint = PER_ENDPOINT,
    retention = RETENTION,
    logger = silentLogger,
  }: ScenarioOptions = {},
) {
  const clock: ManualClock = manualClock(START_MS, { seed });
  const context = { clock, logger, perEndpoint, retention };
  const store = storage.webhooks(context);
  const other = peer.webhooks(context);
  let count = 0;

  /** The account of a webhook that was made here; of any other id the clinic. */
  const accounts = new Map<string, string>();
  const accountOf = (id: string): string => accounts.get(id.slice(0, UUID_LENGTH)) ?? "clinic";

  const webhookOf = (fields: Partial<WebhookRecord> = {}): WebhookRecord => {
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
  };

  const creation = (
    webhook: WebhookRecord,
    idempotency: Parameters<WebhookStore["createWebhook"]>[0]["idempotency"] = null,
  ) => ({
    webhook,
    enabledLimit: ENABLED_LIMIT,
    accountLimit: ACCOUNT_LIMIT,
    idempotency,
    now: clock.now(),
  });

  const create = (webhook: WebhookRecord, { by = store }: By = {}) => by.createWebhook(creation(webhook));

  const register = async (fields?: Partial<WebhookRecord>): Promise<WebhookRecord> => {
    const webhook = webhookOf(fields);
    const answer = await create(webhook);
    assert.equal(answer.result, "created");
    return webhook;
  };

  const update = (
    id: string,
    change: WebhookChange,
    { by = store, account = accountOf(id), owner }: Of & { readonly owner?: string } = {},
  ) => by.updateWebhook({ id, account, change, owner, enabledLimit: ENABLED_LIMIT, now: clock.now() });

  const remove = (id: string, { by = store, account = accountOf(id) }: Of = {}) =>
    by.removeWebhook({ id, account, now: clock.now() });

  const resend = (id: string, { by = store, account = accountOf(id) }: Of = {}) =>
    by.resend({ id, account, now: clock.now() });

  const recover = (
    webhookId: string,
    {
      by = store,
      account = accountOf(webhookId),
      since = 0,
      dueAt = clock.now(),
      everyMs = 0,
      cursor,
      limit = 5,
    }: Of & Partial<Omit<Parameters<WebhookStore["recover"]>[0], "webhookId" | "now">> = {},
  ) => by.recover({ webhookId, account, since, dueAt, everyMs, now: clock.now(), cursor, limit });

  const eventOf = (fields: Partial<EventRecord> = {}): EventRecord => ({
    id: nameUuid(EVENT_NAMESPACE, String(++count)),
    account: "clinic",
    type: "patient.updated",
    digest: `digest ${count}`,
    payload: `{"event":${count}}`,
    ...fields,
  });

  const claimRequest = ({ room, leaseMs = LEASE_MS }: ClaimOptions = {}): ClaimRequest => ({
    now: clock.now(),
    token: `token ${++count}`,
    leaseUntil: clock.now() + leaseMs,
    room: { fast: 1_000, slow: 1_000, ...room },
  });

  const append = (
    event: EventRecord,
    { by = store, rememberMs = REMEMBER_EVENTS_MS, claim, webhookId }: AppendOptions = {},
  ) => by.append({ event, rememberMs, now: clock.now(), claim, webhookId });

  /** Appends a new event; resolves with it and the ids of its deliveries. */
  const emit = async (fields?: Partial<EventRecord>, options?: AppendOptions) => {
    const event = eventOf(fields);
    const answer = await append(event, options);
    assert.ok(answer.result === "stored");
    return { event, ids: answer.deliveries.map(({ id }) => id) };
  };

  const claimAll = ({ by = store, ...options }: ClaimOptions = {}) => by.claim(claimRequest(options));
  const claim = async (options?: ClaimOptions): Promise<readonly Claim[]> => (await claimAll(options)).claims;

  const settlementOf = (
    taken: Claim,
    outcome: Settlement["outcome"],
    fields: Omit<SettleOptions, "by"> = {},
  ): Settlement => {
    const isOk = outcome.state === "delivered";
    const wasSent = outcome.state !== "withheld";
    const now = clock.now();
    return {
      id: taken.id,
      webhookId: taken.webhook.id,
      account: taken.webhook.account,
      token: taken.token,
      now,
      outcome,
      startedAt: taken.startedAt ?? now,
      attempt: wasSent ? attemptAt(now, taken, isOk) : null,
      endpoint: wasSent ? reportOn(taken, now, { ok: isOk }) : null,
      ...fields,
    };
  };

  const settle = async (
    taken: Claim,
    outcome: Settlement["outcome"],
    { by = store, ...fields }: SettleOptions = {},
  ): Promise<SettleResult> => {
    const [result] = await by.settle([settlementOf(taken, outcome, fields)]);
    assert.ok(result);
    return result;
  };

  const pendingAt = (dueAt: number, step: number) =>
    ({ state: "pending", step, dueAt, postponed: 0, crashes: 0 }) as const;

  return {
    store,
    other,
    work,
    clock,
    now: () => clock.now(),
    advance: (ms: number) => clock.advance(ms),
    webhookOf,
    creation,
    create,
    register,
    update,
    remove,
    resend,
    recover,
    eventOf,
    append,
    emit,
    claimRequest,
    claimAll,
    claim,
    settle,
    settlementOf,
    /** Settles as delivered, with a good report on the endpoint. */
    deliver: (taken: Claim, options?: SettleOptions) => settle(taken, { state: "delivered" }, options),
    /** Settles as failed for good, with a bad report on the endpoint. */
    fail: (taken: Claim, options?: SettleOptions) =>
      settle(taken, { state: "failed", reason: "exhausted" }, options),
    /** Settles a failed attempt whose next step is due in `delayMs`. */
    retry: (taken: Claim, delayMs: number, options?: SettleOptions) =>
      settle(taken, pendingAt(clock.now() + delayMs, taken.step + 1), options),
    /** The same without a word about the endpoint. */
    putOff: (taken: Claim, delayMs: number, options?: SettleOptions) =>
      settle(taken, pendingAt(clock.now() + delayMs, taken.step + 1), {
        attempt: null,
        endpoint: null,
        ...options,
      }),
    /** Gives the storage the occasions that it may want to free what has been kept long enough. */
    tidy: () => times(20, () => claimAll({ room: NO_DELIVERIES })),
    webhook: async (id: string): Promise<WebhookRecord> => {
      const webhook = await store.getWebhook(id);
      assert.ok(webhook);
      return webhook;
    },
    delivery: async (id: string) => {
      const delivery = await store.getDelivery(id);
      assert.ok(delivery);
      return delivery;
    },
  };
}
