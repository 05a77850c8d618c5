/** Many calls of several processes meet on one Postgres. */

import { startPostgresUnderTest } from "../faults/support/postgres-under-test.js";
import { describeStoreStorm } from "../faults/support/store-storm-suite.js";

describeStoreStorm(() => startPostgresUnderTest());
