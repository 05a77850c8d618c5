/** The data keys of accounts, which encrypt the bodies of their events, and the keys in memory. */

import { createHmac, createSecretKey, hkdfSync, type KeyObject, randomBytes } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Clock } from "../../core/clock.js";
import { decryptText, encryptText, getKeyName, KEY_BYTES } from "../../core/encryption.js";
import type { PostbellError } from "../../core/errors.js";
import type { DataKeyStore, EventRecord } from "../store.js";
import { SEALED_MARK } from "./notification.js";

/**
 * A process keeps a key for so long. Erasing an account takes effect at once in the process that
 * erases it, and after this time in all others.
 */
export const KEEP_KEY_MS = 10_000;

/** For so long afterwards, a process stores the key again if the storage has lost it. */
const RESTORE_KEY_MS = 60_000;

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

/** A data key as the storage returns it. */
type StoredKey = string | PostbellError | undefined;

/** When a read began, and how many keys had been erased then. */
type BegunRead = { erased: number; at: number };

/** The data key of an account. */
export class DataKey {
  readonly name: string;
  /** In base64. */
  readonly text: string;
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
    this.text = key;
    this.name = getKeyName(bytes);
    this.mark = `${SEALED_MARK}${this.name}.`;
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

  /** @throws `SealedEventError` if the payload was changed, or is that of another event. */
  open(event: Pick<EventRecord, "id" | "payload">): string {
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
export class DataKeyCache {
  #store: DataKeyStore;
  #clock: Clock;
  #keys = new LRUCache<string, { key: DataKey; until: number }>({ max: MAX_CACHED_KEYS });
  /** The read of this turn, which is one call of the storage. */
  #pending: { accounts: Set<string>; results: Promise<Map<string, StoredKey>> } | undefined;
  #erasedNames = new LRUCache<string, Promise<boolean>>({ max: MAX_CACHED_KEYS });
  /** The keys that this process has created in transactions which the host may still undo. */
  #uncommitted = new WeakMap<object, Set<string>>();
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

  /**
   * Reads the key of an account; `undefined` if it has none. It joins no read that has begun: that
   * may have been too early for a key that a claimed event names.
   */
  async read(account: string): Promise<DataKey | undefined> {
    const began = this.#begin();
    this.#pending ??= this.#readLater();
    this.#pending.accounts.add(account);
    const text = (await this.#pending.results).get(account);
    if (text === undefined) return undefined;
    if (typeof text !== "string") throw text;
    return this.#keep(account, text, began);
  }

  /** Reads the keys of accounts on the connection of a transaction of the host. */
  async readIn(transaction: object, accounts: string[]): Promise<Map<string, DataKey>> {
    const began = this.#begin();
    const texts = (await this.#store.readDataKeys?.(accounts, transaction)) ?? [];
    const keys = new Map<string, DataKey>();
    for (const [index, account] of accounts.entries()) {
      const text = texts[index];
      if (text === undefined) continue;
      if (typeof text !== "string") throw text;
      const isUncommitted = this.#uncommitted.get(transaction)?.has(account) === true;
      keys.set(account, isUncommitted ? new DataKey(account, text) : this.#keep(account, text, began));
    }
    return keys;
  }

  /**
   * Creates the key of an account. If the storage has lost the one that this process had, that is
   * stored again.
   */
  async create(account: string, transaction: object | undefined): Promise<DataKey> {
    const began = this.#begin();
    const lost = this.#keys.get(account);
    const isUsable =
      lost !== undefined &&
      began.at < lost.until + RESTORE_KEY_MS &&
      !(await this.isErased(account, lost.key.name));
    const key = isUsable ? lost.key.text : randomBytes(KEY_BYTES).toString("base64");
    const added = await this.#store.addDataKey?.({ account, key, transaction });
    if (added === undefined) throw new TypeError("the storage keeps no data keys");
    if (added.isCommitted || transaction === undefined) return this.#keep(account, added.key, began);
    const created = this.#uncommitted.get(transaction) ?? new Set();
    this.#uncommitted.set(transaction, created.add(account));
    return new DataKey(account, added.key);
  }

  /** Returns true if the key of this name was erased. Calls at the same time share one read. */
  isErased(account: string, name: string): Promise<boolean> {
    const cached = this.#erasedNames.get(name);
    if (cached !== undefined) return cached;
    const read = (async () => (await this.#store.isDataKeyErased?.({ account, name })) === true)();
    this.#erasedNames.set(name, read);
    // An erased key stays so, and another may be erased later.
    const forget = (): void => void this.#erasedNames.delete(name);
    read.then((isErased) => isErased || forget(), forget);
    return read;
  }

  async erase(account: string, times: { now: number; forgetAt: number }): Promise<void> {
    this.#erased += 1;
    this.#keys.delete(account);
    await this.#store.eraseDataKey?.({ account, ...times });
    this.#erased += 1;
    this.#keys.delete(account);
  }

  #begin(): BegunRead {
    return { erased: this.#erased, at: this.#clock.monotonic() };
  }

  #readLater(): { accounts: Set<string>; results: Promise<Map<string, StoredKey>> } {
    const accounts = new Set<string>();
    const readAll = async (): Promise<Map<string, StoredKey>> => {
      this.#pending = undefined;
      const all = [...accounts];
      const texts = new Map<string, StoredKey>();
      for (let from = 0; from < all.length; from += READ_TOGETHER) {
        const names = all.slice(from, from + READ_TOGETHER);
        const read = await this.#store.readDataKeys?.(names);
        for (const [index, name] of names.entries()) texts.set(name, read?.[index]);
      }
      return texts;
    };
    return { accounts, results: Promise.resolve().then(readAll) };
  }

  #keep(account: string, text: string, began: BegunRead): DataKey {
    const key = new DataKey(account, text);
    if (began.erased === this.#erased) this.#keys.set(account, { key, until: began.at + KEEP_KEY_MS });
    return key;
  }
}
