/**
 * Stands in for `src/core/logger.ts` in the tests: each line that reaches a logger is searched for
 * secrets.
 */

import { type Logger, type LoggerOption, guardedLogger as original } from "../../../src/core/logger.js";
import { fileLeaks } from "../leak-check.js";

export * from "../../../src/core/logger.js";

const search = (fields: object, message: string): void => fileLeaks.note(`the log, "${message}"`, fields);
const searching = original({ debug: search, info: search, warn: search, error: search });

export function guardedLogger(logger: LoggerOption): Logger {
  const guarded = original(logger);
  const both =
    (level: keyof Logger) =>
    (fields: object, message: string): void => {
      searching[level](fields, message);
      guarded[level](fields, message);
    };
  return Object.freeze({
    debug: both("debug"),
    info: both("info"),
    warn: both("warn"),
    error: both("error"),
  });
}
