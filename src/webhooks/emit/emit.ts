/** `emit`: prepares events, stores them in order, and reports how it went. */

import { ignoreErrors } from "../../core/error-events.js";
import { isPostbellError, PostbellError } from "../../core/errors.js";
import type { SpanAttributes } from "../../core/telemetry.js";
import type { EventRecord } from "../store.js";
import type { AppendEvent } from "./append-event.js";
import type { EmitTelemetry } from "./emit-telemetry.js";
import { type EmitOptions, type Emitted, type EventInput, readEmitOptions } from "./event-input.js";
import type { PrepareEvent } from "./prepare-event.js";

type Note = (attributes: SpanAttributes) => void;

/** Emits one event, or several in order. */
export type Emit = (
  input: EventInput | readonly EventInput[],
  options?: EmitOptions,
) => Promise<Emitted | readonly Emitted[]>;

/** The span of a call in the host's telemetry. */
interface EmitSpan {
  readonly trace: string | undefined;
  readonly note: Note | undefined;
}

interface EmitContext {
  readonly prepare: PrepareEvent;
  readonly append: AppendEvent;
  readonly report: EmitTelemetry;
}

export function createEmit({ prepare, append, report }: EmitContext): Emit {
  const store = async (event: EventRecord, options: EmitOptions, place?: Place): Promise<Emitted> => {
    try {
      return await report.event(append(event, options), toOutcome);
    } catch (error) {
      throw isPostbellError(error) ? toStoreError(error, event, place) : error;
    }
  };

  const emitOne = async (
    input: EventInput,
    options: EmitOptions,
    { trace, note }: EmitSpan,
  ): Promise<Emitted> => {
    const event = await report.event(prepare(input, trace));
    note?.({ "messaging.destination.name": event.type, "messaging.message.id": event.id });
    const emitted = await store(event, options);
    note?.({ "postbell.outcome": toOutcome(emitted), "postbell.deliveries": emitted.deliveries.length });
    return emitted;
  };

  const emitAll = async (
    inputs: readonly EventInput[],
    options: EmitOptions,
    { trace, note }: EmitSpan,
  ): Promise<readonly Emitted[]> => {
    note?.({ "messaging.batch.message_count": inputs.length });
    // Array.from visits holes too, and a hole is not an event.
    const prepared = await Promise.all(
      Array.from(inputs, async (input, index) => {
        try {
          return await report.event(prepare(input, trace));
        } catch (error) {
          throw isPostbellError(error) ? toItemError(error, index) : error;
        }
      }),
    );
    const storeItem = (item: EventRecord, index: number): Promise<Emitted> =>
      store(item, options, { index, count: inputs.length });
    // A transaction is stored as a whole or not at all, so nobody asks where storing has stopped.
    if (options.transaction !== undefined) return Promise.all(prepared.map(storeItem));
    const emitted: Emitted[] = [];
    for (const [index, item] of prepared.entries()) emitted.push(await storeItem(item, index));
    return emitted;
  };

  return async (input, given) => {
    const options = readEmitOptions(given);
    // A connection of the host may end while the event is prepared. Its next statement rejects.
    ignoreErrors(options.transaction);
    return report.call<Emitted | readonly Emitted[]>((trace, note) =>
      isList(input) ? emitAll(input, options, { trace, note }) : emitOne(input, options, { trace, note }),
    );
  };
}

/** The place of an event in a list. */
interface Place {
  readonly index: number;
  readonly count: number;
}

/** Adds the event's id, so that the caller can emit it again, and where storing stopped. */
function toStoreError(error: PostbellError, { id: eventId }: EventRecord, place?: Place): PostbellError {
  const { code, message, field, effect, reason, isPermanent, isOutage } = error;
  const details = { field, effect, reason, isPermanent, isOutage, eventId, cause: error };
  if (place === undefined) return new PostbellError(code, message, details);
  const stored = `${place.index} of ${place.count} events were stored.`;
  return new PostbellError(code, `${message} ${stored}`, { ...details, field: `[${place.index}]` });
}

/** Converts the error of one item to an error of the list, whose field names the item. */
function toItemError(error: PostbellError, index: number): PostbellError {
  const { code, message, field } = error;
  const path = field === undefined ? `[${index}]` : `[${index}].${field}`;
  return new PostbellError(code, `[${index}]: ${message}`, { field: path, cause: error });
}

const toOutcome = ({ duplicate }: Emitted): string => (duplicate ? "duplicate" : "stored");

const isList = (input: EventInput | readonly EventInput[]): input is readonly EventInput[] =>
  Array.isArray(input);
