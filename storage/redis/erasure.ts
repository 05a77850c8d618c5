/** Erases accounts and events on Redis. */

import { randomUUID } from "node:crypto";
import type { ErasureStore } from "../../src/webhooks/store.js";
import { validateCursor } from "../cursor.js";
import { decodeUuid, encodeText, encodeUuid } from "./codec.js";
import type { RedisStoreContext } from "./session.js";

/** The next part: records, the audit log, or remembered values from a cursor of HSCAN on. */
const CURSOR = /^(?:records|audit|[0-9]{1,20})$/;

const NOTHING = { webhooks: 0, events: 0, deliveries: 0, auditEntries: 0, rememberedIds: 0 } as const;

export function createRedisErasure(context: RedisStoreContext): ErasureStore {
  const { partitions, run, notifyWorkers } = context;
  return {
    async eraseAccount({ account, cursor, now }) {
      const step = validateCursor(cursor, CURSOR) || "records";
      const at = await context.connect(now);
      const partition = partitions.ofAccount(account);
      const name = encodeText(account);
      if (step === "audit") {
        const erase = (options: { account: string; to?: string }) =>
          run("eraseAudit", partition.audit, { now: at, options });
        const [auditEntries, to] = (await erase({ account: name })) as [number, string];
        if (auditEntries > 0) await erase({ account: name, to });
        return { erased: { ...NOTHING, auditEntries }, next: auditEntries === 0 ? null : "audit" };
      }
      const options = { account: name, nonce: randomUUID(), cursor: step === "records" ? "" : step };
      const reply = await run("eraseAccount", partition, { now: at, options });
      const [webhooks, events, deliveries, rememberedIds, next] = reply as [...number[], string] as [
        number,
        number,
        number,
        number,
        string,
      ];
      const erased = { ...NOTHING, webhooks, events, deliveries, rememberedIds };
      return { erased, next: next === "-" ? "audit" : next === "" ? "records" : next };
    },

    async eraseEvents({ account, ids, now }) {
      const at = await context.connect(now);
      const events = [...new Set(ids)].map(encodeUuid);
      const options = { account: encodeText(account), nonce: randomUUID(), events };
      if (events.length === 0) return { events: 0, deliveries: 0, left: [] };
      const reply = await run("eraseEvents", partitions.ofAccount(account), { now: at, options });
      const [erased, deliveries, left, notifyAt] = reply as [number, number, string[], string];
      notifyWorkers(notifyAt);
      return { events: erased, deliveries, left: left.map(decodeUuid) };
    },
  };
}
