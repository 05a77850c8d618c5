/**
 * Encrypts the bodies of events before they are stored, and decrypts them when they are read, with
 * a key for each account: the option `sealEvents`. `docs/decisions/sealed-events.md` has the
 * reasons.
 */

import { createHmac, createSecretKey, hkdfSync, type KeyObject, randomBytes } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Clock } from "../../core/clock.js";
import { decryptText, drawNonces, encryptText, getKeyName, KEY_BYTES } from "../../core/encryption.js";
import type { CreateFilterTest, DataKeyStore, EventRecord } from "../store.js";
import { createFilterTest, isSealed, SEALED_MARK } from "./notification.js";

/**
 * A process keeps a key for so long. Erasing an account takes effect at once in the process that
 * erases it, and after this time in all others.
 */
const KEEP_KEY_MS = 10_000;

/** The keys that a process keeps: those of the accounts that were used last. */
const MAX_CACHED_KEYS = 10_000;

/** The keys that one call of the storage reads. */
const READ_TOGETHER = 250;

/** A sealed event that no retry can open. `reason` is that of its deliveries. */
export class SealedEventError extends Error {
  readonly reason: "key_erased" | "payload_unreadable";

  constructor(reason: SealedEventError["reason"], options?: ErrorOptions) {
    super(
      reason === "key_erased" ? "the key of the event was erased" : "the event was changed in the storage",
      options,
    );
    this.reason = reason;
  }
}

/** The data key of an account. */
class DataKey {
  /** Begins every payload that this key has sealed. */
  readonly mark: string;
  #account: string;
  #bodies: KeyObject;
  #digests: KeyObject;

  /** @param key in base64 */
  constructor(account: string, key: string) {
    const bytes = Buffer.from(key, "base64");
    const derive = (purpose: string): KeyObject =>
      createSecretKey(Buffer.from(hkdfSync("sha256", bytes, "", purpose, KEY_BYTES)));
    this.#account = account;
    this.mark = `${SEALED_MARK}${getKeyName(bytes)}.`;
    this.#bodies = derive("postbell event bodies");
    this.#digests = derive("postbell event digests");
  }

  seal(event: EventRecord, nonce: Buffer): EventRecord {
    const text = encryptText(this.#bodies, event.payload, this.#getPlace(event), nonce);
    return { ...event, digest: this.sealDigest(event.digest), payload: this.mark + text };
  }

  /** The digest of a short body would tell the body to whoever tries all that are likely. */
  sealDigest(digest: string): string {
    return createHmac("sha256", this.#digests).update(digest).digest("base64url");
  }

  /** @throws `SealedEventError` if another key, or another event, has sealed the payload. */
  open(event: Pick<EventRecord, "id" | "payload">): string {
    if (!event.payload.startsWith(this.mark)) throw new SealedEventError("key_erased");
    try {
      return decryptText(this.#bodies, event.payload.slice(this.mark.length), this.#getPlace(event));
    } catch (cause) {
      throw new SealedEventError("payload_unreadable", { cause });
    }
  }

  /** An id has a fixed length, so no two events have the same place. */
  #getPlace({ id }: { id: string }): string {
    return `${id} ${this.#account}`;
  }
}

/** Reads the data keys of accounts, and keeps them for a short time. */
class DataKeyCache {
  #store: DataKeyStore;
  #clock: Clock;
  #keys = new LRUCache<string, { key: DataKey; until: number }>({ max: MAX_CACHED_KEYS });
  /** The reads in progress. Those of one turn are one call of the storage. */
  #reads = new Map<string, Promise<DataKey | undefined>>();
  #accounts: string[] = [];
  #texts: Promise<Map<string, string>> | undefined;
  /** Counts erased keys: a read that began before an erasure is not kept. */
  #erased = 0;

  constructor(store: DataKeyStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Returns the key of an account if this process has it. */
  get(account: string): DataKey | undefined {
    const cached = this.#keys.get(account);
    return cached !== undefined && this.#clock.monotonic() < cached.until ? cached.key : undefined;
  }

  /** Reads the key of an account; `undefined` if it has none. */
  read(account: string): Promise<DataKey | undefined> {
    const reading = this.#reads.get(account);
    if (reading !== undefined) return reading;
    const read = this.#readLater(account).finally(() => this.#reads.delete(account));
    this.#reads.set(account, read);
    return read;
  }

  async create(account: string, transaction: object | undefined): Promise<DataKey> {
    const [before, at] = [this.#erased, this.#clock.monotonic()];
    const key = randomBytes(KEY_BYTES).toString("base64");
    const added = await this.#store.addDataKey?.({ account, key, transaction });
    if (added === undefined) throw new TypeError("the storage keeps no data keys");
    // The host may still undo its transaction, and the key with it.
    return added.isCommitted
      ? this.#keep(account, added.key, { before, at })
      : new DataKey(account, added.key);
  }

  async erase(account: string): Promise<void> {
    this.#erased += 1;
    this.#keys.delete(account);
    await this.#store.eraseDataKey?.(account);
    this.#erased += 1;
    this.#keys.delete(account);
  }

  async #readLater(account: string): Promise<DataKey | undefined> {
    const [before, at] = [this.#erased, this.#clock.monotonic()];
    this.#accounts.push(account);
    this.#texts ??= Promise.resolve().then(() => this.#readAll());
    const text = (await this.#texts).get(account);
    return text === undefined ? undefined : this.#keep(account, text, { before, at });
  }

  async #readAll(): Promise<Map<string, string>> {
    const accounts = this.#accounts;
    this.#accounts = [];
    this.#texts = undefined;
    const texts = new Map<string, string>();
    for (let from = 0; from < accounts.length; from += READ_TOGETHER) {
      const names = accounts.slice(from, from + READ_TOGETHER);
      const read = await this.#store.readDataKeys?.(names);
      for (const [index, name] of names.entries()) {
        const text = read?.[index];
        if (text !== undefined) texts.set(name, text);
      }
    }
    return texts;
  }

  /** @param began when the call began, and how many keys had been erased then. */
  #keep(account: string, text: string, began: { before: number; at: number }): DataKey {
    const key = new DataKey(account, text);
    if (began.before === this.#erased) this.#keys.set(account, { key, until: began.at + KEEP_KEY_MS });
    return key;
  }
}

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
 * Seals and opens events. Without `sealEvents` it only opens, what a service with the option has
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
    if (missing.length > 0) await this.#findOrCreate(missing, keys, transaction);
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
   * key cannot be read now.
   */
  async open(event: Pick<EventRecord, "id" | "account" | "payload">): Promise<string> {
    const cached = this.#keys.get(event.account);
    // With another mark, another process may have created a new key since.
    const key =
      cached !== undefined && event.payload.startsWith(cached.mark)
        ? cached
        : await this.#keys.read(event.account);
    if (key === undefined) throw new SealedEventError("key_erased");
    return key.open(event);
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
    const key = this.#keys.get(account) ?? (await this.#keys.read(account));
    return key && { events: [{ ...event, digest: key.sealDigest(digest) }] };
  }

  /** Erases the key of an account: what it has sealed cannot be opened any more, nor its copies. */
  erase(account: string): Promise<void> {
    return this.#keys.erase(account);
  }

  async #findOrCreate(
    accounts: readonly string[],
    keys: Map<string, DataKey>,
    transaction: object | undefined,
  ): Promise<void> {
    const joined = this.#joinsTransactions ? transaction : undefined;
    const find = async (account: string): Promise<void> => {
      const key = (await this.#keys.read(account)) ?? (await this.#keys.create(account, joined));
      keys.set(account, key);
    };
    await Promise.all(accounts.map(find));
  }
}
