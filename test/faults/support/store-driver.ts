/** A storage driven through the port of the storages, call by call. */

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type Clock, systemClock } from "../../../src/core/clock.js";
import type { Logger } from "../../../src/core/logger.js";
import type {
  AppendResult,
  Claim,
  EventRecord,
  Retention,
  Settlement,
  SettleResult,
  Storage,
  WebhookRecord,
  WebhookStore,
} from "../../../src/webhooks/store.js";

export interface LogEntry {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

export function listLogger(): { readonly logger: Logger; readonly log: LogEntry[] } {
  const log: LogEntry[] = [];
  const at = (level: LogEntry["level"]) => (fields: object, message: string) => {
    log.push({ level, fields: fields as LogEntry["fields"], message });
  };
  return { logger: { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") }, log };
}

export interface DrivenStore {
  readonly store: WebhookStore;
  readonly log: readonly LogEntry[];
  readonly register: (account?: string) => Promise<WebhookRecord>;
  /** Appends an event. Rejects with the error if it was refused. */
  readonly append: (event: EventRecord) => Promise<Exclude<AppendResult, { readonly result: "refused" }>>;
  readonly claim: (options?: { leaseMs?: number; most?: number }) => Promise<readonly Claim[]>;
  readonly settle: (claim: Claim, outcome?: Settlement["outcome"]) => Promise<SettleResult>;
  /**
   * Claims and settles as delivered until nothing is pending; the ids of the deliveries, as often
   * as they were claimed.
   */
  readonly drain: () => Promise<readonly string[]>;
}

export interface DriveOptions {
  readonly clock?: Clock | undefined;
  readonly retention?: Retention | undefined;
  readonly perEndpoint?: number | undefined;
  readonly perSecond?: number | undefined;
}

const KEPT: Retention = { keepMs: 3_600_000, events: 10_000 };

export const newEvent = (account: string, given: Partial<EventRecord> = {}): EventRecord => {
  const id = given.id ?? randomUUID();
  return { id, account, type: "patient.updated", digest: `digest of ${id}`, payload: "{}", ...given };
};

export function driveStore(
  storage: Storage,
  { clock = systemClock, retention = KEPT, perEndpoint = 1_000, perSecond }: DriveOptions = {},
): DrivenStore {
  const { logger, log } = listLogger();
  const store = storage.webhooks({ clock, logger, perEndpoint, perSecond, retention });

  const register = async (account = "clinic"): Promise<WebhookRecord> => {
    const now = store.now();
    const id = store.newWebhookId(account);
    const webhook: WebhookRecord = {
      id,
      account,
      subscriberId: "key-1",
      url: `https://hooks.example.com/${id}`,
      status: "ENABLED",
      eventTypes: null,
      createdAt: now,
      updatedAt: now,
      secret: `whsec_${id}`,
      previousSecret: null,
      rotateAt: null,
      generation: 1,
      failingSince: null,
      warnedAt: null,
      noticeAt: null,
    };
    const made = await store.createWebhook({
      webhook,
      enabledLimit: 100,
      accountLimit: 100,
      idempotency: null,
      now,
    });
    if (!("webhook" in made)) throw new Error(`not created: ${made.result}`);
    return made.webhook;
  };

  const claim: DrivenStore["claim"] = async ({ leaseMs = 60_000, most = 250 } = {}) => {
    const now = store.now();
    const room = { fast: most, slow: most };
    return (await store.claim({ now, token: randomUUID(), leaseUntil: now + leaseMs, room })).claims;
  };

  const settle: DrivenStore["settle"] = async (
    { id, token, webhook, startedAt, step, lane },
    outcome = { state: "delivered" },
  ) => {
    const now = store.now();
    const isDelivered = outcome.state === "delivered";
    const seen = { durationMs: 1, step, isExtra: false, status: 204, code: "HTTP_204", excerpt: null };
    const endpoint = { ok: true, generation: webhook.generation, at: now, noticeAt: now, lane } as const;
    const settlement: Settlement = {
      id,
      webhookId: webhook.id,
      account: webhook.account,
      token,
      now,
      outcome,
      startedAt: startedAt ?? now,
      attempt: isDelivered ? { at: now, kind: "delivered", ...seen } : null,
      endpoint: isDelivered ? endpoint : null,
    };
    const [result] = await store.settle([settlement]);
    if (result === undefined) throw new Error("every settlement has a result");
    return result;
  };

  return {
    store,
    log,
    register,
    async append(event) {
      const { results } = await store.append({ events: [event], rememberMs: 86_400_000, now: store.now() });
      const [result] = results;
      if (result === undefined) throw new Error("every event has a result");
      if (result.result === "refused") throw result.error;
      return result;
    },
    claim,
    settle,
    async drain() {
      const ids: string[] = [];
      for (;;) {
        const claims = await claim();
        await Promise.all(claims.map((one) => settle(one)));
        ids.push(...claims.map(({ id }) => id));
        const { pending } = await store.stats();
        if (pending === 0) return ids;
        if (claims.length === 0) await sleep(20);
      }
    },
  };
}

/** Waits until something that sockets or processes bring about holds. */
export async function eventually(
  condition: () => boolean | Promise<boolean>,
  { ms, what }: { readonly ms: number; readonly what: string },
): Promise<number> {
  const begin = performance.now();
  while (!(await condition())) {
    if (performance.now() - begin > ms) throw new Error(`${what}: not within ${ms} ms`);
    await sleep(10);
  }
  return performance.now() - begin;
}

/** The code that a promise rejects with, or `resolved`. */
export const codeOf = (promise: PromiseLike<unknown>): PromiseLike<string> =>
  promise.then(
    () => "resolved",
    (error: Error & { readonly code?: string }) => error.code ?? `${error.name}: ${error.message}`,
  );
