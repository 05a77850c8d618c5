/** A Redis storage driven through the port of the storages, call by call. */

import { type RedisStorage, type RedisStorageOptions, redisStorage } from "../../../storage/redis/index.js";
import { freshPrefix } from "../../support/redis.js";
import { type DrivenStore, type DriveOptions, driveStore } from "./store-driver.js";

export interface OpenStore extends DrivenStore {
  readonly storage: RedisStorage;
  readonly prefix: string;
  /** A key of the first partition. */
  readonly key: (name: string) => string;
}

export function openStore(options: RedisStorageOptions, driving: DriveOptions = {}): OpenStore {
  const prefix = options.prefix ?? freshPrefix();
  const storage = redisStorage({ ...options, prefix });
  return {
    ...driveStore(storage, driving),
    storage,
    prefix,
    key: (name) => `{${prefix}:0}:${name}`,
  };
}
