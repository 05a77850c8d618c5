/** Reports `emit` to the host's telemetry: a span for each call, and a duration for each event. */

import type { Clock } from "../../core/clock.js";
import { isPostbellError } from "../../core/errors.js";
import { type SpanAttributes, seconds, type Telemetry } from "../../core/telemetry.js";
import type { AppendEvents } from "./append-events.js";

const toErrorLabel = (error: unknown): string => (isPostbellError(error) ? error.code : "unexpected");

type Stored = Awaited<ReturnType<AppendEvents>>;

export interface EmitTelemetry {
  /**
   * Runs `work` inside a span. `work` gets the `traceparent` to store with its events, and a
   * function that adds attributes to the span.
   */
  call<T>(
    work: (trace: string | undefined, note: ((attributes: SpanAttributes) => void) | undefined) => Promise<T>,
  ): Promise<T>;
  /** Runs `prepare`, and records how long it took if it fails, labelled with the error's code. */
  prepared<T>(prepare: () => T | Promise<T>): T | Promise<T>;
  /**
   * Records how long `storing` took for each event: those that were stored, and the one that was
   * not.
   */
  stored(storing: Promise<Stored>): Promise<Stored>;
}

/** Adds nothing to `emit` if there is no telemetry. */
export function createEmitTelemetry(telemetry: Telemetry | undefined, clock: Clock): EmitTelemetry {
  if (telemetry === undefined) {
    return {
      call: (work) => work(undefined, undefined),
      prepared: (prepare) => prepare(),
      stored: (storing) => storing,
    };
  }
  const record = (startedAt: number, outcome: string): void =>
    telemetry.record("emitDuration", seconds(clock.monotonic() - startedAt), { outcome });

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
    async prepared(prepare) {
      const startedAt = clock.monotonic();
      try {
        return await prepare();
      } catch (error) {
        record(startedAt, toErrorLabel(error));
        throw error;
      }
    },
    async stored(storing) {
      const startedAt = clock.monotonic();
      try {
        const stored = await storing;
        for (const { duplicate } of stored.emitted) record(startedAt, duplicate ? "duplicate" : "stored");
        if (stored.error !== undefined) record(startedAt, stored.error.code);
        return stored;
      } catch (error) {
        record(startedAt, toErrorLabel(error));
        throw error;
      }
    },
  };
}
