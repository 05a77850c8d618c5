/** Reports `emit` to the host's telemetry: a span for each call, and a duration for each event. */

import type { Clock } from "../../core/clock.js";
import { isPostbellError } from "../../core/errors.js";
import { type SpanAttributes, seconds, type Telemetry } from "../../core/telemetry.js";

const toErrorLabel = (error: unknown): string => (isPostbellError(error) ? error.code : "unexpected");

export interface EmitTelemetry {
  /**
   * Runs `work` inside a span. `work` gets the `traceparent` to store with its events, and a
   * function that adds attributes to the span.
   */
  call<T>(
    work: (trace: string | undefined, note: ((attributes: SpanAttributes) => void) | undefined) => Promise<T>,
  ): Promise<T>;
  /**
   * Times the work for one event. The label is the code of its error, or else what `toOutcome`
   * returns. Without `toOutcome`, a success is not recorded.
   */
  event<T>(work: Promise<T>, toOutcome?: (result: T) => string): Promise<T>;
}

/** Adds nothing to `emit` if there is no telemetry. */
export function createEmitTelemetry(telemetry: Telemetry | undefined, clock: Clock): EmitTelemetry {
  if (telemetry === undefined) {
    return { call: (work) => work(undefined, undefined), event: (work) => work };
  }
  return {
    async call(work) {
      const span = telemetry.begin?.({
        name: "emit",
        kind: "producer",
        at: clock.now(),
        attributes: {
          "messaging.system": "postbell",
          "messaging.operation.name": "emit",
          "messaging.operation.type": "send",
        },
      });
      if (span === undefined) return work(undefined, undefined);
      const attributes: Record<string, SpanAttributes[string]> = {};
      let error: string | undefined;
      try {
        return await span.run(() => work(span.traceparent, (noted) => Object.assign(attributes, noted)));
      } catch (thrown) {
        error = toErrorLabel(thrown);
        throw thrown;
      } finally {
        span.end({ at: clock.now(), attributes, error });
      }
    },
    async event(work, toOutcome) {
      const startedAt = clock.monotonic();
      const record = (outcome: string): void =>
        telemetry.record("emitDuration", seconds(clock.monotonic() - startedAt), { outcome });
      try {
        const result = await work;
        if (toOutcome !== undefined) record(toOutcome(result));
        return result;
      } catch (error) {
        record(toErrorLabel(error));
        throw error;
      }
    },
  };
}
