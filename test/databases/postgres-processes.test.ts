/** Several processes on one Postgres. */

import { startPostgresUnderTest } from "../faults/support/postgres-under-test.js";
import { describeEndWithoutServer, describeProcesses } from "../faults/support/process-suite.js";

describeProcesses(() => startPostgresUnderTest());
describeEndWithoutServer(() => startPostgresUnderTest(), { connectMs: 3_000 });
