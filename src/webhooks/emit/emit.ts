/** `emit`: prepares events, stores them in order, and reports how it went. */

import { ignoreErrors } from "../../core/error-events.js";
import { isPostbellError, PostbellError } from "../../core/errors.js";
import type { EventRecord } from "../store.js";
import type { AppendEvents } from "./append-events.js";
import type { EmitTelemetry } from "./emit-telemetry.js";
import { type EmitOptions, type Emitted, type EventInput, readEmitOptions } from "./event-input.js";
import type { PrepareEvent } from "./prepare-event.js";

/** Emits one event, or several in order. */
export type Emit = (
  input: EventInput | readonly EventInput[],
  options?: EmitOptions,
) => Promise<Emitted | readonly Emitted[]>;

export function createEmit({
  prepare,
  append,
  report,
}: {
  readonly prepare: PrepareEvent;
  readonly append: AppendEvents;
  readonly report: EmitTelemetry;
}): Emit {
  /** Prepares every event before the first is stored. */
  const prepareAll = async (
    inputs: readonly EventInput[],
    trace: string | undefined,
  ): Promise<readonly EventRecord[]> => {
    const pending: Promise<EventRecord>[] = [];
    const prepareItem = (input: EventInput, index: number): EventRecord | Promise<EventRecord> => {
      try {
        const event = prepare(input, trace);
        if (!(event instanceof Promise)) return event;
        const named = event.catch((error: unknown) => {
          throw toItemError(error, index);
        });
        pending.push(named);
        return named;
      } catch (error) {
        throw toItemError(error, index);
      }
    };
    try {
      // Array.from visits holes too, and a hole is not an event.
      const prepared = Array.from(inputs, prepareItem);
      return pending.length === 0 ? (prepared as readonly EventRecord[]) : await Promise.all(prepared);
    } catch (error) {
      // Other lookups may still reject. Unhandled, that would end the process.
      void Promise.allSettled(pending);
      throw error;
    }
  };

  const emitOne = (input: EventInput, options: EmitOptions): Promise<Emitted> =>
    report.call(async (trace, note) => {
      const prepared = await report.prepared(() => prepare(input, trace));
      note?.({ "messaging.destination.name": prepared.type, "messaging.message.id": prepared.id });
      const { emitted, error } = await report.stored(append([prepared], options));
      const [own] = emitted;
      if (own === undefined) throw toStoreError(error, prepared);
      note?.({
        "postbell.outcome": own.duplicate ? "duplicate" : "stored",
        "postbell.deliveries": own.deliveries.length,
      });
      return own;
    });

  const emitAll = (inputs: readonly EventInput[], options: EmitOptions): Promise<readonly Emitted[]> =>
    report.call(async (trace, note) => {
      note?.({ "messaging.batch.message_count": inputs.length });
      const prepared = await report.prepared(() => prepareAll(inputs, trace));
      if (prepared.length === 0) return [];
      const { emitted, error } = await report.stored(append(prepared, options));
      const next = prepared[emitted.length];
      if (next === undefined) return emitted;
      throw toStoreError(error, next, { index: emitted.length, count: prepared.length });
    });

  return async (input, given) => {
    const options = readEmitOptions(given);
    // A connection of the host may end while the event is prepared. Its next statement rejects.
    ignoreErrors(options.transaction);
    return isList(input) ? emitAll(input, options) : emitOne(input, options);
  };
}

/** The place of an event in a list. */
interface Place {
  readonly index: number;
  readonly count: number;
}

/** Adds the event's id, so that the caller can emit it again, and where storing stopped. */
function toStoreError(
  error: PostbellError | undefined,
  { id: eventId }: EventRecord,
  place?: Place,
): PostbellError {
  if (error === undefined) throw new TypeError("the storage returned no result for an event");
  const { code, message, field, effect, reason, isPermanent, isOutage } = error;
  const details = { field, effect, reason, isPermanent, isOutage, eventId, cause: error };
  if (place === undefined) return new PostbellError(code, message, details);
  const { index, count } = place;
  const stored = `${effect === "unknown" ? "At least " : ""}${index} of ${count} events were stored.`;
  return new PostbellError(code, `${message} ${stored}`, { ...details, field: `[${index}]` });
}

/** Converts the error of one item to an error of the list, whose field names the item. */
function toItemError(error: unknown, index: number): unknown {
  if (!isPostbellError(error)) return error;
  const { code, message, field } = error;
  const path = field === undefined ? `[${index}]` : `[${index}].${field}`;
  return new PostbellError(code, `[${index}]: ${message}`, { field: path, cause: error });
}

const isList = (input: EventInput | readonly EventInput[]): input is readonly EventInput[] =>
  Array.isArray(input);
