/**
 * Stands in for `src/content/service.ts` in the tests: each response is compared with the OpenAPI
 * document.
 */

import { createContent as original } from "../../../src/content/service.js";
import { comparing } from "../compared-service.js";

export * from "../../../src/content/service.js";

export const createContent: typeof original = comparing(original);
