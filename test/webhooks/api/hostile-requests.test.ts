import { describe } from "vitest";
import type { Storage } from "../../../src/webhooks/store.js";
import { hostileRequestsContract } from "../../contracts/hostile-requests.js";
import { CONTENT_STORAGES } from "../../support/content-storages.js";

describe.each(CONTENT_STORAGES)("the registration API on %s", (_, open) => {
  // These storages keep both services.
  hostileRequestsContract(() => open() as unknown as Storage);
});
