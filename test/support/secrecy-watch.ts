/**
 * A set-up of the whole suite: reads along what every service hands to a logger or to telemetry, what the package's errors say, and the answers that tell of an error, and fails
 * the file where a secret, key, password or clinical word of the tests is in it. Services without telemetry are given one, so that all of it is reported somewhere.
 */

import { afterAll, vi } from "vitest";
import type { Logger } from "../../src/logger.js";
import type { SpanAttributes, Telemetry } from "../../src/telemetry.js";
import { fileLeaks, type LeakCheck } from "./leak-check.js";

const check = vi.hoisted((): { note: LeakCheck["note"] } => ({ note() {} }));
check.note = fileLeaks.note;

vi.mock("../../src/logger.js", async (original) => {
  const actual = await original<typeof import("../../src/logger.js")>();
  const guardedLogger = (logger: Logger): Logger => {
    const guarded = actual.guardedLogger(logger);
    const watched = actual.guardedLogger({
      debug: (fields, message) => check.note(`the log, "${message}"`, fields),
      info: (fields, message) => check.note(`the log, "${message}"`, fields),
      warn: (fields, message) => check.note(`the log, "${message}"`, fields),
      error: (fields, message) => check.note(`the log, "${message}"`, fields),
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

/** Their names are the package's own words. */
const valuesOf = (attributes: SpanAttributes): string => Object.values(attributes).join(" ");

vi.mock("../../src/telemetry.js", async (original) => {
  const actual = await original<typeof import("../../src/telemetry.js")>();
  const guardedTelemetry = (telemetry: Telemetry | undefined): Telemetry => {
    const guarded = actual.guardedTelemetry(telemetry);
    return Object.freeze<Telemetry>({
      record(metric, value, labels) {
        check.note("a metric", valuesOf(labels));
        guarded?.record(metric, value, labels);
      },
      observe: (read) => guarded?.observe(read) ?? (() => {}),
      begin(start) {
        check.note("a span", valuesOf(start.attributes));
        const span = guarded?.begin?.(start);
        return {
          traceparent: span?.traceparent,
          run: (work) => (span === undefined ? work() : span.run(work)),
          end(outcome) {
            check.note("a span", `${outcome.error} ${valuesOf(outcome.attributes ?? {})}`);
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
      check.note(`an error, ${this.code}`, [this.message, this.field]);
    }
  }
  return { ...actual, PostbellError };
});

vi.mock("../../src/http/errors.js", async (original) => {
  const actual = await original<typeof import("../../src/http/errors.js")>();
  class HttpError extends actual.HttpError {
    constructor(...given: ConstructorParameters<typeof actual.HttpError>) {
      super(...given);
      check.note(`an error, ${this.code}`, [this.message, this.field, this.headers]);
    }
  }
  return { ...actual, HttpError };
});

afterAll(() => {
  const found = fileLeaks.found();
  if (found.length > 0)
    throw new Error(
      `A log, a span, a metric, an error or its answer holds what it must not: ${found.join("; ")}`,
    );
});
