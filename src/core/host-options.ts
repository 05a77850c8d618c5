/** The options that every service has: a clock and a logger. */

import { type Clock, systemClock } from "./clock.js";
import { consoleLogger, type LoggerOption } from "./logger.js";
import { type Option, value } from "./options.js";
import type { Telemetry } from "./telemetry.js";

/** Returns a predicate that is true for objects with these methods. */
export const hasMethods =
  (...names: string[]) =>
  (value: unknown): boolean =>
    typeof value === "object" &&
    value !== null &&
    names.every((name) => typeof (value as Record<string, unknown>)[name] === "function");

export const loggerOption: Option<LoggerOption> = value<LoggerOption>(
  "a logger with debug, info, warn and error, or false",
  (value) => value === false || hasMethods("debug", "info", "warn", "error")(value),
  consoleLogger,
  "a logger, or false",
);

export const telemetryOption = value<Telemetry | undefined>(
  "what openTelemetry() or prometheus().telemetry gives",
  hasMethods("record", "observe"),
  undefined,
  "telemetry",
);

export const hostOptions = {
  clock: value<Clock>(
    "a clock",
    hasMethods("now", "monotonic", "setTimeout", "clearTimeout", "random"),
    systemClock,
  ),
  logger: loggerOption,
};
