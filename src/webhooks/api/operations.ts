/** All operations of the registration API, for the route table and for OpenAPI. Plain data. */

import { deliveryOperations } from "./delivery-operations.js";
import { interfaceOperations } from "./interface-operations.js";
import { registrationOperations } from "./registration-operations.js";

/** By operation id, in the order of the OpenAPI document. */
export const operations = {
  ...registrationOperations,
  ...deliveryOperations,
  ...interfaceOperations,
} as const;
