/** Changes the record of a webhook, and schedules its next health step. */

import type { WebhookRecord } from "../../src/webhooks/store.js";
import type { MemoryEndpoint } from "./records.js";
import { notifyWorkers, type State } from "./state.js";

/** Sets fields of the record. A change of the health alone keeps `updatedAt`. */
export function updateRecord(state: State, endpoint: MemoryEndpoint, fields: Partial<WebhookRecord>): void {
  endpoint.record = Object.freeze({ ...endpoint.record, ...fields });
  const { noticeAt } = endpoint.record;
  if (noticeAt === null) state.notices.delete(endpoint);
  else {
    state.notices.set(endpoint, noticeAt);
    notifyWorkers(state, noticeAt);
  }
}

/**
 * The time of a change that users see. Each is later than the one before, also within a
 * millisecond.
 */
export const getTouchedAt = ({ record }: MemoryEndpoint, now: number): number =>
  Math.max(now, record.updatedAt + 1);
