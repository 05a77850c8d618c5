/** Erases what is stored of accounts and of persons, at the request of the host. */

import { PostbellError } from "../core/errors.js";
import { isUuid } from "../core/uuid.js";
import { checkName, readCallArguments } from "./call-arguments.js";
import type { ServiceBase } from "./config/config.js";
import type { ErasedRecords } from "./store.js";

/** Erases whole accounts. It has no HTTP routes. */
export interface Accounts {
  /**
   * Erases everything that is stored of an account: its webhooks with their secrets, its events,
   * deliveries and attempts with the excerpts of responses, its audit log, and its remembered event
   * ids and idempotency keys. Resolves with how many records of each kind there were.
   *
   * It may run while workers deliver: attempts in flight finish, and their results are dropped. It
   * works in small steps; if it rejects, the rest is still there, and calling it again goes on.
   * First end what still emits events and registers webhooks of the account, or this may be kept.
   *
   * Copies outside the storage's current data are not erased: backups, logs, your own outbox.
   * SECURITY.md lists them.
   *
   * @throws `invalid_argument`, `storage_unavailable`.
   *
   * @example
   * const { webhooks: removed, events, deliveries } = await webhooks.accounts.erase("clinic-7");
   */
  erase(account: string): Promise<ErasedRecords>;
}

/** How many records `events.erase` has erased. */
export interface ErasedEvents {
  readonly events: number;
  /** With their attempts and the excerpts of responses. Pending ones are not sent any more. */
  readonly deliveries: number;
}

/** Erases stored events. It has no HTTP routes. */
export interface Events {
  /**
   * Erases an event by its id, with its deliveries in every state, their attempts and the excerpts
   * of responses. Pending deliveries end unsent. Attempts in flight finish, and their results are
   * dropped. Only the id and a digest of the event stay remembered, for at most 24 hours, so that
   * emitting the event again does not bring it back.
   *
   * It works in small steps; if it rejects, calling it again goes on.
   *
   * @throws `invalid_argument`, `storage_unavailable`.
   *
   * @example
   * await webhooks.events.erase({ account: "clinic-7", eventId });
   */
  erase(request: { readonly account: string; readonly eventId: string }): Promise<ErasedEvents>;
}

export function createErasure({ store, audit }: ServiceBase): { accounts: Accounts; events: Events } {
  /** Erases events whose ids are known, call by call, until none is left. */
  const eraseByIds = async (account: string, ids: readonly string[]): Promise<ErasedEvents> => {
    const sum = { events: 0, deliveries: 0 };
    for (let left = ids; left.length > 0; ) {
      const step = await store.eraseEvents({ account, ids: left, now: store.now() });
      sum.events += step.events;
      sum.deliveries += step.deliveries;
      ({ left } = step);
    }
    return sum;
  };

  return {
    accounts: Object.freeze<Accounts>({
      async erase(account) {
        checkName("account", account);
        // Entries that still wait to be written must not follow the erasure.
        await audit.settled();
        const sum = { webhooks: 0, events: 0, deliveries: 0, auditEntries: 0, rememberedIds: 0 };
        let cursor: string | null | undefined;
        while (cursor !== null) {
          const { erased, next } = await store.eraseAccount({ account, cursor, now: store.now() });
          sum.webhooks += erased.webhooks;
          sum.events += erased.events;
          sum.deliveries += erased.deliveries;
          sum.auditEntries += erased.auditEntries;
          sum.rememberedIds += erased.rememberedIds;
          cursor = next;
        }
        return sum;
      },
    }),

    events: Object.freeze<Events>({
      async erase(request) {
        const { account, eventId } = readCallArguments("erase", request, ["account", "eventId"]);
        checkName("account", account);
        return eraseByIds(account, [readEventId(eventId)]);
      },
    }),
  };
}

/** @throws `invalid_argument` for a text that is not a UUID. */
function readEventId(eventId: string): string {
  if (typeof eventId === "string" && isUuid(eventId)) return eventId.toLowerCase();
  throw new PostbellError("invalid_argument", "The id of an event must be a UUID.", { field: "eventId" });
}
