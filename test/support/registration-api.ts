/**
 * A webhook service on memory and a standing clock, with a few API keys, called without a server
 * between.
 */

import type { Logger } from "../../src/core/logger.js";
import type { RequestBody } from "../../src/http/types.js";
import { type ManualClock, manualClock } from "../../src/testing/manual-clock.js";
import { type Access, bearer, type Subscriber } from "../../src/webhooks/access.js";
import type { WebhooksOptions } from "../../src/webhooks/config/webhooks-options.js";
import { createWebhooks, type Webhooks } from "../../src/webhooks/service.js";
import type { Storage, WebhookStore } from "../../src/webhooks/store.js";
import { memoryStorage } from "../../storage/memory/index.js";

export const START = Date.UTC(2026, 2, 1, 12);

/** Two keys of one account, one of another. */
export const SUBSCRIBERS: Readonly<Record<string, Subscriber>> = {
  "key-a1": { id: "first", account: "acme" },
  "key-a2": { id: "second", account: "acme" },
  "key-b": { id: "first", account: "bolt" },
};

/** Authenticates by the Bearer token. Requests without one are anonymous. */
export const byKey =
  (find: (apiKey: string) => ReturnType<Access["authenticate"]>): Access["authenticate"] =>
  (request) => {
    const apiKey = bearer(request);
    return apiKey === undefined ? null : find(apiKey);
  };

export const access: Access = {
  authenticate: byKey((apiKey) => SUBSCRIBERS[apiKey] ?? null),
  canRead: () => true,
};

export const URL_1 = "https://example.com/hook";
export const URL_2 = "https://example.org/other";

export interface LogEntry {
  readonly level: keyof Logger;
  readonly fields: object;
  readonly message: string;
}

/** Its debug level is off unless `isDebug` is true. */
export function recordingLogger(isDebug = false): { logger: Logger; log: LogEntry[] } {
  const log: LogEntry[] = [];
  const at =
    (level: keyof Logger) =>
    (fields: object, message: string): void => {
      log.push({ level, fields, message });
    };
  const isLevelEnabled = (level: string): boolean => isDebug || level !== "debug";
  const levels = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  return { log, logger: { ...levels, isLevelEnabled } as Logger };
}

/** A memory storage with some methods replaced. */
export function storageWith(change: (store: WebhookStore) => Partial<WebhookStore>): Storage {
  const storage = memoryStorage();
  return {
    ...storage,
    webhooks: (context) => {
      const store = storage.webhooks(context);
      return { ...store, ...change(store) };
    },
  };
}

export interface Call {
  /** `null` sends none. */
  readonly key?: string | null | undefined;
  readonly query?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Sent as JSON. */
  readonly json?: unknown;
  readonly body?: RequestBody | undefined;
  readonly baseUrl?: string | undefined;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly text: string | null;
  readonly json: unknown;
}

export interface Created {
  readonly webhook: {
    readonly id: string;
    readonly status: string;
    readonly url: string;
    readonly createdDate: string;
    readonly updatedDate: string;
  };
  readonly secret: string;
}

export interface Api {
  readonly clock: ManualClock;
  readonly webhooks: Webhooks;
  readonly log: readonly LogEntry[];
  readonly call: (method: string, path: string, call?: Call) => Promise<Answer>;
  readonly create: (call?: Call) => Promise<Created>;
}

export function registrationApi(options: Partial<WebhooksOptions> = {}): Api {
  const clock = manualClock(START);
  const { logger, log } = recordingLogger();
  const webhooks = createWebhooks({ storage: memoryStorage(), access, clock, logger, ...options });

  const call: Api["call"] = async (method, path, { key = "key-a1", query = "", ...rest } = {}) => {
    const { json, body = json === undefined ? null : Buffer.from(JSON.stringify(json)), baseUrl } = rest;
    const answer = await webhooks.handle({
      method,
      path,
      query,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(body === null ? {} : { "content-type": "application/json" }),
        ...rest.headers,
      },
      body,
      baseUrl: baseUrl ?? "https://api.example.com",
    });
    if (answer === undefined) throw new Error("The path is not the service's.");
    const { status, headers, body: text } = answer;
    if (text !== null && typeof text !== "string") throw new Error("The body is not text.");
    return { status, headers, text, json: text === null ? undefined : (JSON.parse(text) as unknown) };
  };

  const create: Api["create"] = async (given) => {
    const { status, json } = await call("POST", "/v1/webhooks", { json: { url: URL_1 }, ...given });
    if (status !== 201) throw new Error(`The webhook was not created: ${JSON.stringify(json)}`);
    return json as Created;
  };

  return { clock, webhooks, log, call, create };
}
