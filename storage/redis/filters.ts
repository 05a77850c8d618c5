/**
 * The filters of webhooks, as this process knows them. Redis cannot apply a filter, because no
 * script reads the data of an event. So the process applies the filters that it knows by name, and
 * the scripts compare the names with those of the webhooks: a filter that was changed meanwhile has
 * another name, and the call is made again.
 */

import { LRUCache } from "lru-cache";
import { PostbellError } from "../../src/core/errors.js";
import type { EventFilter } from "../../src/webhooks/event-types/event-filter.js";
import { createFilterTest } from "../../src/webhooks/events/notification.js";
import type { CreateFilterTest, EventRecord } from "../../src/webhooks/store.js";
import type { RedisStoreContext } from "./store-context.js";
import { encodeText } from "./text-codec.js";
import { decodeFilter, getFilterName } from "./webhook-codec.js";

/** Accounts whose filters are known. Those of others are read again. */
const MAX_ACCOUNTS = 2_000;

/** The webhooks that one script reads. */
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

export class FilterCache {
  readonly #context: RedisStoreContext;
  /** By account: filters by name. */
  readonly #accounts = new LRUCache<string, ReadonlyMap<string, EventFilter>>({ max: MAX_ACCOUNTS });

  constructor(context: RedisStoreContext) {
    this.#context = context;
  }

  /** Returns a filter of an account that is known. */
  get(account: string, name: string): EventFilter | undefined {
    return this.#accounts.get(account)?.get(name);
  }

  /** Applies the filters that are known. `undefined` if the account is not known to have any. */
  decide(event: EventRecord, createTest: CreateFilterTest = createFilterTest): Decisions | undefined {
    const filters = this.#accounts.get(event.account);
    if (filters === undefined || filters.size === 0) return undefined;
    const passes = createTest(event);
    return Object.fromEntries(Array.from(filters, ([name, filter]) => [name, passes(filter)]));
  }

  /** Reads the filters of an account. */
  async load(account: string): Promise<void> {
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
    this.#accounts.set(account, filters);
  }
}
