/** Lists accounts, and erases accounts and events in memory. */

import type { AccountListStore, AccountSummary, ErasureStore } from "../../src/webhooks/store.js";
import { getEndpointState, sumWebhooks } from "../queue/account-summary.js";
import { offer } from "./claim-order.js";
import { collectPage, parsePageStart } from "./collections.js";
import type { MemoryAccount, MemoryEvent } from "./records.js";
import { removeEndpoint } from "./registry.js";
import { eraseEvent } from "./retention.js";
import { dropIfEmpty, type MemoryStoreContext, type State, scoped } from "./state.js";

/** The most webhooks, events and deliveries that one call erases: at least one event. */
const MAX_PER_CALL = 200;

/** `next` as long as something may be left. The calls need no position: they take what is first. */
const GO_ON = "more";

/** Erases webhooks and events of an account, up to a bound. Returns false if some are left. */
function eraseRecords(
  state: State,
  name: string,
  now: number,
  erased: { webhooks: number; events: number; deliveries: number },
): boolean {
  const account = state.accounts.get(name);
  if (account === undefined) return true;
  let left = MAX_PER_CALL;
  for (const endpoint of account.endpoints.after(0)) {
    if (left <= 0) return false;
    removeEndpoint(state, endpoint);
    erased.webhooks += 1;
    left -= 1;
  }
  for (const event of account.events.after(0)) {
    if (left <= 0) return false;
    eraseEvent(state, event, { now, remembersId: false });
    erased.events += 1;
    erased.deliveries += event.deliveries.length;
    left -= 1 + event.deliveries.length;
  }
  for (const endpoint of state.removals.keys())
    if (endpoint.account === account) state.removals.delete(endpoint);
  dropIfEmpty(state, account);
  return true;
}

function eraseAuditLog({ audit }: State, account: string): number {
  const { deliveries, others } = audit.logs.get(account) ?? { deliveries: [], others: [] };
  const count = deliveries.length + others.length;
  audit.logs.delete(account);
  audit.size -= count;
  return count;
}

/** Erases what is remembered of an account. */
function forgetAll({ remembered, replays }: State, account: string): number {
  const prefix = scoped(account, "");
  return remembered.dropAll(prefix) + replays.dropAll(prefix);
}

function toSummary(
  { name, endpoints, pending, events, lastEventAt }: MemoryAccount,
  now: number,
): AccountSummary {
  const webhooks = [...endpoints.after(0)].map(({ record, recent, pastHours }) => ({
    state: getEndpointState(record),
    newest: recent,
    past: pastHours,
  }));
  return {
    account: name,
    ...sumWebhooks(webhooks, now),
    waiting: pending,
    lastEventAt: events.size === 0 ? null : lastEventAt,
  };
}

export function createMemoryAccounts(context: MemoryStoreContext): ErasureStore & AccountListStore {
  const { state } = context;

  const erase = (event: MemoryEvent, now: number): void => {
    for (const endpoint of eraseEvent(state, event, { now, remembersId: true }))
      offer(context, endpoint, now);
  };

  return {
    async eraseAccount({ account, now }) {
      const erased = { webhooks: 0, events: 0, deliveries: 0, auditEntries: 0, rememberedIds: 0 };
      if (!eraseRecords(state, account, now, erased)) return { erased, next: GO_ON };
      erased.auditEntries = eraseAuditLog(state, account);
      erased.rememberedIds = forgetAll(state, account);
      return { erased, next: null };
    },

    async eraseEvents({ account, ids, now }) {
      const { events } = state.accounts.get(account) ?? {};
      const found = ids.flatMap((id) => events?.get(id) ?? []);
      let deliveries = 0;
      for (const event of new Set(found)) {
        deliveries += event.deliveries.length;
        erase(event, now);
      }
      return { events: new Set(found).size, deliveries, left: [] };
    },

    async listAccounts({ state: wanted, cursor, limit, now }) {
      const after = parsePageStart(cursor) ?? 0;
      if (wanted === "failing") {
        const { rows, next } = collectPage(state.failingAccounts.after(after), limit);
        return { accounts: rows.map(({ account }) => toSummary(account, now)), next };
      }
      // An account whose webhooks were removed is kept with its events.
      const hasWebhooks = ({ endpoints }: MemoryAccount): boolean => endpoints.size > 0;
      const { rows, next } = collectPage(state.accountList.after(after), limit, hasWebhooks);
      return { accounts: rows.map((account) => toSummary(account, now)), next };
    },
  };
}
