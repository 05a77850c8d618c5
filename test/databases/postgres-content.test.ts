/** Content on Postgres: processes that share it, and a server that fails. */

import { describeContent, describeContentWithoutServer } from "../faults/support/content-suite.js";
import { startPostgresUnderTest } from "../faults/support/postgres-under-test.js";

describeContent({ start: () => startPostgresUnderTest(), turns: 1_000 });
describeContentWithoutServer(() => startPostgresUnderTest());
