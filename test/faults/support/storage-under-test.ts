/** The storages that tests of faults run on, whatever their kind. */

import type { ContentStorage } from "../../../src/content/index.js";
import type { Storage } from "../../../src/index.js";

/** Where a service stores. Passed to processes as JSON (open-storage.js). */
export type StorageAddress =
  | {
      readonly kind: "redis";
      readonly url: string;
      readonly prefix: string;
      readonly durability?: "standard" | "replicated" | undefined;
    }
  | { readonly kind: "sqlite"; readonly file: string }
  | {
      readonly kind: "postgres";
      readonly url: string;
      readonly schema: string;
      readonly connections?: "session" | "transaction";
    };

/** A storage that is opened at an address. */
export type OpenStorage = Storage & ContentStorage;

/** Reads and changes what is stored at one address, past the package. */
export interface StorageInspector {
  /**
   * Ends the leases of these processes as time would, so that no test waits for it. Resolves with
   * how many there were.
   */
  readonly expireLeases: (owners: readonly string[]) => Promise<number>;
  /** Makes the health steps of all endpoints due that have one. */
  readonly endNoticeLeases: () => Promise<void>;
  /** Lists counters and places that disagree with each other, one a line. */
  readonly findFaults: () => Promise<readonly string[]>;
  /** Lists what is stored although no webhook and no event is. */
  readonly findLeftovers: () => Promise<readonly string[]>;
  /** Lists what a commit of content that was stored by half would leave. */
  readonly findContentFaults: () => Promise<readonly string[]>;
  readonly close: () => Promise<void>;
}

/** A server that may be killed. */
export interface KillableServer {
  readonly name: string;
  readonly port: number;
  readonly kill: () => Promise<void>;
  readonly restart: () => Promise<void>;
}

export interface OpenOptions {
  /** Takes the time of the host, not that of the server. */
  readonly time?: "clock" | undefined;
  /** How many changes of content the storage keeps. */
  readonly contentChanges?: number | undefined;
}

/** Offers empty storages of one kind. */
export interface StorageUnderTest {
  readonly kind: StorageAddress["kind"];
  /** `undefined` for a file, which no server keeps. */
  readonly server: KillableServer | undefined;
  /** Resolves with an address where nothing is stored. */
  readonly fresh: () => Promise<StorageAddress>;
  readonly open: (address: StorageAddress, options?: OpenOptions) => OpenStorage;
  readonly inspect: (address: StorageAddress) => StorageInspector;
  /** Returns the same storage behind a proxy on this port. */
  readonly through: (address: StorageAddress, port: number) => StorageAddress;
  readonly stop: () => Promise<void>;
}
