/** Lists accounts for operators, and erases accounts and events, in the host's code only. */

import { PostbellError } from "../core/errors.js";
import { readCallArguments } from "../core/known-names.js";
import { nextTurn } from "../core/next-turn.js";
import { isUuid } from "../core/uuid.js";
import { checkName, readLimit } from "./call-arguments.js";
import type { ServiceBase } from "./config/config.js";
import { KEEP_KEY_MS } from "./events/data-keys.js";
import { type List, PagedList } from "./list.js";
import type { AccountSummary, ErasedRecords } from "./store.js";

/** An account with its webhooks and deliveries in numbers. */
export interface Account {
  readonly account: string;
  /** Its webhooks: healthy, failing, failing and warned about, and DISABLED. */
  readonly endpoints: {
    readonly ok: number;
    readonly failing: number;
    readonly warned: number;
    readonly disabled: number;
  };
  /** How many of its deliveries wait or are in flight. */
  readonly waiting: number;
  /** Its attempts of the last 24 hours, and of the current one. */
  readonly lastDay: { readonly attempts: number; readonly succeeded: number };
  /**
   * When the newest event that is kept was stored; `null` if none is kept. It may be that of an
   * event removed since.
   */
  readonly lastEventAt: Date | null;
}

/** The options of `accounts.list`. */
export interface ListAccounts {
  /**
   * `failing`: only accounts with a webhook that fails, or was disabled because it failed. Default:
   * every account that has a webhook.
   */
  readonly state?: "failing" | undefined;
  readonly cursor?: string | undefined;
  /** 1 to 100. Default 50. */
  readonly limit?: number | undefined;
  /** The name of the person who looks, for the `audit` hook. Default: the host itself. */
  readonly operator?: string | undefined;
}

/** Lists and erases accounts. It has no HTTP routes. */
export interface Accounts {
  /**
   * Lists the accounts that have webhooks, for an operator: their webhooks by health, deliveries
   * that wait, attempts of the last day. The order is the storage's: the oldest account first,
   * or the one that fails for longest, within a partition of the storage.
   *
   * Every page costs about the same, however many accounts there are. So a page may be short, or
   * empty, and still have a `next`. An account that changes between two pages may be listed twice.
   *
   * @throws `invalid_argument`, `invalid_request`, `storage_unavailable`.
   *
   * @example
   * const { items, next } = await webhooks.accounts.list({ state: "failing", limit: 100 });
   */
  list(request?: ListAccounts): List<Account>;
  /**
   * Erases everything that is stored of an account: its webhooks with their secrets, its events,
   * deliveries and attempts with the excerpts of responses, its audit log, and its remembered event
   * ids and idempotency keys. Resolves with how many records of each kind there were.
   *
   * It may run while workers deliver: attempts in flight finish, and their results are dropped. It
   * works in small steps; if it rejects, the rest is still there, and calling it again goes on.
   * First end what still emits events and registers webhooks of the account, or this may be kept.
   * With `sealEvents`, it resolves 10 seconds after it has erased the key of the account, when no
   * process has the key any more.
   *
   * Copies outside the storage's current data are not erased: backups, logs, your outbox.
   * SECURITY.md lists them. The `audit` hook hears of it; the audit log does not keep it.
   *
   * @throws `invalid_argument`, `storage_unavailable`.
   *
   * @example
   * const { webhooks: removed, events, deliveries } = await webhooks.accounts.erase("clinic-7");
   */
  erase(account: string): Promise<ErasedRecords>;
}

/** Names the events that `events.erase` erases: by their subject, or one by its id. */
export type EraseEvents =
  | { readonly account: string; readonly subject: string; readonly eventId?: undefined }
  | { readonly account: string; readonly eventId: string; readonly subject?: undefined };

/** How many records `events.erase` has erased. */
export interface ErasedEvents {
  readonly events: number;
  /** With their attempts and the excerpts of responses. Pending ones are not sent any more. */
  readonly deliveries: number;
}

/** Erases stored events. It has no HTTP routes. */
export interface Events {
  /**
   * Erases the events about a person or another subject, or one event by its id, with their
   * deliveries in every state, their attempts and the excerpts of responses. Pending deliveries end
   * unsent. Attempts in flight finish, and their results are dropped. The subject of an event about
   * a FHIR record is its reference, such as `Patient/123`; events that only contain the record
   * elsewhere have another subject, and stay.
   *
   * Only the id and a digest of an event stay remembered, for at most 24 hours, so that emitting it
   * again does not bring it back.
   *
   * It works in small steps; if it rejects, calling it again goes on.
   *
   * @throws `invalid_argument`, `storage_unavailable`.
   *
   * @example
   * const { events, deliveries } = await webhooks.events.erase({
   *   account: "clinic-7",
   *   subject: "Patient/123",
   * });
   */
  erase(request: EraseEvents): Promise<ErasedEvents>;
}

export function createAccounts({ store, sealer, audit, config }: ServiceBase): {
  accounts: Accounts;
  events: Events;
} {
  /** Erases events whose ids are known, call by call, until none is left. */
  const eraseByIds = async (account: string, ids: readonly string[]): Promise<ErasedEvents> => {
    const sum = { events: 0, deliveries: 0 };
    for (let left = ids; left.length > 0; ) {
      const step = await store.eraseEvents({ account, ids: left, now: store.now() });
      sum.events += step.events;
      sum.deliveries += step.deliveries;
      ({ left } = step);
      // The memory storage never yields to the event loop.
      if (left.length > 0) await nextTurn();
    }
    return sum;
  };

  const eraseBySubject = async (account: string, subject: string): Promise<ErasedEvents> => {
    const sum = { events: 0, deliveries: 0 };
    let cursor: string | undefined;
    do {
      const page = { account, key: { subject }, idsOnly: true, cursor, limit: FOUND_TOGETHER };
      const { events, next } = await store.findEvents(page);
      const erased = await eraseByIds(
        account,
        events.map(({ id }) => id),
      );
      sum.events += erased.events;
      sum.deliveries += erased.deliveries;
      cursor = next ?? undefined;
      if (cursor !== undefined) await nextTurn();
    } while (cursor !== undefined);
    return sum;
  };

  return {
    accounts: Object.freeze<Accounts>({
      list: (request = {}) =>
        new PagedList(request?.cursor, async (cursor) => {
          const input = readCallArguments("list", request, ["state", "cursor", "limit", "operator"]);
          const { state, limit, operator } = input;
          if (state !== undefined && state !== "failing") throw invalidState(state);
          if (operator !== undefined) checkName("operator", operator);
          const page = { state, cursor, limit: readLimit(limit), now: store.now() };
          const { accounts, next } = await store.listAccounts(page);
          const actor = operator === undefined ? HOST : ({ type: "operator", name: operator } as const);
          audit.record({ account: "", action: "accounts.listed", actor });
          return { items: accounts.map(toAccount), next };
        }),

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
          if (cursor !== null) await nextTurn();
        }
        // After its webhooks, whose workers would report that its events cannot be opened.
        const now = store.now();
        await sealer.erase(account, { now, forgetAt: now + config.retention.keepMs + ERASED_KEYS_MS });
        // Other processes may seal with the key until then, if the account is registered again.
        if (sealer.seals) await new Promise<void>((done) => config.clock.setTimeout(done, KEEP_KEY_MS));
        audit.record({ account, action: "account.erased", actor: HOST });
        return sum;
      },
    }),

    events: Object.freeze<Events>({
      async erase(request) {
        const { account, eventId, subject } = readCallArguments("erase", request, [
          "account",
          "eventId",
          "subject",
        ]);
        checkName("account", account);
        if ((eventId === undefined) === (subject === undefined)) throw oneOfBoth();
        const erased =
          eventId === undefined
            ? await eraseBySubject(account, readSubject(subject))
            : await eraseByIds(account, [readEventId(eventId)]);
        // Also with a count of 0: a storage that had to repeat its call may count nothing. Not the
        // subject, which may name a person.
        audit.record({ account, action: "events.erased", actor: HOST, count: erased.events });
        return erased;
      },
    }),
  };
}

/** Events that are found and erased together: a call of the storage takes a hundred. */
const FOUND_TOGETHER = 50;

/** Besides the retention: longer than a delivery is retried, or a backup is restored late. */
const ERASED_KEYS_MS = 4 * 86_400_000;

const HOST = { type: "host" } as const;

const toAccount = ({ lastDay: { succeeded, failed }, lastEventAt, ...summary }: AccountSummary): Account => ({
  ...summary,
  lastDay: { attempts: succeeded + failed, succeeded },
  lastEventAt: lastEventAt === null ? null : new Date(lastEventAt),
});

const invalidState = (state: unknown): PostbellError =>
  new PostbellError(
    "invalid_argument",
    `state must be "failing", or left out for all accounts (got ${typeof state === "string" ? JSON.stringify(state.slice(0, 40)) : typeof state}).`,
    { field: "state" },
  );

const oneOfBoth = (): PostbellError =>
  new PostbellError("invalid_argument", "erase() takes either subject or eventId.", { field: "subject" });

const MAX_SUBJECT = 1_000;

/** @throws `invalid_argument`. */
function readSubject(subject: unknown): string {
  if (typeof subject === "string" && subject !== "" && subject.length <= MAX_SUBJECT) return subject;
  const seen = typeof subject === "string" ? `${subject.length} characters` : typeof subject;
  throw new PostbellError(
    "invalid_argument",
    `subject must be a text of 1 to ${MAX_SUBJECT} characters (got ${seen}).`,
    { field: "subject" },
  );
}

/** @throws `invalid_argument` for a text that is not a UUID. */
function readEventId(eventId: string): string {
  if (typeof eventId === "string" && isUuid(eventId)) return eventId.toLowerCase();
  throw new PostbellError("invalid_argument", "The id of an event must be a UUID.", { field: "eventId" });
}
