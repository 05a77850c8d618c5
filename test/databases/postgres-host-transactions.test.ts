/** Hosts that emit in their own transactions on Postgres are killed. */

import { describeHostTransactions } from "../faults/support/host-transaction-suite.js";
import { connectPostgres, startPostgresUnderTest } from "../faults/support/postgres-under-test.js";

describeHostTransactions({ start: () => startPostgresUnderTest(), connect: connectPostgres });
