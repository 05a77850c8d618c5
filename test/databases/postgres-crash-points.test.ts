/** Processes on Postgres are killed at each step and at each statement; others go on. */

import { describeCrashPoints } from "../faults/support/crash-point-suite.js";
import { startPostgresUnderTest } from "../faults/support/postgres-under-test.js";
import { describeStatementCrashes } from "../faults/support/statement-suite.js";

describeCrashPoints(() => startPostgresUnderTest());
describeStatementCrashes({ start: startPostgresUnderTest, alsoSent: true });
