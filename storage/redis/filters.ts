/**
 * The filters of webhooks, as this process knows them. Redis cannot apply a filter, because no
 * function reads the data of an event. So the process applies the filters that it knows by name,
 * and the functions compare the names with those of the webhooks: a filter that was changed
 * meanwhile has another name, and the call is made again.
 */

import { LRUCache } from "lru-cache";
import { PostbellError } from "../../src/core/errors.js";
import type { EventFilter } from "../../src/webhooks/event-types/event-filter.js";
import { createFilterTest } from "../../src/webhooks/events/notification.js";
import type { CreateFilterTest, EventRecord } from "../../src/webhooks/store.js";
import { encodeText } from "./codec.js";
import type { RedisStoreContext } from "./session.js";
import { decodeFilter, getFilterName } from "./webhook-codec.js";

/** Accounts whose filters are known. Those of others are read again. */
const MAX_ACCOUNTS = 2_000;

/** The webhooks that one call reads. */
const PAGE = 100;

/** How often a call is made whose filters others change at the same time. */
export const MAX_FILTER_TRIES = 10;

export const filtersChanged = (): PostbellError =>
  new PostbellError(
    "storage_unavailable",
    `A filter of the account was changed by others during all of ${MAX_FILTER_TRIES} attempts to apply it. Try again later.`,
    { effect: "none" },
  );

/** Says for the names of filters if an event passes them. */
type Decisions = Record<string, boolean>;

interface KnownFilters {
  byName: Map<string, EventFilter>;
  /** `count` of the cache after they were read. */
  readAt: number;
}

export class FilterCache {
  readonly #context: RedisStoreContext;
  readonly #accounts = new LRUCache<string, KnownFilters>({ max: MAX_ACCOUNTS });
  /** The reads in progress, by account. */
  readonly #reads = new Map<string, Promise<void>>();
  #count = 0;

  constructor(context: RedisStoreContext) {
    this.#context = context;
  }

  /** Returns a filter of an account that is known. */
  get(account: string, name: string): EventFilter | undefined {
    return this.#accounts.get(account)?.byName.get(name);
  }

  /** How many reads have ended. Take it before a call whose filters may turn out to be unknown. */
  get count(): number {
    return this.#count;
  }

  /** Applies the filters that are known. `undefined` if the account is not known to have any. */
  decide(event: EventRecord, createTest: CreateFilterTest = createFilterTest): Decisions | undefined {
    const filters = this.#accounts.get(event.account)?.byName;
    if (filters === undefined || filters.size === 0) return undefined;
    const passes = createTest(event);
    return Object.fromEntries(Array.from(filters, ([name, filter]) => [name, passes(filter)]));
  }

  /**
   * Reads the filters of an account, unless they were read since `count` was taken. Calls at the
   * same time share one read: after a change, many events wait for the same filters.
   */
  async load(account: string, count = this.#count): Promise<void> {
    if ((this.#accounts.get(account)?.readAt ?? 0) > count) return;
    let read = this.#reads.get(account);
    if (read === undefined) {
      read = this.#read(account).finally(() => this.#reads.delete(account));
      this.#reads.set(account, read);
    }
    await read;
  }

  async #read(account: string): Promise<void> {
    const { partitions, run } = this.#context;
    const now = await this.#context.connect(0);
    const filters = new Map<string, EventFilter>();
    let after = 0;
    do {
      const options = { account: encodeText(account), after, limit: PAGE };
      const reply = await run("readWebhooks", partitions.ofAccount(account), { now, options });
      const [texts, next] = reply as [(string | null)[], string];
      for (const text of texts) {
        const filter = text === null ? undefined : decodeFilter(text);
        if (filter !== undefined) filters.set(getFilterName(filter), filter);
      }
      after = Number(next);
    } while (after > 0);
    this.#accounts.set(account, { byName: filters, readAt: ++this.#count });
  }
}
