/**
 * Stands in for `src/core/telemetry.ts` in the tests: each label and attribute is searched for
 * secrets. Services without telemetry get one, so that everything they report is searched.
 */

import {
  guardedTelemetry as original,
  type SpanAttributes,
  type Telemetry,
} from "../../../src/core/telemetry.js";
import { fileLeaks } from "../leak-check.js";

export * from "../../../src/core/telemetry.js";

/** The names are the package's own words. */
const valuesOf = (attributes: SpanAttributes): string => Object.values(attributes).join(" ");

export function guardedTelemetry(telemetry: Telemetry | undefined): Telemetry {
  const guarded = original(telemetry);
  return Object.freeze<Telemetry>({
    record(metric, value, labels) {
      fileLeaks.note("a metric", valuesOf(labels));
      guarded?.record(metric, value, labels);
    },
    observe: (read) => guarded?.observe(read) ?? (() => {}),
    begin(start) {
      fileLeaks.note("a span", valuesOf(start.attributes));
      const span = guarded?.begin?.(start);
      return {
        traceparent: span?.traceparent,
        run: (work) => (span === undefined ? work() : span.run(work)),
        end(outcome) {
          fileLeaks.note("a span", `${outcome.error} ${valuesOf(outcome.attributes ?? {})}`);
          span?.end(outcome);
        },
      };
    },
  });
}
