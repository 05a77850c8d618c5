/**
 * Encrypts the bodies of events before they are stored, and decrypts them when they are read, with
 * a key for each account: the option `sealEvents`. `docs/decisions/sealed-events.md` has the
 * reasons.
 */

import type { Clock } from "../../core/clock.js";
import { drawNonces } from "../../core/encryption.js";
import { PostbellError } from "../../core/errors.js";
import type { CreateFilterTest, DataKeyStore, EventRecord } from "../store.js";
import { type DataKey, DataKeyCache, SealedEventError } from "./data-keys.js";
import { createFilterTest, isSealed, SEALED_MARK } from "./notification.js";

/** Returns the name of the key that sealed a payload; `undefined` if its beginning is damaged. */
const readKeyName = (payload: string): string | undefined =>
  /^[\w-]{8}(?=\.)/.exec(payload.slice(SEALED_MARK.length, SEALED_MARK.length + 9))?.[0];

/** The events of one call of `append`, sealed. */
interface SealedEvents {
  events: EventRecord[];
  createFilterTest: CreateFilterTest;
}

/** Returns a test of filters that opens what one of `keys` has sealed. Other events pass. */
const createSealedFilterTest =
  (keys: ReadonlyMap<string, DataKey>): CreateFilterTest =>
  (event) => {
    if (!isSealed(event.payload)) return createFilterTest(event);
    for (const key of keys.values()) {
      if (!event.payload.startsWith(key.mark)) continue;
      try {
        return createFilterTest({ payload: key.open(event) });
      } catch {
        break;
      }
    }
    // As an event whose payload cannot be read: its attempt says so in the delivery log.
    return () => true;
  };

/**
 * Seals and opens events. Without `sealEvents` it only opens what a service with the option has
 * stored.
 */
export class EventSealer {
  /** True if new events are sealed. */
  readonly seals: boolean;
  #keys: DataKeyCache;
  #joinsTransactions: boolean;

  /**
   * @param options.store keeps the data keys.
   * @param options.isShared true if that is also the storage of the events.
   */
  constructor(options: { store: DataKeyStore; clock: Clock; seals: boolean; isShared: boolean }) {
    this.seals = options.seals;
    this.#keys = new DataKeyCache(options.store, options.clock);
    this.#joinsTransactions = options.isShared;
  }

  /**
   * Seals the events of one call, and creates the keys that are missing.
   *
   * @param transaction that of the host in which the events are stored.
   * @throws `storage_unavailable`, `storage_full`.
   */
  async seal(events: readonly EventRecord[], transaction?: object): Promise<SealedEvents> {
    const keys = new Map<string, DataKey>();
    const missing: string[] = [];
    for (const { account } of events) {
      if (keys.has(account)) continue;
      const key = this.#keys.get(account);
      if (key !== undefined) keys.set(account, key);
      else if (!missing.includes(account)) missing.push(account);
    }
    const joined = this.#joinsTransactions ? transaction : undefined;
    if (missing.length > 0) await this.#findOrCreate(missing.sort(), keys, joined);
    const nonces = drawNonces(events.length);
    return {
      events: events.map((event, index) => {
        const [key, nonce] = [keys.get(event.account), nonces[index]];
        if (key === undefined || nonce === undefined)
          throw new TypeError("every event has a key and a nonce");
        return key.seal(event, nonce);
      }),
      createFilterTest: createSealedFilterTest(keys),
    };
  }

  /**
   * Returns the payload of a sealed event in plain text.
   *
   * Rejects with `SealedEventError` if nothing can open it, and with `storage_unavailable` if its
   * key cannot be read now, or is missing without having been erased.
   */
  async open(event: Pick<EventRecord, "id" | "account" | "payload">): Promise<string> {
    const { account, payload } = event;
    const cached = this.#keys.get(account);
    if (cached !== undefined && payload.startsWith(cached.mark)) return cached.open(event);
    const name = readKeyName(payload);
    if (name === undefined) throw new SealedEventError("payload_unreadable");
    // Another process may have created a new key since.
    const key = await this.#keys.read(account);
    if (key !== undefined && payload.startsWith(key.mark)) return key.open(event);
    if (await this.#keys.isErased(account, name)) throw new SealedEventError("key_erased");
    throw new PostbellError(
      "storage_unavailable",
      `The data key ${name} that sealed the event is not in the storage, and was not erased: it is lost, or not visible yet. Restore the keys from a copy, or erase the event.`,
      { isOutage: false },
    );
  }

  /**
   * Returns an event with its payload in plain text, or as it is if nothing can open it: then it
   * cannot be read, as one that a later version has written.
   *
   * @throws `storage_unavailable`.
   */
  async openStored<E extends EventRecord>(event: E | undefined): Promise<E | undefined> {
    if (event === undefined || !isSealed(event.payload)) return event;
    try {
      return { ...event, payload: await this.open(event) };
    } catch (error) {
      if (error instanceof SealedEventError) return event;
      throw error;
    }
  }

  /**
   * Returns a test of filters for the events of an account, sealed or not.
   *
   * @throws `storage_unavailable`.
   */
  async createFilterTest(account: string): Promise<CreateFilterTest> {
    const key = this.#keys.get(account) ?? (await this.#keys.read(account));
    return createSealedFilterTest(new Map(key === undefined ? [] : [[account, key]]));
  }

  /**
   * Returns an event with the digest that a service with the other value of `sealEvents` stores, to
   * compare it with the events of that service. `undefined` if the account has no key.
   */
  async sealOtherwise(
    event: EventRecord,
    transaction: object | undefined,
  ): Promise<Partial<SealedEvents> | undefined> {
    const { account, digest } = event;
    if (this.seals) {
      const { events, createFilterTest: test } = await this.seal([event], transaction);
      return { events: events.map((sealed) => ({ ...sealed, digest })), createFilterTest: test };
    }
    const key = this.#keys.get(account) ?? (await this.#find(account, transaction));
    return key && { events: [{ ...event, digest: key.sealDigest(digest) }] };
  }

  /** Erases the key of an account: what it has sealed cannot be opened any more, nor its copies. */
  erase(account: string, times: { now: number; forgetAt: number }): Promise<void> {
    return this.#keys.erase(account, times);
  }

  async #find(account: string, transaction: object | undefined): Promise<DataKey | undefined> {
    return transaction !== undefined && this.#joinsTransactions
      ? (await this.#keys.readIn(transaction, [account])).get(account)
      : this.#keys.read(account);
  }

  /** The order of `accounts` is that of all callers, so that their transactions wait in turn. */
  async #findOrCreate(
    accounts: string[],
    keys: Map<string, DataKey>,
    transaction: object | undefined,
  ): Promise<void> {
    if (transaction === undefined) {
      const find = async (account: string): Promise<void> => {
        const key = (await this.#keys.read(account)) ?? (await this.#keys.create(account, undefined));
        keys.set(account, key);
      };
      await Promise.all(accounts.map(find));
      return;
    }
    const found = await this.#keys.readIn(transaction, accounts);
    for (const account of accounts)
      keys.set(account, found.get(account) ?? (await this.#keys.create(account, transaction)));
  }
}
