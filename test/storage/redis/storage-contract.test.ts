/** The contracts of storage and content store on Redis, from a URL. */

import { describe, test } from "vitest";
import { contentStoreContract, storageContract } from "../../../src/testing/index.js";
import { redisStorage } from "../../../storage/redis/index.js";
import { freshPrefix, redisUrl } from "../../support/redis.js";

describe("on one server, from a URL, the contracts hold:", () => {
  const create = () => {
    const options = { url: redisUrl(), prefix: freshPrefix(), time: "clock" } as const;
    return { storage: redisStorage(options), peer: redisStorage(options) };
  };
  storageContract({ test, create });
  contentStoreContract({ test, create });
});
