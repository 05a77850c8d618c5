/**
 * Set-up of every test file: the file fails if a log line, a span, a metric, an error or an error's
 * response holds a secret, key, password or clinical word of the tests. The modules in `watched/`
 * note what they see in `fileLeaks`.
 */

import { afterAll } from "vitest";
import { fileLeaks } from "./leak-check.js";

afterAll(() => {
  const found = fileLeaks.take();
  if (found.length > 0)
    throw new Error(
      `A log, a span, a metric, an error or its answer holds what it must not: ${found.join("; ")}`,
    );
});
