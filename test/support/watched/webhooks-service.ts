/**
 * Stands in for `src/webhooks/service.ts` in the tests: each response is compared with the OpenAPI
 * document.
 */

import { createWebhooks as original } from "../../../src/webhooks/service.js";
import { comparing } from "../compared-service.js";

export * from "../../../src/webhooks/service.js";

// The overloads are those of the original.
export const createWebhooks = comparing(original) as typeof original;
