/** The routes in which the site describes its types, statuses and taxonomies. */

import type { RestRoute } from "../rest/types.js";
import { keyedRoutes } from "./keyed-routes.js";
import { typesTable } from "./post-types.js";
import { statusesTable } from "./statuses.js";
import { taxonomiesTable } from "./taxonomies.js";

/** `namespace`: `core/v2`. */
export const typeRoutes = (namespace: string): readonly RestRoute[] => [
  ...keyedRoutes(typesTable(namespace), namespace),
  ...keyedRoutes(statusesTable, namespace),
  ...keyedRoutes(taxonomiesTable(namespace), namespace),
];
