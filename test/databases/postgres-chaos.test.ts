/** Workers on Postgres, and Postgres itself, are killed again and again under load. */

import { describeChaos } from "../faults/support/chaos-suite.js";
import { startPostgresUnderTest } from "../faults/support/postgres-under-test.js";

describeChaos({ start: () => startPostgresUnderTest(), workers: 2 });
