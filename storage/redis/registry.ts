/** Registrations on Redis. */

import { randomUUID } from "node:crypto";
import { PostbellError } from "../../src/core/errors.js";
import { retry } from "../../src/core/retry.js";
import { changeDetails, rotateSecret } from "../../src/webhooks/store/records.js";
import type { RegistrationStore, WebhookRecord, WebhookStore } from "../../src/webhooks/store.js";
import { validateCursor } from "../cursor.js";
import { encodeText, encodeUuid } from "./codec.js";
import type { RedisStoreContext } from "./session.js";
import {
  decodeReadable,
  decodeWebhook,
  encodeStatus,
  encodeSubscription,
  encodeWebhook,
  type StoredWebhook,
} from "./webhook-codec.js";

/**
 * Conflicts with other updates before an update gives up: so many in a row mean another problem.
 */
const MAX_TRIES = 100;

/** Another update came between the read and the write. */
class UpdateConflict extends PostbellError {
  constructor() {
    super(
      "storage_unavailable",
      `The webhook was changed by others during all of ${MAX_TRIES} attempts to update it. Try again later.`,
    );
  }
}

type CreateRequest = Parameters<WebhookStore["createWebhook"]>[0];
type UpdateRequest = Parameters<WebhookStore["updateWebhook"]>[0];
type UpdateResult = Awaited<ReturnType<WebhookStore["updateWebhook"]>>;

const encodeCreate = (
  { webhook, enabledLimit, accountLimit, idempotency }: CreateRequest,
  config: string,
): object => ({
  account: encodeText(webhook.account),
  id: webhook.id,
  shortId: encodeUuid(webhook.id),
  enabledLimit,
  accountLimit,
  status: encodeStatus(webhook.status),
  types: encodeSubscription(webhook),
  generation: webhook.generation,
  updatedAt: webhook.updatedAt,
  failingSince: webhook.failingSince,
  warnedAt: webhook.warnedAt,
  noticeAt: webhook.noticeAt,
  endpointPerSecond: webhook.perSecond,
  config,
  field: idempotency && `r/${encodeText(webhook.account)}/${encodeText(idempotency.key)}`,
  digest: idempotency && JSON.stringify(idempotency.digest),
  expiresAt: idempotency?.expiresAt,
});

/** Applies a change to a record. Redis works out everything that depends on other records. */
const changeRecord = (record: WebhookRecord, change: UpdateRequest["change"], now: number): WebhookRecord => {
  const { url, eventTypes, rotation, subscriberId } = change;
  return {
    ...changeDetails(record, change),
    url: url ?? record.url,
    eventTypes: eventTypes === undefined ? record.eventTypes : eventTypes,
    ...(rotation && rotateSecret(record, rotation, now)),
    subscriberId: subscriberId ?? record.subscriberId,
  };
};

export function createRedisRegistry(context: RedisStoreContext): Omit<RegistrationStore, "newWebhookId"> {
  const { partitions, seal, run, notifyWorkers } = context;

  const read = async (id: string): Promise<StoredWebhook | undefined> => {
    const now = await context.connect(0);
    const options = { id };
    const reply = await run("readWebhook", partitions.ofWebhook(id), { now, options });
    const [text] = reply as string[];
    return text ? decodeWebhook(text, seal) : undefined;
  };

  /** Throws {@link UpdateConflict}. */
  const tryUpdate = async (
    { id, account, change, owner, enabledLimit }: UpdateRequest,
    now: number,
  ): Promise<UpdateResult> => {
    const stored = await read(id);
    if (stored?.record.account !== account) return { result: "not_found" };
    const { record, config } = stored;
    // The function compares the config, which contains the owner.
    if (owner !== undefined && owner !== record.subscriberId) return { result: "not_owner" };
    const changed = changeRecord(record, change, now);
    const options = {
      account: encodeText(account),
      id,
      before: config,
      config: encodeWebhook(changed, seal, randomUUID(), config),
      status: change.status && encodeStatus(change.status),
      types: encodeSubscription(changed),
      endpointPerSecond: changed.perSecond,
      isMoved: changed.url !== record.url,
      enabledLimit,
    };
    const reply = await run("update", partitions.ofAccount(account), { now, options });
    const [result, text, notifyAt] = reply as [string, string?, string?];
    if (result === "changed") throw new UpdateConflict();
    notifyWorkers(notifyAt);
    if (text !== undefined) return { result: "updated", webhook: decodeWebhook(text, seal).record };
    return { result: result as "enabled_limit" | "not_found" };
  };

  return {
    async createWebhook(request) {
      const now = await context.connect(request.now);
      const { webhook } = request;
      const options = encodeCreate(request, encodeWebhook(webhook, seal, randomUUID()));
      const reply = await run("create", partitions.ofAccount(webhook.account), { now, options });
      const [result, text] = reply as [string, string?];
      if (text !== undefined)
        return { result: result as "created" | "replayed", webhook: decodeWebhook(text, seal).record };
      return { result: result as "enabled_limit" | "account_limit" | "key_reused" };
    },

    async getWebhook(id) {
      return (await read(id))?.record;
    },

    async listWebhooks({ account, cursor, limit }) {
      const after = validateCursor(cursor, /^[0-9]{1,15}$/);
      const now = await context.connect(0);
      const options = { account: encodeText(account), after: Number(after || 0), limit };
      const reply = await run("readWebhooks", partitions.ofAccount(account), { now, options });
      const [texts, next] = reply as [(string | null)[], string];
      return { webhooks: decodeReadable(texts, context), next: next || null };
    },

    async updateWebhook(request) {
      const now = await context.connect(request.now);
      return retry(() => tryUpdate(request, now), {
        clock: context.clock,
        retries: MAX_TRIES - 1,
        shouldRetry: (error) => error instanceof UpdateConflict,
        pauseMs: () => 0,
      });
    },

    async removeWebhook({ id, account, now }) {
      const at = await context.connect(now);
      const options = { account: encodeText(account), id, nonce: randomUUID() };
      return (await run("remove", partitions.ofAccount(account), { now: at, options })) === 1;
    },
  };
}
