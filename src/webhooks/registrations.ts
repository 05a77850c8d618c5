/** Webhooks as the host and its subscribers see them: create, read, list, update, remove, rotate the secret. */

import { createHash } from "node:crypto";
import { PostbellError } from "../errors.js";
import { judgeUrl } from "../outbound/address-policy.js";
import { isUuid } from "../uuid.js";
import { type Catalogue, nearest } from "./catalogue.js";
import type { ReadSettings, Subscriber } from "./options.js";
import { newSecret } from "./signature.js";
import type { WebhookChange, WebhookRecord, WebhookStatus, WebhookStore } from "./store.js";
import { readEventTypes } from "./subscription.js";

/** A registration, without its secret. */
export interface Webhook {
  readonly id: string;
  readonly account: string;
  readonly url: string;
  readonly status: WebhookStatus;
  /** `null`: every type, also future ones. */
  readonly eventTypes: readonly string[] | null;
  /** ISO 8601, UTC, as all dates here. */
  readonly createdDate: string;
  readonly updatedDate: string;
  /** Since when every attempt has failed; `null` while the endpoint is well, or untried. */
  readonly failingSince: string | null;
}

/** A registration with the secret that it was just given. */
export interface WebhookWithSecret {
  readonly webhook: Webhook;
  /** `whsec_` and 256 random bits in Base64. Given here and never again. */
  readonly secret: string;
}

/**
 * The registrations, in-process; the REST routes stand on the same functions.
 *
 * Errors of all: `not_found`, `invalid_request`, `invalid_url`, `unknown_event_type` (with the `field`), `webhook_limit_reached`, and those of the storage.
 */
export interface Registrations {
  /**
   * Registers an endpoint, ENABLED. The same `idempotencyKey` of the same subscriber returns the same answer, secret included, for ten minutes;
   * with other values it is refused with `idempotency_key_reused`.
   */
  create(
    subscriber: Subscriber,
    registration: {
      readonly url: string;
      readonly eventTypes?: readonly string[] | undefined;
      readonly idempotencyKey?: string | undefined;
    },
  ): Promise<WebhookWithSecret>;
  /** A webhook of any account: the caller checks whose it is. */
  get(id: string): Promise<Webhook>;
  /** Oldest first. `limit` 1 to 100, default 50; `next` is the cursor of the next page, `null` on the last. */
  list(request: {
    readonly account: string;
    readonly cursor?: string | undefined;
    readonly limit?: number | undefined;
  }): Promise<{ readonly webhooks: readonly Webhook[]; readonly next: string | null }>;
  /** Changes what is given. Pending deliveries go to a new url; a new url or re-enabling gives the endpoint a clean record. */
  update(
    id: string,
    change: {
      readonly url?: string | undefined;
      readonly status?: WebhookStatus | undefined;
      readonly eventTypes?: readonly string[] | undefined;
    },
  ): Promise<Webhook>;
  /** Removes the webhook and all its deliveries. */
  remove(id: string): Promise<void>;
  /**
   * A new secret. The old one goes on signing for `overlapMs` (default 24 h, 0 to 7 days), so that the subscriber can learn the new one first: a notification carries one signature,
   * by the old secret before `rotatesAt` and by the new one from then on. Rotated again before that, the old one goes on, and the secret that had not signed yet never does.
   */
  rotateSecret(
    id: string,
    options?: { readonly overlapMs?: number | undefined },
  ): Promise<{ readonly secret: string; readonly rotatesAt: Date }>;
}

const REPLAY_MS = 600_000;
const DAY_MS = 86_400_000;
const MAX_PAGE = 100;

export const notFound = (what: string): PostbellError =>
  new PostbellError("not_found", `There is no such ${what}.`);

const invalid = (field: string, message: string): PostbellError =>
  new PostbellError("invalid_request", message, { field });

/** A page size from 1 to 100; 50 where none is given. */
export function readLimit(limit: number | undefined): number {
  if (limit === undefined) return MAX_PAGE / 2;
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE) return limit;
  throw invalid("limit", `limit must be a whole number from 1 to ${MAX_PAGE}.`);
}

/** Checks an account or the name of a key: what hosts give is stored and compared, so it must be plain and short. */
export function checkName(field: string, name: unknown): asserts name is string {
  // The storages join such names with NUL.
  if (typeof name === "string" && name !== "" && name.length <= 256 && !name.includes("\u0000")) return;
  throw new PostbellError(
    "invalid_argument",
    `${field} must be a string of 1 to 256 characters without NUL.`,
    { field },
  );
}

/**
 * The argument object of a call in-process. Errors: `invalid_argument` where it is none, or has a key that is not in `known`: a typing error must not
 * subscribe to everything.
 */
export function readArguments<T extends object>(
  call: string,
  given: T,
  known: readonly (keyof T & string)[],
): T {
  if (typeof given !== "object" || given === null) {
    throw new PostbellError("invalid_argument", `${call}() takes an object with ${known.join(", ")}.`);
  }
  for (const key of Object.keys(given)) {
    if ((known as readonly string[]).includes(key)) continue;
    const hint = nearest(key, known);
    throw new PostbellError(
      "invalid_argument",
      `${call}() knows no '${key.slice(0, 40)}'; did you mean '${hint}'?`,
      { field: key.slice(0, 40) },
    );
  }
  return given;
}

export const toWebhook = (record: WebhookRecord): Webhook => ({
  id: record.id,
  account: record.account,
  url: record.url,
  status: record.status,
  eventTypes: record.eventTypes,
  createdDate: new Date(record.createdAt).toISOString(),
  updatedDate: new Date(record.updatedAt).toISOString(),
  failingSince: record.failingSince === null ? null : new Date(record.failingSince).toISOString(),
});

export function createRegistrations({
  store,
  settings: { destinations, limits },
  catalogue,
}: {
  readonly store: WebhookStore;
  readonly settings: ReadSettings;
  readonly catalogue: Catalogue;
}): Registrations {
  const enabledLimit = limits.enabledWebhooks;

  const readUrl = (url: unknown): string => {
    if (url === undefined) throw invalid("url", "url is missing: give the HTTPS address of the endpoint.");
    if (typeof url !== "string") throw invalid("url", "url must be a string.");
    const verdict = judgeUrl(url, destinations);
    if (verdict.ok) return url;
    throw new PostbellError("invalid_url", verdict.message, { field: "url" });
  };

  const readStatus = (status: unknown): WebhookStatus => {
    if (status === "ENABLED" || status === "DISABLED") return status;
    throw invalid("status", "status must be ENABLED or DISABLED.");
  };

  const limitReached = (message: string): PostbellError =>
    new PostbellError("webhook_limit_reached", message);
  const tooManyEnabled = (): PostbellError =>
    limitReached(
      `The account has ${enabledLimit} ENABLED webhooks, the most there may be; disable or delete one first.`,
    );
  const tooMany = (): PostbellError =>
    limitReached(`The account has ${limits.webhooks} webhooks, the most there may be; delete one first.`);

  const keyReused = (): PostbellError =>
    new PostbellError(
      "idempotency_key_reused",
      "This Idempotency-Key came before with another body; use a new key for a new request.",
      { field: "Idempotency-Key" },
    );

  const find = async (id: string): Promise<WebhookRecord> => {
    // What is no UUID names no webhook; no storage should have to make a key of it.
    const record = isUuid(id) ? await store.getWebhook(id) : undefined;
    if (!record) throw notFound("webhook");
    return record;
  };

  const update = async (id: string, change: WebhookChange): Promise<WebhookRecord> => {
    const { account } = await find(id);
    const updated = await store.updateWebhook({ id, account, change, enabledLimit, now: store.now() });
    if (updated.result === "updated") return updated.webhook;
    throw updated.result === "enabled_limit" ? tooManyEnabled() : notFound("webhook");
  };

  return Object.freeze<Registrations>({
    async create(subscriber, registration) {
      const {
        url: givenUrl,
        eventTypes: givenTypes,
        idempotencyKey,
      } = readArguments("create", registration, ["url", "eventTypes", "idempotencyKey"]);
      checkName("subscriber.id", subscriber.id);
      checkName("subscriber.account", subscriber.account);
      const url = readUrl(givenUrl);
      const eventTypes = readEventTypes(givenTypes, catalogue);
      const now = store.now();
      const created = await store.createWebhook({
        webhook: {
          id: store.newWebhookId(subscriber.account),
          account: subscriber.account,
          subscriberId: subscriber.id,
          url,
          status: "ENABLED",
          eventTypes,
          createdAt: now,
          updatedAt: now,
          secret: newSecret(),
          previousSecret: null,
          rotateAt: null,
          generation: 1,
          failingSince: null,
          warnedAt: null,
          noticeAt: null,
        },
        enabledLimit,
        accountLimit: limits.webhooks,
        idempotency:
          idempotencyKey === undefined
            ? null
            : {
                // A key of one subscriber must not fetch the secret made for another one.
                key: JSON.stringify([subscriber.id, idempotencyKey]),
                digest: createHash("sha256")
                  .update(JSON.stringify([url, eventTypes]))
                  .digest("hex"),
                expiresAt: now + REPLAY_MS,
              },
        now,
      });
      if ("webhook" in created)
        return { webhook: toWebhook(created.webhook), secret: created.webhook.secret };
      if (created.result === "key_reused") throw keyReused();
      throw created.result === "enabled_limit" ? tooManyEnabled() : tooMany();
    },

    async get(id) {
      return toWebhook(await find(id));
    },

    async list(request) {
      const { account, cursor, limit } = readArguments("list", request, ["account", "cursor", "limit"]);
      checkName("account", account);
      const { webhooks, next } = await store.listWebhooks({ account, cursor, limit: readLimit(limit) });
      return { webhooks: webhooks.map(toWebhook), next };
    },

    async update(id, given) {
      const { url, status, eventTypes } = readArguments("update", given, ["url", "status", "eventTypes"]);
      const change: WebhookChange = {
        ...(url === undefined ? {} : { url: readUrl(url) }),
        ...(status === undefined ? {} : { status: readStatus(status) }),
        ...(eventTypes === undefined ? {} : { eventTypes: readEventTypes(eventTypes, catalogue) }),
      };
      return toWebhook(await update(id, change));
    },

    async remove(id) {
      const { account } = await find(id);
      if (!(await store.removeWebhook({ id, account, now: store.now() }))) throw notFound("webhook");
    },

    async rotateSecret(id, options = {}) {
      const { overlapMs = DAY_MS } = readArguments("rotateSecret", options, ["overlapMs"]);
      if (!(Number.isSafeInteger(overlapMs) && overlapMs >= 0 && overlapMs <= 7 * DAY_MS)) {
        throw invalid("overlapMs", "overlapMs must be a whole number of milliseconds from 0 to 7 days.");
      }
      const secret = newSecret();
      const rotateAt = store.now() + overlapMs;
      await update(id, { rotation: { secret, rotateAt } });
      return { secret, rotatesAt: new Date(rotateAt) };
    },
  });
}
