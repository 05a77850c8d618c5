/** Registrations on Redis, with their health steps. */

import { randomUUID } from "node:crypto";
import { PostbellError } from "../../src/core/errors.js";
import { rotateSecret } from "../../src/webhooks/registrations/secret-rotation.js";
import type { WebhookRecord, WebhookStore } from "../../src/webhooks/store.js";
import { validateCursor } from "../cursor.js";
import { SCRIPTS } from "./scripts.js";
import type { RedisStoreContext } from "./store-context.js";
import { encodeNumber, encodeText, encodeUuid } from "./text-codec.js";
import {
  decodeWebhook,
  encodeEventTypes,
  encodeStatus,
  encodeWebhook,
  type StoredWebhook,
} from "./webhook-codec.js";

/**
 * An update is worked out anew where another one came between; so many in a row mean that something
 * else is wrong.
 */
const MAX_TRIES = 100;

type Registry = Pick<
  WebhookStore,
  | "createWebhook"
  | "getWebhook"
  | "listWebhooks"
  | "updateWebhook"
  | "removeWebhook"
  | "claimHealthNotifications"
  | "settleHealthNotification"
>;

export function createRedisRegistry(context: RedisStoreContext): Registry {
  const { partitions, seal, logger, run, notifyWorkers } = context;

  const read = async (id: string): Promise<StoredWebhook | undefined> => {
    const now = await context.at(0);
    const [text] = (await run(SCRIPTS.read, partitions.ofWebhook(id), ["webhook", id], { now })) as string[];
    return text ? decodeWebhook(text, seal) : undefined;
  };

  /** One that cannot be read must not hide the others. */
  const readable = (texts: readonly (string | null)[]): WebhookRecord[] =>
    texts.flatMap((text) => {
      try {
        return text ? [decodeWebhook(text, seal).record] : [];
      } catch (error) {
        logger.error({ error }, "a webhook cannot be used");
        return [];
      }
    });

  return {
    async createWebhook({ webhook, enabledLimit, accountLimit, idempotency, now }) {
      const at = await context.at(now);
      const { id, account } = webhook;
      const [result, text] = (await run(
        SCRIPTS.create,
        partitions.ofAccount(account),
        [
          encodeText(account),
          id,
          encodeUuid(id),
          enabledLimit,
          accountLimit,
          encodeStatus(webhook.status),
          encodeEventTypes(webhook.eventTypes),
          webhook.generation,
          webhook.updatedAt,
          encodeNumber(webhook.failingSince),
          encodeNumber(webhook.warnedAt),
          encodeNumber(webhook.noticeAt),
          encodeWebhook(webhook, seal, randomUUID()),
          idempotency ? `r/${encodeText(account)}/${encodeText(idempotency.key)}` : "",
          JSON.stringify(idempotency?.digest ?? ""),
          encodeNumber(idempotency?.expiresAt),
        ],
        { now: at },
      )) as [string, string?];
      if (text !== undefined)
        return { result: result as "created" | "replayed", webhook: decodeWebhook(text, seal).record };
      return { result: result as "enabled_limit" | "account_limit" | "key_reused" };
    },

    async getWebhook(id) {
      return (await read(id))?.record;
    },

    async listWebhooks({ account, cursor, limit }) {
      const after = validateCursor(cursor, /^[0-9]{1,15}$/);
      const now = await context.at(0);
      const args = ["webhooks", encodeText(account), after || 0, limit];
      const [texts, next] = (await run(SCRIPTS.read, partitions.ofAccount(account), args, { now })) as [
        (string | null)[],
        string,
      ];
      const webhooks = readable(texts);
      return { webhooks, next: next || null };
    },

    async updateWebhook({ id, account, change, owner, enabledLimit, now }) {
      const at = await context.at(now);
      const { url, status, eventTypes, rotation, subscriberId } = change;
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const stored = await read(id);
        if (stored?.record.account !== account) return { result: "not_found" };
        const { record, config } = stored;
        // The script takes the change only while the config, with the owner in it, is the one read
        // here.
        if (owner !== undefined && owner !== record.subscriberId) return { result: "not_owner" };
        const changed: WebhookRecord = {
          ...record,
          url: url ?? record.url,
          eventTypes: eventTypes === undefined ? record.eventTypes : eventTypes,
          ...(rotation && rotateSecret(record, rotation, at)),
          subscriberId: subscriberId ?? record.subscriberId,
        };
        const [result, text, notifyAt] = (await run(
          SCRIPTS.update,
          partitions.ofAccount(account),
          [
            encodeText(account),
            id,
            config,
            encodeWebhook(changed, seal, randomUUID(), config),
            status ? encodeStatus(status) : "",
            eventTypes === undefined ? "" : encodeEventTypes(eventTypes),
            changed.url === record.url ? "0" : "1",
            enabledLimit,
          ],
          { now: at },
        )) as [string, string?, string?];
        if (result === "changed") continue;
        notifyWorkers(notifyAt);
        if (text !== undefined) return { result: "updated", webhook: decodeWebhook(text, seal).record };
        return { result: result as "enabled_limit" | "not_found" };
      }
      throw new PostbellError(
        "storage_unavailable",
        "The webhook is being changed by too many others; try again.",
      );
    },

    async removeWebhook({ id, account, now }) {
      const at = await context.at(now);
      const args = [encodeText(account), id, randomUUID()];
      return (await run(SCRIPTS.remove, partitions.ofAccount(account), args, { now: at })) === 1;
    },

    async claimHealthNotifications({ now, leaseUntil, limit }) {
      const at = await context.at(now);
      const webhooks: WebhookRecord[] = [];
      let nextAt: number | null = null;
      const errors: unknown[] = [];
      for (const partition of partitions.all) {
        const args = [leaseUntil, limit - webhooks.length, randomUUID()];
        const reply = await run(SCRIPTS.notices, partition, args, { now: at }).catch((error: unknown) => {
          errors.push(error);
          return [[], String(leaseUntil)];
        });
        const [texts, next] = reply as [string[], string];
        webhooks.push(...readable(texts));
        if (next !== "") nextAt = Math.min(nextAt ?? Number(next), Number(next));
      }
      // What the others leased must not be lost with one that cannot be reached.
      if (errors.length === partitions.all.length) throw errors[0];
      for (const error of errors) logger.error({ error }, "a partition could not be asked for due notices");
      return { webhooks, nextAt };
    },

    async settleHealthNotification({ id, account, failingSince, from, status, warnedAt, noticeAt, now }) {
      const at = await context.at(now);
      const reply = await run(
        SCRIPTS.settleNotice,
        partitions.ofAccount(account),
        [
          encodeText(account),
          id,
          failingSince,
          encodeStatus(from),
          encodeStatus(status),
          encodeNumber(warnedAt),
          encodeNumber(noticeAt),
          randomUUID(),
        ],
        { now: at },
      );
      return reply === 1;
    },
  };
}
