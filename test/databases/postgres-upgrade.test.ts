/** An upgrade and its rollback, on Postgres. */

import { startPostgresUnderTest } from "../faults/support/postgres-under-test.js";
import { describeUpgrade } from "../faults/support/upgrade-suite.js";

describeUpgrade(() => startPostgresUnderTest());
