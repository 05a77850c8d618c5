/** What emitting reports: a span for each call, and for each event how it went. */

import type { Clock } from "../../core/clock.js";
import { isPostbellError } from "../../core/errors.js";
import { type SpanAttributes, seconds, type Telemetry } from "../../core/telemetry.js";

const codeOf = (error: unknown): string => (isPostbellError(error) ? error.code : "unexpected");

export interface EmitTelemetry {
  /** A span around `work`, which is given the `traceparent` to store with its events, and may note attributes. */
  call<T>(
    work: (trace: string | undefined, note: ((attributes: SpanAttributes) => void) | undefined) => Promise<T>,
  ): Promise<T>;
  /** Times what is done for one event. It is counted by its error, or as what `outcomeOf` says, unless it says nothing. */
  event<T>(work: Promise<T>, outcomeOf?: (result: T) => string): Promise<T>;
}

/** Adds nothing to an emit where there is no telemetry. */
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
        error = codeOf(thrown);
        throw thrown;
      } finally {
        span.end({ at: clock.now(), attributes, error });
      }
    },
    async event(work, outcomeOf) {
      const began = clock.monotonic();
      const tell = (outcome: string): void =>
        telemetry.record("emitDuration", seconds(clock.monotonic() - began), { outcome });
      try {
        const result = await work;
        if (outcomeOf !== undefined) tell(outcomeOf(result));
        return result;
      } catch (error) {
        tell(codeOf(error));
        throw error;
      }
    },
  };
}
