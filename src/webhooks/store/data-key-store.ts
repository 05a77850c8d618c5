/** The part of the port that keeps the keys which encrypt the bodies of events. */

import type { PostbellError } from "../../core/errors.js";

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
   * True if the data keys end with the process. Then only events of the same storage may be sealed
   * with them.
   */
  readonly losesDataKeys?: boolean | undefined;
  /**
   * Returns the data keys of accounts, at most 250, in their order: 32 bytes in base64, `undefined`
   * for an account without one, and a `storage_unavailable` for an account whose key cannot be read
   * or opened. A key that is sealed with an older key of the host is sealed again, later: reading
   * works while nothing can be written.
   *
   * With `transaction`, a storage that lends a connection to each call reads on that of the host.
   * Waiting for a second connection could take forever, when every host waits for one.
   *
   * Rejects with `storage_unavailable` if no key can be read.
   */
  readDataKeys?(
    accounts: readonly string[],
    transaction?: object,
  ): Promise<readonly (string | PostbellError | undefined)[]>;
  /**
   * Stores a data key, unless the account has one, and returns the key that it has. Of several
   * calls at the same time, all return the same key. It is as durable as an event.
   *
   * With `transaction`, a storage adds the key in the host's transaction if that keeps other
   * writers waiting, or if no other connection is free. The others ignore it.
   */
  addDataKey?(request: {
    account: string;
    key: string;
    transaction?: object | undefined;
  }): Promise<AddedDataKey>;
  /**
   * Erases the data key of an account, and keeps its name as that of an erased key until
   * `forgetAt`. Without a key, nothing happens. It is as durable as an event: if no replica
   * confirms it where events are confirmed by replicas, it rejects with `storage_unavailable`, and
   * calling it again goes on.
   */
  eraseDataKey?(request: { account: string; now: number; forgetAt: number }): Promise<void>;
  /**
   * Returns true if the key of an account with this name was erased. A key that is missing without
   * having been erased is lost, or not visible yet: what it has sealed must wait.
   */
  isDataKeyErased?(request: { account: string; name: string }): Promise<boolean>;
}
