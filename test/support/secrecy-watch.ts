/**
 * A set-up of the whole suite: reads along what every service hands to a logger or to telemetry and what the package's errors say, and fails the file where a
 * secret, key, password or clinical word of the tests is in it. Services without telemetry are given one, so that all of it is reported somewhere.
 */

import { inspect } from "node:util";
import { afterAll, vi } from "vitest";
import type { Logger } from "../../src/logger.js";
import type { Telemetry } from "../../src/telemetry.js";
import { createLeakCheck } from "./leak-check.js";

const check = vi.hoisted((): { note: (value: unknown) => void } => ({ note() {} }));
const leaks = createLeakCheck();
check.note = (value) =>
  leaks.note(
    typeof value === "string" ? value : inspect(value, { depth: 6, breakLength: Number.POSITIVE_INFINITY }),
  );

vi.mock("../../src/logger.js", async (original) => {
  const actual = await original<typeof import("../../src/logger.js")>();
  const guardedLogger = (logger: Logger): Logger => {
    const guarded = actual.guardedLogger(logger);
    const watched = actual.guardedLogger({
      debug: (fields, message) => check.note([message, fields]),
      info: (fields, message) => check.note([message, fields]),
      warn: (fields, message) => check.note([message, fields]),
      error: (fields, message) => check.note([message, fields]),
    });
    const both =
      (level: keyof Logger) =>
      (fields: object, message: string): void => {
        watched[level](fields, message);
        guarded[level](fields, message);
      };
    return Object.freeze({
      debug: both("debug"),
      info: both("info"),
      warn: both("warn"),
      error: both("error"),
    });
  };
  return { ...actual, guardedLogger };
});

vi.mock("../../src/telemetry.js", async (original) => {
  const actual = await original<typeof import("../../src/telemetry.js")>();
  const guardedTelemetry = (telemetry: Telemetry | undefined): Telemetry => {
    const guarded = actual.guardedTelemetry(telemetry);
    return Object.freeze<Telemetry>({
      record(metric, value, labels) {
        for (const label of Object.values(labels)) check.note(label);
        guarded?.record(metric, value, labels);
      },
      observe: (read) => guarded?.observe(read) ?? (() => {}),
      begin(start) {
        check.note(`${start.name} ${Object.values(start.attributes).join(" ")}`);
        const span = guarded?.begin?.(start);
        return {
          traceparent: span?.traceparent,
          run: (work) => (span === undefined ? work() : span.run(work)),
          end(outcome) {
            check.note(`${outcome.error} ${Object.values(outcome.attributes ?? {}).join(" ")}`);
            span?.end(outcome);
          },
        };
      },
    });
  };
  return { ...actual, guardedTelemetry };
});

vi.mock("../../src/errors.js", async (original) => {
  const actual = await original<typeof import("../../src/errors.js")>();
  class PostbellError extends actual.PostbellError {
    constructor(...given: ConstructorParameters<typeof actual.PostbellError>) {
      super(...given);
      check.note(this.message);
      check.note(String(this.field));
    }
  }
  return { ...actual, PostbellError };
});

afterAll(() => {
  const found = leaks.found();
  if (found.length > 0)
    throw new Error(`A log, a span, a metric or an error holds what it must not: ${found.join("; ")}`);
});
