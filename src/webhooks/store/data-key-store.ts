/** The part of the port that keeps the keys which encrypt the bodies of events. */

/** The data key that an account has. */
export interface AddedDataKey {
  /** 32 bytes in base64. */
  readonly key: string;
  /** False if the key exists only once the transaction of the host is committed. */
  readonly isCommitted: boolean;
}

/**
 * Keeps one data key for each account, for the option `sealEvents`. A storage without it has none
 * of these methods, and the option is refused.
 */
export interface DataKeyStore {
  /**
   * True if the data keys are sealed with keys that are not in the storage, or if they are never
   * written to a disk. Without it, `sealEvents` is refused.
   */
  readonly sealsDataKeys?: boolean | undefined;
  /**
   * Returns the data keys of accounts, at most 250, in their order: 32 bytes in base64, `undefined`
   * for an account without one. A key that is sealed with an older key of the host is sealed again.
   *
   * Rejects with `storage_unavailable` if a key cannot be opened.
   */
  readDataKeys?(accounts: readonly string[]): Promise<readonly (string | undefined)[]>;
  /**
   * Stores a data key, unless the account has one, and returns the key that it has. Of several
   * calls at the same time, all return the same key. It is as durable as an event.
   *
   * With `transaction`, a storage whose transactions keep other writers waiting adds the key in the
   * host's transaction. The others ignore it.
   */
  addDataKey?(request: {
    account: string;
    key: string;
    transaction?: object | undefined;
  }): Promise<AddedDataKey>;
  /** Erases the data key of an account. Without one, nothing happens. */
  eraseDataKey?(account: string): Promise<void>;
}
