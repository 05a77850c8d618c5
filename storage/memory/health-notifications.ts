/** Health notifications in memory: claims the steps that are due, and records what was decided. */

import type { WebhookRecord, WebhookStore } from "../../src/webhooks/store.js";
import { getEndpoint, type MemoryStoreContext } from "./state.js";
import { getTouchedAt, updateRecord } from "./update-record.js";

export function createMemoryHealthNotifications({
  state,
}: MemoryStoreContext): Pick<WebhookStore, "claimHealthNotifications" | "settleHealthNotification"> {
  return {
    async claimHealthNotifications({ now, leaseUntil, limit }) {
      const webhooks: WebhookRecord[] = [];
      while (webhooks.length < limit && (state.notices.headAt() ?? Number.POSITIVE_INFINITY) <= now) {
        const endpoint = state.notices.head();
        if (!endpoint) break;
        updateRecord(state, endpoint, { noticeAt: leaseUntil });
        webhooks.push(endpoint.record);
      }
      return { webhooks, nextAt: state.notices.headAt() ?? null };
    },

    async settleHealthNotification({ id, account, failingSince, from, status, warnedAt, noticeAt, now }) {
      const endpoint = getEndpoint(state, account, id);
      if (!endpoint || endpoint.record.failingSince !== failingSince || endpoint.record.status !== from)
        return false;
      const updatedAt = status === from ? endpoint.record.updatedAt : getTouchedAt(endpoint, now);
      updateRecord(state, endpoint, { status, warnedAt, noticeAt, updatedAt });
      return true;
    },
  };
}
