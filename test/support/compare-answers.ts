/**
 * Set-up of every test file: a test fails if a response differs from the OpenAPI document of its
 * service.
 */

import { afterAll, afterEach } from "vitest";
import { takeDifferences } from "./compared-service.js";

function fail(): void {
  const problems = takeDifferences();
  if (problems.length === 0) return;
  throw new Error(`Answers differ from the OpenAPI document:\n${problems.join("\n")}`);
}

afterEach(fail);
afterAll(fail);
