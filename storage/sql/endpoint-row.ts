/** The row of an endpoint. */

import type { RowOf } from "./table.js";
import type { endpoints } from "./webhook-tables.js";

export type EndpointRow = RowOf<typeof endpoints>;
