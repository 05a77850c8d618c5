/** Postgres that is gone for a while, under both services. */

import { describe } from "vitest";
import { describeOutage } from "../faults/support/outage-suite.js";
import { startPostgresUnderTest } from "../faults/support/postgres-under-test.js";

describe("Postgres", () => {
  describeOutage(() => startPostgresUnderTest());
});
